// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The ring: how publications get into it (publish.h) and out of it (receive.h). The order of the
 * lines is the protocol, and the comment at each barrier says which other line it pairs with.
 */
#include "publish.h"
#include "receive.h"

/* ---- looks after a hold was taken (I1) ---- */

int xm_look(const struct xm_map *map, u64 token)
{
	u32 slot = xm_token_slot(token);
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	u64 first = xm_first_generation(xm_load(&xm_slot_row(map, slot)->generation_first));

	if (!xm_in_tenancy(xm_generation(token), first) ||
	    xm_generation(word) != xm_generation(token))
		return -ESTALE;
	if (xm_state(word) == XMEM_SLOT_LIVE)
		return 0;
	return xm_state(word) == XMEM_SLOT_SCANNING ? -EAGAIN : -ESTALE;
}

int xm_may_hold(const struct xm_map *map, u32 me, u64 token)
{
	u32 slot = xm_token_slot(token);
	const struct xmem_slot_row *row = xm_slot_row(map, slot);

	/* Check the tenancy first: in another tenancy the group may have had another owner. */
	if (!xm_in_tenancy(xm_generation(token),
			   xm_first_generation(xm_load_acquire(&row->generation_first))))
		return -ESTALE;
	if (!xm_holds_count(map, me, slot))
		return -EACCES;
	xm_full_barrier();
	return 0;
}

/* ---- publish ---- */

bool xm_publish(const struct xm_map *map, u32 me, u32 slot, struct xm_publication *what)
{
	struct xm_publisher_words words = xm_publisher_words(map, me);
	struct xm_own own = xm_own(map, slot);

	return xm_publish_at(map, &own, &words, xm_load(&words.ring->tail), what);
}

bool xm_forward(const struct xm_map *map, u32 me, const struct xm_publisher_words *words,
		u64 place, struct xm_publication *what, u64 addressee)
{
	u32 *hold = xm_hold(map, me, xm_token_slot(what->token));

	/* Before the entry: if this client ends after the entry, scans must look at its ring. */
	if (!(xm_load(hold) & XM_HOLD_FORWARDED))
		xm_add_full(hold, XM_HOLD_FORWARDED);
	XM_STEP(XM_STEP_FORWARD_NOTED);
	return xm_put_entry(map, words, place, what, XMEM_ENTRY_MARKED, addressee);
}

u64 xm_overwritten(const struct xm_map *map, const struct xm_publisher_words *words, u64 place)
{
	const struct xmem_entry *entry = xm_entry_at(map, words->entries, place);
	u64 position = xm_load(&entry->position);

	if (!(position & XMEM_ENTRY_MARKED) || position & XMEM_ENTRY_VOID)
		return 0;
	return xm_load(&entry->token);
}

/* ---- receive; the fast path is in receive.h ---- */

/*
 * A full operation before the look at the waiters word (I5): a publisher that sleeps must be woken
 * here, because this subscriber may drop no hold after this that would wake it.
 */
void xm_receive_move(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 place,
		     struct xm_pending *pending)
{
	const struct xmem_client_row *row = xm_client_row(map, follow->publisher);

	follow->place = place;
	xm_xchg_full(xm_cursor(map, me, follow->publisher), place);
	XM_STEP(XM_STEP_RECEIVE_CURSOR);
	if (pending->what == XM_NOTHING && xm_load(&row->slots_waiters) & XMEM_WAITERS_ARMED)
		*pending = (struct xm_pending){ XM_WAKE_OWNER, follow->publisher };
}

/* The ring has overtaken this subscriber: skip to the oldest entry that is left. */
int xm_receive_skip(const struct xm_map *map, u32 me, struct xm_follow *follow,
		    struct xm_pending *pending)
{
	u64 tail = xm_load_acquire(&xm_ring(map, follow->publisher)->tail);
	u64 place = follow->place + 1;

	if (!xm_followed_lives_on(map, follow))
		return -EPIPE;
	if (tail > map->ring_mask && tail - map->ring_mask > place)
		place = tail - map->ring_mask;
	follow->lost += place - follow->place;
	xm_receive_move(map, me, follow, place, pending);
	return -EBUSY;
}

bool xm_is_for_others(const struct xm_map *map, u32 me, u32 publisher, u64 place, u64 position)
{
	const struct xmem_entry *entry = xm_entry(map, publisher, place);
	u64 addressee;

	if ((position & ~XMEM_ENTRY_VOID) != ((place + 1) | XMEM_ENTRY_MARKED))
		return false;
	addressee = xm_load(&entry->addressee);
	xm_load_barrier();	/* pairs with publish's store barrier */
	return addressee && addressee != xm_load(&xm_client_row(map, me)->incarnation) &&
	       xm_load(&entry->position) == position;
}

