/* SPDX-License-Identifier: MIT */
/*
 * Counted objects. A MemInfo has the layout of numba-cuda's NRT_MemInfo, so that code which numba
 * compiles and code which includes this header can count the references of one object.
 */
#ifndef XMEM_DEVICE_MEMINFO_CUH
#define XMEM_DEVICE_MEMINFO_CUH

#include "arena.cuh"

namespace xmem {
namespace device {

/* Destroys what belongs to an object. The object's memory is released after it. */
using dtor_function = void (*)(void *data, u64 size, void *dtor_info);

struct MemInfo {
	u64 refct;
	dtor_function dtor;		/* NULL: nothing to do */
	void *dtor_info;
	void *data;
	u64 size;
};

static_assert(sizeof(MemInfo) == 40, "the layout of numba-cuda");
#ifndef __CUDACC_RTC__			/* has no offsetof */
static_assert(__builtin_offsetof(MemInfo, refct) == 0 && __builtin_offsetof(MemInfo, dtor) == 8 &&
	      __builtin_offsetof(MemInfo, dtor_info) == 16 &&
	      __builtin_offsetof(MemInfo, data) == 24 && __builtin_offsetof(MemInfo, size) == 32,
	      "the layout of numba-cuda");
#endif

/* The caller has the first reference. */
XMEM_DEVICE void meminfo_init(MemInfo *info, void *data, u64 size, dtor_function dtor,
			      void *dtor_info)
{
	info->refct = 1;
	info->dtor = dtor;
	info->dtor_info = dtor_info;
	info->data = data;
	info->size = size;
}

/*
 * Take a further reference. Only a thread that has one, or borrows one, may do so, hence no order
 * is needed. Returns: the new count; 0 for NULL.
 */
XMEM_DEVICE u64 incref(MemInfo *info)
{
	return info ? fetch_add_relaxed(&info->refct, 1) + 1 : 0;
}

/*
 * Drop a reference. The thread that takes the count from 1 to 0 destroys the object, and no other
 * thread does: a single atomic operation decides. It releases the accesses of all threads that
 * have dropped their reference before, and the destroying thread acquires them. The MemInfo is
 * the start of memory from allocate(). Returns: the new count; 0 for NULL.
 */
XMEM_DEVICE u64 decref(MemInfo *info)
{
	u64 left;

	if (!info)
		return 0;
	left = fetch_sub_acq_rel(&info->refct, 1) - 1;
	XMEM_DEVICE_STEP(STEP_DECREF_DROPPED);
	if (left)
		return left;
	if (info->dtor)
		info->dtor(info->data, info->size, info->dtor_info);
	release(info);
	return 0;
}

} // namespace device
} // namespace xmem

#endif
