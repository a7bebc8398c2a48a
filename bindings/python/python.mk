# The package of Python: the extension xmem/_core.abi3.so, and beside it libxmem and xmemd.
#
#   make python          build/FLAVOUR/python/xmem, for PYTHONPATH: what setup.py puts into a
#                        wheel; the files of Python in it are links, so an edit needs no make
#   make python-wheel    a wheel and a source distribution, in build/python/dist
#   make device          compiles the shims of xmem.numba for each kind of GPU into that folder,
#                        and so into the next wheel; without nvcc, NVRTC does that at run time
#   make check-python    the suites of Python, in virtual environments with what Debian has
#   make check-torch     these suites with PyTorch 2 and numpy 2 from PyPI, 5.5 GB
#   make check-torch TORCH=2.5   the tests of xmem.torch with another release of PyTorch, 2 GB
#   make check-freethreaded  the tests on a CPython without a GIL: XMEM_PYTHON_FREETHREADED
#
# PYTHON is the interpreter with whose headers the extension is compiled. One set of objects is for
# each CPython from 3.11 on. A free-threaded CPython has no limited API, so it has objects of its
# own, in build/FLAVOUR/python-ABI, and a PYTHON_ABI of its own, the word in the extension's name.
# If PYTHON is given, it is asked for that word. XMEM_PYTHON_SYSTEM: see docs/environment.md; with
# it B must be a folder without objects that were made without it.

ifneq ($(filter command environment,$(word 1,$(origin PYTHON))),)
PYTHON_ABI ?= $(shell '$(PYTHON)' -c 'import sysconfig; value = sysconfig.get_config_var; \
	print(value("SOABI") if value("Py_GIL_DISABLED") else "abi3")')
endif
PYTHON_ABI  ?= abi3
PYTHON_OWN  := $(if $(filter-out abi3,$(PYTHON_ABI)),-$(PYTHON_ABI))
PYTHON_O    := $(B)/obj$(PYTHON_OWN:-%=/%)
PYTHON_SRC  := $(wildcard bindings/python/src/*.c)
PYTHON_OBJ  := $(PYTHON_SRC:%.c=$(PYTHON_O)/%.o)
PYTHON_TREE := $(B)/python$(PYTHON_OWN)/xmem
PYTHON_SO   := $(PYTHON_TREE)/_core.$(PYTHON_ABI).so

# Asked for once, and only to compile.
PYTHON_INCLUDE = $(eval PYTHON_INCLUDE := $(shell '$(PYTHON)' -c \
	'import sysconfig; print(sysconfig.get_path("include"))'))$(PYTHON_INCLUDE)

ifeq ($(XMEM_PYTHON_SYSTEM),1)
# python-ready, which is made first, prints the complaints of pkg-config.
PYTHON_CFLAGS = $(shell pkg-config --cflags xmem 2>/dev/null)
PYTHON_LIBS   = $(shell pkg-config --libs xmem 2>/dev/null)
PYTHON_BESIDE :=
# An extension must not meet a library that lacks what it calls, nor one of another ABI.
PYTHON_WANTS  := xmem >= $(VERSION) xmem < $(if $(filter 0.%,$(SOVERSION)),0.$(shell \
	expr $(word 2,$(VERSION_WORDS)) + 1),$(shell expr $(SOVERSION) + 1))
else
PYTHON_CFLAGS := -Iinclude
PYTHON_LIBS   := $(B)/libxmem.so.$(SOVERSION) -Wl,-rpath,'$$ORIGIN/lib'
PYTHON_BESIDE := $(addprefix $(PYTHON_TREE)/lib/,libxmem.so.$(SOVERSION) xmemd xmem)
endif

# xmem.numba compiles them on a user's machine, unless "make device" has done so before.
DEVICE_HEADERS := $(wildcard include/xmem/*.cuh include/xmem/*/*.cuh)

.PHONY: python python-ready device-fresh
python: device-fresh $(PYTHON_SO) $(PYTHON_BESIDE) $(patsubst bindings/python/xmem/%,\
	$(PYTHON_TREE)/%,$(filter %.py %.pyi %.pxd %.h %.cpp %.cu %/py.typed,$(wildcard \
	bindings/python/xmem/* bindings/python/xmem/*/*))) $(HEADERS:%=$(PYTHON_TREE)/%) \
	$(DEVICE_HEADERS:%=$(PYTHON_TREE)/%)

# Checks that the headers of Python are there, or says how to get them.
python-ready:
	$(Q)[ -e '$(PYTHON_INCLUDE)/Python.h' ] || { echo 'make: the headers of $(PYTHON) are' \
		'missing ($(PYTHON_INCLUDE)/Python.h): on Debian, apt-get install python3-dev' \
		>&2; exit 1; }
