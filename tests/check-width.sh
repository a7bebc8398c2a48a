#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# No line is wider than 100 columns, where a tab fills up to the next multiple of 8.
# It reads all files in git: C, headers, shell, make, models, Python, CMake, Markdown. In the patch
# of a planted bug only the comment lines count, because the other lines are code. In Markdown the
# rows of tables do not count.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

# Twelve times eight columns, and more than four.
wide='([^\t]{0,7}\t|[^\t]{8}){12}([^\t]{5}|[^\t]{0,4}\t)'
code=('*.[ch]' '*.[ch]pp' '*.cuh' '*.cu' '*.cc' '*.sh' '*.mk' '*.pml' '*.py' '*.cmake' '*.cmake.in'
	'*Makefile' '*Kbuild' '*CMakeLists.txt')
# programs whose names do not show their language
mapfile -t -O ${#code[@]} code < <(git grep -lz '' |
	xargs -0 awk 'FNR == 1 && /^#!/ { print FILENAME } { nextfile }')

# look CONDITION PATHSPEC...: prints the wide lines of these files that fulfil the condition
look() {
	local condition=$1
	shift
	LC_ALL=C.UTF-8 git grep -anP "^$condition$wide" -- "$@" |
		sed -E 's/^([^:]*:[0-9]+):.*/FAIL \1: more than 100 columns/'
	[ "${PIPESTATUS[0]}" -le 1 ] || echo 'FAIL git grep fails'
}

files=$(git ls-files "${code[@]}" '*.md' '*.patch' | wc -l)
[ "$files" -gt 100 ] || { echo "FAIL only $files files to look at"; exit 1; }
said=$(look '' "${code[@]}"; look '(?!\|)' '*.md'; look '(?=# )' '*.patch')
[ -z "$said" ] || { echo "$said"; exit 1; }
echo "$files files, no line of more than 100 columns"
