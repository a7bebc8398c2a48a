#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles the C++ code of design document 003, word for word, with the wrappers of names.cpp, and
# runs it. It also shows that the document's decref destroys an object twice. The document is not in
# this repository.
#
#   tests/device/document.sh [FILE]     default: ../shared/seeds/003_*
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

[ $# -gt 0 ] || set -- ../shared/seeds/003_*
document=$1
if [ ! -f "$document" ]; then
	echo "SKIP document: design document 003 is not here ($document)"
	echo '0 passed, 0 failed, 1 skipped'
	exit 0
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# block WORDS: prints the block of C++ in which a line begins with these words
block() {
	awk -v words="$1" '
		/^```c\+\+$/ { inside = 1; fits = 0; text = ""; next }
		/^```$/ && inside { inside = 0; if (fits) printf "%s", text }
		inside { text = text $0 "\n"; fits = fits || index($0, words) == 1 }' "$document" |
		grep . || { echo "FAIL document: no block with '$1'" >&2; exit 1; }
}
# The document has the destructor last, and C++ wants it first.
for words in '__device__ void udf_str_dtor(' '__device__ NRT_MemInfo* make_meminfo_for_new_udf' \
	'extern "C" __device__ int concat_shim('; do
	block "$words"
done >"$work/blocks.h"
for words in 'struct MemInfo {' 'extern "C" __device__ void NRT_decref(' 'class string_view {' \
	'class udf_string {'; do
	block "$words"
done >"$work/decref.h"
g++ -std=c++14 -Wall -Wextra -Wno-class-memaccess -Wno-unused-parameter \
	-DXMEM_DEVICE_STEPS -Iinclude -DBLOCKS="\"$work/blocks.h\"" -DDECREF="\"$work/decref.h\"" \
	tests/device/main.cpp tests/device/names.cpp -pthread -o "$work/document" ||
	{ echo 'FAIL document: it does not compile'; exit 1; }
"$work/document"
