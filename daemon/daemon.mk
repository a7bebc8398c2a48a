# xmemd, the daemon host. It shares the datagrams (lib/host/wire.c) and
# the address (lib/host/address.c) with the library.

XMEMD_SRC := $(wildcard daemon/*.c) lib/host/wire.c lib/host/address.c $(CORE_SRC)
XMEMD_OBJ := $(XMEMD_SRC:%.c=$(B)/obj/%.o)

all: $(B)/xmemd

$(B)/xmemd: $(XMEMD_OBJ)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@

# With these units, systemd listens for xmemd, for each user whose xmemd@.socket is enabled.
INSTALL += 755:$(B)/xmemd:$(LIBEXECDIR)/xmem/xmemd \
	644:systemd/xmemd@.socket:$(SYSTEMDUNITDIR)/xmemd@.socket \
	644:$(B)/in/systemd/xmemd@.service:$(SYSTEMDUNITDIR)/xmemd@.service
install: $(B)/in/systemd/xmemd@.service
