// SPDX-License-Identifier: MIT
/*
 * The collector finds slots that nobody uses any more. A scan reads cache lines that
 * readers write, which is slow, so one scan takes many slots.
 */
#include "owned.h"

/* Slots of one size that are scanned together. */
struct batch {
	u32 slot[XL_MAX_BATCH];
	u32 count;
	bool prefix;			/* it is the beginning of the list, nothing is left out */
};

/* The place of a LIVE or BUSY slot. */
static inline u64 place_of(const struct xl_owned_slot *one)
{
	return xm_load(&one->word->position) - 1;
}

/*
 * The client that held the slot when it was looked at still holds it. So it is in use, and
 * no other client's hold has to be read.
 */
static bool still_held(const struct xmem_pool *pool, const struct xl_owned_slot *one)
{
	return one->held && xm_bit(pool->map.pool->counted, one->holder) &&
	       xm_load_acquire(xm_hold(&pool->map, one->holder, one->index)) & XM_HOLD_COUNT;
}

/* Nobody can still receive what is below the place that this returns. */
static u64 passed(const struct xmem_pool *pool, u64 tail)
{
	u64 oldest = xm_oldest(&pool->map, tail);

	return pool->owned.passed > oldest ? pool->owned.passed : oldest;
}

/* Look at the cursors, unless the one that keeps everything in flight has not moved. */
static void look_at_passed(struct xmem_pool *pool)
{
	const struct xm_map *map = &pool->map;
	struct xl_owned *owned = &pool->owned;
	u64 before = owned->passed;

	if (owned->culprit != XMEM_OWNER_NONE &&
	    xm_bit(xm_client_row(map, pool->me)->subscribers, owned->culprit) &&
	    xm_load_acquire(xm_cursor(map, owned->culprit, pool->me)) == owned->culprit_at)
		return;
	owned->passed = xm_passed(map, pool->me, &owned->culprit);
	owned->culprit_at = owned->passed;
	if (owned->passed < before)	/* a new subscriber's cursor, before it is at the tail */
		owned->passed = before;
}

/* All slots of a list up to @last become READY. */
static void move_to_ready(struct xl_queue *queue, struct xl_owned_slot *last,
			  struct xl_queue *ready)
{
	*ready->last = queue->first;
	ready->last = &last->next;
	queue->first = last->next;
	if (!queue->first)
		queue->last = &queue->first;
	last->next = NULL;
}

/*
 * Scan the slots of a batch, which stand in this order in the list from *link on. Those that
 * nobody has become READY; the others note a holder and become BUSY.
 */
static bool scan_batch(struct xmem_pool *pool, const struct xm_scan_rules *how,
		       struct batch *batch, struct xl_queue *queue, struct xl_owned_slot **link)
{
	u8 holder[XL_MAX_BATCH] = { 0 };	/* stays 0 where a getter had a scan resolved */
	u64 mine = xm_scan(&pool->map, how, batch->slot, batch->count, holder);
	struct xl_owned_slot *one;
	u32 i;

	if (likely(batch->prefix && mine == ~0ULL >> (64 - batch->count))) {
		one = &pool->owned.slot[batch->slot[batch->count - 1]];
		move_to_ready(queue, one, &one->size->list[XL_LIST_READY]);
		return true;
	}
	for (i = 0; i < batch->count; i++) {
		while (unlikely((*link)->index != batch->slot[i]))
			link = &(*link)->next;
		one = xl_queue_take(queue, link);
		if (mine >> i & 1) {
			xl_queue_add(&one->size->list[XL_LIST_READY], one);
			continue;
		}
		one->held = true;
		one->holder = holder[i];
		xl_queue_add(&one->size->list[XL_LIST_BUSY], one);
	}
	return mine;
}

