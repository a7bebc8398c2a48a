#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each public header compiles alone and twice, with gcc and clang, with all warnings as errors, from
# a folder that has nothing but include/.
#   tests/check-headers.sh [STANDARD...]    default: c11 c2x c++17 c++20 c++2b
#
# Nearly all of the time goes into the headers of the C++ library. basics.hpp includes them, and
# every other header in C++ begins with basics.hpp. So basics.hpp is compiled alone once for each
# compiler and standard, and the others find it precompiled: they see what they would see alone.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

[ $# -gt 0 ] || set -- c11 c2x c++17 c++20 c++2b
headers=$(cd include && find . -name '*.h' -o -name '*.hpp' | sed 's|^\./||' | sort)
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

# each: the lines of standard input are arguments for try.
each() { xargs -r -P "$(nproc)" -L1 bash -c 'try "$@"' _ || bad=1; }
export -f try
export work

# begins HEADER: the first header in C++ that it includes is basics.hpp, or begins with it.
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
# Not in a pipeline, whose subshell would forget what is bad.
each < <(grep 'basics\.hpp$' <<<"$combinations")
each < <(grep -v 'basics\.hpp$' <<<"$combinations")
# xmem.hpp does without exceptions and run-time types where a program does.
for compiler in g++ clang++; do
	said=$(echo '#include <xmem.hpp>' | $compiler -x c++ -std=c++17 -fno-exceptions -fno-rtti \
		-Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iinclude - 2>&1) ||
		{ echo "FAIL no exceptions: $said"; bad=1; }
done
# What a program sees of the protocol is what metadata.h has, and nothing of uapi.h.
said=$(printf '#include <xmem.h>\n#ifdef XMEM_UAPI_H\n#error xmem.h includes uapi.h\n#endif\n' |
	gcc -x c -fsyntax-only -Iinclude - 2>&1) || { echo "FAIL $said"; bad=1; }
echo "$(wc -l <<<"$combinations") combinations"
exit $bad
