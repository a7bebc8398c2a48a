#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs examples/trace in the VM, on a scene whose events are all known (traces.c): with the
# installed perf, and with Debian's bpftrace, which is unpacked beside the VM's kernels and not
# installed. It is not in CI, because LLVM is slow under emulation.
#   tests/kernel/trace-tools.sh                 prepares, and runs itself in the VM
#   tests/kernel/trace-tools.sh inside TOOLS    the tests
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/vm/common.sh
. tests/vm/common.sh
tools=$cache_dir/trace-tools
scene=$PWD/build/release/traces
passed=0 failed=0

verdict() {	# status, name, the fault if the status is not 0
	if [ "$1" = 0 ]; then
		echo "PASS $2"; passed=$((passed + 1))
	else
		echo "FAIL $2: $3"; failed=$((failed + 1))
	fi
}

# compare TOOL OUTPUT: compares each "expect EVENT COUNT" with the tool's line for that event
compare() {
	local event want got
	verdict "$(grep -c '^expect xmem_' "$2" | awk '{ print $1 < 6 }')" "$1-scene" \
		"the scene did not end well: $(tail -3 "$2")"
	while read -r _ event want; do
		# perf.sh: "EVENT COUNT"; bpftrace: "@events[tracepoint:xmem:EVENT]: COUNT"
		got=$(grep -E "^  $event +[0-9]+$|:$event\]: [0-9]+$" "$2" | grep -oE '[0-9]+$')
		verdict "$([ "${got:-0}" = "$want" ]; echo $?)" "$1-$event" "${got:-0}, not $want"
	done < <(grep '^expect ' "$2")
	verdict "$(grep -qE "$3" "$2"; echo $?)" "$1-limit" "nothing like: $3"
	verdict "$(grep -qE "$4" "$2"; echo $?)" "$1-end" "nothing like: $4"
	[ $failed = 0 ] || sed 's/^/    | /' "$2"
}

inside() {
	local out
	out=$(mktemp)
	examples/trace/perf.sh "$scene" scene >"$out" 2>&1
	compare perf "$out" ' max_pools, pool -1: 2 of at most 1$' ' 2 holds +0 slots +[0-9.]+ ms$'
	export LD_LIBRARY_PATH=$tools/usr/lib/x86_64-linux-gnu
	"$tools/usr/bin/bpftrace" -c "$scene scene" examples/trace/ends.bt >"$out" 2>&1
	compare bpftrace "$out" 'limit max_pools of pool -1: 2 wanted, at most 1$' '^@holds: 2$'
	verdict "$(grep -q '^@slots: 1$' "$out"; echo $?)" bpftrace-slots 'no "@slots: 1"'
	echo "$passed passed, $failed failed, 0 skipped"
	[ $failed = 0 ]
}

[ "${1:-}" != inside ] || { tools=$2; inside; exit; }
need perf:linux-perf
for package in bpftrace libbpf1 libbpfcc libllvm14 libclang1-14; do
	version=$(apt-cache show --no-all-versions "$package" | sed -n 's/^Version: //p') ||
		die "apt knows no $package, try: apt-get update"
	fetch_deb "$package=$version" "$tools"
done
make -s build/release/traces || exit
module=$(tests/vm/module.sh debian-6.1) || exit
exec tests/vm/vm.sh -k debian-6.1 -m "$module" -t 400 -M 2048 -o build/test-log/trace-tools -- \
	tests/kernel/trace-tools.sh inside "$tools"
