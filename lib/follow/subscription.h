/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions, as seen by the files of the library that make and use them.
 *
 * A subscription follows one ring, or all rings of other clients of the pool (a *joint* one). Its
 * handle in the program has its address and a number that changes when it is dropped, so a call
 * that comes too late finds that out. For that the memory stays a subscription as long as the
 * process lives (subscription.c). In a child the memory is wiped, like the handles of buffers.
 *
 * A thread that leaves the lock in order to wait or to ask the host is counted *inside*. A thread
 * that drops the subscription wakes these threads, and waits until they have left.
 */
#ifndef XMEM_SUBSCRIPTION_H
#define XMEM_SUBSCRIPTION_H

#include "core/history.h"
#include "lib/host/request.h"

enum xl_dropped {
	XL_NOT_DROPPED,
	XL_DROPPED,		/* the host has dropped a ring; `lost` counts its entries */
	XL_DROPPED_UNCOUNTED	/* the host has dropped a ring, and the number of lost entries is
				 * not known */
};

/* One followed ring. */
struct xl_ring {
	struct xm_follow follow;
	struct xm_followed_words words;
	u64 origin;		/* its publisher; see xl_origin */
	struct xm_past past;	/* the history before follow.place; rules: history.c */
	struct xl_ring *next;	/* in a circle */
	bool told;		/* the host has been told that it is followed no longer */
};

#define XL_SUBSCRIPTION_ALIGN	128

struct xmem_subscription {
	_Alignas(XL_SUBSCRIPTION_ALIGN)
	u64 handle;		/* the program's handle of it; 0: it has been dropped */
	u64 process;		/* as in struct xmem_pool; 0 in a child */
	struct xl_lock lock;	/* guards all fields, but `process` changes only while the struct is
				 * unused */
	struct xmem_pool *pool;
	struct xl_ring *ring;	/* the ring whose turn it is; NULL: no ring is left */
	const u64 *joins;	/* counts the writers that came; for one ring constant */
	u64 joins_seen;		/* *joins when writers were last looked for */
	u64 fast_joins;	/* receive may take its fast path while *joins is equal to this */
	u64 origin;		/* of the last received publication */
	u32 rings;
	u32 pasts;		/* rings of which history is left */
	u32 history;		/* number of earlier publications that are wanted */
	u32 depth;		/* only so many of the latest publications are wanted; 0: all */
	u64 since;		/* the greatest incarnation when it was asked for, */
	u64 writers[XMEM_CLIENT_WORDS];	/* the clients that were writers at that time */
	u32 changes;		/* number of changes of the circle */
	u32 looks;		/* how often xl_recheck_writers was called */
	u32 inside;		/* threads that have left the lock and will come back; a futex */
	bool joint;
	bool waits;		/* XMEM_SUBSCRIBE_WAITS */
	bool lasts;		/* XMEM_SUBSCRIBE_LASTS: it goes on without a ring, until writers
				 * come */
	bool old;		/* the program has it, so errors are those of a receive */
	bool ended;		/* a receive has failed with EPIPE, as all later ones will */
	bool put_off;		/* the last look needs a request that is put off */
	bool unmappable;	/* this process can never map `unmapped` */
	bool unmapped_shared;
	u64 unmapped;		/* a payload that has to be mapped before a receive goes on */
	enum xl_dropped dropped;
	u64 lost;		/* lost publications of rings that are followed no longer */
	struct xm_label label;	/* the wanted label of publishers */
	struct xl_poll *poll;	/* under pool->polls.lock; NULL: never asked for */
	struct xmem_subscription *next;	/* the next of the pool, guarded by pool->follows.list; or
					 * the next unused one */
};

#define XL_ADDRESS_BITS	41	/* bits of an address below 2^48, without those that are always 0 */
#define XL_NOTED	1	/* an error that is noted; other errors are negative */
#define XL_LOOK_AGAIN	(~0ULL)	/* in joins_seen and fast_joins: no count has this value */

static inline struct xmem_subscription *xl_subscription(struct xmem_subscription *handle)
{
	u64 address = (u64)handle & ((1ULL << XL_ADDRESS_BITS) - 1);

	return (void *)(address * XL_SUBSCRIPTION_ALIGN);
}

/* ---- subscription.c ---- */

/* Memory for a subscription, empty except for the lock and the pool. NULL: an error, noted. */
struct xmem_subscription *xl_subscription_new(struct xmem_pool *pool);
/*
 * The subscription is unused from now on. No thread is inside, but one may still come to its lock.
 */
void xl_subscription_free(struct xmem_subscription *subscription);

/*
 * Lock the subscription of a handle. NULL: it has been dropped or never existed; an error, noted.
 */
struct xmem_subscription *xl_subscription_lock(struct xmem_subscription *handle);

/*
 * Leave the lock for a while, and come back. -ECANCELED: the subscription has been dropped
 * meanwhile.
 */