ifdef PYTHON_WANTS
	$(Q)pkg-config --print-errors --exists '$(PYTHON_WANTS)'
endif

$(PYTHON_O)/bindings/python/src/%.o: bindings/python/src/%.c | python-ready
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -Iinclude -I.,$(XM_CFLAGS)) $(PYTHON_CFLAGS) \
		-Werror=implicit-function-declaration -isystem '$(PYTHON_INCLUDE)' \
		$(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(PYTHON_SO): $(PYTHON_OBJ) $(filter $(B)/%,$(PYTHON_LIBS))
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared $(XM_LDFLAGS) $(LDFLAGS) $(PYTHON_OBJ) -o $@ $(PYTHON_LIBS)

# The library looks for xmemd first in the folder in which it is found itself, link or not.
# The tool in a wheel has all that it needs besides the C library.
$(PYTHON_TREE)/lib/xmem: $(CLI_OBJ) $(B)/libxmem.a
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -l:libjansson.a \
		$(CURSES:yes=-l:libncurses.a -l:libtinfo.a) -ldl
$(PYTHON_TREE)/lib/%: $(B)/%
	$(Q)mkdir -p $(@D) && ln -sfr $< $@
$(PYTHON_TREE)/include/%: include/%
	$(Q)mkdir -p $(@D) && ln -sfr $< $@
$(PYTHON_TREE)/%: bindings/python/xmem/%
	$(Q)mkdir -p $(@D) && ln -sfr $< $@

# ---- the shims of xmem.numba ----
#
# One file has PTX and LTO IR for each architecture, and its name the toolkit, whose code an older
# one cannot link. NVCC: the compiler, of a toolkit or of PyPI's nvidia-cuda-nvcc.

NVCC        ?= $(firstword $(wildcard $(addsuffix /nvcc,$(subst :, ,$(PATH)))) \
	$(wildcard /usr/local/cuda/bin/nvcc))
DEVICE_FOR  := 75 80 86 89 90 100 120
DEVICE_CODE := $(foreach arch,$(DEVICE_FOR),-gencode arch=compute_$(arch),code=lto_$(arch) \
	-gencode arch=compute_$(arch),code=compute_$(arch))

# Shims that are older than a source go.
device-fresh:
	$(Q)for built in $(wildcard $(PYTHON_TREE)/numba/shims-*.fatbin); do \
		for source in bindings/python/xmem/numba/shims.cu $(DEVICE_HEADERS); do \
			[ ! $$source -nt $$built ] || rm -f $$built; done; done

.PHONY: device
ifeq ($(NVCC),)
device:
	@echo 'SKIP device: there is no nvcc, so NVRTC compiles the shims at run time (NVCC=file)'
else
NVCC_TOOLKIT = $(shell '$(NVCC)' --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')

device:
	$(say) NVCC $(PYTHON_TREE)/numba/shims-$(NVCC_TOOLKIT).fatbin
	$(Q)mkdir -p $(PYTHON_TREE)/numba && rm -f $(PYTHON_TREE)/numba/shims-*.fatbin
	$(Q)'$(NVCC)' -std=c++14 -Iinclude -rdc=true -fatbin $(DEVICE_CODE) \
		bindings/python/xmem/numba/shims.cu \
		-o $(PYTHON_TREE)/numba/shims-$(NVCC_TOOLKIT).fatbin
endif

# The environment with the tools that build a distribution, in which the tests run.
PYTHON_VENV := build/python/debian
PYTHON_DIST := build/python/dist

.PHONY: python-wheel check-torch check-freethreaded
python-wheel: python-ready
	$(Q)scripts/venv.sh $(PYTHON_VENV) bindings/python/requirements/debian.txt \
		--system-site-packages
	$(say) WHEEL $(PYTHON_DIST)
	$(Q)rm -rf $(PYTHON_DIST)
	$(Q)$(PYTHON_VENV)/bin/python -m build --no-isolation --sdist --wheel \
		-o $(PYTHON_DIST) bindings/python >build/python/wheel.log 2>&1 || \
		{ tail -20 build/python/wheel.log >&2; exit 1; }

check-torch:
	$(Q)scripts/needs.sh python-tests
	$(Q)$(MAKE) -s FLAVOUR=test fakecuda
	$(Q)cd bindings/python/tests && \
		./run.sh $(if $(TORCH),torch-$(TORCH) test_torch_*.py,torch2)

check-freethreaded:
	$(Q)scripts/needs.sh python
	$(Q)$(MAKE) -s FLAVOUR=test fakecuda
	$(Q)bindings/python/tests/freethreaded.sh
