// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The owner and its slots: how it takes one, gives it up, and scans its LIVE slots for
 * those that nobody uses. The order of the lines is the protocol, and the comment at
 * each barrier says which other line it pairs with.
 */
#include "protocol.h"

int xm_take(const struct xm_map *map, u32 slot)
{
	u64 *state = &xm_slot(map, slot)->state;
	u64 word = xm_load_acquire(state);

	if (xm_state(word) != XMEM_SLOT_FREE)
		return -EBUSY;
	xm_store(state, xm_word(xm_generation(word) + 1, xm_scan_number(word), XMEM_SLOT_WRITING));
	XM_STEP(XM_STEP_TAKE_WRITING);
	return 0;
}

int xm_give_up(const struct xm_map *map, u32 slot)
{
	struct xmem_slot_word *mine = xm_slot(map, slot);
	u64 word = xm_load(&mine->state);

	if (xm_state(word) != XMEM_SLOT_WRITING)
		return -EBUSY;
	xm_store(&mine->position, 0);	/* not in hand any more, when it is taken again */
	word = xm_word(xm_generation(word), xm_scan_number(word), XMEM_SLOT_FREE);
	xm_store_release(&mine->state, word);
	return 0;
}

/* ---- holds ---- */

#define XM_LINE_HOLDS	16	/* holds that are looked at together */

/* Two holds as one word; the holds of a group begin at a multiple of 8 bytes. */
typedef u64 __attribute__((may_alias)) xm_two_holds;

#define XM_TWO_COUNTS	((u64)XM_HOLD_COUNT << 32 | XM_HOLD_COUNT)

/* Does one of these XM_LINE_HOLDS holds count? Most clients hold nothing of most lines. */
static inline bool xm_line_held(const u32 *hold)
{
	const xm_two_holds *two = (const xm_two_holds *)hold;
	u64 any = 0;
	u32 i;

#ifdef __SANITIZE_THREAD__
	return true;	/* it knows what a load orders only if the load is as wide as the store */
#endif
	for (i = 0; i < XM_LINE_HOLDS / 2; i++)
		any |= xm_load_acquire(&two[i]);
	return any & XM_TWO_COUNTS;
}

/* Which of these holds of @client count, among those in the bitmap? */
static u64 xm_line_look(const u32 *hold, u64 among, u32 client, u8 *ret_holder)
{
	u64 held = 0;

	for (; among; among &= among - 1) {
		u32 i = __builtin_ctzll(among);

		if (!(xm_load_acquire(&hold[i]) & XM_HOLD_COUNT))
			continue;
		held |= 1ULL << i;
		if (ret_holder)
			ret_holder[i] = client;
	}
	return held;
}

/* The holds of one client in a group: only those lines are read that are asked for. */
static inline u64 xm_client_held(const struct xm_map *map, u32 client, u32 group, u64 among,
				 u8 *ret_holder)
{
	const u32 *hold = xm_hold(map, client, group * XMEM_GROUP_SLOTS);
	u64 held = 0;

	while (among) {
		u32 line = __builtin_ctzll(among) / XM_LINE_HOLDS * XM_LINE_HOLDS;
		u64 here = among & ((1ULL << XM_LINE_HOLDS) - 1) << line;

		if (__builtin_expect(xm_line_held(hold + line), 0))
			held |= xm_line_look(hold, here, client, ret_holder);
		among &= ~here;
	}
	return held;
}

u64 xm_group_held(const struct xm_map *map, u32 group, u64 among, u8 *ret_holder)
{
	u64 held = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		u64 counted = xm_load_acquire(&map->pool->counted[i]);

		for (; counted && held != among; counted &= counted - 1) {
			u32 c = i * 64 + __builtin_ctzll(counted);

			if (c < map->clients && map->area[c])
				held |= xm_client_held(map, c, group, among & ~held, ret_holder);
		}
	}
	return held;
}

/* ---- scan ---- */

/* Take an entry from those that may lose it: it becomes void and keeps its position. */
static void xm_void_entry(const struct xm_map *map, u32 publisher, u64 position)
{
	struct xmem_entry *entry = xm_entry(map, publisher, position - 1);

	if (xm_load(&entry->position) == position)
		xm_store(&entry->position, position | XMEM_ENTRY_VOID);
}

