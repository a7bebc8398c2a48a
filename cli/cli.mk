# xmem, the command-line tool.

CLI_SRC := $(wildcard cli/*.c)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/obj/%.o)

all: $(B)/xmem

$(B)/xmem: $(CLI_OBJ) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

INSTALL += 755:$(B)/xmem:$(BINDIR)/xmem
