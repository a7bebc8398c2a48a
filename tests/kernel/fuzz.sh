#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the fuzzer of xmem.ko (tests/kernel/fuzz) in the VM. It begins with this repository's corpus.
#   tests/kernel/fuzz.sh KERNEL SECONDS [ARGUMENT...]
# With the kernel kasan it is guided by kcov, and allocations fail as well; other kernels have
# neither. Arguments other than -t SECONDS replace the corpus. VM_APPEND has more words for the
# kernel's command line. If the machine dies or hangs, the script prints the last programs of each
# executor, with the command that runs them again.
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
# a build may replace it while the machine reads it
cp build/release/kernel-fuzz "$out/"
# vm.sh multiplies these seconds by four for slow kernels
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
