/* SPDX-License-Identifier: MIT */
/* Ending the waits of this process's threads: kick.c. */
#ifndef XMEM_FOLLOW_KICK_H
#define XMEM_FOLLOW_KICK_H

#include "lib/base/calls.h"

/* End the waits of this pool; XL_CANCEL_CLOSE also waits until those that are counted are over. */
void xl_cancel(struct xmem_pool *pool, u32 how);

/* Receives of this pool's subscriptions go the slow way from now on (receive.c). */
void xl_receive_slowly(struct xmem_pool *pool);

/* Let all threads of this process that wait for publications look again. */
void xl_kick(struct xmem_pool *pool);

/* What a thread needs to wait in poll(). It is kept for the next one until the pool goes. */
struct xl_poller {
	struct xl_poller *next;	/* under pool->follows.list, as is: */
	bool used;
	int kick;		/* an eventfd */
};

/* Take one, which each later kick wakes. NULL and errno. */
struct xl_poller *xl_poller_take(struct xmem_pool *pool);
void xl_poller_leave(struct xmem_pool *pool, struct xl_poller *poller);
/* Drop what threads have waited with. The pool goes. */
void xl_pollers_drop(struct xmem_pool *pool);

#endif
