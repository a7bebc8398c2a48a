/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of history, of what writers keep, and of depth. */
#ifndef PAST_H
#define PAST_H

#include "polling.h"

#define BYTES	4096

static inline struct xmem_subscription *follow_some(struct xmem_pool *pool, int publisher,
						    uint32_t history, uint32_t depth)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_PUBLISHER, .publisher = publisher,
		.history = history, .depth = depth,
	};
	struct xmem_subscription *s = xmem_subscribe(pool, &o);

	CHECK(s);
	return s;
}

static inline struct xmem_subscription *follow_past(struct xmem_pool *pool, int publisher,
						    uint32_t history)
{
	return follow_some(pool, publisher, history, 0);
}

/* The next publication has this stamp, which is also its number. */
static inline void receive_stamp(struct xmem_subscription *s, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_receive(s, 0);

	CHECK(b);
	SAME(stamp_of(b), stamp);
	SAME(info_of(b).sequence, stamp);
	xmem_release(b);
}

static inline void receive_nothing(struct xmem_subscription *s)
{
	REFUSED(xmem_receive(s, 0), EAGAIN);
	SAME(sub_info(s).lost, 0);
}

static inline void publish_stamps(struct xmem_pool *writer, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		publish_stamp(writer, from);
}

/*
 * Publish and receive, so that the reader knows where all buffers are. Afterwards its receives can
 * take the fast path (lib/follow/receive.c). Returns the next stamp.
 */
static inline uint64_t warm_up(struct xmem_pool *writer, struct xmem_pool *reader, uint64_t count)
{
	struct xmem_subscription *s = follow_past(reader, xmem_pool_client(writer), 0);
	uint64_t stamp;

	for (stamp = 0; stamp < count; stamp++) {
		publish_stamp(writer, stamp);
		receive_stamp(s, stamp);
	}
	xmem_unsubscribe(s);
	return count;
}

#endif
