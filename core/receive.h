/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Receiving in two steps, inline, for the library: take a hold on the next publication, then move
 * the cursor past it. Between the steps the caller may still refuse the publication by dropping the
 * hold; it is then the next publication, as before. xm_receive() does both steps. ring.c has the
 * slow paths.
 */
#ifndef XM_RECEIVE_H
#define XM_RECEIVE_H

#include "protocol.h"

/*
 * Can an entry of this publisher have this position yet? The tail follows each entry, so a position
 * further ahead is garbage and no publication.
 */
static inline bool xm_is_borne_out(const struct xm_map *map, u32 publisher, u64 position)
{
	u64 tail = xm_load_acquire(&xm_ring(map, publisher)->tail);

	return xm_position(position) - 1 <= tail;
}

/*
 * The entry of @place shows @position. Was its publication never meant for this client, or is it
 * retracted? Then the client loses nothing when it passes it.
 */
bool xm_is_for_others(const struct xm_map *map, u32 me, u32 publisher, u64 place, u64 position);
/* Called when the entry does not show the next publication. Returns what xm_receive returns. */
int xm_receive_not_there(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 position,
			 struct xm_pending *pending);
/* The next publication is lost: move to the oldest one that is left. */
int xm_receive_skip(const struct xm_map *map, u32 me, struct xm_follow *follow,
		    struct xm_pending *pending);
/*
 * Called with a hold, when the entry alone proves nothing or has changed. The hold stays after 0
 * and after two errors. -EINPROGRESS: the slot is being scanned. The caller looks again (xm_look);
 * if that does not help it asks the host to resolve the slot. -ESTALE, also from such a look: the
 * contents are gone. The caller drops the hold, then calls xm_receive_skip, and does what each
 * leaves pending.
 */
int xm_receive_unsure(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 token,
		      struct xm_pending *pending);
/* Move the cursor to @place: for a subscriber that is waited for, or past lost publications. */
void xm_receive_move(const struct xm_map *map, u32 me, struct xm_follow *follow, u64 place,
		     struct xm_pending *pending);

/* The addresses of the words of one subscription. */
struct xm_followed_words {
	char *entries;				/* of the publisher */
	const struct xmem_client_row *row;	/* of the publisher */
	u64 *cursor;				/* of the subscriber */
	u32 *holds;				/* of the subscriber */
};

static inline struct xm_followed_words xm_followed_words(const struct xm_map *map, u32 me,
							 u32 publisher)
{
	return (struct xm_followed_words){
		.entries = (char *)xm_entry(map, publisher, 0),
		.row = xm_client_row(map, publisher),
		.cursor = xm_cursor(map, me, publisher),
		.holds = xm_hold(map, me, 0),
	};
}

/*
 * Called when the next publication has a marked entry. The results are those of xm_receive_hold.
 * -ENOMSG: it was for another subscriber, and is passed. Then the caller does *pending, does
 * xm_put_pending for the slot of what->token, which may be free now, and tries again.
 */
int xm_receive_marked(const struct xm_map *map, u32 me, const struct xm_followed_words *words,
		      struct xm_follow *follow, struct xm_publication *what,
		      struct xm_pending *pending);

/*
 * Does the ring still belong to the followed incarnation? If not, the cursor there means nothing.
 */
static inline bool xm_followed_lives_on(const struct xm_map *map, const struct xm_follow *follow)
{
	return xm_load(&xm_client_row(map, follow->publisher)->incarnation) == follow->incarnation;
}

/* The result of a look at an entry. */
struct xm_tried {
	u64 position;			/* of the entry */
	u64 slot;			/* that it names; row only if that is held: */
	const struct xmem_slot_row *row;
};

/*
 * Copy the fields of an entry while its publisher may be changing them: the copy counts only if a
 * second look at the position proves it. The loads are plain, so that the compiler may use wide
 * ones.
 */
static xm_inline void xm_copy_fields(struct xm_publication *what, const struct xmem_entry *entry)
{
#if defined(__x86_64__) && !defined(__KERNEL__) && !defined(__SANITIZE_THREAD__)
	__builtin_memcpy(what, &entry->token, sizeof(*what));	/* both structs have these fields
								 * in this order */
#else
	what->token = xm_load(&entry->token);
	what->sequence = xm_load(&entry->sequence);
	what->timestamp_ns = xm_load(&entry->timestamp_ns);
	what->offset = xm_load(&entry->offset);
	what->length = xm_load(&entry->length);
#endif
}

/*
 * Try to hold the next publication. @words: those of this subscription. Returns 0: it is held, and
 * *what and *ret are filled in. -EAGAIN: the position in the entry is not that of the next
 * publication. -ERANGE: the entry names no slot. -EBUSY: a hold is taken, and another look has to
 * decide whether it is good. -EOVERFLOW: no hold is left. The cursor does not move.
 */
