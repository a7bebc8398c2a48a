/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How a publication gets into the ring. It is inline for the library, which knows where its own
 * words are; all others call xm_publish. The order of the lines is the protocol, and the comment at
 * each barrier says which other line it pairs with.
 */
#ifndef XM_PUBLISH_H
#define XM_PUBLISH_H

#include "protocol.h"

/* The addresses of a publisher's words. */
struct xm_publisher_words {
	struct xmem_ring *ring;
	char *entries;
	struct xmem_client_row *row;
};

static inline struct xm_publisher_words xm_publisher_words(const struct xm_map *map, u32 me)
{
	return (struct xm_publisher_words){
		.ring = xm_ring(map, me),
		.entries = (char *)xm_entry(map, me, 0),
		.row = xm_client_row(map, me),
	};
}

/*
 * Make the entry of @place, which is the tail, name what->token. @mark: 0, or XMEM_ENTRY_MARKED,
 * with which @addressee counts. Returns what xm_publish returns.
 */
static xm_inline bool xm_put_entry(const struct xm_map *map, const struct xm_publisher_words *words,
				   u64 place, struct xm_publication *what, u64 mark, u64 addressee)
{
	struct xmem_entry *entry = xm_entry_at(map, words->entries, place);

	what->sequence = place;
	/* A release, so that it comes after the store of the tail by the last publication. */
	xm_store_release(&entry->position, 0);
	XM_STEP(XM_STEP_PUBLISH_OPEN);
	xm_store_barrier();	/* open before the fields: pairs with receive's load barrier */
	xm_store(&entry->token, what->token);
	xm_store(&entry->sequence, place);
	xm_store(&entry->timestamp_ns, what->timestamp_ns);
	xm_store(&entry->offset, what->offset);
	xm_store(&entry->length, what->length);
	if (mark)
		xm_store(&entry->addressee, addressee);
	XM_STEP(XM_STEP_PUBLISH_FIELDS);
	/* A full operation, so that it comes before the look at the waiters word (I5). */
	xm_xchg_full(&entry->position, (place + 1) | mark);
	XM_STEP(XM_STEP_PUBLISH_ENTRY);
	xm_store_release(&words->ring->tail, place + 1);
	XM_STEP(XM_STEP_PUBLISH_TAIL);
	return xm_test(&words->row->ring_waiters, XMEM_WAITERS_ARMED);
}

/*
 * xm_publish for a caller that knows the addresses of the slot's and the publisher's words. @mark
 * and @addressee: as in xm_put_entry.
 */
static xm_inline bool xm_publish_as(const struct xm_map *map, const struct xm_own *own,
				    const struct xm_publisher_words *words, u64 place,
				    struct xm_publication *what, u64 mark, u64 addressee)
{
	struct xmem_slot_word *mine = own->word;
	u64 word = xm_load(&mine->state);

	what->token = (word & ~0xffffULL) | own->slot;
	xm_store(&mine->position, place + 1);
	XM_STEP(XM_STEP_PUBLISH_POSITION);
	xm_store_release(&mine->state, word - XMEM_SLOT_WRITING + XMEM_SLOT_LIVE);
	XM_STEP(XM_STEP_PUBLISH_LIVE);
	return xm_put_entry(map, words, place, what, mark, addressee);
}

/* xm_publish_as for all subscribers. */
static xm_inline bool xm_publish_at(const struct xm_map *map, const struct xm_own *own,
				    const struct xm_publisher_words *words, u64 place,
				    struct xm_publication *what)
{
	return xm_publish_as(map, own, words, place, what, 0, 0);
}

/*
 * Put what->token, which this client holds, into its own ring. The caller fills in the other fields
 * of *what except sequence. The hold may be dropped when this returns. @addressee: as in the entry.
 */
bool xm_forward(const struct xm_map *map, u32 me, const struct xm_publisher_words *words,
		u64 place, struct xm_publication *what, u64 addressee);

/*
 * The token in a marked entry that the publication at @place is going to overwrite; 0: there is
 * none. After that publication its slot may be free, so the caller then does what xm_put_pending
 * says (I5).
 */
u64 xm_overwritten(const struct xm_map *map, const struct xm_publisher_words *words, u64 place);

/*
 * Take back a publication of the caller's own slot (retract.c). Returns 0: nobody uses the slot,
 * and it is WRITING with the next generation. -ESTALE: the contents are gone. -EBUSY: a client uses
 * it; nothing has changed. After 0 and -EBUSY the caller wakes the ring's waiters, because entries
 * were open.
 */
int xm_retract(const struct xm_map *map, const struct xm_publisher_words *words,
	       const struct xm_own *own, u64 token);

/*
 * Take back the entries by which this client has forwarded @token. false: there are none. After
 * true the caller wakes the ring's waiters, and does xm_put_pending for the slot.
 */
bool xm_retract_forwarded(const struct xm_map *map, const struct xm_publisher_words *words,
			  u64 token);

#endif
