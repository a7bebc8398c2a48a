// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ring: how publications get out of it, and into it (publish.h). The order of the lines is
 * the protocol, and the comment at each barrier says which other line it pairs with.
 */
#include "publish.h"

/* ---- publish ---- */

bool xm_publish(const struct xm_map *map, u32 me, u32 slot, struct xm_publication *what)
{
	return xm_publish_at(map, xm_slot(map, slot), xm_ring(map, me), xm_client_row(map, me), me,
			     slot, what);
}

/* ---- receive ---- */

/*
 * Move the cursor, never back. @event: a sleeping publisher must be woken (*pending),
 * for no put of this subscriber follows that would wake it.
 */
static void xm_move_cursor(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 place,
			   bool event, struct xm_pending *pending)
{
	const struct xmem_client_row *row = xm_client_row(map, follow->publisher);
	u64 *cursor = xm_cursor(map, me, follow->publisher);

	follow->place = place;
	if (!event) {
		xm_store_release(cursor, place);	/* after the hold (I2) */
		return;
	}
	xm_xchg_full(cursor, place);	/* full: before the look at the waiters word (I5) */
	XM_STEP(XM_STEP_RECEIVE_CURSOR);
	if (pending->what == XM_NOTHING && xm_load(&row->slots_waiters) & XMEM_WAITERS_ARMED)
		*pending = (struct xm_pending){ XM_WAKE_OWNER, follow->publisher };
}

/* Is the ring still that of the followed incarnation? If not, the cursor there means nothing. */
static bool xm_followed_lives_on(const struct xm_map *map, const struct xm_follow *follow)
{
	return xm_load(&xm_client_row(map, follow->publisher)->incarnation) == follow->incarnation;
}

/* The ring has overtaken this subscriber: skip to the oldest entry that is left. */
static int xm_skip(const struct xm_map *map, u32 me, struct xm_follow *follow,
		   struct xm_pending *pending)
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

/*
 * @position is not that of the next publication: that one is lost, or the publisher has
 * ended, or the publication is still to come.
 */
static int xm_not_there(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 position,
			struct xm_pending *pending)
{
	u32 state = xm_load_acquire(&xm_client_row(map, follow->publisher)->state);
	u64 tail;

	/* This test is the first: with another incarnation the entry is another client's. */
	if (state == XMEM_CLIENT_NONE || !xm_followed_lives_on(map, follow))
		return -EPIPE;
	if ((position & ~XMEM_ENTRY_VOID) > follow->place)
		return xm_skip(map, me, follow, pending);
	tail = xm_load_acquire(&xm_ring(map, follow->publisher)->tail);
	/*
	 * The entry may have been completed since the first look, and this process may
	 * still see the page as it was before a repair.
	 */
	position = xm_load_acquire(&xm_entry(map, follow->publisher, follow->place)->position);
	if ((position & ~XMEM_ENTRY_VOID) > follow->place)
		return -EBUSY;
	/* It is being overwritten, perhaps for long: its publisher may be stopped there. */
	if (tail > follow->place && tail - follow->place > map->ring_mask)
		return xm_skip(map, me, follow, pending);
	return state == XMEM_CLIENT_ZOMBIE && follow->place >= tail ? -EPIPE : -EAGAIN;
}

/* Is the entry alone proof enough, so that the state word need not be read? */
static bool xm_entry_vouches(const struct xm_map *map, const struct xm_follow *follow, u32 slot)
{
	return xm_load_acquire(&xm_slot_row(map, slot)->owner) == follow->publisher &&
	       follow->place >= follow->joined;
}

int xm_receive(const struct xm_map *map, u32 me, struct xm_follow *follow,
	       struct xm_publication *what, struct xm_pending *pending)
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
	/* The fields before the second look: pairs with publish's store barrier. */
	xm_load_barrier();
	XM_STEP(XM_STEP_RECEIVE_READ);

	slot = xm_token_slot(what->token);
	if (__builtin_expect(slot >= map->slots, 0))
		return xm_skip(map, me, follow, pending);	/* a torn read, or garbage */
	err = xm_hold_more(map, me, slot);
	if (__builtin_expect(err, 0))
		return err;
	XM_STEP(XM_STEP_RECEIVE_HELD);
	/*
	 * The hold is a full operation, so it comes before these looks (I1). The owner is
	 * read first: if the slot is another tenant's already, then the incarnation, read
	 * after it, is another one too.
	 */
	vouches = xm_entry_vouches(map, follow, slot);
	if (__builtin_expect(xm_load_acquire(&entry->position) != place + 1 ||
			     !xm_followed_lives_on(map, follow), 0)) {
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
	u64 position;
	u64 tail;

	if (!map->area[publisher] || xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE ||
	    xm_load(&row->incarnation) != incarnation)
		return true;
	position = xm_load_acquire(&xm_entry(map, publisher, place)->position);
	if ((position & ~XMEM_ENTRY_VOID) > place)
		return true;
	tail = xm_load_acquire(&xm_ring(map, publisher)->tail);
	return tail > place && tail - place > map->ring_mask;	/* it is lost */
}
