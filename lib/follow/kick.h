/* SPDX-License-Identifier: MIT */
/* Ending the waits of this process's threads: kick.c. */
#ifndef XMEM_FOLLOW_KICK_H
#define XMEM_FOLLOW_KICK_H

#include "lib/base/calls.h"

/*
 * End the waits of this pool. With XL_CANCEL_CLOSE this also waits until all counted calls have
 * returned.
 */
void xl_cancel(struct xmem_pool *pool, u32 how);

/* Receives of this pool's subscriptions leave the fast path from now on (receive.c). */
void xl_receive_leave_fast_path(struct xmem_pool *pool);

/* Let all threads of this process that wait for publications look again. */
void xl_kick(struct xmem_pool *pool);

/*
 * The descriptor with which a thread waits in poll(). It is kept for the next thread until the pool
 * is destroyed.
 */
struct xl_poller {
	struct xl_poller *next;	/* `next` and `used`: guarded by pool->follows.list */
	bool used;
	int kick;		/* an eventfd */
};

/* Take a poller, which each later kick wakes. NULL and errno. */
struct xl_poller *xl_poller_take(struct xmem_pool *pool);
void xl_poller_release(struct xmem_pool *pool, struct xl_poller *poller);
/* Drop all pollers of a pool that is being destroyed. */
void xl_pollers_drop(struct xmem_pool *pool);

#endif
