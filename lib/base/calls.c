// SPDX-License-Identifier: MIT
/*
 * The count of calls that use a pool's handle, for which xmem_pool_close waits. calls.h has the
 * rules.
 */
#include "lib/base/calls.h"
#include "lib/host/futex.h"

void xl_wait_end(struct xl_calls *calls)
{
	u32 left = __atomic_sub_fetch(&calls->waiting, 1, __ATOMIC_SEQ_CST);

	if (unlikely(!left && xm_load(&calls->cancels) & XL_CANCEL_CLOSE))
		xm_futex_wake_all(&calls->waiting);
}
