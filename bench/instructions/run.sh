#!/bin/bash
# SPDX-License-Identifier: MIT
# Counts the instructions of one operation for each row of bench/instructions.expected and
# compares them with the limits there. callgrind counts exactly, so a busy
# machine and a quiet one give equal counts. Instructions of the kernel and of xmemd are not in it.
#
#   bench/instructions/run.sh [--set]     --set writes what was counted as the new limits
#
# Exit status: 0; 1 if a row needs more than 5 % above its limit; 2 if something went wrong.
set -euo pipefail
cd "$(dirname "$0")/../.."

program=$PWD/build/release/count-instructions
expected=bench/instructions.expected
out=build/bench/instructions table=build/bench/instructions.tsv
[ $# = 0 ] || [ "$*" = --set ] || { sed -n '3,9s/^# \?//p' "$0" >&2; exit 2; }
# A socket of our own: a daemon that somebody else runs may have another build's layout.
export XMEM_BACKEND=daemon XMEM_DAEMON=$PWD/build/release/xmemd XMEM_SOCKET=xmem-count.$$
# The fake driver's GPU; its descriptors are memfds, which the daemon takes only if it is told to.
export XMEM_CUDA_DRIVER=$PWD/build/release/fakecuda/libcuda.so.1 XMEM_DEVICE_FILES=memfd
mkdir -p "$out"
rm -f "$out"/* "$table"
# Many clients in one process have many descriptors.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true

die() { echo "instructions: $*" >&2; exit 2; }

# counted ROW ROUNDS: instructions of a whole run, less those of the program itself.
counted() {
	local file=$out/$1.$2
	valgrind --tool=callgrind --callgrind-out-file="$file" "$program" "$1" "$2" \
		>"$file.log" 2>&1 || { tail -n 5 "$file.log" >&2; die "callgrind failed: $1 $2"; }
	# Objects are named where they are first mentioned, and by their number later. A line
	# after calls= has the costs of the function called, which are counted there.
	awk -v own="$program" '
		/^c?ob=/ {
			called = /^cob/
			sub(/^c?ob=/, "")
			number = $1
			if (NF > 1)
				object[number] = $2
			if (!called)
				now = object[number]
			next
		}
		/^calls=/ { getline; next }
		/^[-+*0-9]/ && now != own { sum += $2 }
		END { printf "%.0f\n", sum }' "$file"
}

# round_to NUMBER: to a whole number. above A B PERCENT: is A above B by more than PERCENT?
per_round() { awk -v few="$1" -v many="$2" -v n="$3" 'BEGIN { printf "%.0f", (many - few) / n }'; }
above() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { exit !(a > b * (1 + p / 100)) }'; }

new=$(mktemp)
trap 'rm -f "$new"' EXIT
bad=0
printf '%-20s %12s %8s %8s  %s\n' row instructions limit aim verdict
while IFS= read -r line; do
	case $line in
	'' | '#'*) echo "$line" >>"$new"; continue ;;
	esac
	read -r row limit aim rounds <<<"$line"
	few=$(counted "$row" "$rounds")
	many=$(counted "$row" $((2 * rounds)))
	found=$(per_round "$few" "$many" "$rounds")
	verdict=ok
	if above "$found" "$limit" 5; then
		verdict='FAIL: more than 5 % above the limit'
		bad=$((bad + 1))
	elif above "$limit" "$found" 11; then
		verdict='below by more than 10 %: lower the limit'
	fi
	[ "$aim" = - ] || above "$found" "$aim" 0 || verdict="$verdict, aim reached"
	printf '%-20s %12s %8s %8s  %s\n' "$row" "$found" "$limit" "$aim" "$verdict"
	printf '%-20s %8s %8s %8s\n' "$row" "$found" "$aim" "$rounds" >>"$new"
	printf '%s\t%s\t%s\n' "$row" "$found" "$aim" >>"$table"
done <"$expected"
for row in $("$program" --list); do
	grep -q "^$row " "$expected" || die "$expected has no line for $row"
done
[ "$*" != --set ] || cp "$new" "$expected"
echo "instructions: $bad rows above their limits"
[ "$bad" = 0 ] || [ "$*" = --set ]
