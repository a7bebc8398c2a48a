/* SPDX-License-Identifier: MIT */
/* Subscriptions: receiving the publications of other clients. A part of xmem.h. */
#ifndef XMEM_API_SUBSCRIPTION_H
#define XMEM_API_SUBSCRIPTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;
struct xmem_subscription;

#define XMEM_SUBSCRIBE_WAITS	 (1u << 0)	/* publishers wait for it, up to wait_bound_ns */
#define XMEM_SUBSCRIBE_PUBLISHER (1u << 1)	/* only the client in `publisher` */
#define XMEM_SUBSCRIBE_NOWAIT	 (1u << 2)	/* do not wait for a publisher to come: ENOENT */
#define XMEM_SUBSCRIBE_LASTS	 (1u << 3)	/* it needs no publisher, and never ends in EPIPE */

/* By default, follow all publishers, and wait for the first one without end. */
struct xmem_subscribe_options {
	size_t size;			/* sizeof(struct xmem_subscribe_options) */
	uint32_t flags;			/* XMEM_SUBSCRIBE_* */
	uint32_t publisher;		/* a client id, with XMEM_SUBSCRIBE_PUBLISHER; else 0 */
	int64_t timeout_ns;		/* longest wait for the first publisher; 0: no limit */
	uint32_t history;		/* receive up to so many earlier publications of each */
	uint32_t depth;			/* receive at most the latest `depth` of each; 0: all */
	const char *label;		/* only publishers with this label; a '*' at its end stands
					 * for any rest; NULL: all */
};

/*
 * Follow the publishers of a pool, each from its next publication on: one client with
 * XMEM_SUBSCRIBE_PUBLISHER, and otherwise all other writers with a fitting label, including those
 * that join later. A pool handle can have one subscription to all writers.
 * Returns: the subscription, or NULL: EINVAL: a field or flag is out of its range; ENOENT: there is
 * no publisher, or `publisher` is a reader; ETIMEDOUT: none came in time, or the host did not
 * answer; EEXIST: this client follows that publisher already, or this handle follows all writers;
 * EOPNOTSUPP: XMEM_SUBSCRIBE_WAITS, and wait_bound_ns of the publishers is 0; ESTALE: the publisher
 * ended during this call; EMFILE: a file cannot be mapped; E2BIG, ECANCELED, EINTR. Ownership:
 * the caller calls xmem_unsubscribe. Since: 0.1; all writers: 0.3; history, depth, label: 0.4.
 */
struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool,
					 const struct xmem_subscribe_options *options);

/*
 * Receive the next publication and hold it for reading. Each publisher's publications come in
 * order, and publishers take turns.
 * Returns: the buffer, or NULL:
 *	EAGAIN	there is none yet, and the timeout is 0
 *	ETIMEDOUT  none came in time
 *	EPIPE	all followed publishers have ended, and the subscription is over: subscribe again
 *	ECANCELED  also: xmem_unsubscribe, while this call waits
 *	EMFILE, EIO  the contents cannot be mapped; the publication is still the next one
 *	EBADF, EOVERFLOW, EINVAL, EINTR
 * Ownership: the caller calls xmem_release. Since: 0.1.
 */
struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns);

/*
 * Receive the next publication of any subscription of a pool handle. The subscriptions take turns.
 * @ret_subscription: that of the buffer or of EPIPE; NULL after other errors. May be NULL itself.
 * Returns: as xmem_receive; ENOENT: the handle has no subscription; EPIPE: *ret_subscription is
 * over, so xmem_unsubscribe it; EMFILE: also: no descriptor is left to wait with. Ownership: the
 * caller calls xmem_release. Since: 0.3.
 */
struct xmem_buffer *xmem_receive_any(struct xmem_pool *pool, int64_t timeout_ns,
				     struct xmem_subscription **ret_subscription);

/*
 * Drop the handle of a subscription. Received buffers stay held.
 * Threads: any; calls that wait in it end with ECANCELED before this returns. Since: 0.1.
 */
void xmem_unsubscribe(struct xmem_subscription *subscription);

/* ---- event loops ---- */

/*
 * Get the descriptor of one subscription. It is readable and hung up as a pool's is. Returns: as
 * xmem_pool_poll_fd. Ownership: the library's, valid until xmem_unsubscribe. Since: 0.3.
 */
int xmem_subscription_poll_fd(struct xmem_subscription *subscription);

/* ---- more about a subscription ---- */

/* The state of a subscription. */
struct xmem_subscription_info {
	size_t size;			/* in: sizeof the struct; out: valid bytes */
	uint32_t publisher;		/* of the last received buffer; XMEM_NOBODY: none yet */
	uint32_t follows;		/* number of its publishers, ended ones too */
	uint64_t lost;			/* publications that it has lost by being slow */
	uint64_t behind;		/* publications that it has yet to receive */
};

/* Get the state of a subscription. Returns: 0, -EINVAL, -ECHILD, -EBADF. Since: 0.5. */
int xmem_subscription_stat(struct xmem_subscription *subscription,
			   struct xmem_subscription_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif
