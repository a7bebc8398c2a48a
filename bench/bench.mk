# bench: speed, each against a floor of the same run. bench/README.md.

BENCH_SRC := $(wildcard bench/*.c) $(CORE_SRC)
BENCH_OBJ := $(BENCH_SRC:%.c=build/release/obj/%.o)

ifeq ($(FLAVOUR),release)
build/release/bench: $(BENCH_OBJ) build/release/libxmem.so
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' $(BENCH_OBJ) \
		-Lbuild/release -lxmem -o $@

.PHONY: bench
bench:
	$(Q)scripts/needs.sh bench
	$(Q)$(MAKE) --no-print-directory all build/release/bench
	$(Q)BACKEND=$(BACKEND) bench/run.sh
else
.PHONY: bench
bench:
	$(Q)$(MAKE) --no-print-directory FLAVOUR=release bench
endif
