/* SPDX-License-Identifier: MIT */
/*
 * The state that keeps a pool alive: shares for its handle and its subscriptions, and, once it is
 * closed, the handles of its buffers. And the count of calls that use the pool's handle.
 */
#ifndef XMEM_BASE_SHARE_H
#define XMEM_BASE_SHARE_H

#include "lib/base/lock.h"

/*
 * Bits of xl_share.ending: what else must a thread do that drops or clones a handle? See handle.h.
 */
#define XL_ENDING_FENCED	1u	/* run a full barrier, because there is no membarrier */
#define XL_ENDING_CLOSED	2u	/* all shares are dropped, so handles are counted */

struct xl_share {
	struct xl_lock lock;		/* guards `out`, and `counted` and contents of handles */
	u64 out;			/* shares: the pool's handle and its subscriptions; once
					 * it is closed, the handles of buffers in use */
	u32 ending;			/* XL_ENDING_*; atomic */
	void (*destroy)(struct xmem_pool *pool);	/* called when the last share is dropped */
};

/* The calls that use the pool's handle: calls.h. */
struct xl_calls {
	u32 opened;			/* how many pools this struct has served, with this one */
	u32 waiting;			/* how many calls; atomic, a futex */
	u32 cancels;			/* whether their waits are cancelled: XL_CANCEL_*; atomic */
};

/*
 * Drop one share of a pool. When the last share is dropped and no handle is in use, the pool is
 * destroyed.
 */
void xl_pool_unshare(struct xmem_pool *pool);

#endif
