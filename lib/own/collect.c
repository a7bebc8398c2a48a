// SPDX-License-Identifier: MIT
/*
 * The collector finds slots that no client uses any more, and evicts publications. A scan reads
 * cache lines that readers write, which is slow, so one scan takes many slots. core/scan.c has the
 * scan; find.c decides when to collect and when to evict.
 */
#include "lib/own/owned.h"
#include "lib/payload/payload.h"

/* The place of a LIVE or BUSY slot. */
static inline u64 place_of(const struct xm_own *own)
{
	return xm_load(&own->word->position) - 1;
}

/*
 * Does the client that held the slot at the last scan still hold it? Then the slot is in use, and
 * no other client's hold has to be read.
 */
static bool still_held(const struct xmem_pool *pool, const struct xl_owned_slot *one)
{
	return one->held && xm_holds_count(&pool->map, one->holder, one->own.slot) &&
	       xm_load_acquire(xm_hold(&pool->map, one->holder, one->own.slot)) & XM_HOLD_COUNT;
}

/*
 * A scan has found the slot in use by @holder. If that client does not hold the slot, its ring has
 * the forwarded publication, which may be evicted.
 */
static void record_holder(struct xmem_pool *pool, struct xl_owned_slot *one, u8 holder)
{
	u32 hold = xm_load(xm_hold(&pool->map, holder, one->own.slot));

	one->held = true;
	one->holder = holder;
	if (unlikely(hold & XM_HOLD_FORWARDED))
		pool->owned.lent = true;
}

/* Are references of the slot set aside by claims? Then it is in use. */
static bool is_claimed(const struct xmem_pool *pool, const struct xl_owned_slot *one)
{
	return xm_any_claims(&pool->map) && xm_claims_of(&pool->map, one->own.slot);
}

/*
 * An eviction has spared the slot. If only a ring keeps it, the client with that ring may keep it
 * for its own bound: record the shortest of these bounds.
 */
static void record_lent_bound(struct xmem_pool *pool, const struct xl_owned_slot *one)
{
	const struct xm_map *map = &pool->map;
	u32 hold = xm_load(xm_hold(map, one->holder, one->own.slot));
	u64 bound = xm_load(&xm_client_row(map, one->holder)->wait_bound_ns);

	if (hold & XM_HOLD_FORWARDED && !(hold & XM_HOLD_COUNT) && bound < pool->owned.lent_bound)
		pool->owned.lent_bound = bound;
}

/* Returns a place in the ring below which no subscriber can receive a publication any more. */
static u64 passed(const struct xmem_pool *pool, u64 tail)
{
	u64 oldest = xm_oldest(&pool->map, tail);

	return pool->owned.passed > oldest ? pool->owned.passed : oldest;
}

/* Update owned->passed from the cursors, unless the cursor that determines it has not moved. */
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
	if (owned->passed < before)	/* a new subscriber's cursor, still below the tail */
		owned->passed = before;
}

/* ---- LIVE slots ---- */

/* The LIVE slot at @at becomes the last READY one; the order of the others stays. */
static void make_ready(struct xl_size *size, u32 at)
{
	struct xm_own *own = size->circle[at & size->mask];

	for (; at != size->live; at--)
		size->circle[at & size->mask] = size->circle[(at - 1) & size->mask];
	size->circle[size->live++ & size->mask] = own;
}

/* The LIVE slot at @at becomes BUSY. */
static void make_busy(struct xmem_pool *pool, struct xl_size *size, u32 at, u8 holder)
{
	struct xl_owned_slot *one = xl_owned_slot(size->circle[at & size->mask]);

	for (; at != size->ready; at--)
		size->circle[at & size->mask] = size->circle[(at - 1) & size->mask];
	size->ready++;
	size->live++;
	record_holder(pool, one, holder);
	one->busy_ns = 0;
	xl_queue_add(&size->busy, one);
}

/*
 * Take those slots of @some that a client wrote in place and gave up. Returns their bitmap. None of
 * them was in flight when that client began, so none is in flight now.
 */
static XL_SLOW u64 take_freed(struct xmem_pool *pool, struct xm_own *const *own, u64 some)
{
	u64 taken = 0;

	for (; some; some &= some - 1) {
		u32 i = __builtin_ctzll(some);

		if (xm_take(&pool->map, own[i]->slot))
			continue;
		xm_store(&own[i]->word->position, 0);
		taken |= 1ULL << i;
	}
	return taken;
}

/*
 * Scan LIVE slots, which have this order in the circle; the first one is at @at. A slot that no
 * client uses becomes READY. A slot in use gets its holder recorded, and becomes BUSY unless it is
 * in flight.
 */
