#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone and twice, in every dialect that its users may have,
# with all warnings as errors, from a folder that has nothing but include/.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

warnings=(-Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -fsyntax-only)
headers=$(cd include && find . -name '*.h' -o -name '*.hpp' | sed 's|^\./||' | sort)
bad=0

try() {	# compiler, language, standard, header
	local said
	local casts
	[ "$2" = c ] || casts=-Wold-style-cast
	said=$(printf '#include <%s>\n#include <%s>\n' "$4" "$4" |
		"$1" -x "$2" "-std=$3" $WARNINGS ${casts-} -Iinclude - 2>&1) && return
	echo "FAIL $4 with $1 -std=$3:"
	head -5 <<<"$said"
	return 1
}

for compiler in gcc g++ clang clang++; do
	command -v $compiler >/dev/null || { echo "FAIL no $compiler here"; exit 1; }
done
combinations=$(for header in $headers; do
	for standard in $([[ $header = *.hpp ]] || echo c11 c2x); do
		printf '%s\n' "gcc c $standard $header" "clang c $standard $header"
	done
	for standard in c++17 c++20 c++2b; do
		printf '%s\n' "g++ c++ $standard $header" "clang++ c++ $standard $header"
	done
done)
export -f try
export WARNINGS="${warnings[*]}"
xargs -P "$(nproc)" -L1 bash -c 'try "$@"' _ <<<"$combinations" || bad=1
# xmem.hpp does without exceptions and run-time types where a program does.
for compiler in g++ clang++; do
	said=$(echo '#include <xmem.hpp>' | $compiler -x c++ -std=c++17 -fno-exceptions -fno-rtti \
		"${warnings[@]}" -Iinclude - 2>&1) || { echo "FAIL no exceptions: $said"; bad=1; }
done
# What a program sees of the protocol is what metadata.h has, and nothing of uapi.h.
said=$(printf '#include <xmem.h>\n#ifdef XMEM_UAPI_H\n#error xmem.h includes uapi.h\n#endif\n' |
	gcc -x c -fsyntax-only -Iinclude - 2>&1) || { echo "FAIL $said"; bad=1; }
echo "$(wc -l <<<"$combinations") combinations"
exit $bad
