/* SPDX-License-Identifier: MIT */
/*
 * Code of numba-cuda runs on the CPU with this file: it has the shims, the special registers of a
 * grid with one thread, and a record of the counts that each incref and decref leaves.
 */
#define xmem_incref shims_incref
#define xmem_decref shims_decref
#include "../../bindings/python/xmem/numba/shims.cu"
#undef xmem_incref
#undef xmem_decref

static const unsigned int MOST = 4096;
static thread_local int row;
static thread_local u64 recorded[MOST];
static thread_local unsigned int records;

static void record(u64 count)
{
	if (records < MOST)
		recorded[records++] = count;
}

extern "C" {

int twin_tid_x() __asm__("twin_tid.x");
int twin_ntid_x() __asm__("twin_ntid.x");
int twin_ctaid_x() __asm__("twin_ctaid.x");

int twin_tid_x()
{
	return row;
}

int twin_ntid_x()
{
	return 1;
}

int twin_ctaid_x()
{
	return 0;
}

void xmem_incref(MemInfo *meminfo)
{
	shims_incref(meminfo);
	if (meminfo)
		record(meminfo->refct);
}

void xmem_decref(MemInfo *meminfo)
{
	u64 left = meminfo ? meminfo->refct - 1 : 0;

	shims_decref(meminfo);
	if (meminfo)
		record(left);
}

/* The counts since the last call. Returns: how many there were. */
unsigned int twin_counts(u64 *counts)
{
	unsigned int had = records;

	for (records = 0; records < had; records++)
		counts[records] = recorded[records];
	records = 0;
	return had;
}

/* This thread of so many calls functions from now on. */
void twin_at(u64 index, u64 count)
{
	row = int(index);
	set_thread(index, count);
}

/* This thread calls a function for some rows, as so many threads of a GPU. */
void twin_rows(int (*kernel)(void **, void *, void *, u64), u64 begin, u64 end, void *strings,
	       void *out, u64 rows)
{
	void *returned;

	for (u64 index = begin; index < end; index++) {
		twin_at(index, rows);
		kernel(&returned, strings, out, rows);
	}
}

} /* extern "C" */
