# unit: tests of the pure core, with libcheck. Needs the steps: FLAVOUR=test, asan or tsan.

UNIT_SRC := $(wildcard tests/unit/*.c) $(CORE_SRC)
UNIT_OBJ := $(UNIT_SRC:%.c=$(B)/obj/%.o)

$(B)/unit: $(UNIT_OBJ)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $(UNIT_OBJ) -o $@ $$(pkg-config --libs check)
