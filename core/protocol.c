// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The data plane's longer steps: the owner's scan, publish, receive.
 * Pure, see protocol.h; the order of the lines is the protocol, and each
 * barrier says which other line it pairs with.
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

/* What a scan knows of the ring its slots were published in. */
struct xm_flight {
	u64 tail;
	u64 depth;
	u64 waiting;		/* least cursor that must be respected */
	u64 any;		/* least cursor of all subscribers */
};

static void xm_least_cursors(const struct xm_map *map, u32 publisher, const u64 *demoted, struct xm_flight *flight)
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

	xm_full_barrier();	/* against subscribe: bit, F, cursor = tail */
	xm_least_cursors(map, owner, demoted, &flight);
	return flight.waiting < tail ? flight.waiting : tail;
}

/* May a subscriber still receive the publication whose place + 1 is @position (I3)? */
static bool xm_in_flight(const struct xm_map *map, const struct xm_flight *flight, u64 position, bool evict)
{
	u64 place = position - 1;

	if (!position || place >= flight->tail)
		return false;		/* never published, or its owner died before the entry */
	if (place + map->ring_mask + 1 < flight->tail)
		return false;		/* overwritten: publication place + D is complete */
	if (place >= flight->waiting)
		return true;
	return place >= flight->any && (!evict || place + flight->depth >= flight->tail);
}

/* Take an entry back from those that may lose it: it keeps its position, void. */
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
				if (among >> n & 1 && xm_load_acquire(&hold[slot[n]]) & XM_HOLD_COUNT)
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

		word[n] = xm_word(xm_generation(live), xm_scan_number(live) + 1, XMEM_SLOT_SCANNING);
		if (xm_state(live) != XMEM_SLOT_LIVE)
			continue;
		/* A LIVE word is its owner's alone to change, so a store will do (with get_mut it will not). */
		xm_store(state, word[n]);
		marked |= 1ULL << n;
	}
	if (!marked)
		return 0;
	xm_full_barrier();	/* SCANNING before the looks: pairs with get's hold before its look (I1) */
	XM_STEP(XM_STEP_SCAN_SCANNING);

	/* I2: first cursors, then holds. (Each of the two reads the client table first.) */
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
	if (voided)
		xm_full_barrier();	/* void before the holds: pairs with receive's hold before its second look (I1) */
	XM_STEP(XM_STEP_SCAN_VOID);
	mine &= ~xm_held(map, slot, count, mine);
	XM_STEP(XM_STEP_SCAN_HOLDS);

	for (n = 0; n < count; n++) {
		u64 *state = &xm_slot(map, slot[n])->state;

		if (!(marked >> n & 1))
			continue;
		if (mine >> n & 1) {
			/* It fails only where the host resolved it for a holder: then it is not mine. */
			if (!xm_cas_full(state, word[n], xm_word(xm_generation(word[n]) + 1,
								 xm_scan_number(word[n]), XMEM_SLOT_WRITING)))
				mine &= ~(1ULL << n);
		} else {
			xm_cas_full(state, word[n], word[n] - XMEM_SLOT_SCANNING + XMEM_SLOT_LIVE);
		}
	}
	return mine;
}

/* ---- publish ---- */

bool xm_publish(const struct xm_map *map, u32 me, u32 slot, struct xm_publication *what)
{
	struct xmem_slot_word *mine = xm_slot(map, slot);
	struct xmem_ring *ring = xm_ring(map, me);
	u64 word = xm_load(&mine->state);
	u64 place = xm_load(&ring->tail);
	struct xmem_entry *entry = xm_entry(map, me, place);

	what->token = xm_token(xm_generation(word), slot);
	what->sequence = place;
	xm_store(&mine->position, place + 1);
	XM_STEP(XM_STEP_PUBLISH_POSITION);
	xm_store_release(&mine->state, xm_word(xm_generation(word), xm_scan_number(word), XMEM_SLOT_LIVE));
	XM_STEP(XM_STEP_PUBLISH_LIVE);

	xm_store_release(&entry->position, 0);	/* release: after the tail of the publication before */
	XM_STEP(XM_STEP_PUBLISH_OPEN);
	xm_store_barrier();			/* open before the fields: pairs with receive's load barrier */
	xm_store(&entry->token, what->token);
	xm_store(&entry->sequence, what->sequence);
	xm_store(&entry->timestamp_ns, what->timestamp_ns);
	xm_store(&entry->offset, what->offset);
	xm_store(&entry->length, what->length);
	XM_STEP(XM_STEP_PUBLISH_FIELDS);
	xm_xchg_full(&entry->position, place + 1);	/* full: before the look at the waiters (I5) */
	XM_STEP(XM_STEP_PUBLISH_ENTRY);
	xm_store_release(&ring->tail, place + 1);
	XM_STEP(XM_STEP_PUBLISH_TAIL);
	return xm_load(&xm_client_row(map, me)->ring_waiters) & XMEM_WAITERS_ARMED;
}

/* ---- receive ---- */

/* Move my cursor, never back. @event: a sleeping publisher is owed a wake, for no put of mine will follow. */
static void xm_move_cursor(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 place, bool event,
			   struct xm_pending *pending)
{
	u64 *cursor = xm_cursor(map, me, follow->publisher);

