# The plugin of GStreamer: the elements xmemsink and xmemsrc (docs/gstreamer.md).
#
#   make gstreamer          build/FLAVOUR/gstreamer/libgstxmem.so, for GST_PLUGIN_PATH
#   make gstreamer-install  installs it into GSTPLUGINDIR (default: LIBDIR/gstreamer-1.0), after
#                           "make install"; DESTDIR
#   make gstreamer-uninstall  removes it from there
#   make check-gstreamer    its tests
#
# It finds libxmem in the folder above its own, in the tree and installed. A distribution that
# allows no such path gives GST_RPATH= an empty value.
GSTPLUGINDIR ?= $(LIBDIR)/gstreamer-1.0
GST_RPATH    ?= -Wl,-rpath,'$$ORIGIN/..'
GST_PACKAGES := gstreamer-video-1.0 gstreamer-base-1.0
GST_SO       := $(B)/gstreamer/libgstxmem.so
GST_OBJ      := $(patsubst %.c,$(B)/obj/%.o,$(wildcard bindings/gstreamer/src/*.c))

# Asked for once, and only to compile.
GST_CFLAGS = $(eval GST_CFLAGS := $(shell pkg-config --cflags $(GST_PACKAGES) 2>/dev/null \
	| sed 's/-I/-isystem /g'))$(GST_CFLAGS)
GST_LIBS   = $(eval GST_LIBS := $(shell pkg-config --libs $(GST_PACKAGES) 2>/dev/null))$(GST_LIBS)

.PHONY: gstreamer gstreamer-ready gstreamer-install gstreamer-uninstall check-gstreamer
gstreamer: $(GST_SO) $(B)/xmemd

gstreamer-ready:
	$(Q)pkg-config --exists $(GST_PACKAGES) 2>/dev/null || { echo 'make: the headers of' \
		'GStreamer are missing: as root, scripts/needs.sh gstreamer installs them' >&2; \
		exit 1; }

$(GST_OBJ): private XM_CFLAGS += -Werror $(GST_CFLAGS)
$(GST_OBJ): | gstreamer-ready

$(GST_SO): $(GST_OBJ) $(B)/libxmem.so.$(SOVERSION)
	$(say) LD $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -shared -Wl,-z,defs $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ $(GST_RPATH) $(GST_LIBS)

gstreamer-install: gstreamer
	$(say) INSTALL $(DESTDIR)$(GSTPLUGINDIR)/libgstxmem.so
	$(Q)install -D -m 644 $(GST_SO) '$(DESTDIR)$(GSTPLUGINDIR)/libgstxmem.so'

gstreamer-uninstall:
	$(say) REMOVE $(DESTDIR)$(GSTPLUGINDIR)/libgstxmem.so
	$(Q)rm -f '$(DESTDIR)$(GSTPLUGINDIR)/libgstxmem.so'
	$(Q)rmdir -p --ignore-fail-on-non-empty '$(DESTDIR)$(GSTPLUGINDIR)' 2>/dev/null || true

# The tests have the plugin in them, so that a sanitizer sees it.
GST_TEST_OBJ := $(patsubst %.c,$(B)/obj/%.o,$(wildcard bindings/gstreamer/tests/*.c))
$(GST_TEST_OBJ): private XM_CFLAGS += -Werror $(GST_CFLAGS)
$(GST_TEST_OBJ): | gstreamer-ready

$(B)/gstreamer-tests: $(GST_TEST_OBJ) $(GST_OBJ) $(B)/libxmem.a | $(B)/xmemd
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ $(GST_LIBS) $$(pkg-config --libs check) -ldl

check-gstreamer:
	$(Q)scripts/needs.sh gstreamer-tests
	$(Q)$(MAKE) -s FLAVOUR=test build/test/gstreamer-tests gstreamer
	$(Q)bindings/gstreamer/tests/run.sh build/test/gstreamer-tests
