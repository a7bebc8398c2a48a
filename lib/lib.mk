# libxmem: the library, shared and static.

LIB_SRC := $(wildcard lib/*.c lib/*/*.c) $(CORE_SRC)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)

all: $(B)/libxmem.so $(B)/libxmem.a

HEADERS := $(wildcard include/*.h include/*.hpp include/*/*.h include/*/*.hpp include/*/*/*.h \
	include/*/*.cuh include/*/*/*.cuh)

$(B)/libxmem.a: $(LIB_OBJ)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# It stays in memory once it is loaded: threads call it at their end (lib/base/handle.c).
$(B)/libxmem.so.$(SOVERSION): $(LIB_OBJ) lib/libxmem.map
	$(say) LD $@
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,--version-script=lib/libxmem.map -Wl,-z,defs \
		-Wl,-z,nodelete $(XM_LDFLAGS) $(LDFLAGS) $(LIB_OBJ) -o $@ -ldl

$(B)/libxmem.so: $(B)/libxmem.so.$(SOVERSION) $(B)/version.stamp
	$(Q)ln -sf $(<F) $@

# Where xmemd will be, absolute and from the library's folder, is remembered by start.o
# alone, which is built anew when that changes.
START_DIRS := $(LIBEXECDIR)/xmem $(call relative,$(LIBDIR),$(LIBEXECDIR)/xmem)
$(eval $(call stamp,start,START_DIRS))
$(B)/obj/lib/host/start.o: $(B)/start.stamp
$(B)/obj/lib/host/start.o: private XM_CFLAGS += \
	-DXMEM_LIBEXECDIR='"$(word 1,$(START_DIRS))"' \
	-DXMEM_LIBEXEC_FROM_LIB='"$(word 2,$(START_DIRS))"'

INSTALL += 755:$(B)/libxmem.so.$(SOVERSION):$(LIBDIR)/libxmem.so.$(VERSION) \
	link:libxmem.so.$(VERSION):$(LIBDIR)/libxmem.so.$(SOVERSION) \
	link:libxmem.so.$(SOVERSION):$(LIBDIR)/libxmem.so \
	644:$(B)/libxmem.a:$(LIBDIR)/libxmem.a \
	$(foreach header,$(patsubst include/%,%,$(HEADERS)),\
		644:include/$(header):$(INCLUDEDIR)/$(header))

# For those who build against it: pkg-config's and CMake's word of it.
CMAKE_FILES := xmem-config.cmake xmem-config-version.cmake
INSTALL += 644:$(B)/in/lib/xmem.pc:$(LIBDIR)/pkgconfig/xmem.pc \
	$(foreach file,$(CMAKE_FILES),644:$(B)/in/cmake/$(file):$(LIBDIR)/cmake/xmem/$(file))
install: $(B)/in/lib/xmem.pc $(CMAKE_FILES:%=$(B)/in/cmake/%)
