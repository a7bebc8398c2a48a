#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The fuzzer of xmem.ko (tests/kernel/fuzz) in the VM, from the corpus of this repository on.
#   tests/kernel/fuzz.sh KERNEL SECONDS [ARGUMENT...]
# With kernel kasan it is guided by kcov, and allocations fail, too; others have neither. Other
# arguments than -t SECONDS replace the corpus. VM_APPEND: more words for the kernel's command
# line. If the machine dies or hangs, the last programs of each executor are printed, with the
# command that runs them again.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
[ $# -ge 2 ] || { echo "usage: $0 KERNEL SECONDS [ARGUMENT...]" >&2; exit 2; }
name=$1 seconds=$2; shift 2
[ $# -gt 0 ] || set -- -t "$seconds" -c tests/kernel/corpus/fuzz.txt
flags=(XMEM_DEBUG=y)
[ "$name" != kasan ] || flags+=(XMEM_KCOV=y)
module=$(tests/vm/module.sh "$name" "${flags[@]}") || exit 2
gpu=$(tests/kernel/gpu/module.sh "$name") || exit 2
make -s "build/release/kernel-fuzz" || exit 2
out=build/test-log/fuzz-$name-$seconds
mkdir -p "$out"
rm -rf "$out/files"
# it may be built anew while the machine reads it
cp build/release/kernel-fuzz "$out/"
# vm.sh gives slow kernels four times what is asked for here
scale=1
[ "$name" != kasan ] || scale=4
tests/vm/vm.sh -k "$name" -t $((20 * seconds / scale + 90)) -a "${VM_APPEND:-}" -o "$out" \
	-m "$gpu" -m "$module" -p device_files=240:255 -- \
	sh -c 'exec "$0" -o "$VM_OUT" "$@"' "$out/kernel-fuzz" "$@"
status=$?
case $status in
124 | 125)
	replay=()
	for journal in "$out"/files/journal-?; do
		[ -e "$journal" ] || continue
		"$out/kernel-fuzz" -p "$journal" >"$journal.txt" || continue
		echo "the last programs of executor ${journal##*-} are in $journal.txt," \
			"and this is the last one:"
		tac "$journal.txt" | sed '1{/^$/d}' | sed '/^$/q' | tac
		replay+=("$PWD/$journal.txt")
	done
	echo "once more: tests/kernel/fuzz.sh $name 600 -r 100 ${replay[*]}" ;;
esac
exit $status
