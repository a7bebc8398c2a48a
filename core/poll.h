/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Is a descriptor of a pool or of a subscription readable, is it writable? Both hosts ask this;
 * with the daemon, the library asks it, too, to keep its descriptors up to date. Pure, like
 * protocol.h.
 *
 * A caller that relies on the answer "no" looks first; if there is nothing, it arms the words
 * (xm_poll_arm) and looks again. So it is woken when the answer becomes "yes" (I5), and where there
 * is always something to receive, nobody has to wake it. A caller that is told only of changes, as
 * with EPOLLET, arms the words before its first look. A publication, an end or a free slot wakes an
 * armed word later. A demotion wakes nobody; therefore xm_writable has a deadline.
 */
#ifndef XM_POLL_H
#define XM_POLL_H

#include "search.h"

/*
 * The publishers that a client has subscribed to and not unsubscribed from, by id, including
 * publishers that have ended and whose end the client does not know yet.
 */
struct xm_followed {
	u64 all[XMEM_CLIENT_WORDS];
	u64 joint[XMEM_CLIENT_WORDS];	/* with XMEM_SUBSCRIBE_JOINT */
	u32 ended;			/* subscriptions that have ended and are not dropped yet */
	u32 ended_joint;		/* the joint ones among them */
	u32 lasting;			/* joint subscriptions that last even without a ring */
};

/* The subject of one descriptor. */
struct xm_poll {
	u32 client;			/* its client */
	u32 kind;			/* enum xmem_poll_kind */
	u32 publisher;			/* only of XMEM_POLL_RING, as is the next field */
	u64 incarnation;
};

/* Called after a subscribe has succeeded. @flags: XMEM_SUBSCRIBE_*. */
void xm_follow_begin(struct xm_followed *followed, u32 publisher, u32 flags);

/*
 * Called after an unsubscribe of @me, even one that was refused because the ring has gone, or
 * before the host has served it.
 */
void xm_follow_end(const struct xm_map *map, struct xm_followed *followed, u32 me,
		   const struct xmem_unsubscribe_request *request);

/*
 * Serve an unsubscribe with flags, which is about no ring: a subscription has ended, a subscription
 * that had ended is dropped, or one begins or stops to last without a ring. 0, -EINVAL, or -ENOENT:
 * there is none.
 */
int xm_follow_update(struct xm_followed *followed, const struct xmem_unsubscribe_request *request);

/* Check the fields of a request for a descriptor and fill in *ret_poll. -EINVAL. */
int xm_poll_take(const struct xm_map *map, u32 me, const struct xmem_poll_fd_request *request,
		 struct xm_poll *ret_poll);

/* Arm all words whose wake-ups can make it readable. */
void xm_poll_arm(const struct xm_map *map, const struct xm_followed *followed,
		 const struct xm_poll *poll);

/*
 * Is there something to receive, or an end to report, or, for a client that follows rings as one, a
 * writer that it does not follow yet? For XMEM_POLL_SUBSCRIBERS: have the subscribers changed?
 */
bool xm_readable(const struct xm_map *map, const struct xm_followed *followed,
		 const struct xm_poll *poll);

#endif
