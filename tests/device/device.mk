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
