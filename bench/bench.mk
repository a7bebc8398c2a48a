# bench: speed, each against a floor of the same run. bench/README.md.

BENCH_SRC := $(wildcard bench/*.c) $(CORE_SRC)
BENCH_OBJ := $(BENCH_SRC:%.c=build/release/obj/%.o)

ifeq ($(FLAVOUR),release)
build/release/bench: $(BENCH_OBJ) build/release/libxmem.so
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' $(BENCH_OBJ) \
		-Lbuild/release -lxmem -ljansson -o $@

# What bench-instructions counts: a program of its own, so that it is not in the counts.
build/release/count-instructions: build/release/obj/bench/instructions/count.o \
		build/release/libxmem.so
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' $< -Lbuild/release -lxmem -o $@

.PHONY: bench bench-instructions
bench-instructions:
	$(Q)scripts/needs.sh instructions
	$(Q)$(MAKE) --no-print-directory all build/release/count-instructions
	$(Q)bench/instructions/run.sh

bench:
	$(Q)scripts/needs.sh bench
	$(Q)$(MAKE) --no-print-directory all build/release/bench
	$(Q)BACKEND=$(BACKEND) bench/run.sh
else
.PHONY: bench bench-instructions
bench bench-instructions:
	$(Q)$(MAKE) --no-print-directory FLAVOUR=release $@
endif
