# xmemd, the daemon host, and xmem, the command-line tool.

XMEMD_SRC := $(wildcard tools/xmemd*.c) lib/wire.c kmod/protocol.c kmod/host.c
XMEMD_OBJ := $(XMEMD_SRC:%.c=$(B)/obj/%.o)
XMEM_SRC  := tools/xmem.c $(wildcard tools/cmd_*.c)
XMEM_OBJ  := $(XMEM_SRC:%.c=$(B)/obj/%.o)

all: $(B)/xmemd $(B)/xmem

$(B)/xmemd: $(XMEMD_OBJ)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@

$(B)/xmem: $(XMEM_OBJ) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

install: install-tools
.PHONY: install-tools
install-tools: all
	$(Q)install -d $(DESTDIR)$(PREFIX)/libexec/xmem $(DESTDIR)$(PREFIX)/bin
	$(Q)install -m 755 $(B)/xmemd $(DESTDIR)$(PREFIX)/libexec/xmem/xmemd
	$(Q)install -m 755 $(B)/xmem $(DESTDIR)$(PREFIX)/bin/xmem
