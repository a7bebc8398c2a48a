/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Is a descriptor of a pool or of a subscription readable, is it writable? Both hosts ask this;
 * with the daemon, the library asks it, too, to keep its descriptors up to date. Pure, like
 * protocol.h.
 *
 * Readable is a condition. A caller that relies on the answer "no" looks first; if there is
 * nothing, it arms the words (xm_poll_arm) and looks again. So it is woken when the answer becomes
 * "yes" (I5), and where there is always something to receive, nobody has to wake it. A caller that
 * is told only of changes, as with EPOLLET, arms the words before its first look.
 *
 * Writable is an event count. An acquire that is about to fail
 *
 *   1. notes in ring.look_at_ns when time alone may let it succeed,
 *   2. arms the owner's slots_waiters,
 *   3. looks for a buffer, and finds none,
 *   4. notes in ring.vain the value that it armed.
 *
 * The descriptor is writable if nothing is noted, if the word has moved since step 2, or if that
 * time has come. A change for which a sleeping acquire is woken disarms the word, and disarming
 * moves it (I5). A change of the owner's own clears the note, and then wakes the word if it is
 * armed. So a descriptor that is not writable becomes so with the first change after the look.
 * Whether the change is enough for a buffer, only the next acquire finds out: if it fails, it notes
 * the word anew, so each change makes the descriptor ready in vain at most once. Model:
 * tests/model/poll_out.pml.
 */
#ifndef XM_POLL_H
#define XM_POLL_H

#include "protocol.h"

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

/* May an acquire of @owner succeed now, as far as is known? @now_ns: by the owner's clock. */
static inline bool xm_writable(const struct xm_map *map, u32 owner, u64 now_ns)
{
	const struct xmem_ring *ring = xm_ring(map, owner);
	u64 vain = xm_load_acquire(&ring->vain), at = xm_load(&ring->look_at_ns);

	return !vain || !xm_still_armed(&xm_client_row(map, owner)->slots_waiters, vain) ||
	       (at && now_ns >= at);
}

#endif
