/* SPDX-License-Identifier: MIT */
/*
 * Waiting for publications. Every wait follows I5: arm the words, then look, also at whether the
 * wait is cancelled, then sleep. base/calls.h has counted calls and xmem_cancel.
 */
#ifndef XMEM_WAIT_H
#define XMEM_WAIT_H

#include "lib/follow/kick.h"
#include "lib/host/request.h"

/*
 * The rings that a thread waits for: those that were followed when it armed their words. A thread
 * in xmem_receive_any waits for all rings that the client follows, in all subscriptions. Other
 * threads follow and drop rings meanwhile, and so does its own look. Hence this rule, which
 * tests/model/watch.pml checks:
 *
 *   A thread that changes which rings are followed, or the list of subscriptions, changes it first
 *   and kicks then. A kick increments a count, and then lets the host end all waits of this
 *   process, on the words of all rings, followed or not. A waiting thread reads the count of kicks,
 *   then finds the rings and arms their words, then looks. If the count has not changed, it sleeps
 *   on the words and the count, or on one word alone.
 *
 * A subscription in which several threads receive also counts the changes of its own rings. So
 * receive_wait need not make its watch anew after changes of other subscriptions' rings. A ring
 * whose publisher has ended needs no kick when it is dropped: the host woke its word at the end,
 * and no publication can come from it any more.
 */
struct xl_watch {
	u32 kind;		/* enum xmem_poll_kind: the descriptor for these rings */
	u32 kicks;		/* pool->follows.kicks before the words were armed */
	u32 count;
	struct xl_armed clients;	/* the pool's word for clients, if no ring is waited for */
	struct {
		u32 publisher;
		struct xl_armed armed;
	} ring[XMEM_MAX_CLIENTS];
};

/*
 * Wait for XMEM_WAIT_CLIENTS, because there is no writer to follow. Meanwhile this client's area
 * says so, and after a second a terminal gets a line, once until a writer is followed (await.c).
 */
int xl_await_writer(struct xmem_pool *pool, struct xl_armed armed, u64 deadline_ns);

void xl_watch_begin(struct xmem_pool *pool, struct xl_watch *watch, u32 kind);
/*
 * Arm a ring's word, if this host's way to wait needs that. -ENOENT: the host has dropped the ring;
 * the next look finds out.
 */
int xl_watch_ring(struct xmem_pool *pool, struct xl_watch *watch, u32 publisher);

/*
 * To be called after xl_watch_ring for all rings. If there is no ring, arm the word that a writer
 * wakes when it joins.
 */
int xl_watch_writers(struct xmem_pool *pool, struct xl_watch *watch);

/*
 * Wait until one of the rings is woken, a writer joins or xl_kick is called. 0 may come too early.
 * -ETIMEDOUT, -EINTR, -ENOTCONN, or another error of the host.
 */
int xl_wait_rings(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns);

#endif
