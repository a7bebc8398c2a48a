#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No line is wider than 100 columns, where a tab fills up to the next multiple of 8.
# Looks at all that git tracks: C, headers, shell, make, models, Python, CMake, Markdown. Of
# a mutant's patch only the comment lines count, for the rest is the code that it changes,
# and of Markdown not the rows of tables.
set -euo pipefail
cd "$(dirname "$0")/.."

columns=100
kinds='(\.([ch]|[ch]pp|sh|mk|pml|py|md|cmake|patch|cmake\.in)|/Makefile|/Kbuild|CMakeLists\.txt)$'

mapfile -t files < <(git ls-files | while read -r file; do
	[ -f "$file" ] || continue			# deleted, not yet committed
	[[ "/$file" =~ $kinds ]] || [[ $(head -c 64 "$file" | head -1 | tr -d '\0') = '#!'* ]] ||
		continue
	echo "$file"
done)
[ ${#files[@]} -gt 100 ] || { echo "FAIL only ${#files[@]} files to look at"; exit 1; }

wide=0
for file in "${files[@]}"; do
	pattern="^.{$((columns + 1)),}"
	[[ $file != *.md ]] || pattern="^[^|].{$columns,}"
	[[ $file != *.patch ]] || pattern="^# .{$((columns - 1)),}"
	while IFS=: read -r line _; do
		echo "FAIL $file:$line: more than $columns columns"
		wide=1
	done < <(expand -t 8 "$file" | LC_ALL=C.UTF-8 grep -aonE "$pattern")
done
[ $wide = 1 ] || echo "${#files[@]} files, no line of more than $columns columns"
exit $wide
