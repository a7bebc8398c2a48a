#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh [-5] [ARGUMENT of alcotest...]: the tests of the OCaml package, with the libxmem and xmemd
# of build/test ("make FLAVOUR=test ocaml-tests fakecuda" builds all). With -5 they are built and
# run with OCaml 5 in a tree of Debian 13: see trixie.sh. The fake driver stands for a GPU's. The
# last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 2

command=()
tree=build/test/ocaml
if [ "${1:-}" = -5 ]; then
	shift
	tree=build/test/ocaml-5
	bindings/ocaml/test/trixie.sh make -s FLAVOUR=test OCAML_TREE=$tree ocaml-tests-only
	case $? in
	0) command=(bindings/ocaml/test/trixie.sh) ;;
	77) echo '0 passed, 0 failed, 1 skipped'; exit 0 ;;
	*) echo '0 passed, 1 failed, 0 skipped'; exit 1 ;;
	esac
fi
# This run shares no pool with another program.
folder=$("${command[@]}" mktemp -d)
trap '"${command[@]}" rm -rf "$folder"' EXIT
unset XMEM_DAEMON
export XMEM_SOCKET=$folder/socket XMEM_BACKEND=daemon XMEM_DEVICE_FILES=195:255,memfd
export XMEM_CUDA_DRIVER=$PWD/build/test/fakecuda/libcuda.so.1
out=$tree/alcotest log=$tree/tests.log
mkdir -p "$out"
"${command[@]}" "$tree/default/test/tests.exe" test -o "$PWD/$out" "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
passed=$(grep -c '^  \[OK\]' "$log")
failed=$(grep -cE '^[> ] \[FAIL\] ' "$log")
[ "$failed" != 0 ] || [ "$status" = 0 ] || failed=1
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
