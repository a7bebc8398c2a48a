#!/bin/sh
# SPDX-License-Identifier: MIT
# The work of xmem.ko while a command runs, by perf: the number of each event, the clients that
# ended and their holds, and the requests refused because of a limit. As root; needs linux-perf.
#
#   examples/trace/perf.sh COMMAND [ARGUMENT...]
#   examples/trace/perf.sh sleep 60         # the whole machine for a minute
#
# Messages do not pass through the kernel, so tracing costs them nothing.
set -eu
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 2; }
data=$(mktemp)
trap 'rm -f "$data"' EXIT
status=0
perf record -q -a -e 'xmem:*' -o "$data" -- "$@" || status=$?

# A line: COMMAND PID TIME: xmem:EVENT: FIELD=VALUE ...
perf script -i "$data" -F comm,pid,time,event,trace 2>/dev/null | awk '
	{
		at = match($0, /xmem:xmem_[a-z_]+:/)
		if (!at)
			next
		event = substr($0, at + 5, RLENGTH - 6)
		count[event]++
		split("", field)
		for (i = 1; i <= NF; i++)
			if (split($i, part, "=") == 2)
				field[part[1]] = part[2]
	}
	event == "xmem_client_end" {
		ends = ends sprintf("  pool %s client %-3s %5s holds %5s slots %10.3f ms\n",
			field["pool"], field["client"], field["holds"], field["slots"],
			field["duration_ns"] / 1e6)
	}
	event == "xmem_limit" {
		limits = limits sprintf("  %s %s, pool %s: %s of at most %s\n", $1, field["limit"],
			field["pool"], field["wanted"], field["most"])
	}
	END {
		print "events:"
		fflush()		# sort writes by itself
		for (event in count)
			printf "  %-24s %d\n", event, count[event] | "sort"
		close("sort")
		printf "clients that ended:\n%s", ends
		printf "refused because of a limit:\n%s", limits
	}'
exit $status
