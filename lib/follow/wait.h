/* SPDX-License-Identifier: MIT */
/*
 * Waiting for publications, and how waits are cancelled. Every wait follows I5: arm the words,
 * then look, also at whether it is cancelled, then wait.
 */
#ifndef XMEM_WAIT_H
#define XMEM_WAIT_H

#include "lib/follow/kick.h"
#include "lib/host/request.h"

/*
 * The rings that a thread waits for: those that were followed when it armed their words. A thread
 * in xmem_receive_any waits for all rings that the client follows, in whatever subscription, and
 * other threads follow and drop rings meanwhile; its own look does so too. Hence this rule, which
 * tests/model/watch.pml checks:
 *
 *   Whoever changes what is followed, or the list of subscriptions, changes it first and kicks
 *   then. A kick counts, then has the host end the waits of this process, whatever ring's word
 *   they are on, followed or not. A thread notes the count of kicks, then finds the rings and arms
 *   their words, then looks; if the count is the same still it sleeps on the words and the count,
 *   or on one word alone.
 *
 * A subscription that several threads receive in counts the changes of its own rings besides, so
 * that receive_wait need not make its watch anew for those of others. A ring whose publisher has
 * ended needs no kick when it is dropped: the host has woken its word at the end, and nothing can
 * come from it any more.
 */
struct xl_watch {
	u32 kind;		/* enum xmem_poll_kind: the descriptor that stands for them */
	u32 kicks;		/* pool->follows.kicks before the words were armed */
	u32 count;
	struct xl_armed clients;	/* of the pool, if no ring is waited for */
	struct {
		u32 publisher;
		struct xl_armed armed;
	} ring[XMEM_MAX_CLIENTS];
};

/*
 * Wait for XMEM_WAIT_CLIENTS, because there is no writer to follow. Until then this client's area
 * says so, and a terminal is told after a second, once until a writer is followed (await.c).
 */
int xl_await_writer(struct xmem_pool *pool, struct xl_armed armed, u64 deadline_ns);

void xl_watch_begin(struct xmem_pool *pool, struct xl_watch *watch, u32 kind);
/*
 * Arm a ring's word, if that is how it is waited for. -ENOENT: the host has dropped the ring, which
 * a look finds out.
 */
int xl_watch_ring(struct xmem_pool *pool, struct xl_watch *watch, u32 publisher);

/* After the rings: if there is none, arm the word that a writer wakes when it joins. */
int xl_watch_writers(struct xmem_pool *pool, struct xl_watch *watch);

/*
 * Wait until one of the rings is woken, a writer joins or xl_kick is called. It may return 0 too
 * early. -ETIMEDOUT, -EINTR, -ENOTCONN, or another error of the host.
 */
int xl_wait_rings(struct xmem_pool *pool, const struct xl_watch *watch, u64 deadline_ns);

#endif
