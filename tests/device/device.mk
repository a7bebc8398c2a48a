# device: tests of xmem/device.cuh on the CPU. $(CXX) and $(CXX_2) build the program, because both
# compilers must take the headers as plain C++14.

DEVICE_SRC    := $(wildcard tests/device/*.cpp)
DEVICE_CFLAGS  = $(filter-out -std=% -Wmissing-prototypes -Wstrict-prototypes,$(XM_CFLAGS)) \
	-std=c++14 $(CPP_WARNINGS) -DXMEM_DEVICE_STEPS $(CFLAGS) -MMD -MP

$(B)/obj/device/%.o: %.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(DEVICE_CFLAGS) -c $< -o $@
$(B)/obj/device-2/%.o: %.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX_2) $(DEVICE_CFLAGS) -c $< -o $@

$(B)/device: $(DEVICE_SRC:%.cpp=$(B)/obj/device/%.o)
	$(say) LD $@
	$(Q)$(CXX) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@
$(B)/device-2: $(DEVICE_SRC:%.cpp=$(B)/obj/device-2/%.o)
	$(say) LD $@
	$(Q)$(CXX_2) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@
