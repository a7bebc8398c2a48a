/* SPDX-License-Identifier: MIT */
/*
 * The part of kernels.cu that the CPU runs, too, to know which results are right.
 */
#ifndef TESTS_DEVICE_KERNELS_H
#define TESTS_DEVICE_KERNELS_H

#include <xmem/device.cuh>

#if defined(__CUDACC__)
#define DEVICE_KERNEL extern "C" __global__ void
#elif defined(__CUDA__)
#define DEVICE_KERNEL extern "C" __attribute__((global)) void
#else
#define DEVICE_KERNEL extern "C" void
#endif

namespace xmem {
namespace device {

XMEM_DEVICE string_view row_of(const char *chars, const i32 *offsets, u64 row)
{
	return view_of(chars + offsets[row], offsets[row + 1] - offsets[row]);
}

/* FNV-1a; 0 for a null string */
XMEM_DEVICE u64 hash_of(string_view view)
{
	u64 hash = 0xcbf29ce484222325ull;

	for (i32 i = 0; i < view.bytes; i++)
		hash = (hash ^ u8(view.p[i])) * 0x100000001b3ull;
	return is_null(view) ? 0 : hash;
}

constexpr u64 OPERATIONS = 20;

/* The operands of a row are the texts number 3 * row to 3 * row + 2, and row % 7 - 3. */
XMEM_DEVICE managed_string operate(arena *from, const char *chars, const i32 *offsets, u64 row,
				   i32 *number)
{
	string_view a = row_of(chars, offsets, 3 * row), b = row_of(chars, offsets, 3 * row + 1);
	string_view c = row_of(chars, offsets, 3 * row + 2);
	i32 n = i32(row % 7) - 3;

	*number = 0;
	switch (row % OPERATIONS) {
	case 0: return copy(from, a);
	case 1: return upper(from, a);
	case 2: return lower(from, a);
	case 3: return concat(from, a, b);
	case 4: return replace(from, a, b, c);
	case 5: return replace(from, a, b, c, n);
	case 6: return copy(from, slice(a, n));
	case 7: return copy(from, slice(a, n, n + 3));
	case 8: return copy(from, strip(a));
	case 9: return copy(from, strip(a, b));
	case 10: return copy(from, lstrip(a, b));
	case 11: return copy(from, rstrip(a, b));
	case 12: *number = length(a); break;
	case 13: *number = find(a, b); break;
	case 14: *number = rfind(a, b); break;
	case 15: *number = count(a, b); break;
	case 16: *number = compare(a, b); break;
	case 17: *number = startswith(a, b); break;
	case 18: *number = endswith(a, b); break;
	case 19: *number = a == b; break;
	}
	return null_string();
}

} // namespace device
} // namespace xmem

#endif
