# fakecuda: a driver of GPUs that are not there, for tests that need one. It is built with nothing
# of CUDA. Its README.md lists the rules that it enforces; its own tests are test_*.c.

FAKECUDA_TESTS := $(wildcard tests/fakecuda/test_*.c)
FAKEHIP_SRC    := tests/fakecuda/hip.c
FAKECUDA_SRC   := $(filter-out $(FAKECUDA_TESTS) $(FAKEHIP_SRC),$(wildcard tests/fakecuda/*.c))
FAKECUDA       := $(B)/fakecuda/libcuda.so.1
FAKEHIP        := $(B)/fakecuda/libamdhip64.so.6

$(FAKECUDA): $(FAKECUDA_SRC:%.c=$(B)/obj/%.o) $(B)/obj/tests/fakecuda/twins.o
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@

# The driver under the names of AMD's HIP.
FAKEHIP_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(FAKECUDA_SRC) $(FAKEHIP_SRC)) \
	$(B)/obj/tests/fakecuda/twins.o

$(FAKEHIP): $(FAKEHIP_OBJ)
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libamdhip64.so.6 $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ \
		-Wl,--version-script=<(echo '{ global: hip*; cuFake*; local: *; };')

.PHONY: fakecuda
fakecuda: $(FAKECUDA) $(FAKEHIP)

# The kernels' source as C++. At run time it needs nothing of the C++ library.
$(B)/obj/tests/fakecuda/twins.o: tests/fakecuda/twins.cc
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(filter-out -std=% -Wmissing-prototypes -Wstrict-prototypes,$(XM_CFLAGS)) \
		-std=gnu++17 -fno-exceptions -fno-rtti $(CFLAGS) -MMD -MP -c $< -o $@

# The kernels in the form for a GPU's driver. Without a toolkit they are only names, which is all
# that the fake driver reads.
NVCC ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc))
KERNELS := $(B)/kernels.ptx

$(KERNELS): tests/cuda/kernels.cu tests/cuda/kernels.h
	$(say) PTX $@
	$(Q)mkdir -p $(@D)
ifneq ($(NVCC),)
	$(Q)$(NVCC) -ptx -arch=compute_80 $< -o $@
else
	$(Q)(echo '.version 0.0'; sed -n 's/^KERNEL \([a-z_0-9]*\)(.*/.entry \1(/p' $<) >$@
endif

fakecuda: $(KERNELS)

# Tests of streams: the fake driver orders what a real one orders, and no more.
STREAM_TESTS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/fakecuda/streams/*.c))

$(B)/fakecuda-streams: $(STREAM_TESTS) $(FAKECUDA) | $(KERNELS)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/fakecuda' $^ -o $@

# Tests of all else: init, devices, contexts and memory.
FAKECUDA_TEST_OBJ := $(FAKECUDA_TESTS:%.c=$(B)/obj/%.o)

$(B)/fakecuda-test: $(FAKECUDA_TEST_OBJ) $(FAKECUDA) | $(KERNELS)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN/fakecuda' $^ -o $@ \
		$$(pkg-config --libs check)
