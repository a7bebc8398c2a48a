# The package of OCaml, built by dune in build/FLAVOUR/ocaml: bindings/ocaml/README.md.
#
#   make ocaml          the library xmem, beside the libxmem of the flavour
#   make check-ocaml    its tests
OCAML_BUILD = LIBXMEM_CFLAGS='-I$(CURDIR)/include' \
	LIBXMEM_LIBS='-L$(CURDIR)/$(B) -lxmem -Wl,-rpath,$(CURDIR)/$(B)' \
	dune build --root bindings/ocaml --build-dir '$(CURDIR)/$(B)/ocaml' --display quiet

.PHONY: ocaml ocaml-tests ocaml-ready check-ocaml
ocaml: ocaml-ready $(B)/libxmem.so $(B)/xmemd
	$(say) DUNE $(B)/ocaml
	$(Q)$(OCAML_BUILD) ./src

ocaml-tests: ocaml
	$(Q)$(OCAML_BUILD) ./test

ocaml-ready:
	$(Q)command -v dune >/dev/null || { echo 'make: dune is missing: as root,' \
		'scripts/needs.sh ocaml installs it and what else OCaml needs' >&2; exit 1; }

check-ocaml:
	$(Q)scripts/needs.sh ocaml
	$(Q)$(MAKE) -s FLAVOUR=test ocaml-tests
	$(Q)bindings/ocaml/test/run.sh
