# fuzz: libFuzzer targets, with the address and undefined behaviour sanitizers, by clang. A target
# is tests/fuzz/TARGET.c with the library; its host is in its own process (host.c).

FUZZ_TARGETS := metadata reader
FUZZ_CC      := clang
FUZZ_CFLAGS  := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=all
FUZZ_SRC     := tests/fuzz/host.c tests/fuzz/look.c \
	$(filter-out $(addprefix lib/host/,address.c daemon.c exchange.c kmod.c start.c),$(LIB_SRC))
FUZZ_OBJ     := $(FUZZ_SRC:%.c=build/fuzz/obj/%.o)

.SECONDARY: $(FUZZ_OBJ) $(FUZZ_TARGETS:%=build/fuzz/obj/tests/fuzz/%.o)
build/fuzz/obj/%.o: %.c
	$(say) CLANG $<
	$(Q)mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(XM_CFLAGS) $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@

build/fuzz/%: build/fuzz/obj/tests/fuzz/%.o $(FUZZ_OBJ)
	$(say) LD $@
	$(Q)$(FUZZ_CC) -pthread -fsanitize=fuzzer,address,undefined $^ -o $@ -ldl

.PHONY: fuzz
fuzz: $(FUZZ_TARGETS:%=build/fuzz/%)

-include $(shell find build/fuzz/obj -name '*.d' 2>/dev/null)
