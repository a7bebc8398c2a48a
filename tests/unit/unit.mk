# unit: tests of the pure core, and of the library's lock and checks of metadata, with libcheck. It
# needs the steps: FLAVOUR=test, asan or tsan.

UNIT_SRC := $(wildcard tests/unit/*.c) $(CORE_SRC) \
	lib/base/lock.c lib/base/structs.c $(addprefix lib/describe/,tensor.c image.c strings.c)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/obj/%.o)

$(B)/unit: $(UNIT_OBJ)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $(UNIT_OBJ) -o $@ $$(pkg-config --libs check)
