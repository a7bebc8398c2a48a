# The tests of buffers on GPUs: one program, on the fake driver or a real one; see gpus.c. It uses
# the harness of tests/conform.

CUDA_SMALL   := tests/cuda/small.c tests/cuda/small_answers.c
CUDA_HARNESS := tests/conform/main.c tests/conform/harness.c tests/conform/pools.c
CUDA_WEAKER  := tests/cuda/weaker.c
CUDA_TESTS   := $(filter-out $(CUDA_SMALL) $(CUDA_WEAKER),$(wildcard tests/cuda/*.c)) \
		$(CUDA_HARNESS)

# Small drivers: a whole one, and one for each thing that may be missing.
SMALL_DRIVERS := whole no-export no-start no-name
$(B)/cuda-drivers/whole.so: HIDES :=
$(B)/cuda-drivers/no-export.so: HIDES := cuMemExportToShareableHandle
$(B)/cuda-drivers/no-start.so: HIDES := cuInit
$(B)/cuda-drivers/no-name.so: HIDES := cuDeviceGetUuid_v2 cuMemGetInfo_v2

$(SMALL_DRIVERS:%=$(B)/cuda-drivers/%.so): $(CUDA_SMALL:%.c=$(B)/obj/%.o)
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -Wl,--version-script=<(echo \
		'{ $(if $(HIDES),local: $(HIDES:%=%;)) };')

# A library in front of a real driver, which it finds by its name when it is opened.
WEAKER := $(B)/cuda-drivers/weaker.so

$(WEAKER): $(CUDA_WEAKER:%.c=$(B)/obj/%.o) $(FAKECUDA)
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(XM_LDFLAGS) $(LDFLAGS) -Wl,--no-as-needed $^ -o $@ -ldl

# The fake driver without the extras that a real one does not have: tests/cuda/as-real.sh.
AS_REAL := $(B)/cuda-drivers/as-real/libcuda.so.1

$(AS_REAL): $(FAKECUDA_SRC:%.c=$(B)/obj/%.o) $(B)/obj/tests/fakecuda/twins.o
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-soname,libcuda.so.1 $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ \
		-Wl,--version-script=<(echo '{ local: cuFake*; };')

# A HIP from before hipStreamGetDevice.
OLD_HIP := $(B)/cuda-drivers/old-hip.so
$(OLD_HIP): SHOWS := global: hip*; cuFake*; local: hipStreamGetDevice; *;

# A driver that has CUDA's functions, and HIP's as well.
BOTH_APIS := $(B)/cuda-drivers/both-apis.so
$(BOTH_APIS): SHOWS := global: hip*; cu*; local: *;

$(OLD_HIP) $(BOTH_APIS): $(FAKEHIP_OBJ)
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ \
		-Wl,--version-script=<(echo '{ $(SHOWS) };')

$(B)/cuda: $(CUDA_TESTS:%.c=$(B)/obj/%.o) $(B)/libxmem.a | $(B)/xmemd $(B)/libxmem.so $(FAKECUDA) \
		$(KERNELS) $(SMALL_DRIVERS:%=$(B)/cuda-drivers/%.so) $(WEAKER) $(AS_REAL) \
		$(FAKEHIP) $(OLD_HIP) $(BOTH_APIS)
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ $$(pkg-config --libs check) -ldl

# Runs on this machine's GPU, and prints its driver and devices first. Without a GPU it says so and
# ends with 0, like bench-cuda.
.PHONY: test-cuda
test-cuda:
	$(Q)$(MAKE) FLAVOUR=test build/test/cuda build/test/device-gpu build/test/xmem
	$(Q)export XMEM_CUDA_DRIVER=$${XMEM_CUDA_DRIVER:-libcuda.so.1} \
		XMEM_BACKEND=$${XMEM_BACKEND:-daemon}; \
		why=$$(build/test/xmem gpu 2>&1) || { echo "SKIP test-cuda: $$why"; exit 0; }; \
		echo "$$why"; build/test/cuda && tests/cuda/sanitizer.sh && \
		tests/device/sanitizer.sh
