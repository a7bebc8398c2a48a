# examples: programs of one file each, and the demo. They see only include/xmem.h and the headers
# in include/xmem/, and open the driver of GPUs themselves.

DEMO_SHARED   := control frame gpu_frame gpu
DEMO_CONSUMER := $(DEMO_SHARED) consumer
demo-director_OBJ  := director crew report video control gpu
demo-producer_OBJ  := producer video $(DEMO_SHARED)
demo-histogram_OBJ := histogram $(DEMO_CONSUMER)
demo-motion_OBJ    := motion $(DEMO_CONSUMER)
demo-stage_OBJ     := stage $(DEMO_CONSUMER)
demo-contact_OBJ   := contact $(DEMO_CONSUMER)
demo-contact_LIBS  := -lpng
DEMO_PROGRAMS := $(addprefix $(B)/demo-,director producer histogram motion stage contact)

# Not in "all": they need libpng and xxhash. The library starts the daemon.
.PHONY: demo-programs
demo-programs: $(B)/xmemd $(DEMO_PROGRAMS)
	@:

define demo_program
$(B)/$(1): $(patsubst %,$(B)/obj/examples/demo/%.o,$($(1)_OBJ)) $(B)/libxmem.a
	$$(say) LD $$@
	$$(Q)$$(CC) $$(XM_LDFLAGS) $$(LDFLAGS) $$^ -o $$@ $($(1)_LIBS) -lxxhash -ldl
endef
$(foreach program,$(notdir $(DEMO_PROGRAMS)),$(eval $(call demo_program,$(program))))

# "make demo OCAML=1": the producer and the histogram in OCaml.
DEMO_OCAML_PROGRAMS := $(addprefix $(B)/demo-,producer-ocaml histogram-ocaml)
$(DEMO_OCAML_PROGRAMS): $(B)/demo-%-ocaml: $(wildcard examples/demo/ocaml/*) ocaml-prefix
	$(say) OCAML $@
	$(Q)mkdir -p build/ocaml/demo/$* && cp examples/demo/ocaml/* build/ocaml/demo/$*
	$(Q)cd build/ocaml/demo/$* && OCAMLPATH='$(CURDIR)/$(OCAML_PREFIX)/lib' ocamlfind ocamlopt \
		-package xmem -linkpkg stubs.c common.ml $*.ml -cclib -lxxhash \
		-o '$(CURDIR)/$@'

# One file is one program, as a stranger would compile it: standard C, no private header.
EXAMPLES := $(addprefix $(B)/,$(basename $(notdir $(wildcard examples/*.c))))
# Frames in the loops of other libraries: built if the library is installed.
LIBRARY_OF_glib_loop := glib-2.0
LIBRARY_OF_uv_loop   := libuv
LOOPS := $(foreach loop,glib_loop uv_loop,$(if \
	$(shell pkg-config --exists $(LIBRARY_OF_$(loop)) 2>/dev/null && echo yes),$(B)/$(loop)))
EXAMPLE_CFLAGS := -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror

.PHONY: examples
examples: $(B)/xmemd $(EXAMPLES) $(LOOPS)

$(EXAMPLES): $(B)/%: examples/%.c include/xmem.h $(wildcard include/xmem/*.h) $(B)/libxmem.a
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EXAMPLE_CFLAGS) $(CFLAGS) -Iinclude $< $(XM_LDFLAGS) $(LDFLAGS) \
		$(B)/libxmem.a -ldl -o $@

$(LOOPS): $(B)/%: examples/loops/%.c include/xmem.h $(wildcard include/xmem/*.h) $(B)/libxmem.a
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EXAMPLE_CFLAGS) -D_POSIX_C_SOURCE=200809L $(CFLAGS) -Iinclude \
		$$(pkg-config --cflags $(LIBRARY_OF_$*) | sed 's/-I/-isystem /g') $< \
		$(XM_LDFLAGS) $(LDFLAGS) $(B)/libxmem.a $$(pkg-config --libs $(LIBRARY_OF_$*)) \
		-ldl -o $@

# Columns of strings that kernels make: the kernels run in threads of the CPU, or on a GPU as PTX.
# Without a toolkit the PTX has only names, which is all that tests/fakecuda reads.
STRINGS := $(addprefix $(B)/,strings_writer strings_reader strings.ptx)

.PHONY: strings
strings: $(B)/xmemd $(STRINGS)

$(B)/strings_writer: examples/strings/writer.cpp $(wildcard examples/strings/*.hpp) \
		examples/strings/kernels.cu $(wildcard include/*.h* include/xmem/*.h*) \
		$(wildcard include/xmem/*.cuh include/xmem/device/*.cuh) $(B)/libxmem.a
	$(say) CXX $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Werror -pthread $(CFLAGS) \
		-Iinclude $< $(XM_LDFLAGS) $(LDFLAGS) $(B)/libxmem.a -ldl -o $@

$(B)/strings_reader: examples/strings/reader.c include/xmem.h $(wildcard include/xmem/*.h) \
		$(B)/libxmem.a
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(EXAMPLE_CFLAGS) $(CFLAGS) -Iinclude $< $(XM_LDFLAGS) $(LDFLAGS) \
		$(B)/libxmem.a -ldl -o $@

$(B)/strings.ptx: examples/strings/kernels.cu $(wildcard include/xmem/device/*.cuh)
	$(say) PTX $@
	$(Q)mkdir -p $(@D)
	$(Q)if [ -n "$(NVCC)" ]; then \
		$(NVCC) -ptx -std=c++14 -arch=compute_80 -Iinclude $< -o $@; \
	else \
		(echo '.version 0.0'; sed -n 's/^KERNEL \([a-z_0-9]*\)(.*/.entry \1(/p' $<) >$@; \
	fi

# Names are used unchanged, with any characters in them.
demo: export DEMO_VIDEO := $(value VIDEO)
demo: export DEMO_BACKEND := $(value BACKEND)
demo: export DEMO_PROGRAMS := $(B)
demo: export DEMO_MODE := $(value MODE)
demo: export DEMO_GPU := $(value GPU)
demo: export DEMO_OCAML := $(value OCAML)

.PHONY: demo
demo:
	$(Q)examples/demo.sh look
	$(Q)needs=$$(examples/demo.sh needs) && scripts/needs.sh $$needs
	$(Q)$(MAKE) --no-print-directory $(if $(filter claims,$(MODE)),$(B)/xmemd $(B)/claims, \
		demo-programs $(if $(OCAML),$(DEMO_OCAML_PROGRAMS)))
	$(Q)if examples/demo.sh lacks-gpu; then \
		scripts/needs.sh fakecuda && $(MAKE) -s --no-print-directory $(FAKECUDA); fi
	$(Q)examples/demo.sh run
