#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Checks that each public header compiles alone and twice, with gcc and clang, with all warnings as
# errors, from a folder that has only include/.
#   tests/check-headers.sh [STANDARD...]    default: c11 c2x c++17 c++20 c++2b
#
# The headers of the C++ library take nearly all of the time. basics.hpp includes them, and every
# other C++ header begins with basics.hpp. So each compiler compiles basics.hpp alone once for each
# standard, and the other headers find it precompiled. This does not change what they see.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

[ $# -gt 0 ] || set -- c11 c2x c++17 c++20 c++2b
headers=$(cd include && find . -name '*.h' -o -name '*.hpp' -o -name '*.cuh' |
	sed 's|^\./||' | sort)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0

for compiler in gcc g++ clang clang++; do
	command -v $compiler >/dev/null || { echo "FAIL no $compiler here"; exit 1; }
done

# try COMPILER STANDARD HEADER
try() {
	local compiler=$1 standard=$2 header=$3 name=$work/$1-$2 language=c options=() said
	[[ $standard != c++* ]] || language=c++ options=(-Wold-style-cast)
	options+=(-Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Iinclude)
	if [ "$header" = xmem/basics.hpp ]; then
		printf '#include <%s>\n' $header $header >"$name"
		options+=(-x c++-header "$name" -o "$name.gch")
	else
		[[ $header != *.hpp ]] || options+=(-include "$name")
		options+=(-fsyntax-only -x $language -)
	fi
	said=$("$compiler" "-std=$standard" "${options[@]}" 2>&1 \
		< <(printf '#include <%s>\n' "$header" "$header")) && return
	echo "FAIL $header with $compiler -std=$standard:"
	head -5 <<<"$said"
	return 1
}

# each: calls try with the arguments in each line of standard input.
each() { xargs -r -P "$(nproc)" -L1 bash -c 'try "$@"' _ || bad=1; }
export -f try
export work

# begins HEADER: is the first C++ header that it includes basics.hpp, or one that begins with it?
begins() {
	local header=$1
	for _ in $headers; do
		header=$(sed -nE 's,^#include "(xmem/)?([a-z]+\.hpp)"$,xmem/\2,p;T;q' \
			"include/$header")
		[ "$header" != xmem/basics.hpp ] || return 0
		[ -f "include/$header" ] || return 1
	done
	return 1
}

for header in $headers; do
	case $header in
	xmem/basics.hpp) ;;
	*.hpp) begins "$header" || { echo "FAIL $header does not begin with basics.hpp"; bad=1; } ;;
	esac
done
combinations=$(for standard; do
	case $standard in
	c++*) compilers='g++ clang++' kinds='*' ;;
	*) compilers='gcc clang' kinds='*.h' ;;
	esac
	for compiler in $compilers; do
		for header in $headers; do
			[[ $header != $kinds ]] || echo "$compiler $standard $header"
		done
	done
done)
# This is not in a pipeline, because its subshell would lose the count of faults.
each < <(grep 'basics\.hpp$' <<<"$combinations")
each < <(grep -v 'basics\.hpp$' <<<"$combinations")
# xmem.hpp works in programs without exceptions and run-time types.
for compiler in g++ clang++; do
	said=$(echo '#include <xmem.hpp>' | $compiler -x c++ -std=c++17 -fno-exceptions -fno-rtti \
		-Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude - 2>&1) ||
		{ echo "FAIL no exceptions: $said"; bad=1; }
done
# A program sees only the part of the protocol that is in metadata.h, and nothing of uapi.h.
said=$(printf '#include <xmem.h>\n#ifdef XMEM_UAPI_H\n#error xmem.h includes uapi.h\n#endif\n' |
	gcc -x c -fsyntax-only -Iinclude - 2>&1) || { echo "FAIL $said"; bad=1; }
echo "$(wc -l <<<"$combinations") combinations"
exit $bad
