// SPDX-License-Identifier: MIT
/*
 * The count of calls that use a pool's handle, for which xmem_pool_close waits. calls.h has the
 * rules.
 */
#include "lib/base/calls.h"
#include "lib/host/futex.h"

u32 xl_wait_begin(struct xmem_pool *pool)
{
	__atomic_add_fetch(&pool->calls.waiting, 1, __ATOMIC_SEQ_CST);
	return xl_wait_cancels(pool);
}

void xl_wait_end(struct xmem_pool *pool)
{
	u32 left = __atomic_sub_fetch(&pool->calls.waiting, 1, __ATOMIC_SEQ_CST);

	if (unlikely(!left && xm_load(&pool->calls.cancels) & XL_CANCEL_CLOSE))
		xm_futex_wake_all(&pool->calls.waiting);
}
