#!/bin/bash
# SPDX-License-Identifier: MIT
# Compares all peers: each measure is taken with all of them, in rounds, before the next measure, so
# that they see one machine at one time. Writes build/bench/peers.jsonl, tables (peers.md) and
# pictures.
#
#   bench/peers/run.sh [--quick]    5 to 8 minutes; quick: below one
#
# A peer whose packages are missing is skipped; `scripts/needs.sh peers` installs them all.
set -euo pipefail
cd "$(dirname "$0")/../.."

quick=no
case "$*" in
'') ;;
--quick) quick=yes ;;
*) sed -n '3,8s/^# \?//p' "$0" >&2; exit 2 ;;
esac
export XMEM_DAEMON=$PWD/build/release/xmemd
[ -n "${XMEM_BACKEND:-}" ] || [ -e /dev/xmem ] || export XMEM_BACKEND=daemon
[ "${XMEM_BACKEND:-}" != daemon ] || export XMEM_SOCKET=xmem-peers.$$
out=build/bench/peers.jsonl
mkdir -p build/bench
: >"$out"

if [ $quick = yes ]; then
	seconds=0.2 kills=3 rounds=1 limit=55
	sizes='1024 1048576' sleeping='1024' subscribers='1 8'
else
	seconds=0.4 kills=100 rounds=3 limit=560
	sizes='1024 65536 1048576 16777216 67108864' sleeping='1024 1048576 67108864'
	subscribers='1 2 4 8 16 32'
fi

# lacks PEER: prints why the peer cannot be built here.
lacks() {
	case $1 in
	boost-*) command -v g++ >/dev/null || echo 'no g++'
		 [ -e /usr/include/boost/interprocess/managed_shared_memory.hpp ] ||
			echo 'no libboost-dev' ;;
	iceoryx) command -v g++ >/dev/null || echo 'no g++'
		 compgen -G '/usr/include/iceoryx/v*/iceoryx_posh/roudi' >/dev/null ||
			echo 'no libiceoryx-posh-dev' ;;
	esac
}

peers=()
for peer in xmem iceoryx boost-memory boost-queue posix-shm pipe unix-socket; do
	why=$(lacks $peer | paste -sd, | sed 's/,/, /')
	if [ -n "$why" ]; then
		echo "SKIP $peer: $why"
	elif make --no-print-directory FLAVOUR=release "build/release/peer-$peer"; then
		peers+=("$peer")
	else
		echo "SKIP $peer: it does not compile with the packages here"
	fi
done

failed=0
# measure NAME BYTES SUBSCRIBERS SECONDS: of all peers, within what is left of the time.
measure() {
	local peer line
	for peer in "${peers[@]}"; do
		if [ $SECONDS -ge $limit ]; then
			echo "SKIP $peer $*: the time for all ($limit s) is over"
			continue
		fi
		if line=$(timeout 240 "build/release/peer-$peer" "$@" 2>build/bench/peer.log); then
			echo "$line" >>"$out"
		else
			echo "FAIL $peer $*: $(tail -n 1 build/bench/peer.log)"
			failed=$((failed + 1))
		fi
		# Files that killed processes of iceoryx leave; they have been counted.
		rm -f /tmp/peer-[0-9]*
	done
}

in_rounds() { local n; for ((n = 0; n < rounds; n++)); do measure "$@" $seconds; done; }

measure kill 65536 1 $kills
in_rounds cycle 1024 1
for bytes in $sizes; do in_rounds polling "$bytes" 1; done
for bytes in $sleeping; do in_rounds sleeping "$bytes" 1; done
for n in $subscribers; do in_rounds fan-out 1024 "$n"; done

bench/peers/report.sh "$out" build/bench
echo "bench-peers: ${#peers[@]} peers, $failed failed measures, $SECONDS s"
[ $failed = 0 ]
