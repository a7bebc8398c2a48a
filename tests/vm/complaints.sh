#!/bin/bash
# SPDX-License-Identifier: MIT
# complaints.sh CONSOLE-LOG [STATUS-FILE]: prints the kernel's complaints in a guest's log, and the
# faults in its last status (taint, lockdep). The status is 0 if there were none, else 1. The script
# knows nothing of tests or qemu.
set -euo pipefail

# Lockdep, slub_debug and kmemleak neither panic nor taint, so the script looks for their words.
words='(^|[^E])BUG:|BUG [^ ]+ [(]|WARNING:|Oops|UBSAN:|KASAN:|KCSAN:|kernel BUG at'
words+='|general protection fault, |Kernel panic'
words+='|possible (circular|recursive|irq lock|deadlock)|inconsistent lock state|bad unlock balance'
words+='|lock held when returning to user space|held lock freed|suspicious RCU'
words+='|scheduling while atomic'
words+='|INFO: task .* blocked|rcu.*(detected stall|self-detected)|soft lockup|hard LOCKUP'
words+='|unreferenced object|refcount_t:|list_(add|del) corruption'
words+='|[Cc]all [Tt]race:'

# These print a call trace, which is no complaint: memory ran out, or an allocation was made to
# fail.
excused='FAULT_INJECTION: forcing a failure|page allocation failure|invoked oom-killer'

# The tests load out-of-tree (4096) and unsigned (8192) modules.
allowed_taint=$((4096 | 8192))

log=$1
status=${2:-}
found=0

# The kernel's command line is no complaint either, nor is the dump that the guest's init makes of a
# guest that hangs.
scan() {
	LC_ALL=C awk -v words="$words" -v excused="$excused" '
		/vm-init: time is nearly up/ { exit }
		/[Cc]ommand line:/ { next }
		$0 ~ excused { trace_excused = 1 }
		/[Cc]all [Tt]race:/ && trace_excused { trace_excused = 0; next }
		$0 ~ words { print NR ": " $0; found = 1 }
		END { exit !found }' "$log"
}
if scan; then found=1; fi

if [ -n "$status" ] && [ -e "$status" ]; then
	taint=$(sed -n 's/^tainted=\([0-9]*\)$/\1/p' "$status")
	if [ $((${taint:-0} & ~allowed_taint)) != 0 ]; then
		echo "the kernel is tainted: $taint"
		found=1
	fi
	if grep -qx 'debug_locks=0' "$status"; then
		echo "lockdep has fired or was switched off: debug_locks 0"
		found=1
	fi
fi
exit "$found"
