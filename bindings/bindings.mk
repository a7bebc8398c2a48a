# Bindings: one description of the C API, and what is made of it.
#
# The files made from it are checked in, so compiling needs no Python. After a change of a public
# header "make api" makes them anew (bindings/README.md), with the Debian package python3-pycparser.
# Only the manual pages of the C API are made by "make install", for which python3 alone is enough.

.PHONY: api
api:
	$(say) GEN bindings/api.json
	$(Q)$(PYTHON) -B bindings/extract.py && $(PYTHON) -B bindings/generate.py

# A page of section 3 for each function, and one of section 7 for each header, with the notes of
# man/api. The folder man/api is a prerequisite, so a file that is removed makes the pages anew.
MAN := build/man
MAN_FUNCTIONS := get_api $(shell sed -n 's/^\tX(\([a-z0-9_]*\)).*/\1/p' lib/api_list.h)
MAN_PAGES := $(MAN_FUNCTIONS:%=man3/xmem_%.3) man7/xmem.7 \
	$(patsubst include/xmem/%.h,man7/xmem_%.7,\
		$(filter-out %/uapi.h,$(wildcard include/xmem/*.h)))
$(MAN)/made: bindings/api.json $(wildcard bindings/*.py) man/api $(wildcard man/api/*)
	$(say) GEN $(MAN)
	$(Q)rm -rf $(MAN) && $(PYTHON) -B bindings/generate.py --man $(MAN) && touch $@

# Without Python they cannot be made, and "make install" says so. uninstall knows their names.
ifneq ($(filter uninstall,$(MAKECMDGOALS))$(shell command -v $(PYTHON)),)
install: $(MAN)/made
INSTALL += $(foreach page,$(MAN_PAGES),644:$(MAN)/$(page):$(MANDIR)/$(page))
else
install: without-man
without-man:
	@echo "$(PYTHON) is not there: the manual pages of the C API are not installed," \
		"nor are the completions of shells." >&2
endif

# Each language has a folder, and its rules there.
include bindings/python/python.mk
include bindings/ocaml/ocaml.mk
include bindings/gstreamer/gstreamer.mk
