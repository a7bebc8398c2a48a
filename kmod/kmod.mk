# xmem.ko, for the kernel whose headers are in KDIR: by default the running kernel's, or the
# newest that are installed. Built in build/kmod/RELEASE/, a tree of links to kmod/, core/ and
# the UAPI header, so that no object lands among them. DKMS gets the same tree as copies.
# An empty KDIR is the same as none.
#
#   make kmod          KDIR=... KMAKE="CC=gcc-12" LLVM=1; says for which kernel, and where it is
#   make kmod-path     where that is, for scripts: make -s kmod-path, with the same KDIR
#   make kmod-release  for which kernel: make -s kmod-release
#   make kmod-check    W=1 and sparse; any warning is an error
#   make kmod-install  xmem.ko, the udev rule, and loading at boot, on this machine; DESTDIR
#   make dkms-install  the sources, for DKMS to build for every kernel

KMOD_RUNNING := $(shell uname -r)

# Not := because headers are looked for when they are needed: they may be installed by then.
KMOD_HEADERS = $(patsubst %/Makefile,%,$(firstword \
	$(wildcard /lib/modules/$(KMOD_RUNNING)/build/Makefile) \
	$(shell ls -dvr /lib/modules/*/build/Makefile 2>/dev/null)))
KDIR  ?= $(KMOD_HEADERS)
ifneq ($(origin KDIR),file)
ifeq ($(strip $(KDIR)),)
override KDIR = $(KMOD_HEADERS)
endif
endif
KMAKE ?= CONFIG_DEBUG_INFO_BTF_MODULES=
KMOD_FILES   := $(sort kmod/Kbuild $(wildcard kmod/*.c kmod/*.h))
KMOD_CORE    := $(sort $(wildcard core/*.c core/*.h))
KMOD_UAPI    := $(sort $(wildcard include/xmem/uapi/*.h))
KMOD_RELEASE  = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null)
# A module for tests has a folder of its own, so that nothing is built anew when both are wanted.
KMOD_KIND     = $(if $(XMEM_DEBUG),-debug)$(if $(XMEM_GCOV),-gcov)$(if $(XMEM_KCOV),-kcov)
KMOD_DIR      = build/kmod/$(or $(KMOD_RELEASE),unknown)$(KMOD_KIND)
# A kernel that clang has compiled gets a module that clang has compiled. LLVM=1 of the caller's
# command line or environment gets through as well.
KMOD_LLVM     = $(if $(shell grep -s '^CONFIG_CC_IS_CLANG=y' $(KDIR)/.config),LLVM=1)
KMOD_MAKE     = $(MAKE) -C $(abspath $(KDIR)) $(KMOD_LLVM) $(KMAKE) \
	$(if $(XMEM_DEBUG),XMEM_DEBUG=$(XMEM_DEBUG)) \
	$(if $(XMEM_GCOV),XMEM_GCOV=$(XMEM_GCOV)) $(if $(XMEM_KCOV),XMEM_KCOV=$(XMEM_KCOV))
DKMS_DIR      = $(DESTDIR)/usr/src/xmem-$(VERSION)

# Nobody asked for the kernel that it is for, and it is not the one that runs.
KMOD_FOREIGN  = $(and $(filter file override,$(origin KDIR)), \
	$(filter-out $(KMOD_RUNNING),$(KMOD_RELEASE)))

.PHONY: kmod kmod-path kmod-release kmod-headers kmod-tree kmod-check kmod-install dkms-install
kmod: kmod-tree
	$(say) KMOD $(KMOD_DIR)/xmem.ko
	+$(Q)$(KMOD_MAKE) $(if $(V),,-s) --no-print-directory M=$(abspath $(KMOD_DIR)) modules
	@echo "The module for Linux $(KMOD_RELEASE) is $(KMOD_DIR)/xmem.ko"
	@test -z "$(KMOD_FOREIGN)" || { \
	echo "Linux $(KMOD_RUNNING), which runs here, cannot load it; for one that it can load:"; \
	echo "apt-get install linux-headers-$(KMOD_RUNNING), then make kmod again"; } >&2

kmod-path: kmod-headers
	@test -e $(KMOD_DIR)/xmem.ko || { \
	echo "there is no $(KMOD_DIR)/xmem.ko yet, try: make kmod" >&2; exit 1; }
	@echo $(KMOD_DIR)/xmem.ko

kmod-release: kmod-headers
	@echo $(KMOD_RELEASE)

kmod-headers:
	@test -n "$(KMOD_RELEASE)" || { \
	echo "there are no kernel headers$(if $(KDIR), in $(KDIR)); to load the module here:" \
	"apt-get install linux-headers-$(KMOD_RUNNING);" \
	"to build it only: linux-headers-amd64" >&2; exit 1; }
	@test -z '$(word 2,$(CURDIR))' || { \
	echo "kbuild takes no folder with a blank in its path: use another than $(CURDIR)" >&2; \
	exit 1; }

# $(call kmod_links,FILES,FOLDER). A link that is right stays: another make may be compiling by it.
kmod_links = $(Q)for file in $(abspath $(1)); do \
	[ "$$file" -ef "$(2)/$${file\#\#*/}" ] || ln -sf "$$file" $(2)/ || exit; done

kmod-tree: kmod-headers
	$(Q)mkdir -p $(KMOD_DIR)/core $(KMOD_DIR)/include/xmem/uapi
	$(call kmod_links,$(KMOD_FILES),$(KMOD_DIR))
	$(call kmod_links,$(KMOD_CORE),$(KMOD_DIR)/core)
	$(call kmod_links,include/xmem/uapi.h include/xmem/metadata.h,$(KMOD_DIR)/include/xmem)
	$(call kmod_links,$(KMOD_UAPI),$(KMOD_DIR)/include/xmem/uapi)
	$(if $(XMEM_GCOV),$(call kmod_links,$(wildcard tests/kernel/gcov/*),$(KMOD_DIR)))

# It compiles all files, since a warning is said only then. With KBUILD_EXTRA_WARN=1 in the
# environment "make kmod" finds them compiled.
kmod-check: kmod-tree
	$(say) CHECK kmod
	$(Q)grep -q '^PACKAGE_VERSION="$(VERSION)"$$' dkms.conf || \
		{ echo "dkms.conf: PACKAGE_VERSION is not $(VERSION)" >&2; exit 1; }
	$(Q)grep -q '^#define XK_VERSION.*"$(VERSION)"$$' kmod/xk.h || \
		{ echo "kmod/xk.h: XK_VERSION is not $(VERSION)" >&2; exit 1; }
	$(Q)rm -f $(KMOD_DIR)/*.o $(KMOD_DIR)/core/*.o
	+$(Q)$(KMOD_MAKE) -s --no-print-directory M=$(abspath $(KMOD_DIR)) W=1 C=2 \
		CF="-D__CHECK_ENDIAN__ -Wcontext" modules >$(KMOD_DIR)/log 2>&1 || \
		{ cat $(KMOD_DIR)/log >&2; exit 1; }
	$(Q)! grep -E '(warning|error|WARNING|ERROR):' $(KMOD_DIR)/log >&2

kmod-install: kmod
	$(say) INSTALL xmem.ko
	$(Q)install -D -m 644 $(KMOD_DIR)/xmem.ko \
		$(DESTDIR)/lib/modules/$(KMOD_RELEASE)/updates/xmem.ko
	$(Q)install -D -m 644 udev/60-xmem.rules $(DESTDIR)$(UDEVDIR)/rules.d/60-xmem.rules
	$(Q)install -D -m 644 systemd/xmem.conf $(DESTDIR)$(MODULESLOADDIR)/xmem.conf
ifeq ($(DESTDIR),)
	$(Q)depmod $(KMOD_RELEASE)
	$(Q)getent group xmem >/dev/null || groupadd --system xmem
endif

dkms-install:
	$(say) INSTALL $(DKMS_DIR)
	$(Q)install -d $(DKMS_DIR)/kmod/core $(DKMS_DIR)/kmod/include/xmem/uapi
	$(Q)install -m 644 $(KMOD_FILES) $(DKMS_DIR)/kmod/
	$(Q)install -m 644 $(KMOD_CORE) $(DKMS_DIR)/kmod/core/
	$(Q)install -m 644 include/xmem/uapi.h include/xmem/metadata.h \
		$(DKMS_DIR)/kmod/include/xmem/
	$(Q)install -m 644 $(KMOD_UAPI) $(DKMS_DIR)/kmod/include/xmem/uapi/
	$(Q)install -m 644 dkms.conf $(DKMS_DIR)/
	$(Q)install -D -m 644 udev/60-xmem.rules $(DESTDIR)$(UDEVDIR)/rules.d/60-xmem.rules
	$(Q)install -D -m 644 systemd/xmem.conf $(DESTDIR)$(MODULESLOADDIR)/xmem.conf
ifeq ($(DESTDIR),)
	$(Q)getent group xmem >/dev/null || groupadd --system xmem
	$(Q)dkms add xmem/$(VERSION) 2>/dev/null || dkms status xmem/$(VERSION) | grep -q .
	$(Q)dkms install xmem/$(VERSION)
endif
