/* SPDX-License-Identifier: MIT */
/*
 * The kernels of writer.cpp. `nvcc -ptx -std=c++14 -Iinclude` compiles them for a GPU. A compiler
 * of C++ makes functions of them that threads of the CPU call, each with a place in the grid.
 */
#include <xmem/device.cuh>

#ifdef __CUDACC__
#define KERNEL extern "C" __global__ void
#else
#define KERNEL extern "C" void
#endif

using namespace xmem::device;

/* One thread. */
KERNEL strings_arena(char *memory, u64 bytes)
{
	arena_init(memory, bytes);
}

/* The name of a row: "r17". */
XMEM_DEVICE string_view name_row(char (&to)[24], u64 row)
{
	i32 at = 24;

	do
		to[--at] = char('0' + row % 10);
	while (row /= 10);
	to[--at] = 'r';
	return view_of(to + at, 24 - at);
}

/* A function of strings as a user writes it. Each new string is counted, and lost by no way out. */
XMEM_DEVICE managed_string change(arena *from, string_view name)
{
	managed_string changed = length(name) > 2 ? upper(from, name) : concat(from, name, name);
	managed_string result = concat(from, view_of(changed), view_of("abc", 3));

	decref(changed.meminfo);
	return result;
}

/* Each tenth row is null. */
KERNEL strings_make(arena *from, managed_string *strings, u64 rows)
{
	for (u64 row = thread_index(); row < rows; row += thread_count()) {
		char text[24];

		strings[row] = null_string();
		if (row % 10 != 9)
			strings[row] = change(from, name_row(text, row));
	}
}

KERNEL strings_measure(const managed_string *strings, u64 rows, column_sum *sums)
{
	column_measure(strings, rows, sums);
}

/* One thread. */
KERNEL strings_scan(column_sum *sums, u64 rows)
{
	column_scan(sums, rows);
}

KERNEL strings_offsets(const managed_string *strings, u64 rows, const column_sum *sums,
		       u32 *validity, i32 *offsets)
{
	column_offsets(strings, rows, sums, { validity, offsets, nullptr });
}

KERNEL strings_gather(const managed_string *strings, u64 rows, const column_sum *sums,
		      i32 *offsets, char *chars)
{
	column_gather(strings, rows, sums, { nullptr, offsets, chars });
}

KERNEL strings_free(managed_string *strings, u64 rows)
{
	column_free(strings, rows);
}
