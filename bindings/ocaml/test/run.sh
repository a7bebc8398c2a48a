#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# run.sh [-v] PROGRAM [ARGUMENT of alcotest...]: the tests of the OCaml package, which are the
# program build/test/ocaml-tests, with a daemon of their own and the fake driver ("make FLAVOUR=test
# build/test/ocaml-tests fakecuda" builds all). Arguments are the name of a group and numbers of its
# tests: "views 1-3".
#
# If PROGRAM is -5, the tests are built and run with OCaml 5 in a tree of Debian 13: see trixie.sh.
#
# With -v they run under valgrind, and no memory may be lost but the runtime's own.
#
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 2
under=()
if [ "${1:-}" = -v ]; then
	under=(valgrind -q --leak-check=full --show-leak-kinds=definite
		--errors-for-leak-kinds=definite --error-exitcode=9
		--suppressions=bindings/ocaml/test/valgrind.supp)
	shift
fi
program=${1:?usage: run.sh [-v] PROGRAM|-5 [ARGUMENT of alcotest...]}
shift

within=() out=build/ocaml/alcotest
if [ "$program" = -5 ]; then
	within=(bindings/ocaml/test/trixie.sh) out=build/ocaml/alcotest-5
	program=build/ocaml/test-5/default/test/tests.exe
	"${within[@]}" make -s FLAVOUR=test OCAML_TREE=build/ocaml/test-5 ocaml-only
	case $? in
	0) ;;
	77) echo '0 passed, 0 failed, 1 skipped'; exit 0 ;;
	*) echo '0 passed, 1 failed, 0 skipped'; exit 1 ;;
	esac
fi

# This run shares no pool with another program.
folder=$("${within[@]}" mktemp -d) || exit 2
trap '"${within[@]}" rm -rf "$folder"' EXIT
unset XMEM_DAEMON
export XMEM_SOCKET=$folder/socket XMEM_BACKEND=daemon XMEM_DEVICE_FILES=195:255,memfd
export XMEM_CUDA_DRIVER=$PWD/build/test/fakecuda/libcuda.so.1
mkdir -p $out
"${within[@]}" "${under[@]}" "$program" test -o "$PWD/$out" "$@" 2>&1 | tee $out.log
status=${PIPESTATUS[0]}
passed=$(grep -c '^  \[OK\]' $out.log)
sed -nE 's/^[> ] \[FAIL\] +([a-z]+) +[0-9]+ +(.*)\.$/FAIL \1: \2/p' $out.log | tee $out.failed
failed=$(wc -l <$out.failed)
[ "$failed" != 0 ] || [ "$status" = 0 ] || { echo "FAIL the program: status $status"; failed=1; }
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
