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
	u64 *state = &xm_slot(map, slot)->state;
	u64 word = xm_load(state);

	if (xm_state(word) != XMEM_SLOT_WRITING)
		return -EBUSY;
	xm_store_release(state, xm_word(xm_generation(word), xm_scan_number(word), XMEM_SLOT_FREE));
	return 0;
}

/* ---- scan ---- */

/* What a scan knows of the ring in which its slots were published. */
struct xm_flight {
	u64 tail;
	u64 depth;
	u64 waiting;		/* least cursor of the subscribers that must be waited for */
	u64 any;		/* least cursor of all subscribers */
};

static void xm_least_cursors(const struct xm_map *map, u32 publisher, const u64 *demoted,
			     struct xm_flight *flight)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);
	u32 i;

	flight->waiting = flight->any = XMEM_CURSOR_NONE;
	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		u64 all = xm_load_acquire(&row->subscribers[i]);
		u64 waits = xm_load_acquire(&row->waits[i]) & ~(demoted ? demoted[i] : 0);

		for (; all; all &= all - 1) {
			u32 c = i * 64 + __builtin_ctzll(all);
			u64 cursor;

			if (c >= map->clients || !map->area[c])
				continue;
			cursor = xm_load_acquire(xm_cursor(map, c, publisher));
			if (cursor < flight->any)
				flight->any = cursor;
			if (waits >> c % 64 & 1 && cursor < flight->waiting)
				flight->waiting = cursor;
		}
	}
}

u64 xm_least_waiting(const struct xm_map *map, u32 owner, const u64 *demoted)
{
	struct xm_flight flight;
	u64 tail = xm_load(&xm_ring(map, owner)->tail);

	xm_full_barrier();	/* pairs with subscribe: bit, full barrier, cursor = tail */
	xm_least_cursors(map, owner, demoted, &flight);
	return flight.waiting < tail ? flight.waiting : tail;
}

/* May a subscriber still receive the publication whose place + 1 is @position (I3)? */
static bool xm_in_flight(const struct xm_map *map, const struct xm_flight *flight, u64 position,
			 bool evict)
{
	u64 place = position - 1;

	if (!position || place >= flight->tail)
		return false;	/* never published, or the owner ended before the entry */
	if (place + map->ring_mask + 1 < flight->tail)
		return false;	/* overwritten: the one a whole ring later is complete */
	if (place >= flight->waiting)
		return true;
	return place >= flight->any && (!evict || place + flight->depth >= flight->tail);
}

/* Take an entry from those that may lose it: it becomes void and keeps its position. */
static void xm_void_entry(const struct xm_map *map, u32 publisher, u64 position)
{
	struct xmem_entry *entry = xm_entry(map, publisher, position - 1);

	if (position && xm_load(&entry->position) == position)
		xm_store(&entry->position, position | XMEM_ENTRY_VOID);
}

static u64 xm_held(const struct xm_map *map, const u32 *slot, u32 count, u64 among)
{
	u64 held = 0;
	u32 i, c, n;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		u64 counted = xm_load_acquire(&map->pool->counted[i]);

		for (; counted; counted &= counted - 1) {
			const u32 *hold;

			c = i * 64 + __builtin_ctzll(counted);
			if (c >= map->clients || !map->area[c])
				continue;
			hold = xm_hold(map, c, 0);
			for (n = 0; n < count; n++)
				if (among >> n & 1 &&
				    xm_load_acquire(&hold[slot[n]]) & XM_HOLD_COUNT)
					held |= 1ULL << n;
		}
	}
	return held;
}

u64 xm_scan(const struct xm_map *map, const struct xm_scan_rules *how, const u32 *slot, u32 count)
{
	struct xm_flight flight = { .depth = how->depth };
	u64 word[64], marked = 0, mine, voided = 0;
	u32 n;

	for (n = 0; n < count; n++) {
		u64 *state = &xm_slot(map, slot[n])->state;
		u64 live = xm_load_acquire(state);

		word[n] = xm_word(xm_generation(live), xm_scan_number(live) + 1,
				  XMEM_SLOT_SCANNING);
		if (xm_state(live) != XMEM_SLOT_LIVE)
			continue;
		/* Only its owner changes a LIVE word, so a store will do (not with get_mut). */
		xm_store(state, word[n]);
		marked |= 1ULL << n;
	}
	if (!marked)
		return 0;
	/* SCANNING before the looks: pairs with get's full hold before its look (I1). */
	xm_full_barrier();
	XM_STEP(XM_STEP_SCAN_SCANNING);

	/* I2: the cursors first, then the holds. Each of the two reads the client table first. */
	flight.waiting = flight.any = XMEM_CURSOR_NONE;
	if (how->owner < map->clients && map->area[how->owner]) {
		flight.tail = xm_load(&xm_ring(map, how->owner)->tail);
		xm_least_cursors(map, how->owner, how->demoted, &flight);
	}
	XM_STEP(XM_STEP_SCAN_CURSORS);
	mine = marked;
	for (n = 0; n < count; n++) {
		u64 position = xm_load(&xm_slot(map, slot[n])->position);

		if (!(marked >> n & 1))
			continue;
		if (xm_in_flight(map, &flight, position, how->evict)) {
			mine &= ~(1ULL << n);
		} else if (xm_in_flight(map, &flight, position, false)) {
			xm_void_entry(map, how->owner, position);
			voided |= 1ULL << n;
		}
	}
	/* Void before the holds: pairs with receive's full hold before its second look (I1). */
	if (voided)
		xm_full_barrier();
	XM_STEP(XM_STEP_SCAN_VOID);
	mine &= ~xm_held(map, slot, count, mine);
	XM_STEP(XM_STEP_SCAN_HOLDS);

	for (n = 0; n < count; n++) {
		u64 *state = &xm_slot(map, slot[n])->state;

		if (!(marked >> n & 1))
			continue;
		if (mine >> n & 1) {
			u64 taken = xm_word(xm_generation(word[n]) + 1, xm_scan_number(word[n]),
					    XMEM_SLOT_WRITING);

			/* This fails only if the host resolved the slot for a holder. */
			if (!xm_cas_full(state, word[n], taken))
				mine &= ~(1ULL << n);
		} else {
			xm_cas_full(state, word[n], word[n] - XMEM_SLOT_SCANNING + XMEM_SLOT_LIVE);
		}
	}
	return mine;
}