static bool scan_live(struct xmem_pool *pool, const struct xm_scan_rules *how, struct xl_size *size,
		      struct xm_own *const *own, u32 count, u32 at)
{
	u8 holder[XL_MAX_BATCH] = { 0 };	/* stays 0 if a reader had the scan resolved */
	u64 mine = xm_scan(&pool->map, how, own, count, holder), all = ~0ULL >> (64 - count);
	u32 i, last = at + count - 1;

	if (unlikely(mine != all) && size->shared)
		mine |= take_freed(pool, own, all & ~mine);

	/* All slots are unused, and they are the oldest LIVE ones without a gap. */
	if (likely(mine == all && at == size->live &&
		   size->circle[last & size->mask] == own[count - 1])) {
		size->live += count;
		return true;
	}
	for (i = 0; i < count; i++, at++) {
		while (unlikely(size->circle[at & size->mask] != own[i]))
			at++;
		if (mine >> i & 1)
			make_ready(size, at);
		else if (place_of(own[i]) < how->evictable)
			make_busy(pool, size, at, holder[i]);
		else if (how->in_order && !(mine >> i))
			break;	/* otherwise a slot that was freed meanwhile would come behind it */
	}
	return mine;
}

/* Scan the passed slots, in the order of their publication, until one is READY. */
static XL_INLINE bool collect_in_order(struct xmem_pool *pool, const struct xm_scan_rules *how,
				       struct xl_size *size)
{
	while (size->live != size->end) {
		u32 first = size->live & size->mask, count = size->end - size->live;
		struct xm_own *const *own = &size->circle[first];

		if (place_of(*own) >= how->passed)
			break;
		if (count > size->mask + 1 - first)
			count = size->mask + 1 - first;
		if (count > XL_MAX_BATCH)
			count = XL_MAX_BATCH;
		if (scan_live(pool, how, size, own, count, size->live))
			return true;
	}
	return false;
}

/*
 * The place where the kept publications begin, or the place of the first LIVE slot if that is
 * older.
 */
static u64 kept_from(const struct xmem_pool *pool, const struct xl_size *size, u64 tail)
{
	if (size->live == size->end)
		return tail;
	return xl_keeps_from(pool, tail, place_of(size->circle[size->live & size->mask]));
}

/*
 * As collect_in_order, for a writer that keeps its last publications. It collects passed
 * publications that are not kept, even if older ones are kept: those that were sent to one client,
 * and those that other clients have written in place.
 */
static XL_COLD bool collect_not_kept(struct xmem_pool *pool, struct xm_scan_rules *how,
				     struct xl_size *size)
{
	u64 passed = how->passed, kept = kept_from(pool, size, how->tail);
	struct xm_own *batch[XL_MAX_BATCH];
	u32 at, count;

	how->passed = how->evictable = kept < passed ? kept : passed;
	if (collect_in_order(pool, how, size))
		return true;
	how->in_order = false;
	how->passed = how->evictable = passed;
	do {
		count = 0;
		for (at = size->live; at != size->end && count < XL_MAX_BATCH; at++) {
			struct xm_own *own = size->circle[at & size->mask];

			if (place_of(own) >= passed || place_of(own) >= pool->owned.gaps_end)
				break;
			if (!xl_is_kept(pool, place_of(own)))
				batch[count++] = own;
		}
		if (count && scan_live(pool, how, size, batch, count, size->live))
			return true;
	} while (count);
	return false;
}

bool xl_collect_passed(struct xmem_pool *pool, struct xl_size *size)
{
	struct xm_scan_rules how = {
		.owner = pool->me, .tail = xl_tail(pool), .in_order = true, .shared = size->shared,
	};

	if (size->live == size->end)
		return false;
	look_at_passed(pool);
	xl_update_room(pool);
	/* No subscriber loses anything by this. */
	how.passed = how.evictable = passed(pool, how.tail);
	if (unlikely(pool->owned.keep))
		return collect_not_kept(pool, &how, size);
	return collect_in_order(pool, &how, size);
}

/* Is the slot held by no client, so that it becomes free when its entries in rings are void? */
static bool is_to_be_had(struct xmem_pool *pool, const struct xm_scan_rules *how,
			 struct xl_owned_slot *one)
{
	u32 n = one->own.slot % XMEM_GROUP_SLOTS;
	u8 holder[XMEM_GROUP_SLOTS];

	if (still_held(pool, one) || is_claimed(pool, one))
		return false;
	one->held = xm_group_used(&pool->map, one->own.slot / XMEM_GROUP_SLOTS, 1ULL << n,
				  how->evicts, holder);
	one->holder = one->held ? holder[n] : one->holder;
	if (one->held)
		record_lent_bound(pool, one);
	return !one->held;
}

