#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs suites in a virtual machine (VM). First it builds the module and the programs. Then it boots
# one VM for each type of machine that the suites need. If a suite makes its VM unusable, another VM
# runs the remaining suites. each.sh loads the module before each suite.
#
#   tests/kernel/suites.sh [--boot KERNEL] [--on MACHINE] 'NAME [ARGUMENT...]'...
#   tests/kernel/suites.sh -l          the table below
#   tests/kernel/suites.sh --selftest  checks that this script notices a crash of the VM, a
#                                      complaint of the kernel, and a suite without any test
#
# KERNEL is debian-6.1 by default. For any other kernel the module is built for tests (XMEM_DEBUG).
# --on MACHINE uses this type of machine for all suites, instead of the types in the table. The
# arguments, mostly names of tests, are appended to the suite's command. The variable VM_APPEND adds
# words to the kernel's command line.
#
# When a suite ends, this script prints "NAME: N passed, N failed, N skipped  S s". While it runs,
# its output goes to build/test-log/FIRST-KERNEL/files/NAME.log, where FIRST is the first suite of
# that boot. The kernel's log is beside files/, in console.log. A suite has also failed if the VM
# crashes or the kernel complains during it, or if the module cannot be unloaded after it.
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

# NAME|MACHINE|SECONDS|targets of make|COMMAND. SECONDS is a limit against hangs, at least five
# times what a suite needs on a busy machine. Machines:
#   plain         two processors
#   full          two processors; a task that has a lock for long is interrupted (preempt=full)
#   counted       one processor, whose clock counts instructions (VM_COUNTS of vm.sh), and
#                 preempt=full
here='env XMEM_BACKEND=kernel FAKECUDA_DEVICE_FILE=/dev/xmem-test-gpu'
table="\
conform-kernel|plain|3600|build/test/conform|$here build/test/conform
cuda-kernel|plain|3600|build/test/cuda|$here build/test/cuda
cpp-kernel|plain|900|build/test/cpp-17|$here build/test/cpp-17
random-requests|plain|900|build/release/random-requests|build/release/random-requests 30
strangers|plain|1800|build/release/strangers|build/release/strangers
exhaust|plain|1800|build/release/exhaust|build/release/exhaust
hoards|plain|1800|build/release/hoards|build/release/hoards
reaped|plain|1800|build/release/reaped|build/release/reaped
folders|counted|1800|build/release/folders|build/release/folders
gpu-payloads|plain|1800|build/release/gpu-payloads|build/release/gpu-payloads
traces|plain|900|build/release/traces|build/release/traces
examples-kernel|plain|3600|examples demo-programs fakecuda|$here tests/examples.sh
cli-kernel|plain|1800|cli-tests|$here tests/cli/run.sh
flow-kernel|plain|1800|cli-tests|$here tests/cli/flow.sh build/release \
contents_come_back metadata_come_back losses_are_marked full_disk_keeps_what_fits pipes_end
alloc-failures|plain|1800|build/release/alloc-failures|build/release/alloc-failures
ends|counted|3600|build/release/ends|build/release/ends
meanwhile|counted|1800|build/release/meanwhile|build/release/meanwhile
watched|counted|3600|build/release/watched|build/release/watched
cheap|counted|1800|build/release/cheap|build/release/cheap"

usage() { sed -n '3,10s/^# \?//p' "$0" >&2; exit 2; }

# Two boots with suites that must fail, each in another way.
selftest() {
	local said pattern missed=0
	said=$("$0" \
		'reaped NONE; echo BUG: planted >/dev/kmsg; echo 1 passed, 0 failed, 0 skipped' \
		'exhaust NONE; echo b >/proc/sysrq-trigger; sleep 1000' 'folders NONE' \
		'strangers NONE; echo 2 passed, 0 failed, 1 skipped')
	for pattern in 'FAIL reaped-.*: the kernel complained' \
		'FAIL exhaust-.*: the machine has ended meanwhile' \
		'folders-NONE: 0 passed, 1 failed' 'strangers-.*: 2 passed, 0 failed, 1 skipped' \
		'3 passed, 3 failed, 1 skipped$'; do
		grep -q "^$pattern" <<<"$said" && continue
		echo "FAIL selftest: nothing is said like $pattern"
		missed=$((missed + 1))
	done
	[ $missed = 0 ] || echo "$said"
	echo "$((5 - missed)) passed, $missed failed, 0 skipped"
	[ $missed = 0 ]
}

