#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# README.md of the fake driver has every switch that its code reads, and no other.
set -uo pipefail
cd "$(dirname "$0")" || exit 2
bad=0
read_by_code=$(grep -hoE 'fk_option(_is|_number)?\("[A-Z_]+"' ./*.c | sed 's/.*"\(.*\)"/\1/' |
	sort -u)
[ "$(wc -w <<<"$read_by_code")" -ge 30 ] || { echo "FAIL too few switches are found"; bad=1; }
for name in $read_by_code; do
	grep -qE "FAKECUDA_$name\b" README.md || {
		echo "FAIL README.md lacks FAKECUDA_$name, which is read"
		bad=1
	}
done
for name in $(grep -oE 'FAKECUDA_[A-Z_]+\b' README.md | sed 's/FAKECUDA_//' | sort -u); do
	grep -qx "$name" <<<"$read_by_code" || {
		echo "FAIL README.md has FAKECUDA_$name, which nothing reads"
		bad=1
	}
done
exit $bad
