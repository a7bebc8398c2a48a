// SPDX-License-Identifier: MIT
/*
 * Slow subscribers. A writer waits for subscribers that ask for it, but no longer than its
 * bound. Then it demotes them: like all others they lose the oldest publication, until they
 * receive again.
 */
#include "owned.h"
#include "request.h"

/* The bound has passed: demote the subscribers that have not received everything (P9). */
void xl_demote(struct xmem_pool *pool)
{
	xm_demote(&pool->map, pool->me, xm_load(&xm_ring(&pool->map, pool->me)->tail));
	pool->owned.blocked_since_ns = 0;
}

/*
 * When are slow subscribers to be demoted? The bound begins with the first acquire that
 * finds nothing while a subscriber that is waited for lags; it ends when a slot is found
 * or published. Returns ~0 if no subscriber is in the way.
 */
u64 xl_demote_at(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;

	xm_look_at_waited(&pool->map, pool->me, &waited);
	if (!owned->wait_bound_ns || !waited.lagging) {
		owned->blocked_since_ns = 0;
		return ~0ULL;
	}
	if (!owned->blocked_since_ns)
		owned->blocked_since_ns = xl_now_ns();
	return owned->blocked_since_ns + owned->wait_bound_ns;
}

/* Would one more publication overwrite an entry that a waiting subscriber has yet to receive? */
bool xl_ring_is_full(struct xmem_pool *pool)
{
	struct xm_waited waited;

	if (xl_ring_is_ample(pool))
		return false;
	xm_look_at_waited(&pool->map, pool->me, &waited);
	return !xm_has_room(&pool->map, &waited, pool->owned.out);
}
