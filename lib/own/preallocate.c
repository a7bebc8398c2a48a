// SPDX-License-Identifier: MIT
/* xmem_preallocate: checks of its arguments. make.c and make_cuda.c make the buffers. */
#include <stdlib.h>

#include "lib/base/structs.h"
#include "lib/follow/wait.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"

static int bad_numbers(const struct xmem_pool *pool, u32 count, u64 bytes)
{
	if (!count || count > pool->map.slots)
		return xl_fail(EINVAL, "count is %u; it can be 1 to %u, the number "
				       "of slots of the pool", count, pool->map.slots);
	if (!bytes)
		return xl_fail(EINVAL, "bytes is 0");
	return xl_fail(EINVAL, "bytes is %llu, and all %u buffers together must "
			       "not have more than %llu bytes", (unsigned long long)bytes, count,
			       XL_MAX_BYTES);
}

#define FOR_CPU		(XMEM_MEMORY_HUGE | XMEM_MEMORY_SEALED)
#define FOR_CUDA	(XMEM_MEMORY_CUDA | XMEM_MEMORY_READERS | XMEM_MEMORY_LEGACY)

static int check_options(const struct xmem_preallocate_options *o)
{
	if (o->flags & ~(FOR_CPU | FOR_CUDA))
		return xl_fail(EINVAL, "xmem_preallocate_options: flags has 0x%x, which has no "
			       "meaning", o->flags & ~(FOR_CPU | FOR_CUDA));
	if (o->flags & XMEM_MEMORY_CUDA && o->flags & XMEM_MEMORY_HUGE)
		return xl_fail(EINVAL, "xmem_preallocate_options: flags has XMEM_MEMORY_CUDA and "
			       "XMEM_MEMORY_HUGE, which is for memory of the CPU");
	if (!(o->flags & XMEM_MEMORY_CUDA) && (o->flags & FOR_CUDA || o->device_id))
		return xl_fail(EINVAL, "xmem_preallocate_options: device_id, XMEM_MEMORY_READERS "
			       "and XMEM_MEMORY_LEGACY are for XMEM_MEMORY_CUDA, which flags lack");
	return 0;
}

XMEM_API int xmem_preallocate(struct xmem_pool *pool, size_t bytes, uint32_t count,
			      const struct xmem_preallocate_options *options)
{
	XL_CALL;
	struct xl_buffers buffers = { .place = &xl_place_cpu, .count = count, .bytes = bytes };
	struct xmem_preallocate_options o = { 0 };
	int err;
	XL_USE(pool);

	err = xl_options_take("xmem_preallocate_options", options, &o, sizeof(o));
	if (!err)
		err = check_options(&o);
	if (!err)
		err = xl_check_writer(pool, XMEM_FOREVER);
	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (!count || count > pool->map.slots || !bytes || bytes > XL_MAX_BYTES / count)
		return bad_numbers(pool, count, bytes);
	buffers.chain = &pool->owned.cpu;
	buffers.ret_slots = o.ret_slots;
	buffers.flags = o.flags & FOR_CPU;
	return o.flags & XMEM_MEMORY_CUDA ? xl_preallocate_cuda(pool, &buffers, &o) :
					    xl_make_buffers(pool, &buffers);
}
