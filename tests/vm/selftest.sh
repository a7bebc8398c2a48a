#!/bin/bash
# SPDX-License-Identifier: MIT
# selftest.sh [NAME...]: checks that the VM harness notices faults. Statuses, files and output come
# back; each planted bug (plant/) makes a run fail, and a clean run does not fail. The default is
# debian-6.1, and kasan if that is built. It does not test xmem. Debian's kernels get the whole
# list, ours only the bugs that Debian's cannot detect.
set -euo pipefail
. "$(dirname "$0")/common.sh"

# VMs at one time: each keeps a processor busy, but some mostly wait
jobs_at_once=${VM_JOBS:-$(($(nproc) + 1))}
mkdir -p "$cache_dir/run"
work=$(mktemp -d "$cache_dir/run/selftest.XXXXXX")
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

pass() { echo "PASS $1"; echo pass >>"$work/results"; }
skip() { echo "SKIP $1: $2"; echo skip >>"$work/results"; }
fail() {
	echo "FAIL $1: $2"
	echo fail >>"$work/results"
	sed 's/^/    /' "$work/$1/printed" 2>/dev/null | tail -n 20 || true
}

build_plant() {
	local to=$cache_dir/$1/plant
	mkdir -p "$to"
	cp "$vm_dir"/plant/{Kbuild,plant.c} "$to/"
	# shellcheck disable=SC1090,SC1091,SC2086
	(. "$cache_dir/$1/env" && where_it_builds make -s -C "$VM_KDIR" M="$to" \
		$VM_KMAKE modules) \
		>"$to/log" 2>&1 ||
		{ cat "$to/log" >&2; die "cannot build the plant for $1"; }
}

# boot NAME KERNEL STATUS TEXT VM-ARGUMENTS...: expects the status, and a line of output, of the
# guest or the harness, that matches TEXT.
boot() {
	local name=$1 kernel=$2 wanted=$3 text=$4 got=0
	shift 4
	mkdir -p "$work/$name"
	XMEM_SELFTEST="it's" "$vm_dir/vm.sh" -q -k "$kernel" -o "$work/$name/out" "$@" \
		>"$work/$name/printed" 2>&1 || got=$?
	if [ "$got" != "$wanted" ]; then
		fail "$name" "status $got, expected $wanted"
	elif ! grep -Eq "$text" "$work/$name/printed"; then
		fail "$name" "nothing printed like: $text"
	elif [ -n "${extra_check:-}" ] && ! $extra_check "$work/$name"; then
		fail "$name" "$extra_check"
	else
		pass "$name"
	fi
}

# start COMMAND...: runs it in the background, when a place is free.
start() {
	while [ "$(jobs -pr | wc -l)" -ge "$jobs_at_once" ]; do wait -n || true; done
	"$@" &
}

bug_text_printed() { grep -q 'BUG: planted text' "$1/printed"; }
hang_was_reached() { grep -q 'loading plant kind=hang' "$1/out/console.log"; }
file_came_back() { [ "$(cat "$1/out/files/here")" = "$(pwd)" ]; }

# The first line must arrive while the command still runs. Nothing may be left of a machine whose
# vm.sh was told to end.
boot_and_interrupt() {
	local name=$1 line='' pid
	mkdir -p "$work/$name"
	mkfifo "$work/$name/fifo"
	"$vm_dir/vm.sh" -q -k "$2" -o "$work/$name/out" -- sh -c 'echo started; sleep 1000' \
		>"$work/$name/fifo" 2>"$work/$name/printed" &
	pid=$!
	read -r -t 60 line <"$work/$name/fifo" || true
	kill "$pid"
	wait "$pid" || true
	if [ "$line" != started ]; then
		fail "$name" "no output while the command ran"
	elif pgrep -f "$work/$name/out" >/dev/null; then
		fail "$name" "qemu left behind"
	else
		pass "$name"
	fi
}

# complain NAME STATUS LINE...: runs only the parser, on a made-up log.
complain() {
	local name=$1 wanted=$2 got=0
	shift 2
	mkdir -p "$work/$name"
	printf '%s\n' "$@" >"$work/$name/log"
	"$vm_dir/complaints.sh" "$work/$name/log" >"$work/$name/printed" || got=$?
	if [ "$got" = "$wanted" ]; then
		pass "$name"
	else
		fail "$name" "status $got, expected $wanted"
	fi
}

