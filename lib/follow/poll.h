/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that programs poll: poll.c. The kernel computes the states of its own descriptors at
 * every poll. The descriptors of the daemon's host are sockets, and the library keeps their states
 * true: after each call that may have changed them, it updates them (xl_poll_update).
 */
#ifndef XMEM_LIB_POLL_H
#define XMEM_LIB_POLL_H

#include <pthread.h>

#include "core/poll.h"

struct xmem_pool;
struct xmem_subscription;

/* One descriptor. It is made at the first need, and is closed with its pool or subscription. */
struct xl_poll {
	struct xl_poll *next;
	int fd;
	struct xm_poll what;
};

/* The descriptors of one pool. A zeroed struct is ready for use. */
struct xl_polls {
	bool settle;			/* there are descriptors whose states the library keeps
					 * true; atomic */
	pthread_mutex_t lock;		/* guards the fields below and the descriptors in the
					 * list */
	struct xl_poll *first;
	struct xl_poll *pool;		/* one of the list: the pool's own */
	struct xl_poll *subscribers;	/* one of the list: that of the pool's subscribers */
	struct xl_poll *waits[2];	/* those with which the library itself waits (wait.c): for
					 * all rings, and for those of the joint subscription */
	struct xm_followed followed;
};

/*
 * Update the states, as to POLLIN, POLLOUT, or both. It never waits for the host. The caller may
 * have a subscription's lock.
 */
void xl_poll_update_all(struct xmem_pool *pool, int events);

/* A descriptor for the library's own waits: XMEM_POLL_CLIENT or XMEM_POLL_JOINT. Or -errno. */
int xl_poll_file(struct xmem_pool *pool, u32 kind);

/*
 * To be called after a request (host/request.h): update the set of clients that this client
 * follows.
 */
void xl_poll_follow(struct xmem_pool *pool, unsigned int request, const void *argument, int err);

/* Close a subscription's descriptor; close all descriptors. */
void xl_poll_drop(struct xmem_pool *pool, struct xl_poll **poll);
void xl_polls_drop(struct xmem_pool *pool);

#endif
