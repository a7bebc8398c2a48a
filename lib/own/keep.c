// SPDX-License-Identifier: MIT
/*
 * Which publications a writer keeps for those who subscribe later: the last so many that such a
 * subscriber could receive. What was sent to one client, forwarded, taken back, evicted or written
 * in place by others is not among them: these are *gaps*. As long as none of the last so many
 * places can be one, the place where they begin is known without a look at the ring.
 */
#include "core/history.h"
#include "lib/own/owned.h"

void xl_keep_note_gap(struct xl_owned *owned, u64 end)
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

	if (least < oldest)		/* nobody can find what is older any more */
		least = oldest;
	if (tail - least <= left)
		return least;
	if (tail - left >= owned->gaps_end)
		return tail - left;
	while (left && place > least)
		left -= xl_is_kept(pool, --place);
	return place;
}
