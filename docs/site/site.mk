# The documentation site, made by Sphinx: build/docs/html/index.html. tests/docs tests it.
#
# build/docs/src has all sources as links, so no text is there twice: the pages of docs/ and of this
# folder, the README, the manual pages, screenshots (tests/docs/screens.sh), and the pages of the
# C API, which bindings/generate.py makes of api.json. A warning of Sphinx is an error. Sphinx reads
# everything anew (-E), because it does not repeat the warnings of a page that has not changed.

SITE := build/docs
SPHINX ?= sphinx-build

.PHONY: docs
docs: all python $(B)/cli-scene
	$(say) SITE $(SITE)/html
	$(Q)scripts/needs.sh docs
	$(Q)rm -rf $(SITE)/src && mkdir -p $(SITE)/src/man
	$(Q)ln -s $(addprefix $(CURDIR)/,$(wildcard docs/site/*.md docs/*.md) docs/site/pictures \
		docs/abi \
		docs/performance $(wildcard *.md)) $(SITE)/src
	$(Q)ln -s $(CURDIR)/examples/README.md $(SITE)/src/examples.md
	$(Q)$(PYTHON) -B bindings/generate.py --site $(SITE)/src/api
	$(Q)for page in $(notdir $(wildcard man/*.[1-8])); do \
		mandoc -T html -O fragment man/$$page | sed 's,\(</*h\)1,\12,g' \
			>$(SITE)/src/man/$$page.html && \
		printf '# %s\n\n```{raw} html\n:file: %s\n```\n' $$page $$page.html \
			>$(SITE)/src/man/$$page.md || exit 1; \
	done
	$(Q)tests/docs/screens.sh $(B) $(SITE)/src/screens
	$(Q)PYTHONPATH=$(B)/python $(SPHINX) -q -W --keep-going -E -c docs/site \
		-d $(SITE)/doctrees -b html $(SITE)/src $(SITE)/html
