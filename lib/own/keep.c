// SPDX-License-Identifier: MIT
/*
 * Which publications a writer keeps for later subscribers: the last owned.keep publications that
 * such a subscriber could receive. A publication is not among them, and its place is a *gap*, if it
 * was sent to one client, forwarded, taken back, evicted, or written in place by another client. As
 * long as none of the last places can be a gap, the place where the kept publications begin is
 * known without a look at the ring. core/history.h has the subscriber's side.
 */
#include "core/history.h"
#include "lib/own/owned.h"

void xl_keep_add_gap(struct xl_owned *owned, u64 end)
{
	if (owned->gaps_end < end)
		owned->gaps_end = end;
}

bool xl_is_kept(const struct xmem_pool *pool, u64 place)
{
	return place >= pool->owned.gaps_end || xm_past_is_own(&pool->map, pool->me, place);
}

u64 xl_keeps_from(const struct xmem_pool *pool, u64 tail, u64 least)
{
	const struct xl_owned *owned = &pool->owned;
	u64 oldest = xm_oldest(&pool->map, tail), place = tail, left = owned->keep;

	if (least < oldest)		/* no subscriber can find older ones any more */
		least = oldest;
	if (tail - least <= left)
		return least;
	if (tail - left >= owned->gaps_end)
		return tail - left;
	while (left && place > least)
		left -= xl_is_kept(pool, --place);
	return place;
}