kernel=debian-6.1 on=''
while [[ ${1:-} = -* ]]; do
	case $1 in
	--boot) kernel=${2:?}; shift 2 ;;
	--on) on=${2:?}; shift 2 ;;
	-l) echo "$table"; exit ;;
	--selftest) selftest; exit ;;
	*) usage ;;
	esac
done
[ $# -gt 0 ] || usage

# For each requested suite: name|machine|seconds|command; and the targets that make builds.
rows=() programs=()
for wanted; do
	name=${wanted%% *}
	IFS='|' read -r _ machine seconds make command < <(grep "^$name|" <<<"$table") ||
		{ echo "suites.sh: no suite is called '$name', see suites.sh -l" >&2; exit 2; }
	rows+=("${wanted//[^A-Za-z0-9._-]/-}|${on:-$machine}|$seconds|$command${wanted#"$name"}")
	read -ra words <<<"$make"
	programs+=("${words[@]}")
done

build() {
	local some flavour
	for flavour in test release; do
		mapfile -t some < <(printf '%s\n' "${programs[@]}" | sort -u |
			if [ $flavour = test ]; then grep '^build/test/'
			else grep -v '^build/test/'; fi)
		[ ${#some[@]} = 0 ] || make -s "-j$(nproc)" FLAVOUR=$flavour "${some[@]}" ||
			return 1
	done
	[ "$kernel" = debian-6.1 ] || debug=XMEM_DEBUG=y
	module=$(tests/vm/module.sh "$kernel" $debug) && gpu=$(tests/kernel/gpu/module.sh "$kernel")
}

passed=0 failed=0 skipped=0 debug=''

# fault NAME WHY
fault() {
	echo "FAIL $1: $2, see $out"
	failed=$((failed + 1))
}

# The suites during which the kernel complained: for each complaint, the suite that began last.
accused() {
	local line from
	tests/vm/complaints.sh "$out/console.log" "$out/status" | while IFS= read -r line; do
		from=${line%%:*}
		[ "$from" -gt 0 ] 2>/dev/null || from=\$
		sed -n "1,${from}s/.*each\.sh: \(.*\) begins.*/\1/p" "$out/console.log" | tail -n 1
	done | sort -u
}

# boot MACHINE ROW...: sets left to the rows that have no result yet.
boot() {
	local machine=$1 row name p f s seconds=180 rc counts='' idle=1 append=${VM_APPEND:-} bad
	shift
	out=build/test-log/${1%%|*}-$kernel left=()
	mkdir -p "$out"
	rm -rf "$out/files"
	# The VM's clock leaps while it waits for this machine, so limits use this machine's clock.
	[ "$machine" != counted ] || counts=1 idle=1000
	for row; do
		IFS='|' read -r name _ s p <<<"$row"
		echo "$name||$((s * idle))|$p"
		seconds=$((seconds + s))
	done >"$out/list"
	[ "$machine" = plain ] || append+=' preempt=full'
	VM_COUNTS=$counts tests/vm/vm.sh -q -k "$kernel" -t "$seconds" -o "$out" -a "$append" \
		-m "$gpu" -m "$module" -p device_files=240:255 \
		-- tests/kernel/each.sh "$out/list" /run/vm/out/files 2>&1 |
		tee "$out/said" | grep --line-buffered -avE '^(GREEN|RED) '
	rc=${PIPESTATUS[0]} bad=0
	for row; do
		name=${row%%|*}
		if read -r p _ f _ s _ < <(grep -a "^$name: [0-9]* passed" "$out/said" |
			sed 's/^[^:]*: //'); then
			passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
			[ "$f" = 0 ] || bad=1
		elif grep -q "each\.sh: $name begins" "$out/console.log"; then
			fault "$name" 'the machine has ended meanwhile'
			bad=1
		else
			left+=("$row")
		fi
	done
	for name in $(accused); do
		fault "$name" "the kernel complained"
		bad=1
	done
	name=$(sed -n 's/^STUCK //p' "$out/said")
	if [ -n "$name" ]; then
		fault "$name" "the module could not be unloaded"
		bad=1
	fi
	if [ ${#left[@]} = $# ]; then	# another boot would get no further
		for row; do fault "${row%%|*}" "it has not begun"; done
		left=()
	elif [ "$rc" != 0 ] && [ $bad = 0 ]; then
		fault "$1" "the machine's status is $rc"
	fi
}

if build; then
	for machine in plain full counted; do
		mapfile -t left < <(printf '%s\n' "${rows[@]}" | grep "^[^|]*|$machine|")
		while [ ${#left[@]} -gt 0 ]; do
			boot $machine "${left[@]}"
		done
	done
else
	out='what make says' failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
