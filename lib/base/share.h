/* SPDX-License-Identifier: MIT */
/* What keeps a pool: its handle, its subscriptions, and then the handles of its buffers. */
#ifndef XMEM_BASE_SHARE_H
#define XMEM_BASE_SHARE_H

#include "lib/base/lock.h"

/* What a thread that drops or clones a handle has to do beside that: handle.h. */
#define XL_ENDING_FENCED	1u	/* a full barrier, because there is no membarrier */
#define XL_ENDING_CLOSED	2u	/* all shares are dropped: handles are counted */

struct xl_share {
	struct xl_lock lock;		/* guards `out`, and `counted` and contents of handles */
	u64 out;			/* shares: the pool's handle and its subscriptions; once
					 * closed: handles of buffers in use */
	u32 ending;			/* XL_ENDING_*; atomic */
	void (*destroy)(struct xmem_pool *pool);	/* by the last share */
};

/* Calls that use the pool's handle: calls.h. */
struct xl_calls {
	u32 waiting;			/* how many; atomic, a futex */
	u32 cancels;			/* their waits are over: XL_CANCEL_*; atomic */
};

/* Drop one share of a pool; with the last one it is destroyed, once no handle is in use. */
void xl_pool_unshare(struct xmem_pool *pool);

#endif
