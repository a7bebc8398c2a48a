# libxmem: the library, shared and static.

LIB_SRC := $(wildcard lib/*.c lib/*/*.c) $(CORE_SRC)
LIB_OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o)

all: $(B)/libxmem.so $(B)/libxmem.a

$(B)/libxmem.a: $(LIB_OBJ)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/libxmem.so.0: $(LIB_OBJ) lib/libxmem.map
	$(say) LD $@
	$(Q)$(CC) -shared -Wl,-soname,libxmem.so.0 -Wl,--version-script=lib/libxmem.map -Wl,-z,defs \
		$(XM_LDFLAGS) $(LDFLAGS) $(LIB_OBJ) -o $@ -ldl

$(B)/libxmem.so: $(B)/libxmem.so.0
	$(Q)ln -sf libxmem.so.0 $@

.PHONY: install
install: all
	$(say) INSTALL $(DESTDIR)$(PREFIX)
	$(Q)install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include/xmem
	$(Q)install -m 755 $(B)/libxmem.so.0 $(DESTDIR)$(PREFIX)/lib/libxmem.so.$(VERSION)
	$(Q)ln -sf libxmem.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libxmem.so.0
	$(Q)ln -sf libxmem.so.0 $(DESTDIR)$(PREFIX)/lib/libxmem.so
	$(Q)install -m 644 $(B)/libxmem.a $(DESTDIR)$(PREFIX)/lib/
	$(Q)install -m 644 include/xmem.h $(DESTDIR)$(PREFIX)/include/
	$(Q)install -m 644 include/xmem/uapi.h $(DESTDIR)$(PREFIX)/include/xmem/
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' lib/xmem.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/xmem.pc
