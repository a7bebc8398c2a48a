/* SPDX-License-Identifier: MIT */
/* Taking the next publication of a subscription: next.c. */
#ifndef XMEM_FOLLOW_NEXT_H
#define XMEM_FOLLOW_NEXT_H

#include "lib/base/handle.h"
#include "lib/follow/subscription.h"

#define XL_NEWCOMERS	2	/* writers have come, or no ring is left */
#define XL_UNMAPPED	3	/* subscription->unmapped has to be mapped first */

/* Check the bounds in the entry, because its publisher can write anything there. */
static inline bool xl_within_slot(const struct xmem_slot_row *row,
				  const struct xm_publication *what)
{
	u64 left;

	return likely(!__builtin_sub_overflow(row->length, what->offset, &left) &&
		      what->length <= left);
}

/*
 * Fill the handle of a received publication. @buffer->what is set already, and no other thread has
 * the handle yet.
 */
static XL_INLINE void xl_fill_received(struct xmem_subscription *subscription, struct xl_ring *ring,
				    u32 slot, struct xmem_buffer *buffer)
{
	u64 origin = ring->origin;

	buffer->slot = slot;
	buffer->origin = origin;
	subscription->origin = origin;
	subscription->ring = ring->next;
	xl_handle_use(buffer, XL_READING);
}

/* Have writers come that the host can be asked to follow now? */
bool xl_may_follow(struct xmem_subscription *subscription);

/*
 * Look at each ring once, beginning with the ring whose turn it is. Under the subscription's lock,
 * which is not left. 0: *ret is held. -EAGAIN: no publication. -EBUSY: a ring keeps moving. -EPIPE:
 * all rings have ended. -EOVERFLOW: too many handles of one buffer. XL_NEWCOMERS, XL_UNMAPPED: ask
 * the host. XL_NOTED: another error, noted.
 */
int xl_take_next(struct xmem_subscription *subscription, struct xmem_buffer **ret);

/*
 * Ask the host for the step that xl_take_next needs (@what: XL_NEWCOMERS or XL_UNMAPPED). The lock
 * is left and taken again. 0: look again. -ECANCELED: the subscription has been dropped meanwhile.
 * -EPIPE: no ring is left; -EAGAIN: none now. XL_NOTED, or an error of the host.
 */
int xl_request_for_next(struct xmem_subscription *subscription, int what, u64 deadline);

/*
 * Note the error, unless it is noted already. A client that has been ended reads zeros, which look
 * like the end of its publishers: then the error is that of the client itself.
 */
void xl_fail_receive(struct xmem_pool *pool, int err, enum xl_dropped dropped);

#endif
