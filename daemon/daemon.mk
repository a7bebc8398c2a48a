# xmemd, the daemon host. It shares the datagrams (lib/host/wire.c) with the library.

XMEMD_SRC := $(wildcard daemon/*.c) lib/host/wire.c $(CORE_SRC)
XMEMD_OBJ := $(XMEMD_SRC:%.c=$(B)/obj/%.o)

all: $(B)/xmemd

$(B)/xmemd: $(XMEMD_OBJ)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@

INSTALL += 755:$(B)/xmemd:$(LIBEXECDIR)/xmem/xmemd
