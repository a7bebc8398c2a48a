# Folders, each of which may be given to make. GNU's names and meanings:
#
#   DESTDIR             staging folder, put before every path below; nothing remembers it
#   PREFIX              /usr/local
#   BINDIR              PREFIX/bin: the tool xmem
#   LIBDIR              PREFIX/lib: the library, pkgconfig/ and cmake/. PREFIX=/usr alone makes
#                       it /usr/lib/TRIPLET where "$CC -print-multiarch" says one (Debian)
#   INCLUDEDIR          PREFIX/include
#   LIBEXECDIR          PREFIX/libexec: xmem/xmemd; programs that use libxmem remember it
#   DATADIR             PREFIX/share
#   DOCDIR              DATADIR/doc/xmem
#   MANDIR              DATADIR/man
#   ZSHDIR              DATADIR/zsh/site-functions: the completion of zsh
#   SYSTEMDUNITDIR      PREFIX/lib/systemd/system: xmemd@.socket and xmemd@.service
#   UDEVDIR             /usr/lib/udev: the rule that kmod-install and dkms-install add
#   MODULESLOADDIR      /usr/lib/modules-load.d: the file that loads xmem.ko at each boot, added
#                       in the same way
#
# "make uninstall" wants the same folders as the "make install" that it undoes.

# The ABI's name in libxmem.so.SOVERSION. While the major number is 0, each minor one is an ABI.
VERSION_WORDS      := $(subst ., ,$(VERSION))
SOVERSION          := $(firstword $(VERSION_WORDS))
ifeq ($(SOVERSION),0)
SOVERSION          := 0.$(word 2,$(VERSION_WORDS))
endif

PREFIX             ?= /usr/local
override PREFIX    := $(abspath $(PREFIX))
ifeq ($(PREFIX),/usr)
MULTIARCH          := $(shell $(CC) -print-multiarch 2>/dev/null)
endif
BINDIR             ?= $(PREFIX)/bin
LIBDIR             ?= $(PREFIX)/lib$(MULTIARCH:%=/%)
INCLUDEDIR         ?= $(PREFIX)/include
LIBEXECDIR         ?= $(PREFIX)/libexec
DATADIR            ?= $(PREFIX)/share
DOCDIR             ?= $(DATADIR)/doc/xmem
MANDIR             ?= $(DATADIR)/man
ZSHDIR             ?= $(DATADIR)/zsh/site-functions
SYSTEMDUNITDIR     ?= $(PREFIX)/lib/systemd/system
UDEVDIR            ?= /usr/lib/udev
MODULESLOADDIR     ?= /usr/lib/modules-load.d

INSTALL_DIRS := PREFIX BINDIR LIBDIR INCLUDEDIR LIBEXECDIR DATADIR DOCDIR MANDIR \
	ZSHDIR SYSTEMDUNITDIR UDEVDIR MODULESLOADDIR
$(foreach dir,$(INSTALL_DIRS),$(if $(and $(filter /%,$(firstword $($(dir)))),\
	$(if $(word 2,$($(dir))),,one)),,\
	$(error $(dir) is an absolute path without blanks, not '$($(dir))')))

# Paths go through the shell, sed, and entries of INSTALL, in which these characters mean something
# else.
SPECIAL := ' " ` | & \ : *
$(foreach dir,$(INSTALL_DIRS) DESTDIR,$(foreach c,$(if $(filter DESTDIR,$(dir)),',$(SPECIAL)),\
	$(if $(findstring $(c),$($(dir))),$(error $(dir) may not have the character $(c)))))

# $(call relative,FROM,TO): so that an installed tree may be moved as a whole.
relative = $(shell realpath -ms --relative-to='$(1)' '$(2)')

# $(eval $(call stamp,NAME,VARIABLE)): build/FLAVOUR/NAME.stamp holds the variable's value.
# It is written only when the value has changed; then everything that depends on it is built again.
define stamp
ifneq ($$(file <$(B)/$(1).stamp),$$($(2)))
.PHONY: $(B)/$(1).stamp
endif
$(B)/$(1).stamp:
	$$(Q)mkdir -p $$(@D) && printf '%s\n' '$$($(2))' >$$@
endef

# FILE.in becomes build/FLAVOUR/in/FILE, with the folders and the version in it.
INSTALL_VALUES = VERSION=$(VERSION) $(foreach dir,$(INSTALL_DIRS),$(dir)=$($(dir)))
$(eval $(call stamp,install,INSTALL_VALUES))

# In xmem.pc folders are relative to prefix, in xmem-config.cmake to its own folder.
IN_VALUES = $(INSTALL_VALUES) PC_LIBDIR=$(LIBDIR:$(PREFIX)/%=$${prefix}/%) \
	PC_INCLUDEDIR=$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%) SOVERSION=$(SOVERSION) \
	CMAKE_INCLUDEDIR=$(call relative,$(LIBDIR)/cmake/xmem,$(INCLUDEDIR))

$(B)/in/%: %.in $(B)/install.stamp scripts/install.mk
	$(say) GEN $@
	$(Q)mkdir -p $(@D)
	$(Q)sed $(foreach value,$(IN_VALUES),-e 's|@$(subst =,@|,$(value))|') $< >$@

# Only the objects that contain the version are built again when it changes.
$(eval $(call stamp,version,VERSION))
$(patsubst %.c,$(B)/obj/%.o,$(shell grep -rlw --include='*.c' XMEM_VERSION \
	$(wildcard cli bindings) daemon lib)): \
	$(B)/version.stamp

# Files to install, as MODE:FILE:TARGET or link:TEXT:TARGET. The .mk files add to it, and
# to install's prerequisites what "all" does not build. The page of xmem goes where xmem goes.
INSTALL := 644:docs/environment.md:$(DOCDIR)/environment.md \
	644:docs/cuda.md:$(DOCDIR)/cuda.md \
	644:docs/device.md:$(DOCDIR)/device.md \
	$(foreach page,$(filter-out man/xmem.1,$(wildcard man/*.[1-8])),\
		644:$(page):$(MANDIR)/man$(subst .,,$(suffix $(page)))/$(notdir $(page)))

.PHONY: install uninstall help
install: all
	$(say) INSTALL $(DESTDIR)$(PREFIX)
	$(Q)DESTDIR='$(DESTDIR)' LIBDIR='$(LIBDIR)' scripts/install.sh install $(INSTALL:%='%')
uninstall:
	$(say) REMOVE $(DESTDIR)$(PREFIX)
	$(Q)DESTDIR='$(DESTDIR)' LIBDIR='$(LIBDIR)' scripts/install.sh uninstall $(INSTALL:%='%')
help:
	@awk 'FNR == 1 { on = 1; if (NR > 1) print "" } !/^#/ { on = 0 } \
		on { sub(/^# ?/, ""); print }' Makefile scripts/install.mk kmod/kmod.mk
