# xmem, the command-line tool. It writes JSON by libjansson, which only the tool needs:
# CLI=no leaves the tool out. Without ncurses, xmem top has only --once and --json.

CLI     ?= yes
CLI_SRC := $(wildcard cli/*.c)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/obj/%.o)

ifneq ($(CLI),no)
all: $(B)/xmem
INSTALL += 755:$(B)/xmem:$(BINDIR)/xmem 644:man/xmem.1:$(MANDIR)/man1/xmem.1
ifneq ($(filter uninstall,$(MAKECMDGOALS))$(shell command -v $(PYTHON)),)
install: $(addprefix $(B)/completion/,bash zsh fish)
INSTALL += 644:$(B)/completion/bash:$(DATADIR)/bash-completion/completions/xmem \
	644:$(B)/completion/zsh:$(ZSHDIR)/_xmem \
	644:$(B)/completion/fish:$(DATADIR)/fish/vendor_completions.d/xmem.fish
endif
endif

# The completion of the tool's commands, options and arguments in shells.
$(B)/completion/%: scripts/completion.py cli/xmem.c
	$(say) GEN $@
	$(Q)mkdir -p $(@D) && $(PYTHON) -B $< $* $@

# Look for the header once, and say what to do if it is missing.
$(CLI_OBJ): | $(B)/obj/cli/jansson
$(B)/obj/cli/jansson:
	$(Q)mkdir -p $(@D)
	$(Q)echo '#include <jansson.h>' | $(CC) $(CFLAGS) -E - >/dev/null 2>&1 || { \
		echo 'cli: jansson.h is missing: install libjansson-dev,' \
			'or leave the xmem tool out by make CLI=no' >&2; exit 1; }
	$(Q)touch $@

# Is there a header? The answer is kept, so that the view is built anew when it changes.
CURSES := $(shell $(CC) $(CFLAGS) -E -x c -include curses.h /dev/null >/dev/null 2>&1 && echo yes)
$(eval $(call stamp,curses,CURSES))
$(B)/obj/cli/top_screen.o: $(B)/curses.stamp
$(B)/obj/cli/top_screen.o: private XM_CFLAGS += $(CURSES:yes=-DCLI_CURSES)

$(B)/xmem: $(CLI_OBJ) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ljansson $(CURSES:yes=-lncurses -ltinfo) -ldl
