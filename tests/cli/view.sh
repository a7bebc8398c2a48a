#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares the lines that the view of xmem top makes with the files in tests/cli/top. Each file has
# the words for cli-view (view.c) in its first line, and then what it prints.
#   tests/cli/view.sh PROGRAM [NAME...]     PROGRAM: build/release/cli-view
set -uo pipefail
program=$(realpath "${1:?}")
shift
cd "$(dirname "$0")/top" || exit 2

bad=0
[ $# != 0 ] || set -- *.txt
for file; do
	file=${file%.txt}.txt
	read -r -a words <"$file"
	diff <(tail -n +2 "$file") <("$program" "${words[@]}" 2>&1) ||
		{ echo "FAIL ${words[*]}"; bad=1; }
done
exit $bad
