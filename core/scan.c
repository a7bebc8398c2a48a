// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The owner and its slots: how it takes one, gives it up, and scans its LIVE slots for those that
 * nobody uses. The order of the lines is the protocol, and the comment at each barrier says which
 * other line it pairs with.
 */
#include "held.h"

int xm_take(const struct xm_map *map, u32 slot)
{
	u64 *state = &xm_slot(map, slot)->state;
	u64 word = xm_load_acquire(state);

	if (xm_state(word) != XMEM_SLOT_FREE)
		return -EBUSY;
	xm_store(state, word + XM_ONE_GENERATION - XMEM_SLOT_FREE + XMEM_SLOT_WRITING);
	XM_STEP(XM_STEP_TAKE_WRITING);
	return 0;
}

int xm_give_up(const struct xm_map *map, u32 slot)
{
	struct xmem_slot_word *mine = xm_slot(map, slot);
	u64 word = xm_load(&mine->state);

	if (xm_state(word) != XMEM_SLOT_WRITING)
		return -EBUSY;
	xm_store(&mine->position, 0);	/* so that the slot is not in hand when it is taken again */
	xm_store_release(&mine->state, word - XMEM_SLOT_WRITING + XMEM_SLOT_FREE);
	return 0;
}

u64 xm_make_live(const struct xm_own *own)
{
	u64 word = xm_load(&own->word->state);

	xm_store(&own->word->position, 0);
	XM_STEP(XM_STEP_CLAIM_POSITION);
	xm_store_release(&own->word->state, word - XMEM_SLOT_WRITING + XMEM_SLOT_LIVE);
	XM_STEP(XM_STEP_CLAIM_LIVE);
	return (word & ~0xffffULL) | own->slot;
}

/* ---- holds ---- */

u64 xm_group_used(const struct xm_map *map, u32 group, u64 among, u64 evicts, u8 *ret_holder)
{
	struct xm_held found = xm_group_holds(map, group, among, ret_holder);

	/* First all holds, then all that was forwarded (I6). */
	if (__builtin_expect(found.forwarded != 0, 0))
		found.held |= xm_group_forwarded(map, group, found.forwarded, evicts, ret_holder);
	return found.held;
}

/* ---- scan ---- */

/* A scan of some slots, while it runs. */
struct xm_scanned {
	u32 count;			/* slots that were looked at */
	u32 group;			/* group of the first slot */
	u64 marked;			/* bitmap of the slots that are SCANNING */
	u64 voids;			/* marked slots whose entry is to become void */
	u64 elsewhere;			/* marked slots in other groups */
	u64 among;			/* slots in `group`, by their place there, perhaps more
					 * than are marked */
	u64 scanning[64];		/* what the marked words are now */
};

/*
 * Mark the slots that may be free. Mostly all of them are in one group; slots in other groups are
 * only recorded, for a look of their own. @shared is a constant.
 */
static xm_inline void xm_scan_mark(const struct xm_map *map, const struct xm_scan_rules *how,
				   struct xm_own *const *own, u32 count, bool shared,
				   struct xm_scanned *scan)
{
	/* Each of these is a position: 1 + a place. */
	u64 oldest = how->tail > map->ring_mask ? how->tail - map->ring_mask : 1;
	u64 from = how->evictable >= oldest ? how->evictable + 1 : oldest;
	u64 passed = how->passed >= oldest ? how->passed + 1 : oldest;
	u64 in_flight = how->tail + 1 - passed, among = 0, left_alone = 0, n;
	u32 group = own[0]->group;

	for (n = 0; n < count; n++) {
		const struct xm_own *one = own[n];
		struct xmem_slot_word *mine = one->word;
		u64 live = xm_load_acquire(&mine->state), position = xm_load(&mine->position);

		among |= one->bit;
		if (__builtin_expect(one->group != group, 0))
			scan->elsewhere |= 1ULL << n;
		if (__builtin_expect(xm_state(live - XMEM_SLOT_LIVE) != 0, 0)) {
			left_alone |= 1ULL << n;
			continue;
		}
		/*
		 * xm_in_flight with what does not change in this loop: passed <= position <= tail
		 */
		if (__builtin_expect(position - passed < in_flight, 0)) {
			if (position >= from && how->in_order)
				break;
			if (position >= from) {
				left_alone |= 1ULL << n;
				continue;
			}
			scan->voids |= 1ULL << n;
		}
		scan->scanning[n] = xm_scanning(live);
		/*
		 * Only the owner changes the word of a slot that is not shared, so a store is
		 * enough.
		 */
		if (!shared) {
			xm_store(&mine->state, scan->scanning[n]);
			continue;
		}
		XM_STEP(XM_STEP_SCAN_SHARED);
		if (!xm_cas_full(&mine->state, live, scan->scanning[n])) {
			left_alone |= 1ULL << n;
			scan->voids &= ~(1ULL << n);
		}
	}
	scan->count = n;
	scan->group = group;
	scan->marked = n ? ~0ULL >> (64 - n) & ~left_alone : 0;
	scan->elsewhere &= scan->marked;
	scan->among = among;
}

/* Few slots are not shared, so this is kept out of the common path. */
static __attribute__((__noinline__)) void xm_scan_mark_alone(const struct xm_map *map,
							 const struct xm_scan_rules *how,
							 struct xm_own *const *own, u32 count,
							 struct xm_scanned *scan)
{
	xm_scan_mark(map, how, own, count, false, scan);
}

