/* SPDX-License-Identifier: MIT */
/*
 * Has the host of a pool ended? Each call that makes a handle of a buffer, and publish, checks this
 * first. Without a host, ends of clients are not noticed, references of dead clients are not
 * dropped, and a new pool with this name is another pool.
 */
#ifndef XMEM_DIED_H
#define XMEM_DIED_H

#include "lib/private.h"

/* ENOTCONN, noted. It wakes all waiters of this pool, so that they notice it too. */
int xl_fail_died(struct xmem_pool *pool);

/*
 * Has this client, or its host, ended? The pages do not always show it at once, so this asks the
 * kernel. If the answer is no, everything that was read in the pages before is valid. Any lock may
 * be held.
 */
bool xl_client_ended(struct xmem_pool *pool);

static inline bool xl_host_died(const struct xmem_pool *pool)
{
	return unlikely(!(xl_peek(&pool->map.pool->host) & XMEM_HOST_ALIVE));
}

#endif
