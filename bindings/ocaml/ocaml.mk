# The package of OCaml, built by dune in build/FLAVOUR/ocaml: bindings/ocaml/README.md.
#
#   make ocaml          the library xmem, beside the libxmem of the flavour
#   make check-ocaml    its tests
#   make bench-ocaml    a hand-over in OCaml beside one in C
OCAML_TREE ?= $(B)/ocaml
OCAML_BUILD = OCAML_PAGE='$(CURDIR)/docs/ocaml.md' LIBXMEM_CFLAGS='-I$(CURDIR)/include' \
	LIBXMEM_LIBS='-L$(CURDIR)/$(B) -lxmem -Wl,-rpath,$(CURDIR)/$(B)' \
	dune build --root bindings/ocaml --build-dir '$(CURDIR)/$(OCAML_TREE)' --display quiet \
	2> >(grep -v ' directory ' >&2)

.PHONY: ocaml ocaml-tests ocaml-tests-only ocaml-ready check-ocaml bench-ocaml
ocaml: ocaml-ready $(B)/libxmem.so $(B)/xmemd
	$(say) DUNE $(OCAML_TREE)
	$(Q)$(OCAML_BUILD) ./src

# With a libxmem that is there: the tests of OCaml 5 use that of this machine's Debian.
ocaml-tests: ocaml
	$(Q)$(OCAML_BUILD) ./test ./bench
ocaml-tests-only: ocaml-ready
	$(say) DUNE $(OCAML_TREE)
	$(Q)$(OCAML_BUILD) ./test ./bench

ocaml-ready:
	$(Q)command -v dune >/dev/null || { echo 'make: dune is missing: as root,' \
		'scripts/needs.sh ocaml installs it and what else OCaml needs' >&2; exit 1; }

check-ocaml:
	$(Q)scripts/needs.sh ocaml
	$(Q)$(MAKE) -s FLAVOUR=test ocaml-tests fakecuda
	$(Q)bindings/ocaml/test/run.sh

bench-ocaml: ocaml
	$(Q)$(OCAML_BUILD) ./bench
	$(Q)$(OCAML_TREE)/default/bench/hand_over.exe