test_parser() {
	complain parser_passes_clean_log 0 'Linux version 6.1' \
		'Kernel command line: BUG: WARNING:' 'initcall trace_init_x+0x0' 'DEBUG: x' \
		'x[1]: segfault at 0 ip 0 sp 0 error 4' 'traps: x[1] general protection fault ip:1'
	complain parser_passes_injected_failure 0 \
		'FAULT_INJECTION: forcing a failure.' 'Call Trace:'
	complain parser_finds_trace_after_it 1 \
		'FAULT_INJECTION: forcing a failure.' 'Call Trace:' 'Call Trace:'
	complain parser_finds_lockdep 1 'WARNING: possible circular locking dependency detected'
	complain parser_finds_hung_task 1 'INFO: task x:1 blocked for more than 120 seconds.'
	complain parser_finds_leak 1 'unreferenced object 0xffff888 (size 64):'
	complain parser_finds_rcu 1 'WARNING: suspicious RCU usage'
	complain parser_finds_slub 1 '[1.0] BUG kmalloc-64 (Tainted: G OE): Poison overwritten'
	complain parser_ignores_dump_of_hang 0 'vm-init: time is nearly up' 'Call Trace:'
}

test_whole() {
	local k=$1 plant=(-k "$1" -m "$cache_dir/$1/plant/plant.ko")
	start boot "$k.module_stuck" "$k" 125 'could not be unloaded' \
		"${plant[@]}" -p kind=stuck -- true
	extra_check=hang_was_reached start boot "$k.guest_hangs" "$k" 124 'time limit' -t 30 \
		"${plant[@]}" -p kind=hang -- true
	# shellcheck disable=SC2016
	extra_check=file_came_back start boot "$k.answers_and_brings_file" "$k" 0 \
		"^it's \[x  y\]$" -- \
		sh -c 'pwd >"$VM_OUT/here"; echo "$XMEM_SELFTEST [$1]"' sh 'x  y'
	start boot "$k.module_unloads_status_42" "$k" 42 '^plant .* Live' "${plant[@]}" -- \
		sh -c 'cat /proc/modules; exit 42'
	start boot "$k.module_refuses" "$k" 125 'could not be loaded' \
		"${plant[@]}" -p kind=refuse -- true
	start boot "$k.kernel_warns" "$k" 125 'planted warning|WARNING:' \
		"${plant[@]}" -p kind=warn -- true
	start boot "$k.kernel_oopses" "$k" 125 'BUG: kernel NULL pointer' \
		"${plant[@]}" -p kind=oops -- true
	extra_check=bug_text_printed start boot "$k.kernel_logs_bug_and_is_tainted" "$k" 125 \
		'the kernel is tainted' "${plant[@]}" -p kind=text_and_taint -- true
	start boot "$k.guest_dies" "$k" 125 'the guest died' -- \
		sh -c 'echo b >/proc/sysrq-trigger; sleep 100'
	start boot_and_interrupt "$k.output_is_live_and_interrupt_cleans_up" "$k"
}

# finds KERNEL KIND TEXT: the planted bug of this kind ends the run, and the output names it.
finds() {
	start boot "$1.$2" "$1" 125 "$3" -k "$1" -m "$cache_dir/$1/plant/plant.ko" \
		-p "kind=$2" -- true
}

# Bugs that only one of our own kernels can find.
test_debug() {
	local k=$1
	start boot "$k.module_unloads_status_42" "$k" 42 '^plant .* Live' \
		-k "$k" -m "$cache_dir/$k/plant/plant.ko" -- sh -c 'cat /proc/modules; exit 42'
	case $k in
	kasan)
		finds "$k" lockdep 'possible circular locking'
		finds "$k" use_after_free 'BUG: KASAN'
		finds "$k" double_free 'BUG: KASAN: (double-free|invalid-free)'
		finds "$k" index 'UBSAN: array-index-out-of-bounds'
		finds "$k" atomic_sleep 'BUG: sleeping function'
		;;
	kcsan)
		finds "$k" race 'BUG: KCSAN: data-race in plant_racer'
		finds "$k" index 'UBSAN: array-index-out-of-bounds'
		;;
	rt)
		finds "$k" lockdep 'possible circular locking'
		finds "$k" raw_sleep 'BUG: Invalid wait context|BUG: sleeping function'
		;;
	*) die "no planted bugs are known for $k" ;;
	esac
}

need make:make pgrep:procps
: >"$work/results"
test_parser
for kernel in "${@:-debian-6.1}"; do
	"$vm_dir/kernel.sh" "$kernel" >/dev/null
	build_plant "$kernel"
	case $kernel in
	debian-*) test_whole "$kernel" ;;
	*) test_debug "$kernel" ;;
	esac
done
if [ $# = 0 ]; then
	if [ -e "$cache_dir/kasan/stamp" ]; then
		"$vm_dir/kernel.sh" kasan >/dev/null
		build_plant kasan
		test_debug kasan
	else
		skip kasan "not built, see build-kernel.sh"
	fi
fi
wait
count() { grep -cx "$1" "$work/results" || true; }
echo "$(count pass) passed, $(count fail) failed, $(count skip) skipped"
[ "$(count fail)" = 0 ]