/* Mark the slots that may be had: LIVE -> SCANNING. word[n]: the new word of slot[n]. */
static u64 xm_scan_mark(const struct xm_map *map, const struct xm_scan_rules *how, const u32 *slot,
			u32 count, u64 *word)
{
	u64 marked = 0;
	u32 n;

	for (n = 0; n < count; n++) {
		struct xmem_slot_word *mine = xm_slot(map, slot[n]);
		u64 live = xm_load_acquire(&mine->state);

		if (xm_state(live) != XMEM_SLOT_LIVE ||
		    xm_in_flight(map, how->tail, how->evictable, xm_load(&mine->position)))
			continue;
		word[n] = xm_word(xm_generation(live), xm_scan_number(live) + 1,
				  XMEM_SLOT_SCANNING);
		/* Only its owner changes a LIVE word, so a store will do (not with get_mut). */
		xm_store(&mine->state, word[n]);
		marked |= 1ULL << n;
	}
	return marked;
}

/* Void the entries of those that subscribers might still receive. */
static void xm_scan_void(const struct xm_map *map, const struct xm_scan_rules *how,
			 const u32 *slot, u64 marked)
{
	for (; marked; marked &= marked - 1) {
		u64 position = xm_load(&xm_slot(map, slot[__builtin_ctzll(marked)])->position);

		if (xm_in_flight(map, how->tail, how->passed, position))
			xm_void_entry(map, how->owner, position);
	}
}

/* Which of the marked slots are held? They are looked at by groups, mostly one or two. */
static u64 xm_scan_holds(const struct xm_map *map, const u32 *slot, u32 count, u64 marked,
			 u8 *ret_holder)
{
	u64 held = 0;

	while (marked) {
		u32 group = slot[__builtin_ctzll(marked)] / XMEM_GROUP_SLOTS, n;
		u64 among = 0, found, here = 0;
		u8 holder[XMEM_GROUP_SLOTS];

		for (n = __builtin_ctzll(marked); n < count; n++) {
			if (!(marked >> n & 1) || slot[n] / XMEM_GROUP_SLOTS != group)
				continue;
			here |= 1ULL << n;
			among |= 1ULL << slot[n] % XMEM_GROUP_SLOTS;
		}
		marked &= ~here;
		found = xm_group_held(map, group, among, holder);
		for (; found && here; here &= here - 1) {
			n = __builtin_ctzll(here);
			if (!(found >> slot[n] % XMEM_GROUP_SLOTS & 1))
				continue;
			held |= 1ULL << n;
			if (ret_holder)
				ret_holder[n] = holder[slot[n] % XMEM_GROUP_SLOTS];
		}
	}
	return held;
}

u64 xm_scan(const struct xm_map *map, const struct xm_scan_rules *how, const u32 *slot, u32 count,
	    u8 *ret_holder)
{
	u64 word[64], marked, mine;

	/* I2: the caller has read the cursors; the holds come after. */
	XM_STEP(XM_STEP_SCAN_CURSORS);
	marked = xm_scan_mark(map, how, slot, count, word);
	if (!marked)
		return 0;
	XM_STEP(XM_STEP_SCAN_SCANNING);
	if (how->passed < how->evictable)
		xm_scan_void(map, how, slot, marked);
	/*
	 * SCANNING before the holds: pairs with get's full hold before its look (I1). Void
	 * before the holds: pairs with receive's full hold before its second look (I1).
	 */
	xm_full_barrier();
	XM_STEP(XM_STEP_SCAN_VOID);
	mine = marked & ~xm_scan_holds(map, slot, count, marked, ret_holder);
	XM_STEP(XM_STEP_SCAN_HOLDS);

	for (; marked; marked &= marked - 1) {
		u32 n = __builtin_ctzll(marked);
		struct xmem_slot_word *one = xm_slot(map, slot[n]);
		u64 bit = 1ULL << n;

		if (!(mine & bit)) {
			xm_cas_full(&one->state, word[n],
				    word[n] - XMEM_SLOT_SCANNING + XMEM_SLOT_LIVE);
			continue;
		}
		/* This fails only if the host resolved the slot for a holder. */
		if (xm_cas_full(&one->state, word[n],
				xm_word(xm_generation(word[n]) + 1, xm_scan_number(word[n]),
					XMEM_SLOT_WRITING)))
			xm_store(&one->position, 0);
		else
			mine &= ~bit;
	}
	return mine;
}
