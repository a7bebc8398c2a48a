# device: tests of xmem/device.cuh on the CPU, with threads in place of a GPU's. gcc and clang build
# the program, plain and under the sanitizers. Each of these six is a program of its own, so that a
# planted bug can name it.

DEVICE_SRC    := $(wildcard tests/device/*.cpp)
DEVICE_CFLAGS  = $(filter-out -std=% -Wmissing-prototypes -Wstrict-prototypes,$(XM_CFLAGS)) \
	-std=c++14 $(CPP_WARNINGS) -DXMEM_DEVICE_STEPS $(CFLAGS) -MMD -MP

# $(call device,PROGRAM,COMPILER,OPTIONS)
define device
$$(B)/obj/$(1)/%.o: %.cpp
	$$(say) CXX $$<
	$$(Q)mkdir -p $$(@D)
	$$(Q)$(2) $$(DEVICE_CFLAGS) $(3) -c $$< -o $$@
$$(B)/$(1): $$(DEVICE_SRC:%.cpp=$$(B)/obj/$(1)/%.o)
	$$(say) LD $$@
	$$(Q)$(2) $$(XM_LDFLAGS) $$(LDFLAGS) $(3) $$^ -o $$@
endef

DEVICE_ASAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -O1
$(eval $(call device,device,$$(CXX),))
$(eval $(call device,device-asan,$$(CXX),$(DEVICE_ASAN)))
$(eval $(call device,device-tsan,$$(CXX),-fsanitize=thread -O1))
$(eval $(call device,device-2,$$(CXX_2),))
$(eval $(call device,device-2-asan,$$(CXX_2),$(DEVICE_ASAN)))
$(eval $(call device,device-2-tsan,$$(CXX_2),-fsanitize=thread -O1))

# The kernels for a GPU's driver, by nvcc or else by clang, which needs no toolkit. The fake driver
# reads only the names of the kernels, and runs them as C++ (tests/fakecuda/twins.cc).
DEVICE_KERNELS := $(B)/device-kernels.ptx

$(DEVICE_KERNELS): tests/device/kernels.cu tests/device/kernels.h $(wildcard include/xmem/device/*)
	$(say) PTX $@
	$(Q)mkdir -p $(@D)
ifneq ($(NVCC),)
	$(Q)$(NVCC) -ptx -std=c++14 -arch=compute_75 -Iinclude -I. $< -o $@
else
	$(Q)$(CXX_2) -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
		-Xclang -target-feature -Xclang +ptx63 -Wno-unknown-cuda-version -std=c++14 -O2 \
		-Iinclude -I. -S $< -o $@
endif

# Tests of kernels, on the driver that XMEM_CUDA_DRIVER names, or on the fake one.
DEVICE_GPU_SRC := tests/device/main.cpp $(wildcard tests/device/gpu/*.cpp)

$(B)/device-gpu: $(DEVICE_GPU_SRC:%.cpp=$(B)/obj/device/%.o) | $(FAKECUDA) $(DEVICE_KERNELS)
	$(say) LD $@
	$(Q)$(CXX) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl
