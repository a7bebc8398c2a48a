# The conformance suite is one binary for both hosts; see main.c there. Its steps need FLAVOUR=test,
# asan or tsan; the daemon is found beside it.

CONFORM_SRC := $(wildcard tests/conform/*.c)
CONFORM_OBJ := $(CONFORM_SRC:%.c=$(B)/obj/%.o)

$(B)/conform: $(CONFORM_OBJ) $(B)/libxmem.a | $(B)/xmemd $(EXTENSIONS)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ $$(pkg-config --libs check) -ldl
