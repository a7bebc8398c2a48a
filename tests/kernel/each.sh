#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# each.sh FILE [FOLDER]: runs commands inside the VM. Each line of FILE is
# "NAME|MODULE|SECONDS|COMMAND". For each line the script loads the xmem.ko at the path MODULE, runs
# COMMAND, and unloads the module. The VM was started with two modules. The first one stands for a
# GPU's driver, and is loaded each time. The second one is loaded if MODULE is empty. SECONDS is a
# limit against hangs, which slow kernels multiply (VM_TIMEOUT_SCALE). The output goes to
# FOLDER/NAME.log; without FOLDER it is not kept. The script prints for each NAME:
#
#   NAME: N passed, N failed, N skipped  S s   the counts in its last line, and its time. One
#                       failed test is counted if the command does not end in time, prints no such
#                       line, has neither passed nor skipped a test, or does not end with status 0
#   FAIL..., SKIP...    the lines of its output that begin with FAIL or SKIP. If it has failed, the
#                       last lines of its output follow
#   GREEN NAME          at least one test passed; none failed, and none was skipped
#   RED NAME STATUS     every other case, for example a skipped test. STATUS is the command's, or
#                       124 if it did not end in time, or 123 if it hangs. With these two, the log
#                       ends with a list of the processes and of the places where they wait
#   STUCK NAME          the module cannot be unloaded. The script runs no more commands; suites.sh
#                       starts another VM for them
#
# The script writes "each.sh: NAME begins" to the kernel's log, so that a complaint of the kernel
# can be charged to a command. suites.sh and check-mutants-kernel.sh run many commands in one boot
# by this script.
#
# The variable HANG is a number of seconds. If the processors are idle for that long, the command
# hangs, and the script ends it. A busy machine cannot cause that, because it always has work.
set -uo pipefail
folder=${2:-}
[ -n "$folder" ] || { folder=$(mktemp -d); trap 'rm -rf "$folder"' EXIT; }
# shellcheck source=/dev/null
. /run/vm/settings

# After a command's end the kernel may use its files for a moment, and nothing announces when that
# is over. So rmmod is tried again.
unload() {
	local name tries
	for name in xmem xmem_test_gpu; do
		for ((tries = 0; tries < 300; tries++)); do
			rmmod "$name" 2>"$folder/rmmod" && continue 2
			sleep 0.1
		done
		cat "$folder/rmmod"
		return 1
	done
}

# shellcheck disable=SC2154,SC2086
load() { insmod /run/vm/module.0.ko $arguments_0 && insmod "$1" $arguments_1; }

# Lists the processes, and where in the kernel each of them is.
dump() {
	local process line
	echo "$1:"
	for process in /proc/[0-9]*; do
		line=$(tr '\0' ' ' <"$process/cmdline")
		[ -n "$line" ] || continue
		echo "${process#/proc/}: $line"
		cat "$process/stack"
	done
}

# Returns when the processors have been idle for HANG seconds.
until_idle() {
	local user nice system idle iowait rest all before=0 all_before=0 still=0
	while sleep 2; do
		read -r _ user nice system idle iowait rest </proc/stat
		idle=$((idle + iowait))
		all=$((user + nice + system + idle + ${rest// / + }))
		still=$((still + 2))
		[ $((20 * (idle - before))) -ge $((19 * (all - all_before))) ] || still=0
		before=$idle all_before=$all
		[ $still -lt "$HANG" ] || return 0
	done
}

# in_time SECONDS COMMAND: returns its status. With 124 or 123 it was killed, with all its children.
in_time() {
	local job timer watch='' first status
	setsid bash -fc "$2" </dev/null >"$log" 2>&1 3<&- &
	job=$!
	sleep "$1" &
	timer=$!
	[ -z "${HANG:-}" ] || { until_idle & watch=$!; }
	# shellcheck disable=SC2086	# it may be none
	wait -n -p first "$job" "$timer" $watch
	status=$?
	case $first in
	"$job") ;;
	"$timer") status=124 && dump "no end after $1 s" ;;
	*) status=123 && dump "nothing runs" ;;
	esac >>"$log" 2>/dev/null
	# A killed process does not end while it waits for a release (gate of xmem_test_gpu).
	[ "$first" = "$job" ] ||
		{ kill -9 -- "-$job"; echo 0 >/sys/module/xmem_test_gpu/parameters/gate; }
	# shellcheck disable=SC2086
	kill "$timer" $watch 2>/dev/null
	wait
	return $status
}

# report NAME STATUS SECONDS
report() {
	local p=0 f=0 s=0 _
	read -r p _ f _ s _ < <(tail -n 1 "$log" |
		grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' || echo 0 _ 1 _ 0)
	if [ "$f" = 0 ] && { [ "$2" != 0 ] || [ "$p$s" = 00 ]; }; then f=1; fi
	echo "$1: $p passed, $f failed, $s skipped  $3 s"
	grep -aE '^(FAIL|SKIP)' "$log" | head -n 100
	if [ "$p" != 0 ] && [ "$f" = 0 ] && [ "$s" = 0 ]; then
		echo "GREEN $1"
	else
		[ "$f" = 0 ] || tail -n 15 "$log" | sed 's/^/    /'
		echo "RED $1 $2"
	fi
}

unload
while IFS='|' read -r -u 3 name module seconds command; do
	log=$folder/${name//\//-}.log
	load "${module:-/run/vm/module.1.ko}" ||
		{ echo "$name: 0 passed, 1 failed, 0 skipped  0 s (not loaded)"; break; }
	echo "each.sh: $name begins" >/dev/kmsg
	start=$SECONDS
	in_time $((seconds * VM_TIMEOUT_SCALE)) "$command"
	report "$name" $? $((SECONDS - start))
	unload || { echo "STUCK $name"; break; }
done 3<"$1"
# as they were, for the later unloading
load /run/vm/module.1.ko || true
