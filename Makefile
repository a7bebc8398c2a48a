# xmem: verbs only; the rules are in each folder's .mk file.
#
#   make                library, daemon, tool (build/release)
#   make examples       the programs of examples/, in build/FLAVOUR
#   make strings        the programs of examples/strings, and their kernels
#   make kmod           xmem.ko for KDIR (default: the running kernel's headers)
#   make demo           the pipeline on a real video; BACKEND=kernel, VIDEO=file;
#                       MODE=claims: buffers handed over by count; GPU=1: frames on a GPU;
#                       OCAML=1: the producer and the histogram are in OCaml
#   make test           every change must pass it; minutes; installs first what is missing
#   make test-all       all tests; hours: docs/testing.md
#   make test-cuda      the tests of GPUs on this machine's GPU; skipped where there is none
#   make python         the Python package in build/FLAVOUR/python, for PYTHONPATH
#   make device         compiles the shims of xmem.numba for GPUs; needs nvcc
#   make python-wheel   a wheel and a source distribution of it, in build/python/dist
#   make check-python   its tests; make check-torch: with PyTorch 2 from PyPI, 5.5 GB,
#                       or make check-torch TORCH=2.5: with that release, 2 GB
#   make ocaml          the OCaml package in build/ocaml/FLAVOUR; make check-ocaml: its tests
#   make gstreamer      the plugin of GStreamer; make check-gstreamer: its tests
#   make bench          speed as ratios of one run, against targets
#   make bench-instructions  counts them, and fails above bench/instructions.expected
#   make bench-peers    beside iceoryx, Boost, POSIX and pipes; QUICK=1: below a minute
#   make bench-cuda     hand-overs on this machine's GPU, beside torch.multiprocessing
#   make bench-python   tensors between processes, beside torch's own ways and iceoryx2
#   make bench-docs     puts what these three have found into docs/performance.md
#   make check-mutants  plants bugs and expects a test to find each
#   make check-kernel-mutants  plants bugs in kmod/, for the tests in the VM
#   make docs           the documentation site, in build/docs/html
#   make api            after a change of a public header: what is made from them (Python)
#   make install        into PREFIX (folders: see below); make uninstall undoes it
#   make clean          keeps build/vm and build/bare, downloaded; make distclean does not
#   make help           prints this; V=1 shows commands
#
# FLAVOUR=release|test|asan|tsan: where things are built and how. test has the
# protocol's steps (XMEM_STEPS), asan and tsan add their sanitizer to that.
# CC=gcc, CFLAGS="-O2 -g", CPPFLAGS, LDFLAGS: the compiler and its options.
# CLI=no: without the xmem tool.

SHELL    := /bin/bash
unexport CDPATH
FLAVOUR  ?= release
B        := build/$(FLAVOUR)
CC       ?= gcc
PYTHON   ?= python3
# -O1 compiles in two thirds of the time, which a program under a sanitizer does not lose again.
CFLAGS   ?= $(if $(filter asan tsan,$(FLAVOUR)),-O1,-O2) -g
VERSION  := 0.5.0

# Every file is compiled with these; += in a .mk is for all of the tree.
XM_CFLAGS  := -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes \
	-Wno-unused-parameter -fvisibility=hidden -fPIC -pthread -Iinclude -I. -D_GNU_SOURCE \
	-DXMEM_VERSION='"$(VERSION)"' $(XMEM_EXTRA_CFLAGS)
XM_LDFLAGS := -pthread
ifeq ($(FLAVOUR),test)
XM_CFLAGS  += -DXMEM_STEPS
else ifeq ($(FLAVOUR),asan)
XM_CFLAGS  += -DXMEM_STEPS -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
XM_LDFLAGS += -fsanitize=address,undefined
else ifeq ($(FLAVOUR),tsan)
XM_CFLAGS  += -DXMEM_STEPS -fsanitize=thread -Wno-tsan
XM_LDFLAGS += -fsanitize=thread
else ifneq ($(FLAVOUR),release)
$(error FLAVOUR is release, test, asan or tsan, not '$(FLAVOUR)')
endif

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
endif

.PHONY: all
all:

include scripts/install.mk $(wildcard $(addsuffix .mk,core/core lib/lib daemon/daemon cli/cli \
	kmod/kmod examples/examples bench/bench bindings/bindings docs/site/site tests/tests))

$(B)/obj/%.o: %.c
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(XM_CFLAGS) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

.PHONY: clean distclean
clean:
	$(say) CLEAN build
	$(Q)[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name vm ! -name bare \
		-exec rm -rf {} +
distclean:
	$(say) CLEAN build
	$(Q)rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
.DELETE_ON_ERROR:
