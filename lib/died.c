// SPDX-License-Identifier: MIT
/*
 * A call finds that the host has ended (died.h).
 *
 * The kernel wakes one of the waiters then, which wakes the others. If that one is killed at
 * that moment too, the next call of anybody in the pool does it here.
 */
#include "died.h"
#include "host/futex.h"

XL_COLD int xl_fail_died(struct xmem_pool *pool)
{
	xm_futex_wake_all(&pool->map.pool->host);
	return xl_fail_fast(ENOTCONN, "the host has gone, and with it all that was in flight; "
				      "close the pool and open it again");
}
