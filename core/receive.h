/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Receiving in two steps, inline, for the library: take a hold on the next publication, then
 * move the cursor past it. Between the two the caller may still refuse it, by putting the hold;
 * then it is the next publication as before. xm_receive() does both. What is rare is in ring.c.
 */
#ifndef XM_RECEIVE_H
#define XM_RECEIVE_H

#include "protocol.h"

/* The entry is not that of the next publication. Returns what xm_receive returns. */
int xm_receive_not_there(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 position,
			 struct xm_pending *pending);
/* The next publication is lost: go to the oldest that is left. */
int xm_receive_skip(const struct xm_map *map, u32 me, struct xm_follow *follow,
		    struct xm_pending *pending);
/* The entry alone proves nothing, or has changed. The hold stays after 0 alone. */
int xm_receive_unsure(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 token,
		      struct xm_pending *pending);
/* Move the cursor to @place for a subscriber that is waited for, or past what is lost. */
void xm_receive_move(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 place,
		     struct xm_pending *pending);

/* Is the ring still that of the followed incarnation? If not, the cursor there means nothing. */
static inline bool xm_followed_lives_on(const struct xm_map *map, const struct xm_follow *follow)
{
	return xm_load(&xm_client_row(map, follow->publisher)->incarnation) == follow->incarnation;
}

/* Is the entry alone proof enough, so that the state word need not be read? */
static inline bool xm_entry_vouches(const struct xm_map *map, const struct xm_follow *follow,
				    u32 slot)
{
	return xm_load_acquire(&xm_slot_row(map, slot)->owner) == follow->publisher &&
	       follow->place >= follow->joined;
}

/*
 * Hold the next publication. Results and *pending, which the caller has set to nothing, are
 * those of xm_receive; after 0 the cursor stands where it stood.
 */
static inline int xm_receive_hold(const struct xm_map *map, u32 me, struct xm_follow *follow,
				  struct xm_publication *what, struct xm_pending *pending)
{
	struct xmem_entry *entry = xm_entry(map, follow->publisher, follow->place);
	u64 position = xm_load_acquire(&entry->position);
	bool vouches;
	u32 slot;

	if (__builtin_expect(position != follow->place + 1, 0))
		return xm_receive_not_there(map, me, follow, position, pending);
	what->token = xm_load(&entry->token);
	what->sequence = xm_load(&entry->sequence);
	what->timestamp_ns = xm_load(&entry->timestamp_ns);
	what->offset = xm_load(&entry->offset);
	what->length = xm_load(&entry->length);
	/* The fields before the second look: pairs with publish's store barrier. */
	xm_load_barrier();
	XM_STEP(XM_STEP_RECEIVE_READ);

	slot = xm_token_slot(what->token);
	if (__builtin_expect(slot >= map->slots, 0))	/* a torn read, or garbage */
		return xm_receive_skip(map, me, follow, pending);
	if (__builtin_expect(xm_hold_more(map, me, slot), 0))
		return -EOVERFLOW;
	XM_STEP(XM_STEP_RECEIVE_HELD);
	/*
	 * The hold is a full operation, so it comes before these looks (I1). The owner is
	 * read first: if the slot is another tenant's already, then the incarnation, read
	 * after it, is another one too.
	 */
	vouches = xm_entry_vouches(map, follow, slot);
	if (__builtin_expect(!vouches || xm_load_acquire(&entry->position) != position ||
			     !xm_followed_lives_on(map, follow), 0))
		return xm_receive_unsure(map, me, follow, what->token, pending);
	XM_STEP(XM_STEP_RECEIVE_VALID);
	return 0;
}

/* The publication is the caller's: move the cursor past it. */
static inline void xm_receive_pass(const struct xm_map *map, u32 me, struct xm_follow *follow,
				   struct xm_pending *pending)
{
	u64 place = follow->place + 1;

	if (__builtin_expect(follow->waits, 0)) {
		xm_receive_move(map, me, follow, place, pending);
		return;
	}
	follow->place = place;
	/* After the hold (I2). */
	xm_store_release(xm_cursor(map, me, follow->publisher), place);
}

#endif
