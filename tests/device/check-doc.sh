#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The first program of docs/device.md compiles with gcc and clang, and with nvcc if that is there.
# It prints the lines that the page shows.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

# block LANGUAGE: prints the first block of the page in that language
block() {
	awk -v language="$1" '
		/^```/ && on { exit }
		/^```/ { inside = !inside; on = inside && $0 == "```" language; next }
		on' docs/device.md
}
block cpp >"$work/first.cpp"
cp "$work/first.cpp" "$work/first.cu"
block '' >"$work/wanted"
[ -s "$work/first.cpp" ] && [ -s "$work/wanted" ] ||
	{ echo 'FAIL the page has no program'; exit 1; }

try() {	# COMPILER OPTION... FILE
	if ! "$@" -std=c++14 -Iinclude -o "$work/first"; then
		echo "FAIL $1 does not compile it"
		bad=1
	elif ! "$work/first" >"$work/got" || ! diff "$work/wanted" "$work/got"; then
		echo "FAIL with $1 it prints something else"
		bad=1
	fi
}
try g++ -Wall -Wextra -Werror -pthread "$work/first.cpp"
try clang++ -Wall -Wextra -Werror -pthread "$work/first.cpp"
nvcc=$(command -v nvcc || PATH=/usr/local/cuda/bin command -v nvcc)
if [ -n "$nvcc" ]; then
	try "$nvcc" -Werror all-warnings "$work/first.cu"
else
	echo 'SKIP nvcc: it is not installed'
fi
exit $bad
