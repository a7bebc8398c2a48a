// SPDX-License-Identifier: MIT
/*
 * A call finds that the host has ended (died.h), or this client: the kernel lets it read zeros
 * then, and knows why.
 *
 * The kernel wakes one of the waiters then, which wakes the others. If that one is killed at
 * that moment too, the next call of anybody in the pool does it here.
 */
#include "lib/host/died.h"
#include "lib/host/futex.h"
#include "lib/host/request.h"

/* NULL: the host itself has gone, or nobody else has ended this client. */
static const char *why_ended(struct xmem_pool *pool)
{
	struct xmem_evict_request request = { .size = sizeof(request), .flags = XMEM_EVICT_WHY };

	if (pool->link.backend != &xmem_backend_kmod ||
	    xl_request(pool, XMEM_IOC_EVICT, &request))
		return NULL;
	switch (request.reason) {
	case XMEM_REASON_EVICTED:
		return "the pool's owner, or an administrator, has ended this client (xmem evict)";
	case XMEM_REASON_DRAINED:
		return "the pool has been drained, and its clients were ended (xmem drain)";
	case XMEM_REASON_LIMBO:
		return "this client was ended because it held, or kept by claims, more of what "
		       "ended clients have left than one may (limbo_bytes of the pool, or the "
		       "host's max_limbo_bytes)";
	}
	return NULL;
}

bool xl_client_is_over(struct xmem_pool *pool)
{
	struct xmem_client_request own = { .size = sizeof(own), .client = pool->me };

	return xl_host_died(pool) || (pool->link.backend == &xmem_backend_kmod &&
				      xl_request(pool, XMEM_IOC_CLIENT, &own) == -ENOTCONN);
}

XL_COLD int xl_fail_died(struct xmem_pool *pool)
{
	const char *why = why_ended(pool);

	xm_futex_wake_all(&pool->map.pool->host);
	if (why)
		return xl_fail(ENOTCONN, "%s; what it held may have other contents by now; close "
					 "the pool, and open it again if it may be", why);
	return xl_fail_fast(ENOTCONN, "the host has gone, and with it all that was in flight; "
				      "close the pool and open it again");
}
