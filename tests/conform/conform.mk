# The conformance suite: one binary, the same on both hosts; see main.c there.

CONFORM_SRC := $(wildcard tests/conform/*.c)
CONFORM_OBJ := $(CONFORM_SRC:%.c=$(B)/obj/%.o)

$(B)/conform: $(CONFORM_OBJ) $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -lcheck_pic -lsubunit -lrt -lm -ldl
