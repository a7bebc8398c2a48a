#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that the core stays pure: its objects need only each other and the compiler's own helpers.
# check-layers.sh checks which headers the folders include.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0
complain() { echo "FAIL $*"; bad=1; }

objects=()
for source in core/*.c; do
	object=build/release/obj/${source%.c}.o
	if [ -e "$object" ]; then objects+=("$object"); else complain "$object is not built"; fi
done
[ $bad = 0 ] || exit 1
own=$(nm -g --defined-only "${objects[@]}" | awk 'NF == 3 { print $3 }' | paste -sd '|')
for object in "${objects[@]}"; do
	extra=$(nm -u "$object" | awk '{ print $2 }' |
		grep -vxE "$own|xm_check_failed|mem(set|cpy)|_GLOBAL_OFFSET_TABLE_")
	[ -z "$extra" ] || complain "$object needs $extra"
done
lines=$(wc -l < core/env.h)
[ "$lines" -le 90 ] || complain "core/env.h has grown to $lines lines: it has a new dependency"
exit $bad
