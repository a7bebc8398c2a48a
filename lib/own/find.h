/* SPDX-License-Identifier: MIT */
/* Finding a slot to write into: find.c. All of it under owned.lock. */
#ifndef XMEM_OWN_FIND_H
#define XMEM_OWN_FIND_H

#include "lib/own/owned.h"

/* What is looked for, and how long the host is waited for if it has to help. */
struct xl_want {
	struct xl_chain *chain;
	u64 bytes;
	u64 answer_by;
	bool waits;
};

/* Are buffers made for such an acquire? */
static inline bool xl_wants_demand(const struct xl_owned *owned, const struct xl_want *want)
{
	return unlikely(owned->demand.on && want->bytes) && want->chain == &owned->cpu;
}

/*
 * Has nothing changed since an acquire of that size found nothing? Then this one need not look.
 * Who drops a hold, moves a cursor or ends disarms the waiters word (I5).
 */
bool xl_still_none(const struct xmem_pool *pool, const struct xl_want *want);

/* When is there to be another look, although nobody wakes this writer? */
u64 xl_look_again_ns(const struct xmem_pool *pool);

/*
 * Make a slot READY, the next one of *ret, once more after the bound for slow subscribers has
 * passed. owned.lock is left while a buffer is made on demand. 0. -EAGAIN: there is none.
 * -EINPROGRESS, or -ETIMEDOUT if !want->waits: the host has to help, and has not answered. Else an
 * error, noted.
 */
int xl_find_slot(struct xmem_pool *pool, const struct xl_want *want, struct xl_size **ret);

#endif
