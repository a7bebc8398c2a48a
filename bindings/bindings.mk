# Bindings: one description of the C API, and what is made of it.
#
# The files that are made are checked in, so building needs no Python. Who has changed a public
# header runs "make api" and commits what it changes (bindings/README.md). It needs the Debian
# package python3-pycparser; "make man" needs python3 alone.

PYTHON ?= python3

.PHONY: api man
api:
	$(say) GEN bindings/api.json
	$(Q)$(PYTHON) -B bindings/extract.py && $(PYTHON) -B bindings/generate.py

# The pages of section 3, which install puts in place where they have been made. uninstall knows
# their names without them.
MAN3 := build/man/man3
man:
	$(say) GEN $(MAN3)
	$(Q)rm -rf $(MAN3) && $(PYTHON) -B bindings/generate.py --man $(MAN3)

MAN3_NAMES := xmem_get_api.3 xmem.h.3 \
	$(patsubst include/xmem/%,xmem_%.3,$(filter-out %/uapi.h,$(wildcard include/xmem/*.h))) \
	$(shell sed -n 's/^\tX(\([a-z0-9_]*\)).*/xmem_\1.3/p' lib/api_list.h)
INSTALL += $(foreach page,$(MAN3_NAMES),$(if $(filter uninstall,$(MAKECMDGOALS))$(wildcard \
	$(MAN3)/$(page)),644:$(MAN3)/$(page):$(MANDIR)/man3/$(page)))

# Each language has a folder, and its rules there.
include bindings/python/python.mk
