# bench: ratios of one run, instructions, and peers. bench/README.md.

BENCH_SRC := $(wildcard bench/*.c) $(CORE_SRC)
BENCH_OBJ := $(BENCH_SRC:%.c=build/release/obj/%.o)

ifeq ($(FLAVOUR),release)
build/release/bench: $(BENCH_OBJ) build/release/libxmem.so
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' $(BENCH_OBJ) \
		-Lbuild/release -lxmem -ljansson -lm -ldl -o $@

# The operations that bench-instructions counts: a program of their own, so that the benchmark is
# not in the counts.
build/release/count-instructions: build/release/obj/bench/instructions/count.o \
		build/release/libxmem.so
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' $< -Lbuild/release -lxmem -o $@

# A peer is its own source and main.c. bench/peers/run.sh makes those whose packages are there.
PEER_OBJ := $(addprefix build/release/obj/bench/,peers/main.o floor.o measure.o)
ICEORYX := $(lastword $(wildcard /usr/include/iceoryx/v*))
peer_xmem         := xmem.c -Lbuild/release -lxmem -Wl,-rpath,'$$ORIGIN'
peer_posix-shm    := posix.c
peer_pipe         := stream.c
peer_unix-socket  := stream.c -DSTREAM_SOCKET
peer_boost-memory := boost.cpp -lrt
peer_boost-queue  := boost.cpp -lrt -DBOOST_QUEUE
peer_iceoryx      := iceoryx.cpp -isystem $(ICEORYX) -DPEER_ICEORYX='"$(notdir $(ICEORYX))"' \
	-liceoryx_posh_roudi -liceoryx_posh -liceoryx_hoofs

build/release/peer-%: $(wildcard bench/peers/*.[ch]*) $(PEER_OBJ) build/release/libxmem.so
	$(say) LD $@
	$(Q)$(if $(filter %.cpp,$(peer_$*)),$(CXX) -std=c++14,$(CC) -std=gnu11) -pthread -Wall \
		-Wextra -Wno-unused-parameter -D_GNU_SOURCE -Iinclude -I. $(CFLAGS) $(LDFLAGS) \
		$(PEER_OBJ) bench/peers/$(peer_$*) -lm -o $@

.PHONY: bench-docs bench-peers
bench-docs:
	$(Q)bench/docs.sh

bench-peers:
	$(Q)scripts/needs.sh build
	$(Q)$(MAKE) --no-print-directory all
	$(Q)bench/peers/run.sh $(if $(QUICK),--quick)

.PHONY: bench-cuda
bench-cuda:
	$(Q)scripts/needs.sh build
	$(Q)$(MAKE) --no-print-directory all build/release/bench
	$(Q)bench/cuda/run.sh

# In the environment in which check-python runs, or with VENV=folder another one, with torch 2.
VENV ?= $(PYTHON_VENV)
.PHONY: bench-python
bench-python:
	$(Q)scripts/needs.sh python-tests
	$(Q)scripts/venv.sh $(PYTHON_VENV) bindings/python/requirements/debian.txt \
		--system-site-packages
	$(Q)$(MAKE) --no-print-directory all python build/release/bench
	$(Q)PYTHONPATH=build/release/python $(VENV)/bin/python -W ignore bench/python/run.py

.PHONY: bench bench-instructions
bench-instructions:
	$(Q)scripts/needs.sh instructions
	$(Q)$(MAKE) --no-print-directory all build/release/count-instructions \
		fakecuda
	$(Q)bench/instructions/run.sh

bench:
	$(Q)scripts/needs.sh bench
	$(Q)$(MAKE) --no-print-directory all build/release/bench fakecuda
	$(Q)BACKEND=$(BACKEND) bench/run.sh
else
.PHONY: bench bench-cuda bench-docs bench-instructions bench-peers bench-python
bench bench-cuda bench-docs bench-instructions bench-peers bench-python:
	$(Q)$(MAKE) --no-print-directory FLAVOUR=release $@
endif