void xl_subscription_leave(struct xmem_subscription *subscription);
int xl_subscription_return(struct xmem_subscription *subscription);

/* ---- history.c ---- */

/* Take the wanted history from the options. To be called before any ring is followed. */
void xl_past_init(struct xmem_subscription *subscription,
		  const struct xmem_subscribe_options *options);
/* Request the history of a ring that is about to be followed. Under pool->follows.subscribing. */
void xl_past_request(const struct xmem_subscription *subscription, u32 publisher, u64 incarnation);
/* The ring is followed now: find its history. The ring is not in the circle yet. */
void xl_past_find(const struct xmem_subscription *subscription, struct xl_ring *ring);
/* No history is left, or the rest is not wanted. Under the subscription's lock. */
void xl_past_end(struct xmem_subscription *subscription, struct xl_ring *ring);

static inline bool xl_has_past(const struct xl_ring *ring)
{
	return ring->past.end;
}

/*
 * xl_hold_next holds the next publication of a ring, from its history or not; xl_pass_next then
 * moves past it. Results and *pending are those of xm_receive_hold, or XL_NOTED. Under the
 * subscription's lock.
 */
int xl_hold_next(struct xmem_subscription *subscription, struct xl_ring *ring,
		 struct xm_publication *what, struct xm_pending *pending);
void xl_pass_next(struct xmem_subscription *subscription, struct xl_ring *ring,
		  struct xm_pending *pending);

/* ---- follow.c ---- */

/*
 * Follow one ring, and map the payloads that its writer has attached. 0, or the error of the
 * request, or XL_NOTED. Under pool->follows.subscribing.
 */
int xl_follow(struct xmem_subscription *subscription, u32 publisher, u64 incarnation,
	      u64 deadline_ns);
/*
 * Follow all wanted writers that this client does not follow yet. Under pool->follows.subscribing.
 */
int xl_follow_all(struct xmem_subscription *subscription, u64 deadline_ns);
/*
 * Follow new writers in a receive. Leaves the lock and takes it again. -ECANCELED: the subscription
 * has been dropped meanwhile; -EAGAIN: the host does not answer, so this is put off; or XL_NOTED.
 */
int xl_follow_new_writers(struct xmem_subscription *subscription, u64 deadline_ns);
/*
 * Let the pool's joint subscription follow the new writers, as its next receive would. An error is
 * left to that receive (next.c).
 */
void xl_joint_follow_new_writers(struct xmem_pool *pool, u64 deadline_ns);
/*
 * The ring has ended, or is dropped: count the lost publications, tell the host, and take the ring
 * out of the circle. It does not wait for the host; xl_drain_posts does. Under the subscription's
 * lock.
 */
void xl_unfollow(struct xmem_subscription *subscription, struct xl_ring *ring);

/*
 * Tell the host that the subscription has ended for good, so that polled descriptors say so; or
 * that it is @dropped after that. Under the subscription's lock.
 */
void xl_post_ended(const struct xmem_subscription *subscription, bool dropped);
/*
 * Tell the host that a lasting subscription begins, or is @dropped. Under the subscription's lock.
 */
void xl_post_lasting(const struct xmem_subscription *subscription, bool dropped);

/*
 * Is it another client, a writer, and not followed by this client? The host's row may say later
 * that a ring is followed no longer, because an unsubscribe is only posted; so pool->follows.origin
 * decides.
 */
static inline bool xl_is_unfollowed_writer(const struct xmem_pool *pool, u32 client)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, client);

	return client != pool->me && xm_load_acquire(&row->state) == XMEM_CLIENT_ALIVE &&
	       xm_load(&row->role) == XMEM_ROLE_WRITER &&
	       xm_load_acquire(&pool->follows.origin[client]) != xm_load(&row->incarnation);
}

/* ---- label.c ---- */

/* Check and copy the label that the options want. 0, or an error, noted. */
int xl_label_take(const char *wanted, struct xm_label *ret);
/* Is it a writer that is not followed yet, with a wanted label? Its incarnation, or 0. */
u64 xl_wanted_writer(const struct xmem_subscription *subscription, u32 client);
/*
 * Let the next receive look for writers, and check whether any ring is followed. Under the
 * subscription's lock.
 */
static inline void xl_recheck_writers(struct xmem_subscription *subscription)
{
	subscription->joins_seen = subscription->fast_joins = XL_LOOK_AGAIN;
	subscription->looks++;
}

/* Was it made in this process? If not, no other field may be read. */
static inline bool xl_is_ours(const struct xmem_subscription *subscription)
{
	u64 process = xm_load(&subscription->process);

	return process && process == *xl_process;
}

/* Have writers come since the subscription last looked for them? */
static inline bool xl_has_new_writers(const struct xmem_subscription *subscription)
{
	return xm_load_acquire(subscription->joins) != subscription->joins_seen;
}

#endif
