#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs libxmem ("make install") and the package of OCaml (as opam does) into folders of their
# own, builds a program with ocamlfind, and runs it. pkg-config says where libxmem is.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s B=build/ocaml/installed install PREFIX="$work/usr"
export PKG_CONFIG_PATH=$work/usr/lib/pkgconfig LD_LIBRARY_PATH=$work/usr/lib
cp -r bindings/ocaml "$work/source"
cd "$work/source"
unset LIBXMEM_CFLAGS LIBXMEM_LIBS
dune build -p xmem @install 2>"$work/log" || { cat "$work/log"; exit 1; }
dune install --prefix "$work/ocaml" --libdir "$work/ocaml/lib" xmem 2>"$work/log"
cd "$work"
cat >program.ml <<'EOF'
let () =
  Xmem.Pool.with_ (Xmem.Pool.open_ ~writer:true "installed") @@ fun pool ->
  Xmem.Buffer.with_ (Xmem.Pool.acquire pool 4096) Xmem.Buffer.publish;
  print_endline (Xmem.Pool.backend pool)
EOF
export OCAMLPATH=$work/ocaml/lib XMEM_SOCKET=$work/socket XMEM_BACKEND=daemon
ocamlfind ocamlopt -package xmem -linkpkg program.ml -o program
[ "$(./program)" = daemon ] || { echo 'FAIL the program says another host'; exit 1; }
echo 'installed, built and run'
