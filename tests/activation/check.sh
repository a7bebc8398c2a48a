#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# check.sh [FOLDER]: checks xmemd by socket activation. The programs are in FOLDER (build/release).
# libxmem may not start a daemon here, so every client that is served is served by the daemon that
# the connection started. The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
B=${1:-build/release}
work=$(mktemp -d)
name=$work/socket
export XMEM_BACKEND=daemon XMEM_DAEMON=none XMEM_SOCKET=$name
. tests/activation/same.sh
trap 'rm -rf "$work"' EXIT

# start ARGUMENT...: runs activate in the background; returns when it listens. hear reads its
# further lines.
start() {
	exec {lines}< <(exec "$B/activate" "$@" 2>"$work/errors")
	manager=$!
	hear
}
hear() { IFS= read -r -t 30 said <&"$lines" || said=nothing; }
finish() { exec {lines}<&-; wait "$manager"; same "$1: activate's status" $? "${2:-0}"; }

# ---- two daemons in turn by one socket: an idle one ends, and the next connection starts another

start -n 2 "$name" "$B/xmemd" --foreground --idle-ms=50
same 'the socket is there first' "$said" listening
for round in first second; do
	same "$round client" "$("$B/xmem" backend 2>&1)" daemon
	hear; same "$round: xmemd is started" "${said% *}" started
	hear; same "$round: xmemd has left" "$said" 'ended 0'
done
finish 'two in turn'

# ---- the daemon raises the soft limits that it has inherited

# shellcheck disable=SC2016
start "$name" bash -c 'ulimit -Sn 256; ulimit -Sf 1000; ulimit -St 3000; ulimit -Sv 9000000
	exec "$0" --foreground --idle-ms=-1' "$B/xmemd"
same 'client of the limited' "$("$B/xmem" backend 2>&1)" daemon
hear
pid=${said#started }
low=$(awk '/^Max (open files|file size|cpu time|address space|data size|locked memory)/ {
	n = split($0, word, /  +/); if (word[2] != word[3]) print word[1] }' "/proc/$pid/limits")
same 'soft limits below hard ones' "$low" ''
kill "$pid"
hear
finish 'of the limited' 1

# ---- sockets and variables that it refuses, with a message

# refuses WHAT MESSAGE STATUS OPTION...
refuses() {
	local what=$1 message=$2 status=$3
	shift 3
	start "$@" "$name" "$B/xmemd" --foreground --idle-ms=50
	hear
	hear; same "$what" "$said" "ended $status"
	finish "$what" 1
	same "$what: message" "$(grep -c -- "$message" "$work/errors")" 1
}
refuses 'two sockets'        'LISTEN_FDS must be 1' 2 -s 2
refuses 'no socket'          'LISTEN_FDS must be 1' 2 -s 0
refuses 'no number'          'LISTEN_FDS must be 1' 2 -s 1x
refuses 'no process'         'LISTEN_PID needs the number of a process' 2 -p me
refuses 'a stream socket'    'is no listening SOCK_SEQPACKET socket' 1 -t stream
refuses 'not a socket'       'is no listening SOCK_SEQPACKET socket' 1 -t file

# ---- with variables that were meant for another process it binds its own address

rm "$name"
start -p 1 "$name-other" "$B/xmemd" --foreground --idle-ms=-1
hear
pid=${said#started }
deadline=$((SECONDS + 200))
until answer=$("$B/xmem" backend 2>&1) || [ $SECONDS -ge $deadline ]; do :; done
same 'of another process: client' "$answer" daemon
kill "$pid"
hear
finish 'of another process' 1

echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