/* The next publication is lost, or still to come, or the publisher has ended. */
int xm_receive_not_there(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 position,
			 struct xm_pending *pending)
{
	u32 state = xm_load_acquire(&xm_client_row(map, follow->publisher)->state);
	u64 tail;

	/*
	 * This test must be the first: if the incarnation has changed, the entry is another
	 * client's.
	 */
	if (state == XMEM_CLIENT_NONE || !xm_followed_lives_on(map, follow))
		return -EPIPE;
	if (xm_is_for_others(map, me, follow->publisher, follow->place, position)) {
		xm_receive_move(map, me, follow, follow->place + 1, pending);
		return -EBUSY;
	}
	if (xm_position(position) > follow->place)
		return xm_is_borne_out(map, follow->publisher, position) ?
			xm_receive_skip(map, me, follow, pending) : -EAGAIN;
	/*
	 * The fast path of polling: it does not read the line of the tail, which is written next.
	 */
	if (state == XMEM_CLIENT_ALIVE && xm_shows_lap_before(map, position, follow->place))
		return -EAGAIN;
	tail = xm_load_acquire(&xm_ring(map, follow->publisher)->tail);
	/*
	 * The entry may have been completed since the first look, and this process may
	 * still see the page as it was before a repair.
	 */
	position = xm_load_acquire(&xm_entry(map, follow->publisher, follow->place)->position);
	if (xm_position(position) > follow->place)
		return -EBUSY;
	/* The entry is being overwritten, perhaps for long: its publisher may be stopped there. */
	if (tail > follow->place && tail - follow->place > map->ring_mask)
		return xm_receive_skip(map, me, follow, pending);
	return state == XMEM_CLIENT_ZOMBIE && follow->place >= tail ? -EPIPE : -EAGAIN;
}

int xm_receive_unsure(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 token,
		      struct xm_pending *pending)
{
	const struct xmem_entry *entry = xm_entry(map, follow->publisher, follow->place);
	u32 slot = xm_token_slot(token);
	int err;

	if ((xm_load_acquire(&entry->position) & ~XMEM_ENTRY_MARKED) != follow->place + 1 ||
	    !xm_followed_lives_on(map, follow)) {
		*pending = xm_put(map, me, slot);
		return xm_followed_lives_on(map, follow) ? -EBUSY : -EPIPE;
	}
	/* The publication is lost if its publisher has not let its subscribers hold the slot. */
	if (__builtin_expect(!xm_is_counted(map, me), 0) && xm_may_hold(map, me, token))
		return -ESTALE;
	err = xm_look(map, token);
	return err == -EAGAIN ? -EINPROGRESS : err;
}

int xm_receive_marked(const struct xm_map *map, u32 me, const struct xm_followed_words *words,
		      struct xm_follow *follow, struct xm_publication *what,
		      struct xm_pending *pending)
{
	const struct xmem_entry *entry = xm_entry(map, follow->publisher, follow->place);
	u64 addressee, position = (follow->place + 1) | XMEM_ENTRY_MARKED;
	u32 slot;

	xm_copy_fields(what, entry);
	addressee = xm_load(&entry->addressee);
	xm_load_barrier();	/* as in xm_receive_try */
	if (xm_load(&entry->position) != position)
		return -EBUSY;
	XM_STEP(XM_STEP_RECEIVE_READ);
	slot = xm_token_slot(what->token);
	if (slot >= map->slots)
		return xm_receive_skip(map, me, follow, pending);
	if (!xm_followed_lives_on(map, follow))
		return -EPIPE;
	if (addressee && addressee != xm_load(&xm_client_row(map, me)->incarnation)) {
		xm_receive_move(map, me, follow, follow->place + 1, pending);
		return -ENOMSG;
	}
	if (xm_hold_add(&words->holds[slot]))
		return -EOVERFLOW;
	XM_STEP(XM_STEP_RECEIVE_HELD);
	return xm_receive_unsure(map, me, follow, what->token, pending);
}

int xm_receive(const struct xm_map *map, u32 me, struct xm_follow *follow,
	       struct xm_publication *what, struct xm_pending *pending)
{
	struct xm_followed_words words = xm_followed_words(map, me, follow->publisher);
	int err;

	*pending = (struct xm_pending){ XM_NOTHING, 0 };
	err = xm_receive_hold(map, me, &words, follow, what, pending);
	if (!err)
		xm_receive_pass(map, me, &words, follow, pending);
	if (err == -EINPROGRESS || err == -ESTALE)
		*pending = xm_put(map, me, xm_token_slot(what->token));
	if (err == -ESTALE)
		xm_receive_skip(map, me, follow, pending);
	if (err == -ENOMSG && pending->what == XM_NOTHING)
		*pending = xm_put_pending(map, xm_token_slot(what->token));
	return err == -EINPROGRESS || err == -ESTALE || err == -ENOMSG ? -EBUSY : err;
}