	follow->place = place;
	if (!event) {
		xm_store_release(cursor, place);	/* after the hold (I2) */
		return;
	}
	xm_xchg_full(cursor, place);			/* full: before the look at the waiters (I5) */
	XM_STEP(XM_STEP_RECEIVE_CURSOR);
	if (pending->what == XM_NOTHING && xm_load(&xm_client_row(map, follow->publisher)->slots_waiters) & XMEM_WAITERS_ARMED)
		*pending = (struct xm_pending){ XM_WAKE_OWNER, follow->publisher };
}

/* Is it still the ring of whom we followed? Else neither it nor our cursor there is ours. */
static bool xm_followed_lives_on(const struct xm_map *map, const struct xm_follow *follow)
{
	return xm_load(&xm_client_row(map, follow->publisher)->incarnation) == follow->incarnation;
}

/* The ring has gone on without me: to the oldest that is left. */
static int xm_skip(const struct xm_map *map, u32 me, struct xm_follow *follow, struct xm_pending *pending)
{
	u64 tail = xm_load_acquire(&xm_ring(map, follow->publisher)->tail);
	u64 place = follow->place + 1;

	if (!xm_followed_lives_on(map, follow))
		return -EPIPE;
	if (tail > map->ring_mask && tail - map->ring_mask > place)
		place = tail - map->ring_mask;
	follow->lost += place - follow->place;
	xm_move_cursor(map, me, follow, place, true, pending);
	return -EBUSY;
}

/* @position is not my next publication's: have I lost that, is this the end, or is it still to come? */
static int xm_not_there(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 position, struct xm_pending *pending)
{
	u32 state = xm_load_acquire(&xm_client_row(map, follow->publisher)->state);
	u64 tail;

	/* First of all: with another incarnation the entry is another's. */
	if (state == XMEM_CLIENT_NONE || !xm_followed_lives_on(map, follow))
		return -EPIPE;
	if ((position & ~XMEM_ENTRY_VOID) > follow->place)
		return xm_skip(map, me, follow, pending);
	tail = xm_load_acquire(&xm_ring(map, follow->publisher)->tail);
	/* It may have been completed since I looked, and I may still see the page of before a repair. */
	position = xm_load_acquire(&xm_entry(map, follow->publisher, follow->place)->position);
	if ((position & ~XMEM_ENTRY_VOID) > follow->place)
		return -EBUSY;
	/* It is being overwritten, perhaps for long: its publisher may have been stopped there. */
	if (tail > follow->place && tail - follow->place > map->ring_mask)
		return xm_skip(map, me, follow, pending);
	return state == XMEM_CLIENT_ZOMBIE && follow->place >= tail ? -EPIPE : -EAGAIN;
}

/* May the entry alone be trusted, or must the state word be asked too? */
static bool xm_entry_vouches(const struct xm_map *map, const struct xm_follow *follow, u32 slot)
{
	return xm_load_acquire(&xm_slot_row(map, slot)->owner) == follow->publisher && follow->place >= follow->joined;
}

int xm_receive(const struct xm_map *map, u32 me, struct xm_follow *follow, struct xm_publication *what,
	       struct xm_pending *pending)
{
	struct xmem_entry *entry = xm_entry(map, follow->publisher, follow->place);
	u64 position = xm_load_acquire(&entry->position);
	u64 place = follow->place;
	bool vouches;
	u32 slot;
	int err;

	*pending = (struct xm_pending){ XM_NOTHING, 0 };
	if (__builtin_expect(position != place + 1, 0))
		return xm_not_there(map, me, follow, position, pending);
	what->token = xm_load(&entry->token);
	what->sequence = xm_load(&entry->sequence);
	what->timestamp_ns = xm_load(&entry->timestamp_ns);
	what->offset = xm_load(&entry->offset);
	what->length = xm_load(&entry->length);
	xm_load_barrier();		/* fields before the second look: pairs with publish's store barrier */
	XM_STEP(XM_STEP_RECEIVE_READ);

	slot = xm_token_slot(what->token);
	if (__builtin_expect(slot >= map->slots, 0))
		return xm_skip(map, me, follow, pending);	/* torn or garbage */
	err = xm_hold_more(map, me, slot);
	if (__builtin_expect(err, 0))
		return err;
	XM_STEP(XM_STEP_RECEIVE_HELD);
	/*
	 * The hold is full: it is before these looks (I1). The owner first: if it is
	 * another tenant's already, then so is the incarnation that we see after it.
	 */
	vouches = xm_entry_vouches(map, follow, slot);
	if (__builtin_expect(xm_load_acquire(&entry->position) != place + 1 || !xm_followed_lives_on(map, follow), 0)) {
		*pending = xm_put(map, me, slot);
		return xm_followed_lives_on(map, follow) ? -EBUSY : -EPIPE;
	}
	if (__builtin_expect(!vouches, 0)) {
		err = xm_look(map, what->token);
		if (err) {
			*pending = xm_put(map, me, slot);
			if (err == -ESTALE)
				xm_skip(map, me, follow, pending);
			return -EBUSY;
		}
	}
	XM_STEP(XM_STEP_RECEIVE_VALID);
	xm_move_cursor(map, me, follow, place + 1, follow->waits, pending);
	return 0;
}

bool xm_ready(const struct xm_map *map, u32 publisher, u64 incarnation, u64 place)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);
	u64 tail;

	if (!map->area[publisher] || xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE ||
	    xm_load(&row->incarnation) != incarnation)
		return true;
	if ((xm_load_acquire(&xm_entry(map, publisher, place)->position) & ~XMEM_ENTRY_VOID) > place)
		return true;
	tail = xm_load_acquire(&xm_ring(map, publisher)->tail);
	return tail > place && tail - place > map->ring_mask;	/* lost */
}
