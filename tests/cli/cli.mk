# tests/cli: the xmem tool, with a program that makes a known scene for it, and one that drives the
# view of xmem top.

$(B)/cli-scene: $(B)/obj/tests/cli/scene.o $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

$(B)/cli-view: $(B)/obj/tests/cli/view.o \
		$(filter-out %/xmem.o %/cmd_top.o %/top_screen.o,$(CLI_OBJ)) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ljansson -ldl

# Recordings that are cut off, damaged and hostile.
$(B)/cli-recordings: $(addprefix $(B)/obj/,tests/cli/recordings.o \
		$(addprefix cli/,mcap.o mcap_read.o mcap_write.o error.o output.o)) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ljansson -ldl

# The scene starts the daemon.
$(B)/cli-scene: | $(B)/xmemd

.PHONY: cli-tests
cli-tests: $(B)/xmem $(B)/xmemd $(B)/cli-scene $(B)/cli-view $(FAKECUDA)
