#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The declarations of lib/cuda agree with the driver's. Without a toolkit: each CUresult of types.h
# has its name in the library. With one: all numbers, sizes and fields of types.h, all types and
# versions of entries.h, and all symbols agree with cuda.h, cudaTypedefs.h and the stub library; and
# nvcc compiles kernels that use xmem.hpp.
#
#   tests/cuda/toolkit.sh [FOLDER]     FOLDER: build/test
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 2

build=${1:-build/test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0
types=lib/cuda/types.h entries=lib/cuda/entries.h
compile=(gcc -std=gnu11 -Wall -Werror -I. -Iinclude -D_GNU_SOURCE)

says() { echo "  $*"; return 1; }

try() {	# NAME: a function of this script
	if "$1"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL $1"
	fi
}

constants() {
	grep -oE '\<(CU|CUDA)_[A-Z0-9_]+\>' $types | sort -u
}

# entries: for each function a line "FIELD SYMBOL VERSION"
entries() {
	sed -e ':join' -e '/\\$/{N; s/[ \t]*\\\n[ \t]*/ /; bjoin' -e '}' $entries |
		sed 's/\<X(/\n&/g' |
		sed -nE 's/^X\((\w+), "(\w+)", "\w*", ([0-9]+).*/\1 \2 \3/p'
}

# A program that prints every number, size and offset of types.h, as the header HEADER has them. A
# struct within a struct must be the last member.
program() {	# HEADER
	printf '#include <stddef.h>\n#include <stdio.h>\n#include %s\nint main(void)\n{\n' "$1"
	constants | sed 's/.*/	printf("& %lld\\n", (long long)(&));/'
	awk '
	/^typedef struct \{$/ { depth = 1; count = 0; next }
	depth && /^\tstruct \{$/ { depth = 2; inner = count; next }
	depth == 2 && /^\t\} / {
		name = $2
		sub(/;/, "", name)
		for (i = inner; i < count; i++)
			fields[i] = name "." fields[i]
		depth = 1
		next
	}
	depth && /^\} / {
		type = $2
		sub(/;/, "", type)
		for (i = 0; i < count; i++)
			printf "\tprintf(\"%s.%s %%zu %%zu\\n\", offsetof(%s, %s), " \
				"sizeof(((%s *)0)->%s));\n", type, fields[i], type, fields[i],
				type, fields[i]
		depth = 0
	}
	/^typedef .*;$/ && !/\(/ { type = $NF; gsub(/[*;]/, "", type); types[++n] = type }
	/^\} [A-Za-z_]+;$/ { type = $2; sub(/;/, "", type); types[++n] = type }
	depth && /;$/ {
		name = $NF
		gsub(/[*;]|\[.*/, "", name)
		fields[count++] = name
	}
	END {
		for (i = 1; i <= n; i++)
			printf "\tprintf(\"sizeof %s %%zu\\n\", sizeof(%s));\n", types[i], types[i]
	}' $types
	printf '	return 0;\n}\n'
}

numbers_and_layouts_are_the_toolkits() {
	local which
	program '"lib/cuda/types.h"' >"$work/ours.c"
	program '<cuda.h>' >"$work/theirs.c"
	for which in ours theirs; do
		"${compile[@]}" -isystem "$toolkit/include" "$work/$which.c" -o "$work/$which" &&
			"$work/$which" >"$work/$which.txt" || return
	done
	[ "$(wc -l <"$work/ours.txt")" -ge 140 ] || says "only: $(cat "$work/ours.txt")" || return
	diff "$work/ours.txt" "$work/theirs.txt"
}

# PFN_cuMemAlloc_v3020 is the type of the form of cuMemAlloc that came with 3.2.
types_of_calls_are_the_toolkits() {
	{
		printf '#include <cudaTypedefs.h>\n#include "lib/cuda/entries.h"\n'
		printf '#define CALL(field, symbol, hip, version, group, parameters) \\\n'
		printf '	typedef CUresult call_##field parameters;\nXL_CUDA_ENTRIES(CALL)\n'
		printf '#define SAME(field, base, version) \\\n'
		printf '	_Static_assert(__builtin_types_compatible_p(call_##field *, \\\n'
		printf '		PFN_##base##_v##version), #base " is of another type");\n'
		entries | sed -E 's/(_v[0-9]+)? ([0-9]+)$/ \2/; s/(.*) (.*) (.*)/SAME(\1, \2, \3)/'
	} >"$work/calls.c"
	[ "$(grep -c '^SAME' "$work/calls.c")" = "$(grep -c '^	X(' $entries)" ] ||
		says 'not all lines of the list are seen' || return
	"${compile[@]}" -isystem "$toolkit/include" -c "$work/calls.c" -o "$work/calls.o"
}

# cuda.h's macros name the form that programs get.
suffixes_are_the_toolkits() {
	local symbol now
	while read -r symbol now; do
		[ "$symbol" = "$now" ] ||
			says "$symbol: cuda.h says $now" || return
	done < <({
		printf '#include <cuda.h>\n'
		entries | sed -E 's/^[^ ]* ([A-Za-z0-9]+)(_v[0-9]+)? .*/now "\1\2" \1/'
	} | gcc -x c -E -P -I"$toolkit/include" - | sed -n '/^now /{ s/^now //; s/"//g; p }')
}

symbols_are_in_the_stub_library() {
	local stub=$toolkit/lib64/stubs/libcuda.so missing
	missing=$(comm -23 <(entries | cut -d' ' -f2 | sort -u) \
		<(nm -D --defined-only "$stub" | awk '{ print $3 }' | sort -u))
	[ -z "$missing" ] || says "$stub lacks $missing"
}

every_result_has_its_name() {
	{
		printf '#include <stdio.h>\n#include "lib/cuda/error.h"\nint main(void)\n{\n'
		constants | grep '^CUDA_' | sed 's/.*/	printf("& %s\\n", xl_cuda_name(&));/'
		printf '	return 0;\n}\n'
	} >"$work/names.c"
	"${compile[@]}" -pthread "$work/names.c" "$build/libxmem.a" -o "$work/names" -ldl || return
	"$work/names" >"$work/names.txt"
	[ "$(wc -l <"$work/names.txt")" -ge 50 ] &&
		[ -z "$(awk '$1 != $2' "$work/names.txt")" ] ||
		says "$(awk '$1 != $2' "$work/names.txt")"
}

# A kernel calls all members of a device_span. nvcc reports one that is for the CPU only.
kernels_take_device_spans() {
	cat >"$work/kernel.cu" <<-'END'
		#include <xmem.hpp>
		using xmem::device_span;
		__global__ void copy(device_span<int> to, device_span<const int> from)
		{
			device_span<const int> all = to, none, some(from.data(), from.size());
			device_span<int> part = to.subspan(1, 1);
			if (!part.empty() && none.empty() && some.size_bytes() >= all.size())
				part.data()[0] = from.data()[0];
		}
		void start(const xmem::buffer &to, const xmem::buffer &from)
		{
			copy<<<1, 1>>>(to.cuda_ptr_mut<int>(), from.cuda_ptr<int>());
		}
	END
	"$toolkit/bin/nvcc" -std=c++17 -Iinclude -Werror all-warnings -c "$work/kernel.cu" \
		-o "$work/kernel.o"
}

try every_result_has_its_name
toolkit=''
for folder in "$(dirname "$(dirname "$(command -v nvcc)")")" /usr/local/cuda; do
	[ -n "$toolkit" ] || [ ! -f "$folder/include/cudaTypedefs.h" ] || toolkit=$folder
done
for name in numbers_and_layouts_are_the_toolkits types_of_calls_are_the_toolkits \
	suffixes_are_the_toolkits symbols_are_in_the_stub_library kernels_take_device_spans; do
	if [ $name = kernels_take_device_spans ] && [ ! -x "$toolkit/bin/nvcc" ]; then
		echo "SKIP $name: there is no nvcc"
		skipped=$((skipped + 1))
	elif [ -n "$toolkit" ]; then
		try $name
	else
		echo "SKIP $name: no CUDA toolkit is installed"
		skipped=$((skipped + 1))
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
