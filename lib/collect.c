// SPDX-License-Identifier: MIT
/*
 * The collector finds slots that nobody uses any more. A scan reads cache lines that
 * readers write, which is slow, so one scan takes several slots.
 */
#include "owned.h"

static struct xm_scan_rules scan_rules(const struct xmem_pool *pool, bool evict)
{
	const struct xm_map *map = &pool->map;
	u64 depth = xm_depth(map, pool->owned.slots);
	struct xm_scan_rules how = { .owner = pool->me };
	struct xm_waited waited;
	u32 culprit;

	how.passed = how.evictable = xm_passed(map, pool->me, &culprit);
	xm_look_at_waited(map, pool->me, &waited);
	how.tail = waited.tail;
	if (waited.evictable > how.tail - depth)
		waited.evictable = how.tail - depth;
	if (evict && how.tail > depth && waited.evictable > how.passed)
		how.evictable = waited.evictable;
	return how;
}

/*
 * Scan a batch of a list from *link on. Slots that nobody has become READY, the others
 * BUSY. Leaves *link where the next batch begins. Returns 0 if no slot became READY.
 */
u64 xl_scan_batch(struct xmem_pool *pool, u32 list, struct xl_owned_slot ***link, u64 bytes,
		  bool evict)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_queue *queue = &owned->list[list];
	struct xm_scan_rules how = scan_rules(pool, evict);
	u32 slot[XL_MAX_BATCH], count = 0, most = evict ? 1 : owned->batch, i = 0;
	struct xl_owned_slot *one;
	u64 mine;

	for (one = **link; one && count < most; one = one->next)
		if (one->bytes >= bytes)
			slot[count++] = one->index;
	mine = count ? xm_scan(&pool->map, &how, slot, count, NULL) : 0;
	while (**link != one) {
		bool scanned = i < count && (**link)->index == slot[i];

		if (scanned && mine >> i & 1)
			xl_queue_add(&owned->list[XL_LIST_READY], xl_queue_take(queue, *link));
		else if (scanned && list == XL_LIST_LIVE)
			xl_queue_add(&owned->list[XL_LIST_BUSY], xl_queue_take(queue, *link));
		else
			*link = &(**link)->next;
		i += scanned;
	}
	return mine;
}

static bool scan_list(struct xmem_pool *pool, u32 list, u64 bytes, bool evict)
{
	struct xl_owned_slot **link = &pool->owned.list[list].first;

	while (*link)
		if (xl_scan_batch(pool, list, &link, bytes, evict))
			return true;
	return false;
}

/* Find a slot that nobody uses. If there is none, evict the oldest that subscribers may lose. */
bool xl_collect(struct xmem_pool *pool, u64 bytes)
{
	return scan_list(pool, XL_LIST_LIVE, bytes, false) ||
	       scan_list(pool, XL_LIST_BUSY, bytes, false) ||
	       scan_list(pool, XL_LIST_BUSY, bytes, true);
}
