/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that programs poll: poll.c. The kernel answers for its own at every poll. Those
 * of the daemon's host are sockets, and the library keeps their states true: after each call
 * that may have changed what they say, it looks (xl_poll_update).
 */
#ifndef XMEM_LIB_POLL_H
#define XMEM_LIB_POLL_H

#include <pthread.h>

#include "core/poll.h"

struct xmem_pool;
struct xmem_subscription;

/* One descriptor. It is made at the first need, and goes with its pool or subscription. */
struct xl_poll {
	struct xl_poll *next;
	int fd;
	struct xm_poll what;
	bool full;			/* its end was filled since the host was last told */
};

/* Those of one pool. Zeroed is ready for use. */
struct xl_polls {
	bool settle;			/* there are some that are to be kept true */
	pthread_mutex_t lock;		/* guards what follows and what is in the list */
	struct xl_poll *first;
	struct xl_poll *pool;		/* of these: the pool's own */
	struct xl_poll *subscribers;	/* and that of its subscribers */
	struct xl_poll *waits[2];	/* and those with which the library waits (wait.c): for all
					 * rings, and for those of the joint subscription */
	struct xm_followed followed;
};

/*
 * Make the states true again, as to POLLIN, POLLOUT, or both. It never waits for the host. The
 * caller may have a subscription's lock.
 */
void xl_poll_update_all(struct xmem_pool *pool, int events);

/* A descriptor for the library's own waits: XMEM_POLL_CLIENT or XMEM_POLL_JOINT. Or -errno. */
int xl_poll_file(struct xmem_pool *pool, u32 kind);

/* To be called after such a request (request.h): note whom the client follows. */
void xl_poll_follow(struct xmem_pool *pool, unsigned int request, const void *argument, int err);

/* Close a subscription's descriptor, or all. */
void xl_poll_drop(struct xmem_pool *pool, struct xl_poll **poll);
void xl_polls_drop(struct xmem_pool *pool);

#endif