/* Make the entries of the slots in scan->voids void; they keep their position. */
static void xm_scan_void(const struct xm_map *map, u32 publisher, struct xm_own *const *own,
			 const struct xm_scanned *scan)
{
	u64 voids = scan->voids;

	for (; voids; voids &= voids - 1) {
		u64 position = xm_load(&own[__builtin_ctzll(voids)]->word->position);
		struct xmem_entry *entry = xm_entry(map, publisher, position - 1);

		u64 shown = xm_load(&entry->position);

		/* The mark stays: a subscriber must see that the entry is not for it. */
		if (xm_position(shown) == position)
			xm_store(&entry->position, shown | XMEM_ENTRY_VOID);
	}
}

/*
 * @some: a bitmap of @own; @among: those of these slots that are in @group, as a bitmap of @group.
 * Returns the slots of @among that are in use, as a bitmap of @own. It looks at all holds first,
 * then at the claims (I7).
 */
static u64 xm_scan_group(const struct xm_map *map, u64 evicts, struct xm_own *const *own,
			 u64 some, u32 group, u64 among, u8 *ret_holder)
{
	u8 holder[XMEM_GROUP_SLOTS];
	u64 found = xm_group_used(map, group, among, evicts, holder), used = found, ret = 0;

	if (xm_any_claims(map))
		used |= xm_group_claimed(map, group, among & ~found);
	for (; used && some; some &= some - 1) {
		u32 n = __builtin_ctzll(some);

		if (own[n]->group != group || !(used & own[n]->bit))
			continue;
		ret |= 1ULL << n;
		if (ret_holder && found & own[n]->bit)
			ret_holder[n] = holder[__builtin_ctzll(own[n]->bit)];
	}
	return ret;
}

/* Returns the marked slots that are in use. They are looked at by group, mostly one or two. */
static u64 xm_scan_holds(const struct xm_map *map, u64 evicts, struct xm_own *const *own,
			 const struct xm_scanned *scan, u8 *ret_holder)
{
	u64 held, left = scan->elsewhere, others;

	held = xm_scan_group(map, evicts, own, scan->marked, scan->group, scan->among,
			     ret_holder);
	while (left) {
		u32 group = own[__builtin_ctzll(left)]->group;
		u64 among = 0, here = 0;

		for (others = left; others; others &= others - 1) {
			u32 n = __builtin_ctzll(others);

			if (own[n]->group != group)
				continue;
			here |= 1ULL << n;
			among |= own[n]->bit;
		}
		held |= xm_scan_group(map, evicts, own, here, group, among, ret_holder);
		left &= ~here;
	}
	return held;
}

/* SCANNING -> WRITING with the next generation, where nobody holds the slot. */
static inline bool xm_scan_take(struct xmem_slot_word *one, u64 scanning)
{
	u64 taken = scanning + XM_ONE_GENERATION - XMEM_SLOT_SCANNING + XMEM_SLOT_WRITING;

	/* If the CAS fails, the host has resolved the slot for a holder. */
	if (!xm_cas_full(&one->state, scanning, taken))
		return false;
	xm_store(&one->position, 0);
	return true;
}

/* SCANNING -> LIVE, unless the host has resolved the slot already; it may even be scanning it. */
static void xm_scan_leave(struct xmem_slot_word *one, u64 scanning)
{
	xm_cas_full(&one->state, scanning, scanning - XMEM_SLOT_SCANNING + XMEM_SLOT_LIVE);
}

/* Take the marked slots that are not in @held, and leave the others. Returns the slots taken. */
static inline u64 xm_scan_end(struct xm_own *const *own, const struct xm_scanned *scan, u64 held)
{
	u64 mine = scan->marked & ~held, others = ~mine, n;

	for (n = 0; n < scan->count; n++) {
		if (__builtin_expect(others >> n & 1, 0)) {
			if (scan->marked >> n & 1)
				xm_scan_leave(own[n]->word, scan->scanning[n]);
		} else if (__builtin_expect(!xm_scan_take(own[n]->word, scan->scanning[n]), 0)) {
			mine &= ~(1ULL << n);
		}
	}
	return mine;
}

u64 xm_scan(const struct xm_map *map, const struct xm_scan_rules *how,
	    struct xm_own *const *own, u32 count, u8 *ret_holder)
{
	struct xm_scanned scan;
	u64 held;

	scan.voids = scan.elsewhere = 0;
	/* I2: the caller has read the cursors; the holds come after. */
	XM_STEP(XM_STEP_SCAN_CURSORS);
	if (__builtin_expect(how->shared, 1))
		xm_scan_mark(map, how, own, count, true, &scan);
	else
		xm_scan_mark_alone(map, how, own, count, &scan);
	if (!scan.marked)
		return 0;
	XM_STEP(XM_STEP_SCAN_SCANNING);
	if (scan.voids)
		xm_scan_void(map, how->owner, own, &scan);
	/*
	 * SCANNING before the holds: pairs with get's full hold before its look (I1). Void
	 * before the holds: pairs with receive's full hold before its second look (I1).
	 */
	xm_full_barrier();
	XM_STEP(XM_STEP_SCAN_VOID);
	held = xm_scan_holds(map, how->evicts, own, &scan, ret_holder);
	XM_STEP(XM_STEP_SCAN_HOLDS);
	return xm_scan_end(own, &scan, held);
}
