# tests/cli: the xmem tool, with a program that makes a known scene for it.

$(B)/cli-scene: $(B)/obj/tests/cli/scene.o $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

.PHONY: cli-tests
cli-tests: $(B)/xmem $(B)/xmemd $(B)/cli-scene $(FAKECUDA)
