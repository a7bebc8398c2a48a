/* SPDX-License-Identifier: MIT */
/* Finding a slot to write into: find.c. All functions here are called under owned.lock. */
#ifndef XMEM_OWN_FIND_H
#define XMEM_OWN_FIND_H

#include "lib/own/owned.h"

/* The wanted slot, and how long the host is waited for if its help is needed. */
struct xl_want {
	struct xl_chain *chain;
	u64 bytes;
	u64 answer_by;
	bool waits;
};

/* Are buffers made on demand for such an acquire? */
static inline bool xl_wants_demand(const struct xl_want *want)
{
	return unlikely(want->chain->demand.on && want->bytes);
}

/*
 * Has a look failed with @err for want of something that may come free later? On demand this may
 * also be slots of the pool, or memory.
 */
static inline bool xl_is_in_vain(const struct xl_want *want, int err)
{
	const struct xl_demand *demand = &want->chain->demand;

	if (!err || err == -EAGAIN)
		return err;
	return xl_wants_demand(want) &&
	       (err == demand->failed || (err == -ENOSPC && demand->no_slots));
}

/*
 * Has nothing changed since an acquire of that size found nothing? Then this acquire need not look.
 * A client that drops a hold, moves a cursor or ends disarms the waiters word (I5).
 */
bool xl_still_none(const struct xmem_pool *pool, const struct xl_want *want);

/* The time of the next look, which comes without a wake-up. */
u64 xl_retry_at(const struct xmem_pool *pool);

/*
 * Find a slot, if necessary once more after the bound for slow subscribers has passed. owned.lock
 * is left while a buffer is made on demand. 0: the next READY slot of *ret. -EAGAIN: there is none.
 * -EINPROGRESS, or -ETIMEDOUT if !want->waits: the host has to help, and has not answered. Else an
 * error, noted.
 */
int xl_find_slot(struct xmem_pool *pool, const struct xl_want *want, struct xl_size **ret);

#endif
