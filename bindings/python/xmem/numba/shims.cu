/* SPDX-License-Identifier: MIT */
/*
 * The functions that code of numba-cuda calls. They only wrap xmem/device.cuh.
 *
 * numba reads the result of a shim as its status, and any but 0 is an exception. An exception
 * leaves a kernel without dropping its references, so the status is always 0. A shim writes its
 * result to its first arguments. Operands are addresses of string_views.
 *
 * As C++ for the CPU this file makes a library with which tests run numba's code.
 */
#include <xmem/device.cuh>

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define XMEM_SHIM __device__
#elif defined(__CUDA__)
#define XMEM_SHIM __attribute__((device))
#else
#define XMEM_SHIM
#endif

using namespace xmem::device;

extern "C" {

/* The arena of all kernels of a module, which the host sets; NULL: the heap of the GPU. */
XMEM_SHIM arena *xmem_arena;

/* ---- Counts ---- */

XMEM_SHIM void xmem_incref(void *meminfo)
{
	incref((MemInfo *)meminfo);
}

XMEM_SHIM void xmem_decref(void *meminfo)
{
	decref((MemInfo *)meminfo);
}

/*
 * Code that includes numba-cuda's nrt.cuh may call these names. If nrt.cu is linked too, the linker
 * refuses the kernel, because a string of one runtime must not be destroyed by the other.
 */
XMEM_SHIM void NRT_incref(void *meminfo)
{
	incref((MemInfo *)meminfo);
}

XMEM_SHIM void NRT_decref(void *meminfo)
{
	decref((MemInfo *)meminfo);
}

/* ---- For kernels of xmem.numba itself ---- */

XMEM_SHIM arena *xmem_arena_init(void *memory, u64 bytes)
{
	return arena_init(memory, bytes);
}

XMEM_SHIM void xmem_arena_count(const arena *from, arena_counts *counts)
{
	*counts = arena_count(from);
}

/* View a row of a column of Arrow. validity NULL: no row is null. */
XMEM_SHIM void xmem_view_row(const char *chars, const i32 *offsets, const u8 *validity, u64 row,
			     string_view *views)
{
	bool valid = !validity || validity[row / 8] >> row % 8 & 1;

	/* The address of no characters may be 0, which would be a null string. */
	views[row] = valid ? view_of(chars ? chars + offsets[row] : "",
				     offsets[row + 1] - offsets[row]) : null_view();
}

XMEM_SHIM void xmem_column_measure(const managed_string *strings, u64 rows, column_sum *sums)
{
	column_measure(strings, rows, sums);
}

XMEM_SHIM void xmem_column_scan(column_sum *sums, u64 rows, column_sum *total)
{
	*total = column_scan(sums, rows);
}

XMEM_SHIM void xmem_column_offsets(const managed_string *strings, u64 rows, const column_sum *sums,
				   u32 *validity, i32 *offsets, char *chars)
{
	column_offsets(strings, rows, sums, { validity, offsets, chars });
}

XMEM_SHIM void xmem_column_gather(const managed_string *strings, u64 rows, const column_sum *sums,
				  u32 *validity, i32 *offsets, char *chars)
{
	column_gather(strings, rows, sums, { validity, offsets, chars });
}

} /* extern "C" */

/* ---- New strings ---- */

/* numba's bounds of slices are 64 bits wide, and the missing one is the largest number. */
static XMEM_SHIM inline i32 bound(long long number)
{
	return number > TO_THE_END ? TO_THE_END : number < -TO_THE_END ? -TO_THE_END : i32(number);
}

#define MAKES(name, made, ...)								\
	extern "C" XMEM_SHIM int xmem_##name##_shim(void **out_meminfo,			\
						    void *out_udf_str, __VA_ARGS__)	\
	{										\
		managed_string string = made;						\
											\
		*out_meminfo = string.meminfo;						\
		*static_cast<string_fields *>(out_udf_str) = string.udf_string;		\
		return 0;								\
	}
#define VIEW const string_view *

MAKES(copy, copy(xmem_arena, *view), VIEW view)
MAKES(concat, concat(xmem_arena, *left, *right), VIEW left, VIEW right)
MAKES(upper, upper(xmem_arena, *view), VIEW view)
MAKES(lower, lower(xmem_arena, *view), VIEW view)
MAKES(replace, replace(xmem_arena, *view, *old, *with), VIEW view, VIEW old, VIEW with)
MAKES(slice, copy(xmem_arena, slice(*view, bound(begin), bound(end))), VIEW view, long long begin,
      long long end)
MAKES(strip, copy(xmem_arena, strip(*view)), VIEW view)
MAKES(strip_set, copy(xmem_arena, strip(*view, *set)), VIEW view, VIEW set)
MAKES(lstrip, copy(xmem_arena, lstrip(*view)), VIEW view)
MAKES(lstrip_set, copy(xmem_arena, lstrip(*view, *set)), VIEW view, VIEW set)
MAKES(rstrip, copy(xmem_arena, rstrip(*view)), VIEW view)
MAKES(rstrip_set, copy(xmem_arena, rstrip(*view, *set)), VIEW view, VIEW set)

/* ---- Numbers, and answers of 0 or 1 ---- */

#define SAYS(name, said, ...)								\
	extern "C" XMEM_SHIM int xmem_##name##_shim(i32 *out, __VA_ARGS__)		\
	{										\
		*out = said;								\
		return 0;								\
	}

SAYS(length, length(*view), VIEW view)
SAYS(is_null, is_null(*view), VIEW view)
SAYS(find, find(*view, *wanted), VIEW view, VIEW wanted)
SAYS(rfind, rfind(*view, *wanted), VIEW view, VIEW wanted)
SAYS(count, count(*view, *wanted), VIEW view, VIEW wanted)
SAYS(contains, find(*view, *wanted) >= 0, VIEW view, VIEW wanted)
SAYS(startswith, startswith(*view, *wanted), VIEW view, VIEW wanted)
SAYS(endswith, endswith(*view, *wanted), VIEW view, VIEW wanted)
SAYS(compare, compare(*left, *right), VIEW left, VIEW right)
