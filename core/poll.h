/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a descriptor of a pool or of a subscription has to say: is it readable, is it
 * writable? Both hosts ask this, and the library on the daemon's host, where it keeps
 * its descriptors true. Pure, like protocol.h.
 *
 * Whoever relies on the answer no looks first, and only if there is nothing it arms
 * (xm_poll_arm) and looks again: so it is woken when the answer becomes yes (I5), and where
 * there is always something, nobody has to wake. Whoever is told only of changes, as with
 * EPOLLET, arms before the first look. A publication, an end or a free slot later wakes an
 * armed word; a demotion wakes nobody, hence the deadline of xm_writable.
 */
#ifndef XM_POLL_H
#define XM_POLL_H

#include "search.h"

/*
 * The publishers that a client has subscribed to and not unsubscribed from, by their ids.
 * Among them are those that have ended: the client has yet to be told.
 */
struct xm_followed {
	u64 all[XMEM_CLIENT_WORDS];
	u64 joint[XMEM_CLIENT_WORDS];	/* of those: with XMEM_SUBSCRIBE_JOINT */
	u32 ended;			/* subscriptions that have ended, and are not dropped yet */
	u32 ended_joint;		/* of those: joint ones */
	u32 lasting;			/* joint subscriptions that last, also without a ring */
};

/* What one descriptor is about. */
struct xm_poll {
	u32 client;			/* whose it is */
	u32 kind;			/* enum xmem_poll_kind */
	u32 publisher;			/* of XMEM_POLL_RING, as is the next */
	u64 incarnation;
};

/* After a subscribe that has succeeded. @flags: XMEM_SUBSCRIBE_*. */
void xm_follow_begin(struct xm_followed *followed, u32 publisher, u32 flags);

/*
 * After an unsubscribe of @me, also after one that was refused because the ring has gone; or
 * before the host has served it.
 */
void xm_follow_end(const struct xm_map *map, struct xm_followed *followed, u32 me,
		   const struct xmem_unsubscribe_request *request);

/*
 * An unsubscribe with flags, which is about no ring: a subscription has ended, or one that had
 * ended is dropped; or one begins to last, or is dropped. 0, -EINVAL, or -ENOENT: there is none.
 */
int xm_follow_note(struct xm_followed *followed, const struct xmem_unsubscribe_request *request);

/* Check the fields of a request for a descriptor, and fill *ret_poll. -EINVAL. */
int xm_poll_take(const struct xm_map *map, u32 me, const struct xmem_poll_fd_request *request,
		 struct xm_poll *ret_poll);

/* Arm all words that can make it readable. */
void xm_poll_arm(const struct xm_map *map, const struct xm_followed *followed,
		 const struct xm_poll *poll);

/*
 * Is there something to receive, or an end to see; or, for a client that follows rings as
 * one, a writer that it does not follow yet? Of XMEM_POLL_SUBSCRIBERS: have they changed?
 */
bool xm_readable(const struct xm_map *map, const struct xm_followed *followed,
		 const struct xm_poll *poll);

#endif
