# The package of OCaml, built by dune in build/ocaml/FLAVOUR: bindings/ocaml/README.md.
#
#   make ocaml          the library xmem, with the libxmem of the flavour
#   make check-ocaml    its tests
#   make bench-ocaml    a hand-over in OCaml beside one in C
#   make ocaml-doc      pages of its modules, with Debian's ocaml-odoc
OCAML_TREE ?= build/ocaml/$(FLAVOUR)
OCAML_BUILD = OCAML_PAGE='$(CURDIR)/docs/ocaml.md' LIBXMEM_CFLAGS='-I$(CURDIR)/include' \
	LIBXMEM_LIBS='-L$(CURDIR)/$(B) -lxmem -Wl,-rpath,$(CURDIR)/$(B)' \
	dune build --root bindings/ocaml --build-dir '$(CURDIR)/$(OCAML_TREE)' --display quiet \
	2> >(grep -v ' directory ' >&2)

.PHONY: ocaml ocaml-only ocaml-ready ocaml-doc check-ocaml bench-ocaml
ocaml: $(B)/libxmem.so $(B)/xmemd
ocaml ocaml-only: ocaml-ready
	$(say) DUNE $(OCAML_TREE)
	$(Q)mkdir -p $(OCAML_TREE) && $(OCAML_BUILD) ./src ./test ./bench

# dune knows what is out of date. The program is a file of its own, because dune's are not copied
# with build/FLAVOUR.
$(B)/ocaml-tests: ocaml
	$(Q)cp -f --remove-destination $(OCAML_TREE)/default/test/tests.exe $@

ocaml-ready:
	$(Q)command -v dune >/dev/null || { echo 'make: dune is missing: as root,' \
		'scripts/needs.sh ocaml installs it and what else OCaml needs' >&2; exit 1; }

check-ocaml:
	$(Q)scripts/needs.sh ocaml
	$(Q)$(MAKE) -s FLAVOUR=test build/test/ocaml-tests fakecuda
	$(Q)bindings/ocaml/test/run.sh build/test/ocaml-tests

bench-ocaml: ocaml
	$(Q)$(OCAML_TREE)/default/bench/hand_over.exe

# As installed, for programs that ocamlfind builds.
OCAML_PREFIX := build/ocaml/prefix-$(FLAVOUR)
.PHONY: ocaml-prefix
ocaml-prefix: ocaml
	$(Q)$(OCAML_BUILD) @install && cd bindings/ocaml && dune install --root . \
		--build-dir '$(CURDIR)/$(OCAML_TREE)' --prefix '$(CURDIR)/$(OCAML_PREFIX)' \
		--libdir '$(CURDIR)/$(OCAML_PREFIX)/lib' xmem 2>/dev/null

# odoc warns of modules of other packages, and of the paths of hidden modules.
ocaml-doc: ocaml
	$(Q)$(OCAML_BUILD) @doc 2>build/ocaml/doc.log || { cat build/ocaml/doc.log >&2; exit 1; }
	@echo '$(OCAML_TREE)/default/_doc/_html/xmem/index.html'
