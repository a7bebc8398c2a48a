// SPDX-License-Identifier: MIT
/*
 * Slow subscribers. A writer waits for subscribers that ask for it, but no longer than its
 * bound. Then it demotes them: like all others they lose the oldest publication, until they
 * receive again.
 */
#include "owned.h"
#include "request.h"

/* Wait again for demoted subscribers that have received something since. */
void xl_forgive_demoted(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	u32 c;

	for (c = 0; c < pool->map.clients; c++)
		if (owned->demoted[c / 64] >> c % 64 & 1 &&
		    xm_load_acquire(xm_cursor(&pool->map, c, pool->me)) != owned->demoted_at[c])
			owned->demoted[c / 64] &= ~(1ULL << c % 64);
}

/* The bound has passed: demote the subscribers that have not received everything (P9). */
void xl_demote(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	u64 tail = xm_load(&xm_ring(&pool->map, pool->me)->tail);
	u32 c;

	for (c = 0; c < pool->map.clients; c++) {
		u64 cursor;

		if (!xm_bit(xm_client_row(&pool->map, pool->me)->waits, c))
			continue;
		cursor = xm_load_acquire(xm_cursor(&pool->map, c, pool->me));
		if (cursor >= tail)
			continue;
		owned->demoted[c / 64] |= 1ULL << c % 64;
		owned->demoted_at[c] = cursor;
	}
	owned->blocked_since_ns = 0;
}

/*
 * When are slow subscribers to be demoted? The bound begins with the first acquire that
 * finds nothing while a subscriber that is waited for lags; it ends when a slot is found
 * or published. Returns ~0 if no subscriber is in the way.
 */
u64 xl_demote_at(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	if (!owned->wait_bound_ns || xm_least_waiting(&pool->map, pool->me, owned->demoted) >=
					     xm_load(&xm_ring(&pool->map, pool->me)->tail)) {
		owned->blocked_since_ns = 0;
		return ~0ULL;
	}
	if (!owned->blocked_since_ns)
		owned->blocked_since_ns = xl_now_ns();
	return owned->blocked_since_ns + owned->wait_bound_ns;
}

bool xl_any_demoted(const struct xl_owned *owned)
{
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= owned->demoted[i];
	return any;
}

static bool anybody_waited_for(const struct xmem_pool *pool)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, pool->me);
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= xm_load(&row->waits[i]) & ~pool->owned.demoted[i];
	return any;
}

/* Would one more publication overwrite an entry that a waiting subscriber has yet to receive? */
bool xl_ring_is_full(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	if (xl_ring_is_ample(pool) || !anybody_waited_for(pool))
		return false;
	return xm_load(&xm_ring(&pool->map, pool->me)->tail) + owned->out + 1 -
	       xm_least_waiting(&pool->map, pool->me, owned->demoted) > pool->map.ring_mask + 1;
}
