// SPDX-License-Identifier: MIT
/*
 * Errors of calls that find that the host, or this client, has ended (died.h). If this client has
 * ended, its pages read as zeros, and the kernel knows the reason.
 *
 * When the host dies, the kernel wakes one waiter, and this waiter wakes the others. If the first
 * waiter is killed at this moment, the next call of any client of the pool wakes them here.
 */
#include "lib/host/died.h"
#include "lib/host/futex.h"
#include "lib/host/request.h"

/* NULL: the host itself has gone, or this client was not ended by another process. */
static const char *why_ended(struct xmem_pool *pool)
{
	struct xmem_evict_request request = { .size = sizeof(request), .op = XMEM_OP_WHY };

	if (pool->link.backend != &xmem_backend_kmod ||
	    xl_request(pool, XMEM_IOC_EVICT, &request))
		return NULL;
	switch (request.reason) {
	case XMEM_REASON_EVICTED:
		return "the pool's owner, or an administrator, has ended this client (xmem evict)";
	case XMEM_REASON_DRAINED:
		return "the pool has been drained, and its clients were ended (xmem drain)";
	case XMEM_REASON_LIMBO:
		return "the pool's owner, or an administrator, has ended this client because of "
		       "the buffers of ended clients that it held";
	}
	return NULL;
}

bool xl_client_ended(struct xmem_pool *pool)
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
		return xl_fail(ENOTCONN, "%s; the buffers that it held may have other contents "
					 "by now; close the pool, and open it again if you may",
			       why);
	return xl_fail_fast(ENOTCONN, "the host has gone, and with it everything that was in "
				      "flight; close the pool and open it again");
}
