# examples: the demo, and the README's example. They see only include/xmem.h.

DEMO_SHARED   := control frame
DEMO_CONSUMER := $(DEMO_SHARED) consumer
demo-director_OBJ  := director crew report video control
demo-producer_OBJ  := producer video $(DEMO_SHARED)
demo-histogram_OBJ := histogram $(DEMO_CONSUMER)
demo-motion_OBJ    := motion $(DEMO_CONSUMER)
demo-contact_OBJ   := contact $(DEMO_CONSUMER)
demo-contact_LIBS  := -lpng
DEMO_PROGRAMS := $(addprefix $(B)/demo-,director producer histogram motion contact)

# Not in "all": they need libpng and xxhash. The daemon is what the library starts.
.PHONY: demo-programs
demo-programs: $(B)/xmemd $(DEMO_PROGRAMS)
	@:

define demo_program
$(B)/$(1): $(patsubst %,$(B)/obj/examples/demo/%.o,$($(1)_OBJ)) $(B)/libxmem.a
	$$(say) LD $$@
	$$(Q)$$(CC) $$(XM_LDFLAGS) $$(LDFLAGS) $$^ -o $$@ $($(1)_LIBS) -lxxhash -ldl
endef
$(foreach program,$(notdir $(DEMO_PROGRAMS)),$(eval $(call demo_program,$(program))))

.PHONY: examples
examples: $(B)/ten_lines

$(B)/ten_lines: $(B)/obj/examples/ten_lines.o $(B)/libxmem.a
	$(say) LD $@
	$(Q)$(CC) $(XM_LDFLAGS) $(LDFLAGS) $^ -o $@ -ldl

# Names are taken as they are, with whatever characters they have.
demo: export DEMO_VIDEO := $(value VIDEO)
demo: export DEMO_BACKEND := $(value BACKEND)
demo: export DEMO_PROGRAMS := $(B)

.PHONY: demo
demo:
	$(Q)examples/demo.sh look
	$(Q)needs=$$(examples/demo.sh needs) && scripts/needs.sh $$needs
	$(Q)$(MAKE) --no-print-directory demo-programs
	$(Q)examples/demo.sh run