/*
 * Evict the first slot that no client holds. Returns whether there was one. The holds are read
 * before the entries become void: otherwise subscribers could lose an entry although its slot stays
 * in use.
 */
static bool evict_one(struct xmem_pool *pool, const struct xm_scan_rules *how,
		      struct xl_size *size)
{
	u32 at;

	for (at = size->live; at != size->end; at++) {
		struct xm_own *own = size->circle[at & size->mask];
		struct xl_owned_slot *one = xl_owned_slot(own);

		if (place_of(own) >= how->evictable)
			break;
		if (!is_to_be_had(pool, how, one))
			continue;
		xl_keep_add_gap(&pool->owned, place_of(own) + 1);
		if (scan_live(pool, how, size, &own, 1, at))
			return true;
	}
	return false;
}

/*
 * Evict the first BUSY slot that is in use only by entries in other clients' rings. BUSY slots were
 * published before LIVE ones, so this comes before an eviction of LIVE slots. @file: only slots of
 * this file, unless it is NULL.
 */
static bool evict_lent(struct xmem_pool *pool, struct xl_size *size,
		       const struct xl_mapping *file)
{
	struct xm_scan_rules how = {
		.owner = pool->me, .tail = xl_tail(pool), .shared = size->shared,
	};
	struct xl_owned_slot **link = &size->busy.first, *one;
	struct xm_own *own;

	how.evicts = xl_evicts(pool);
	how.passed = how.evictable = how.tail;
	for (; (one = *link); link = &one->next) {
		if ((file && one->file != file) || still_held(pool, one) ||
		    is_claimed(pool, one) ||
		    !(xm_load(xm_hold(&pool->map, one->holder, one->own.slot)) & XM_HOLD_FORWARDED))
			continue;
		own = &one->own;
		if (!xm_scan(&pool->map, &how, &own, 1, &one->holder)) {
			record_lent_bound(pool, one);
			continue;
		}
		xl_ready_add(size, xl_queue_take(&size->busy, link));
		return true;
	}
	return false;
}

/*
 * Evict the oldest publications that subscribers may lose, or that are kept for later subscribers.
 * Those that are older than the protected depth are evicted at once; of the others, only the oldest
 * evictable one. No cursor of a subscriber that may lose them has to be read.
 */
bool xl_evict(struct xmem_pool *pool, struct xl_size *size, const struct xm_waited *waited)
{
	struct xm_scan_rules how = {
		.owner = pool->me, .tail = waited->tail, .passed = passed(pool, waited->tail),
		.evicts = xl_evicts(pool),
		.shared = size->shared,
	};
	u64 depth = xm_depth(&pool->map, size->slots);
	u64 old = waited->tail > depth ? waited->tail - depth : 0, kept;
	struct xm_own *batch[XL_MAX_BATCH];
	u32 at, count;

	if (unlikely(pool->owned.lent) && evict_lent(pool, size, NULL))
		return true;
	if (unlikely(pool->owned.keep)) {
		kept = kept_from(pool, size, waited->tail);
		old = old < kept ? old : kept;
	}
	how.evictable = waited->evictable > how.passed ? waited->evictable : how.passed;
	do {
		count = 0;
		for (at = size->live; at != size->end && count < XL_MAX_BATCH; at++) {
			struct xm_own *own = size->circle[at & size->mask];

			if (place_of(own) >= how.evictable || place_of(own) >= old)
				break;
			if (!still_held(pool, xl_owned_slot(own)))
				batch[count++] = own;
		}
		if (count && scan_live(pool, &how, size, batch, count, size->live))
			return true;
	} while (count);
	return evict_one(pool, &how, size);
}

/* ---- whole files ---- */

static struct xm_scan_rules evicting(const struct xmem_pool *pool, const struct xm_waited *waited,
				     const struct xl_size *size)
{
	u64 from = passed(pool, waited->tail);

	return (struct xm_scan_rules){
		.owner = pool->me, .tail = waited->tail, .passed = from,
		.evictable = waited->evictable > from ? waited->evictable : from,
		.evicts = xl_evicts(pool), .shared = size->shared,
	};
}

static void count_of_size(struct xmem_pool *pool, const struct xm_scan_rules *how,
			  const struct xl_size *size)
{
	struct xl_owned_slot *one;
	u32 at;

	for (at = size->live; at != size->end; at++) {
		one = xl_owned_slot(size->circle[at & size->mask]);
		if (place_of(&one->own) >= how->evictable)
			break;
		if (!is_to_be_had(pool, how, one))
			continue;
		one->file->evictable++;
		if (place_of(&one->own) > one->file->newest)
			one->file->newest = place_of(&one->own);
	}
	for (one = size->busy.first; one; one = one->next)
		one->file->evictable += is_to_be_had(pool, how, one);
}

