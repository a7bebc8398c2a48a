/* SPDX-License-Identifier: MIT */
/*
 * Has the host of a pool ended? Each call that makes a handle of a buffer, and publish, asks
 * before it does anything: without a host no end of a client is noticed, nothing that the dead
 * held comes back, and a new pool of the same name is another one.
 */
#ifndef XMEM_DIED_H
#define XMEM_DIED_H

#include "lib/private.h"

/* ENOTCONN, noted; who waits in this pool is woken to find that out too. */
int xl_fail_died(struct xmem_pool *pool);

/*
 * Has this client been ended, or its host? The pages do not say it at once everywhere, so the
 * kernel is asked: if the answer is no, what was read in them before is true. Any lock may be held.
 */
bool xl_client_is_over(struct xmem_pool *pool);

static inline bool xl_host_died(const struct xmem_pool *pool)
{
	return unlikely(!(xl_peek(&pool->map.pool->host) & XMEM_HOST_ALIVE));
}

#endif
