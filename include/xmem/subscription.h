/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions: receiving what other clients publish. A part of xmem.h, whose general rules apply.
 */
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

#define XMEM_SUBSCRIBE_WAITS	 (1u << 0)	/* the publisher waits for this subscriber within
						 * its wait_bound_ns; without this flag a slow
						 * subscriber loses the oldest publication */
#define XMEM_SUBSCRIBE_PUBLISHER (1u << 1)	/* only the client in `publisher` */
#define XMEM_SUBSCRIBE_NOWAIT	 (1u << 2)	/* do not wait for a publisher to come: ENOENT */
#define XMEM_SUBSCRIBE_LASTS	 (1u << 3)	/* the subscription needs no publisher:
						 * xmem_receive waits for the first and later
						 * ones */

/* All fields but size may be 0: follow all publishers, and wait for the first one for ever. */
struct xmem_subscribe_options {
	size_t size;			/* sizeof(struct xmem_subscribe_options) */
	uint32_t flags;			/* XMEM_SUBSCRIBE_* */
	uint32_t publisher;		/* client id, with XMEM_SUBSCRIBE_PUBLISHER; else 0 */
	int64_t timeout_ns;		/* how long to wait for the first publisher; 0 or
					 * XMEM_FOREVER: for ever; with NOWAIT: 0 */
	uint32_t history;		/* also receive up to this many of each publisher's last
					 * publications before now, as far as they still exist */
	uint32_t depth;			/* receive only this many of each publisher's latest
					 * publications, without XMEM_SUBSCRIBE_WAITS; 0: all */
	const char *label;		/* only publishers with this label, without
					 * XMEM_SUBSCRIBE_PUBLISHER; a '*' at its end stands for
					 * any rest; at most 15 characters with it; NULL: all */
};

/*
 * Follow the publishers of a pool, each from its next publication on.
 * @options: NULL stands for options that are all zero.
 *
 * With XMEM_SUBSCRIBE_PUBLISHER the subscription follows that client alone. Without it, the
 * subscription follows all other writers with a fitting label, including those that join later; a
 * pool handle can have one such subscription, which leaves out the writers that its other
 * subscriptions follow. Publications from before a writer is followed are not received and do not
 * count as lost, except with `history` or XMEM_SUBSCRIBE_LASTS.
 *
 * With XMEM_SUBSCRIBE_LASTS this call returns at once if there is no publisher (timeout_ns must be
 * 0 or XMEM_FOREVER), and xmem_receive waits for the next publisher instead of failing with EPIPE.
 * From a publisher that comes later, all publications that still exist are received.
 * XMEM_SUBSCRIBE_NOWAIT changes nothing then.
 *
 * Returns: the subscription, or NULL:
 *	EINVAL	a field or flag is out of its range; the message says which
 *	ENOENT	there is no such publisher, and XMEM_SUBSCRIBE_NOWAIT; or it is a reader
 *	ETIMEDOUT  no publisher came in time, or the host did not answer
 *	EEXIST	this client follows that publisher already, or this handle follows all writers
 *	EOPNOTSUPP  XMEM_SUBSCRIBE_WAITS, and wait_bound_ns of that publisher, or of all writers in
 *		the pool, is 0
 *	ESTALE	the publisher ended during this call
 *	EMFILE	a payload cannot be mapped
 *	E2BIG, ECANCELED, EINTR
 * Ownership: the caller calls xmem_unsubscribe. Threads: any.
 * Since: 0.1; all writers: 0.3; history, depth, label: 0.4.
 */
struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool,
					 const struct xmem_subscribe_options *options);

/*
 * Receive the next publication and hold it for reading. Each publisher's publications come in
 * order, and publishers take turns.
 * @timeout_ns: nanoseconds to wait for it.
 * Returns: the buffer, or NULL:
 *	EAGAIN	there is none yet, and the timeout is 0
 *	ETIMEDOUT  none came in time
 *	EPIPE	all publishers that were followed have ended, and there is no other one: the
 *		subscription is over. Subscribe again to follow later publishers. The message says
 *		whether everything was received
 *	ECANCELED  xmem_cancel; or xmem_unsubscribe, or xmem_pool_close, while this call waits
 *	EBADF	the subscription has been dropped
 *	EMFILE, EIO  the contents cannot be mapped; the publication is still the next one
 *	EOVERFLOW, EINVAL, EINTR
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns);

/*
 * Receive the next publication of any subscription of a pool handle. The subscriptions take turns.
 * @timeout_ns: nanoseconds to wait for it.
 * @ret_subscription: the subscription that it came from; NULL after an error other than EPIPE. May
 *	be NULL.
 * Returns: as xmem_receive, and
 *	ENOENT	the handle has no subscription
 *	EPIPE	nothing can be received, and *ret_subscription is over: xmem_unsubscribe it
 *	EMFILE	also: no descriptor is left to wait with
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.3.
 */
struct xmem_buffer *xmem_receive_any(struct xmem_pool *pool, int64_t timeout_ns,
				     struct xmem_subscription **ret_subscription);

/*
 * Drop the handle of a subscription. Received buffers stay held.
 * Threads: any; calls that wait in it end with ECANCELED before this returns, and later ones fail
 * with EBADF. Since: 0.1.
 */
void xmem_unsubscribe(struct xmem_subscription *subscription);

/* ---- event loops ---- */

/*
 * Get the descriptor of one subscription, which is readable and hung up like a pool's, and never
 * writable. After the subscription has ended it stays readable.
 * Returns: as xmem_pool_poll_fd. Ownership: the library's, valid until xmem_unsubscribe.
 * Threads: any. Since: 0.3.
 */
int xmem_subscription_poll_fd(struct xmem_subscription *subscription);

/* ---- more about a subscription ---- */

/* The state of a subscription. */
struct xmem_subscription_info {
	size_t size;			/* in: sizeof(struct xmem_subscription_info); out: valid
					 * bytes */
	uint32_t publisher;		/* client id of the publisher of the last received buffer,
					 * or at first of the first publisher; XMEM_NOBODY: none
					 * has come yet */
	uint32_t follows;		/* publishers, with ended ones whose publications may be
					 * left to receive */
	uint64_t lost;			/* publications of all publishers that it has lost by being
					 * slow */
	uint64_t behind;		/* publications of all publishers that it has yet to
					 * receive, without history */
};

/*
 * Get the state of a subscription, without waiting.
 * @ret_info: its size field is set. Unchanged after an error.
 * Returns: 0, -EINVAL, -ECHILD, -EBADF (the subscription has been dropped). Threads: any.
 * Since: 0.5.
 */
int xmem_subscription_stat(struct xmem_subscription *subscription,
			   struct xmem_subscription_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif
