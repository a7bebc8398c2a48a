/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions: receiving what other clients publish. A part of xmem.h, whose rules for errors,
 * handles, threads and structs hold here too.
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
						 * its wait_bound_ns; otherwise a slow
						 * subscriber loses the oldest publication */
#define XMEM_SUBSCRIBE_PUBLISHER (1u << 1)	/* only the client in `publisher` */
#define XMEM_SUBSCRIBE_NOWAIT	 (1u << 2)	/* do not wait for a publisher to come: ENOENT */
#define XMEM_SUBSCRIBE_LASTS	 (1u << 3)	/* the subscription needs no publisher:
						 * xmem_receive waits for the first, and for
						 * later ones */

/* All fields but size may be 0: all publishers, and wait for the first one for ever. */
struct xmem_subscribe_options {
	size_t size;			/* sizeof(struct xmem_subscribe_options) */
	uint32_t flags;			/* XMEM_SUBSCRIBE_* */
	uint32_t publisher;		/* client id, with XMEM_SUBSCRIBE_PUBLISHER; else 0 */
	int64_t timeout_ns;		/* how long to wait for a publisher to be there; 0 or
					 * XMEM_FOREVER: for ever; with NOWAIT: 0 */
	uint32_t history;		/* also receive up to so many of each publisher's last
					 * publications before now, as far as they still exist */
	uint32_t depth;			/* of each publisher's publications only the latest so
					 * many, without XMEM_SUBSCRIBE_WAITS; 0: all */
	const char *label;		/* only publishers with this label, without
					 * XMEM_SUBSCRIBE_PUBLISHER; a '*' at its end stands for
					 * any rest; at most 15 characters with it; NULL: all */
};

/*
 * Follow the publishers of a pool, each from its next publication on.
 * @options: NULL is as all zero.
 *
 * With XMEM_SUBSCRIBE_PUBLISHER the subscription follows that client alone. Without it, it follows
 * all other clients that are writers, and also those that join later: the next xmem_receive follows
 * them, or wakes up and does so if it waits. All that such a writer published before the
 * subscription followed it is not received, and does not count as lost; with `history` or
 * XMEM_SUBSCRIBE_LASTS, what still exists of it is received. A pool handle has at most one such
 * subscription. It leaves out the writers that another subscription of the handle follows.
 *
 * Labels as topics: with `label` a subscription follows only writers that have this label (struct
 * xmem_pool_options), also of writers that join later. struct xmem_buffer_info has the label of a
 * buffer's publisher. A writer's
 * own label may end in a '*', which has no meaning there: a subscription can name it only together
 * with those that begin alike. The part before the star has 14 characters at most.
 *
 * With XMEM_SUBSCRIBE_LASTS the subscription does not need a publisher. If none is there, this call
 * returns at once (timeout_ns must be 0 or XMEM_FOREVER). When all publishers have ended,
 * xmem_receive waits for the next one; it does not fail with EPIPE. Of a publisher that comes after
 * this call was made, all publications that still exist are received: the last one does as long as
 * its publisher has not ended, and `keep` of struct xmem_pool_options says how many more. So
 * processes can all subscribe first and publish then, in any order. A program that publishes and
 * ends calls xmem_wait_subscribers before it publishes, or it ends after others have received.
 * With XMEM_SUBSCRIBE_NOWAIT this flag means nothing more.
 *
 * With XMEM_SUBSCRIBE_WAITS and without XMEM_SUBSCRIBE_PUBLISHER, writers whose wait_bound_ns is 0
 * are followed too. They do not wait, so what they publish can be lost.
 *
 * History: with `history`, xmem_receive first gives up to so many of the last publications that
 * each publisher had made before, as far as their contents still exist. Nothing protects them
 * until they are received: those that have gone meanwhile are passed and do not count as lost,
 * and when the publisher ends they end with it. `history` limits only the publishers that are there
 * now: of one that joins later all that still exist are received. `keep` of struct
 * xmem_pool_options says how many stay at least.
 *
 * Depth: a subscriber that is more than `depth` publications behind when it receives goes on with
 * the latest so many. The older ones are lost, and history that is older is passed.
 *
 * The payloads that the publishers have attached are mapped now, so that xmem_data() of what is
 * received does not have to.
 *
 * Returns: the subscription, or NULL:
 *	EINVAL	a field or flag is out of its range; the message says which
 *	E2BIG	as xmem_pool_open
 *	ENOENT	there is no such publisher, and XMEM_SUBSCRIBE_NOWAIT; or it is a reader
 *	ETIMEDOUT  no publisher came in time, or the host did not answer
 *	EEXIST	this client follows that publisher already, or this handle all writers
 *	EOPNOTSUPP  XMEM_SUBSCRIBE_WAITS, and wait_bound_ns of that publisher, or of all writers
 *		that are there, is 0
 *	ESTALE	the publisher ended during this call
 *	ECANCELED  xmem_cancel, or xmem_pool_close while this call waits
 *	EMFILE	a payload cannot be mapped
 *	EINTR
 * Ownership: the caller calls xmem_unsubscribe. Threads: any.
 * Since: 0.1; all writers: 0.3; history, depth, label: 0.4.
 */
struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool,
					 const struct xmem_subscribe_options *options);

/*
 * Receive the next publication: hold it, for reading.
 * @timeout_ns: nanoseconds to wait for it.
 *
 * The publications of one publisher come in their order. Publishers that have some take turns.
 * If the contents lie in a payload that is not mapped yet, this call maps it. When that fails the
 * publication is still the next one.
 *
 * Returns: the buffer, or NULL:
 *	EAGAIN	there is none yet, and the timeout is 0
 *	ETIMEDOUT  none came in time
 *	EPIPE	all publishers that were followed have ended, and no other one is there. Either
 *		all that was in flight has been received, or the host has dropped the ring (it
 *		keeps 8 of ended publishers that did not wait for this client); the message says
 *		which. The subscription is over: subscribe again to follow later publishers
 *	ECANCELED  xmem_cancel; or xmem_unsubscribe, or xmem_pool_close, while this call waits
 *	EBADF	the subscription has been dropped
 *	EMFILE, EIO  the contents cannot be mapped
 *	EOVERFLOW  this client has 2^28 handles of the buffer
 *	EINVAL	the timeout is negative
 *	EINTR
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns);

/*
 * Receive the next publication of any subscription of a pool handle. They take turns.
 * @timeout_ns: nanoseconds to wait for it.
 * @ret_subscription: which one it was; NULL after an error other than EPIPE. May be NULL.
 * Returns: as xmem_receive, and
 *	ENOENT	the handle has no subscription
 *	EPIPE	nothing is there to receive, and *ret_subscription is over: xmem_unsubscribe it
 *	EMFILE	also: no descriptor is left to wait with
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.3.
 */
struct xmem_buffer *xmem_receive_any(struct xmem_pool *pool, int64_t timeout_ns,
				     struct xmem_subscription **ret_subscription);

/*
 * Drop the handle of a subscription. The buffers that were received stay held.
 * Threads: calls that wait in it end with ECANCELED before this returns; later ones fail with
 * EBADF. Since: 0.1.
 */
void xmem_unsubscribe(struct xmem_subscription *subscription);

/* ---- event loops ---- */

/*
 * Get the descriptor of one subscription, which is readable and hung up like a pool's, and
 * never writable. After the subscription has ended it stays readable.
 * Returns: as xmem_pool_poll_fd.
 * Ownership: the library's, valid until xmem_unsubscribe. Threads: any. Since: 0.3.
 */
int xmem_subscription_poll_fd(struct xmem_subscription *subscription);

/* ---- more about a subscription ---- */

/* The state of a subscription. */
struct xmem_subscription_info {
	size_t size;			/* in: sizeof(struct xmem_subscription_info); out: valid
					 * bytes */
	uint32_t publisher;		/* client id of the publisher of what was received last, or
					 * if there is nothing yet of the first that is followed;
					 * XMEM_NOBODY: none has come yet */
	uint32_t follows;		/* publishers, also ended ones of which something may be
					 * left to receive */
	uint64_t lost;			/* publications that it has lost by being slow, of all
					 * publishers together */
	uint64_t behind;		/* publications that it has yet to receive, of all
					 * publishers together; history does not count */
};

/*
 * Get what is known of a subscription, at once.
 * @ret_info: its size field is set. Unchanged after an error.
 * Publications that were left in a ring that the host has dropped count as lost from the EPIPE of
 * xmem_receive on. If this client received something after the host had dropped the ring, the
 * number of the remaining publications is unknown and is not counted; the message of EPIPE says so.
 * Returns: 0, -EINVAL (NULL, or the size field is smaller than itself), -ECHILD, -EBADF (the
 * subscription has been dropped). Threads: any. Since: 0.5.
 */
int xmem_subscription_stat(struct xmem_subscription *subscription,
			   struct xmem_subscription_info *ret_info);

#ifdef __cplusplus
}
#endif
#endif