static xm_inline int xm_receive_try(const struct xm_map *map, const struct xm_followed_words *words,
				 const struct xm_follow *follow, struct xm_publication *what,
				 struct xm_tried *ret)
{
	u64 place = follow->place, position, slot;
	const struct xmem_entry *entry = xm_entry_at(map, words->entries, place);
	const struct xmem_slot_row *row;

	ret->position = position = xm_load_acquire(&entry->position);
	if (__builtin_expect(position != place + 1, 0))
		return -EAGAIN;
	xm_copy_fields(what, entry);
	/* The fields before the second look: pairs with publish's store barrier. */
	xm_load_barrier();
	XM_STEP(XM_STEP_RECEIVE_READ);

	ret->slot = slot = xm_token_slot(what->token);
	if (__builtin_expect(slot >= map->slots, 0))	/* a torn read, or garbage */
		return -ERANGE;
	if (__builtin_expect(xm_hold_add(&words->holds[slot]), 0))
		return -EOVERFLOW;
	XM_STEP(XM_STEP_RECEIVE_HELD);
	/*
	 * The hold is a full operation, so it comes before these looks (I1). The owner is read
	 * first: if the slot already belongs to another tenant, the incarnation, which is read
	 * after it, has changed, too. A slot that the publisher owns needs no look at its state
	 * word, because the cursor was at or before the entry (I3).
	 */
	ret->row = row = xm_slot_row(map, slot);
	if (__builtin_expect(!xm_is_acquire(&row->owner, follow->publisher), 0) ||
	    __builtin_expect(!xm_is_acquire(&entry->position, position), 0) ||
	    __builtin_expect(xm_load(&words->row->incarnation) != follow->incarnation, 0))
		return -EBUSY;
	XM_STEP(XM_STEP_RECEIVE_VALID);
	return 0;
}

/*
 * Does the position in an entry alone prove that the next publication is still to come? This is the
 * common answer for a client that polls.
 */
static inline bool xm_receive_is_early(const struct xm_map *map,
				       const struct xm_followed_words *words,
				       const struct xm_follow *follow, u64 position)
{
	return xm_shows_lap_before(map, position, follow->place) &&
	       xm_load_acquire(&words->row->state) == XMEM_CLIENT_ALIVE &&
	       xm_load(&words->row->incarnation) == follow->incarnation;
}

/*
 * Hold the next publication. The results are those of xm_receive, -EINPROGRESS and -ESTALE those of
 * xm_receive_unsure, and -ENOMSG that of xm_receive_marked. The caller has set *pending to nothing.
 * The hold stays, and the cursor does not move, except after -ENOMSG.
 */
static inline int xm_receive_hold(const struct xm_map *map, u32 me,
				  const struct xm_followed_words *words, struct xm_follow *follow,
				  struct xm_publication *what, struct xm_pending *pending)
{
	struct xm_tried tried;
	int err = xm_receive_try(map, words, follow, what, &tried);

	if (err == -EAGAIN && tried.position == ((follow->place + 1) | XMEM_ENTRY_MARKED))
		return xm_receive_marked(map, me, words, follow, what, pending);
	if (err == -EAGAIN)
		return xm_receive_not_there(map, me, follow, tried.position, pending);
	if (err == -ERANGE)
		return xm_receive_skip(map, me, follow, pending);
	return err == -EBUSY ? xm_receive_unsure(map, me, follow, what->token, pending) : err;
}

/* xm_receive_pass for a subscriber that is not waited for. @place: the next place. */
static inline void xm_receive_pass_at_once(const struct xm_followed_words *words,
					   struct xm_follow *follow, u64 place)
{
	follow->place = place;
	/* After the hold (I2). */
	xm_store_release(words->cursor, place);
}

/* The caller has accepted the publication: move the cursor past it. */
static inline void xm_receive_pass(const struct xm_map *map, u32 me,
				   const struct xm_followed_words *words, struct xm_follow *follow,
				   struct xm_pending *pending)
{
	if (__builtin_expect(follow->waits, 0))
		xm_receive_move(map, me, follow, follow->place + 1, pending);
	else
		xm_receive_pass_at_once(words, follow, follow->place + 1);
}

/* Is there something to receive at @place, or has the publisher ended? poll and wait ask this. */
static inline bool xm_ready(const struct xm_map *map, u32 publisher, u64 incarnation,
			    u64 place)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);
	u64 position;
	u64 tail;

	if (!map->area[publisher] || xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE ||
	    xm_load(&row->incarnation) != incarnation)
		return true;
	position = xm_load_acquire(&xm_entry(map, publisher, place)->position);
	if (xm_position(position) > place)
		return xm_position(position) == place + 1 ||
		       xm_is_borne_out(map, publisher, position);
	if (xm_shows_lap_before(map, position, place))
		return false;
	tail = xm_load_acquire(&xm_ring(map, publisher)->tail);
	return tail > place && tail - place > map->ring_mask;	/* the publication is lost */
}

#endif
