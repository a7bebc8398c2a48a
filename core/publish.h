/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * How a publication gets into the ring. It is inline for the library, which knows where its
 * own words are; xm_publish is the same for all others. The order of the lines is the
 * protocol, and the comment at each barrier says which other line it pairs with.
 */
#ifndef XM_PUBLISH_H
#define XM_PUBLISH_H

#include "protocol.h"

/* xm_publish, with the places of @slot's word, and of the ring and the row of @me. */
static inline bool xm_publish_at(const struct xm_map *map, struct xmem_slot_word *mine,
				 struct xmem_ring *ring, const struct xmem_client_row *row, u32 me,
				 u32 slot, struct xm_publication *what)
{
	u64 word = xm_load(&mine->state), place = xm_load(&ring->tail);
	u64 token = (word & ~0xffffULL) | slot;
	struct xmem_entry *entry = xm_entry(map, me, place);

	what->token = token;
	what->sequence = place;
	xm_store(&mine->position, place + 1);
	XM_STEP(XM_STEP_PUBLISH_POSITION);
	xm_store_release(&mine->state, word - XMEM_SLOT_WRITING + XMEM_SLOT_LIVE);
	XM_STEP(XM_STEP_PUBLISH_LIVE);

	/* A release, so that it follows the tail of the publication before. */
	xm_store_release(&entry->position, 0);
	XM_STEP(XM_STEP_PUBLISH_OPEN);
	xm_store_barrier();	/* open before the fields: pairs with receive's load barrier */
	xm_store(&entry->token, token);
	xm_store(&entry->sequence, place);
	xm_store(&entry->timestamp_ns, what->timestamp_ns);
	xm_store(&entry->offset, what->offset);
	xm_store(&entry->length, what->length);
	XM_STEP(XM_STEP_PUBLISH_FIELDS);
	/* A full operation, so that it precedes the look at the waiters word (I5). */
	xm_xchg_full(&entry->position, place + 1);
	XM_STEP(XM_STEP_PUBLISH_ENTRY);
	xm_store_release(&ring->tail, place + 1);
	XM_STEP(XM_STEP_PUBLISH_TAIL);
	return xm_load(&row->ring_waiters) & XMEM_WAITERS_ARMED;
}

#endif
