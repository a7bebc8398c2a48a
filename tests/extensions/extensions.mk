# extensions: two plug-ins that share one library through its table, and a program for them; see
# extension.h. The conformance suite loads the same two.

EXTENSIONS := $(B)/extension-writer.so $(B)/extension-reader.so

$(EXTENSIONS): $(B)/extension-%.so: $(B)/obj/tests/extensions/%.o
	$(say) LD $@
	$(Q)$(CC) -shared $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

$(B)/extensions: $(B)/obj/tests/extensions/main.o | $(EXTENSIONS) $(B)/libxmem.so $(B)/xmemd
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

.PHONY: check-extensions
check-extensions: $(B)/extensions
	$(Q)XMEM_SOCKET=xmem-extensions-$$$$ $(B)/extensions "$(abspath $(B)/libxmem.so)"
