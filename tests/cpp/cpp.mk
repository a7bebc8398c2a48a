# cpp: tests of xmem.hpp. $(CXX) builds one program in C++17, and $(CXX_2) one in C++20, so that
# both dialects and both compilers see all of the header.

CXX_2        ?= clang++
CPP_SRC      := $(wildcard tests/cpp/*.cpp)
CPP_WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor \
	-Wold-style-cast -Werror
# Compiling takes long and running takes a second, so -O1 is enough.
CPP_LEVEL    := -O1
CPP_CFLAGS    = $(filter-out -std=% -Wmissing-prototypes -Wstrict-prototypes,$(XM_CFLAGS)) \
	$(CPP_WARNINGS) $(CFLAGS) $(CPP_LEVEL) -MMD -MP

$(B)/obj/cpp-17/%.o: %.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(CPP_CFLAGS) -c $< -o $@
$(B)/obj/cpp-20/%.o: %.cpp
	$(say) CXX $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX_2) -std=c++20 $(CPP_CFLAGS) -c $< -o $@

$(B)/cpp-17: $(CPP_SRC:%.cpp=$(B)/obj/cpp-17/%.o) $(B)/libxmem.a | $(B)/xmemd $(FAKECUDA)
	$(say) LD $@
	$(Q)$(CXX) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl
$(B)/cpp-20: $(CPP_SRC:%.cpp=$(B)/obj/cpp-20/%.o) $(B)/libxmem.a | $(B)/xmemd $(FAKECUDA)
	$(say) LD $@
	$(Q)$(CXX_2) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

.PHONY: cpp-tests
cpp-tests: $(B)/cpp-17 $(B)/cpp-20
