# xmem, the command-line tool.

CLI_SRC := $(wildcard cli/*.c)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/obj/%.o)

all: $(B)/xmem

$(B)/xmem: $(CLI_OBJ) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

install: install-cli
.PHONY: install-cli
install-cli: all
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 755 $(B)/xmem $(DESTDIR)$(PREFIX)/bin/xmem
