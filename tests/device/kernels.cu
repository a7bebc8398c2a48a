// SPDX-License-Identifier: MIT
/*
 * The kernels of the tests of xmem/device.cuh. A GPU runs them as PTX of nvcc or of clang. The fake
 * driver (tests/fakecuda) runs this source compiled as C++, one thread after another.
 */
#include "tests/device/kernels.h"

using namespace xmem::device;

DEVICE_KERNEL xd_begin(char *memory, u64 bytes)
{
	if (!thread_index())
		arena_init(memory, bytes);
}

DEVICE_KERNEL xd_count(const char *memory, arena_counts *counts)
{
	if (!thread_index())
		*counts = arena_count(reinterpret_cast<const arena *>(memory));
}

/* The function of design document 003: s.upper() if len(s) > 2 else s + s, and 'abc' after it. */
XMEM_DEVICE managed_string udf(arena *from, string_view string)
{
	managed_string changed = length(string) > 2 ? upper(from, string)
						    : concat(from, string, string);
	managed_string result = concat(from, view_of(changed), view_of("abc", 3));

	decref(changed.meminfo);
	return result;
}

/* Its result in each row; and the counts 1 2 1 2 1 as the digits of a number. */
DEVICE_KERNEL xd_udf(arena *from, const char *chars, const i32 *offsets, managed_string *output,
		     u32 *counts, u64 rows)
{
	for (u64 row = thread_index(); row < rows; row += thread_count()) {
		managed_string result = udf(from, row_of(chars, offsets, row));
		u64 digits = is_null(result) ? 0 : load_relaxed(&result.meminfo->refct);

		digits = digits * 10 + incref(result.meminfo);	/* 4.1: result = udf() */
		digits = digits * 10 + decref(result.meminfo);	/* the udf ends */
		output[row] = result;
		digits = digits * 10 + incref(result.meminfo);	/* 4.2: ary[i] = result */
		digits = digits * 10 + decref(result.meminfo);	/* 5.1: the kernel ends */
		counts[row] = u32(digits);
	}
}

/* The count of each row after its last reference was dropped. */
DEVICE_KERNEL xd_free(managed_string *strings, u32 *counts, u64 rows)
{
	for (u64 row = thread_index(); row < rows; row += thread_count())
		counts[row] = u32(decref(strings[row].meminfo));
}

/* A number for each string, which shows whether it has the right characters. */
DEVICE_KERNEL xd_hash(const managed_string *strings, u64 *hashes, u64 rows)
{
	for (u64 row = thread_index(); row < rows; row += thread_count())
		hashes[row] = hash_of(view_of(strings[row]));
}

/* Operation number row % OPERATIONS of three texts in each row, and of a number. */
DEVICE_KERNEL xd_operations(arena *from, const char *chars, const i32 *offsets,
			    managed_string *strings, i32 *numbers, u64 rows)
{
	for (u64 row = thread_index(); row < rows; row += thread_count())
		strings[row] = operate(from, chars, offsets, row, &numbers[row]);
}

/* ---- Threads that meet ---- */

XMEM_DEVICE void note_end(void *data, u64, void *)
{
	fetch_add_relaxed(static_cast<u64 *>(data), 1);
}

/* Objects with so many references each. Their destructors count in *ends. */
DEVICE_KERNEL xd_objects(arena *from, MemInfo **made, u64 *ends, u64 references, u64 objects)
{
	for (u64 i = thread_index(); i < objects; i += thread_count()) {
		made[i] = static_cast<MemInfo *>(allocate(from, sizeof(MemInfo)));
		meminfo_init(made[i], ends, 8, note_end, nullptr);
		for (u64 k = 1; k < references; k++)
			incref(made[i]);
	}
}

/* Neighbouring threads drop references of one object. */
DEVICE_KERNEL xd_drop(MemInfo *const *made, u64 references, u64 objects)
{
	for (u64 i = thread_index(); i < references * objects; i += thread_count())
		decref(made[i / references]);
}

/* Each thread has up to four blocks of random sizes. It counts blocks that others have written. */
DEVICE_KERNEL xd_churn(arena *from, u64 *spoilt, u64 rounds)
{
	u64 *held[4] = { nullptr, nullptr, nullptr, nullptr }, random = thread_index() + 1;

	for (u64 i = 0; i < rounds + 4; i++) {
		u64 stamp = thread_index() << 32 | i, *made = nullptr;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		if (held[i % 4] && held[i % 4][1] != (thread_index() << 32 | (i - 4)))
			fetch_add_relaxed(spoilt, 1);
		release(held[i % 4]);
		if (i < rounds)
			made = static_cast<u64 *>(allocate(from, 16 + (random >> 33) % 200));
		if (made)
			made[0] = made[1] = stamp;
		held[i % 4] = made;
	}
}