bool xl_collect_passed(struct xmem_pool *pool, struct xl_size *size)
{
	struct xl_queue *live = &size->list[XL_LIST_LIVE];
	struct xm_scan_rules how = { .owner = pool->me, .tail = xl_tail(pool) };
	struct xl_owned_slot *one = live->first;
	struct batch batch;

	if (!one)
		return false;
	look_at_passed(pool);
	how.passed = how.evictable = passed(pool, how.tail);
	batch.prefix = true;
	do {
		u32 count = 0;

		for (one = live->first; one && count < XL_MAX_BATCH; one = one->next) {
			if (place_of(one) >= how.passed)
				break;
			batch.slot[count++] = one->index;
		}
		batch.count = count;
		if (count && scan_batch(pool, &how, &batch, live, &live->first))
			return true;
	} while (batch.count);
	return false;
}

/* Slots that were held: those whose known holder has let go are scanned again. */
bool xl_collect_busy(struct xmem_pool *pool, struct xl_size *size)
{
	struct xl_queue *busy = &size->list[XL_LIST_BUSY];
	struct xm_scan_rules how = { .owner = pool->me, .tail = xl_tail(pool) };
	struct xl_owned_slot *one = busy->first, *last;
	struct batch batch;

	/* They are not in flight: each one is passed, or its entry is void. */
	how.passed = how.evictable = how.tail;
	batch.prefix = false;
	if (!one)
		return false;
	last = (struct xl_owned_slot *)((char *)busy->last -
					offsetof(struct xl_owned_slot, next));
	for (;;) {
		struct xl_owned_slot *next;
		bool end = false;

		batch.count = 0;
		for (; one && !end && batch.count < XL_MAX_BATCH; one = next) {
			next = one->next;
			end = one == last;	/* what a scan puts back comes behind it */
			if (!still_held(pool, one))
				batch.slot[batch.count++] = one->index;
		}
		if (batch.count && scan_batch(pool, &how, &batch, busy, &busy->first))
			return true;
		if (end || !one)
			return false;
	}
}

/*
 * Evict the first of the slots from @one on that nobody holds, and say so. Their holds are
 * looked at before their entries become void, so that nobody loses anything in vain.
 */
static bool evict_one(struct xmem_pool *pool, const struct xm_scan_rules *how,
		      struct xl_queue *live)
{
	struct xl_owned_slot **link = &live->first, *one;
	struct batch batch;

	while ((one = *link) && place_of(one) < how->evictable) {
		u8 holder[XMEM_GROUP_SLOTS];
		u32 at = one->index % XMEM_GROUP_SLOTS;

		if (still_held(pool, one)) {
			link = &one->next;
			continue;
		}
		one->held = xm_group_held(&pool->map, one->index / XMEM_GROUP_SLOTS, 1ULL << at,
					  holder);
		if (one->held) {
			one->holder = holder[at];
			link = &one->next;
			continue;
		}
		batch.slot[0] = one->index;
		batch.count = 1;
		batch.prefix = false;
		if (scan_batch(pool, how, &batch, live, link))
			return true;
	}
	return false;
}

/*
 * Evict the oldest publications that subscribers may lose: all that are older than the
 * protected depth at once, else only the oldest that can be had. No cursor of a subscriber
 * that may lose them has to be read.
 */
bool xl_evict(struct xmem_pool *pool, struct xl_size *size, const struct xm_waited *waited)
{
	struct xl_queue *live = &size->list[XL_LIST_LIVE];
	struct xm_scan_rules how = {
		.owner = pool->me, .tail = waited->tail, .passed = passed(pool, waited->tail),
	};
	u64 depth = xm_depth(&pool->map, size->slots);
	u64 old = waited->tail > depth ? waited->tail - depth : 0;
	struct xl_owned_slot *one;
	struct batch batch;

	how.evictable = waited->evictable > how.passed ? waited->evictable : how.passed;
	batch.prefix = true;
	do {
		batch.count = 0;
		for (one = live->first; one && batch.count < XL_MAX_BATCH; one = one->next) {
			if (place_of(one) >= how.evictable || place_of(one) >= old)
				break;
			if (still_held(pool, one))
				batch.prefix = false;
			else
				batch.slot[batch.count++] = one->index;
		}
		if (batch.count && scan_batch(pool, &how, &batch, live, &live->first))
			return true;
	} while (batch.count);
	return evict_one(pool, &how, live);
}