void xl_count_evictable(struct xmem_pool *pool, const struct xm_waited *waited)
{
	struct xm_scan_rules how;
	struct xl_mapping *file;
	struct xl_size *size;

	for (file = pool->owned.files; file; file = file->next_file)
		file->evictable = file->newest = 0;
	xl_each_size(&pool->owned, size) {
		how = evicting(pool, waited, size);
		count_of_size(pool, &how, size);
	}
}

void xl_evict_file(struct xmem_pool *pool, const struct xm_waited *waited,
		   const struct xl_mapping *file)
{
	struct xl_size *size = xl_size_in(file->chain, file->buffer_bytes);
	struct xm_scan_rules how;
	u32 at;

	for (; size; size = size->larger) {
		how = evicting(pool, waited, size);
		for (at = size->live; at != size->end; at++) {
			struct xm_own *own = size->circle[at & size->mask];

			if (place_of(own) >= how.evictable)
				break;
			if (xl_owned_slot(own)->file != file ||
			    !is_to_be_had(pool, &how, xl_owned_slot(own)))
				continue;
			xl_keep_add_gap(&pool->owned, place_of(own) + 1);
			scan_live(pool, &how, size, &own, 1, at);
		}
		while (evict_lent(pool, size, file))
			;
	}
}

/*
 * The slot of a retracted publication is WRITING now. Move it to READY, from whichever list has it.
 */
void xl_collect_retracted(struct xl_owned_slot *one)
{
	struct xl_size *size = one->size;
	struct xl_owned_slot **link;
	u32 at;

	for (at = size->live; at != size->end; at++)
		if (size->circle[at & size->mask] == &one->own)
			return make_ready(size, at);
	for (link = &size->busy.first; *link; link = &(*link)->next) {
		if (*link != one)
			continue;
		xl_ready_add(size, xl_queue_take(&size->busy, link));
		return;
	}
}

/* ---- BUSY slots ---- */

/* Scan slots that were taken out of BUSY. Each one becomes READY, or BUSY again. */
static bool scan_busy(struct xmem_pool *pool, struct xl_size *size, struct xm_own *const *own,
		      u32 count)
{
	struct xm_scan_rules how = {
		.owner = pool->me, .tail = xl_tail(pool), .shared = size->shared,
	};
	u8 holder[XL_MAX_BATCH] = { 0 };
	u64 mine;
	u32 i;

	/* No BUSY slot is in flight: its publication is passed, or its entry is void. */
	how.passed = how.evictable = how.tail;
	mine = xm_scan(&pool->map, &how, own, count, holder);
	if (size->shared)
		mine |= take_freed(pool, own, ~0ULL >> (64 - count) & ~mine);
	for (i = 0; i < count; i++) {
		struct xl_owned_slot *one = xl_owned_slot(own[i]);

		if (mine >> i & 1) {
			xl_ready_add(size, one);
			continue;
		}
		record_holder(pool, one, holder[i]);
		xl_queue_add(&size->busy, one);
	}
	return mine;
}

/* Collect BUSY slots: scan those whose known holder has released them. */
bool xl_collect_busy(struct xmem_pool *pool, struct xl_size *size)
{
	struct xl_owned_slot **link = &size->busy.first, *one, *last;
	struct xm_own *batch[XL_MAX_BATCH];
	u32 count;

	if (!*link)
		return false;
	last = (struct xl_owned_slot *)((char *)size->busy.last -
					offsetof(struct xl_owned_slot, next));
	do {
		for (count = 0, one = NULL; one != last && count < XL_MAX_BATCH; ) {
			one = *link;
			if (still_held(pool, one) || is_claimed(pool, one))
				link = &one->next;
			else
				batch[count++] = &xl_queue_take(&size->busy, link)->own;
		}
		/* A scan puts slots back behind @last. */
		if (count && scan_busy(pool, size, batch, count))
			return true;
	} while (one != last);
	return false;
}

/* ---- all ---- */

u32 xl_collect_all(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size;
	u32 collected = 0, before;

	xl_each_size(owned, size) {
		before = size->live - size->ready;
		while (xl_collect_passed(pool, size) || xl_collect_busy(pool, size))
			;
		collected += size->live - size->ready - before;
	}
	if (collected)
		xl_owned_changed(owned);
	return collected;
}
