/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions, as the files of the library that make and use them see them.
 *
 * A subscription follows one ring, or all that other clients of the pool write (a *joint* one).
 * What a program has of it is its address and a number that changes when it is dropped, so a call
 * that comes too late finds that out. For that the memory stays a subscription as long as the
 * process lives (subscription.c). A child finds it wiped, like the handles of buffers.
 *
 * A thread that leaves the lock in order to wait or to ask the host is counted *inside*, and who
 * drops the subscription wakes such threads and waits until they are out.
 */
#ifndef XMEM_SUBSCRIPTION_H
#define XMEM_SUBSCRIPTION_H

#include "core/history.h"
#include "lib/host/request.h"

enum xl_dropped {
	XL_NOT_DROPPED,
	XL_DROPPED,		/* the host has dropped a ring; `lost` counts what was in it */
	XL_DROPPED_UNCOUNTED	/* likewise, but what was left in it is not known */
};

/* One followed ring. */
struct xl_ring {
	struct xm_follow follow;
	struct xm_followed_words words;
	u64 origin;		/* whose ring it is; see xl_origin */
	struct xm_past past;	/* what comes before follow.place; rules: history.c */
	struct xl_ring *next;	/* in a circle */
	bool told;		/* the host knows that it is followed no longer */
};

#define XL_SUBSCRIPTION_ALIGN	128

struct xmem_subscription {
	_Alignas(XL_SUBSCRIPTION_ALIGN)
	u64 handle;		/* what the program has of it; 0: it has been dropped */
	u64 process;		/* as in struct xmem_pool; 0 in a child */
	struct xl_lock lock;	/* guards all, but `process` changes only while it is unused */
	struct xmem_pool *pool;
	struct xl_ring *ring;	/* whose turn it is; NULL: none is left */
	const u64 *joins;	/* counts the writers that came, or for one ring nothing */
	u64 joins_seen;		/* that count when writers were last looked for */
	u64 fast_joins;	/* as long as it is this, receive may go its fast path */
	u64 origin;		/* of what was received last */
	u32 rings;
	u32 pasts;		/* rings of which history is left */
	u32 history;		/* so many publications before it began are wanted */
	u32 depth;		/* only the latest so many are wanted; 0: all */
	u64 since;		/* no client that was there when it was asked for is newer, */
	u64 writers[XMEM_CLIENT_WORDS];	/* and these were writers then */
	u32 changes;		/* of the circle */
	u32 looks;		/* how often it was told to look for writers again */
	u32 inside;		/* threads that have left the lock and will come back */
	bool joint;
	bool waits;		/* XMEM_SUBSCRIBE_WAITS */
	bool lasts;		/* XMEM_SUBSCRIBE_LASTS: it waits for writers also without a ring */
	bool old;		/* it has been given out: an error is that of a receive */
	bool ended;		/* EPIPE has been said, and is said from then on */
	bool put_off;		/* the last look found what the host has to be asked for later */
	bool unmappable;	/* nobody here can ever map: */
	bool unmapped_shared;
	u64 unmapped;		/* a payload that has to be mapped before a receive goes on */
	enum xl_dropped dropped;
	u64 lost;		/* in rings that are followed no longer */
	struct xm_label label;	/* of the publishers that it follows */
	struct xl_poll *poll;	/* under pool->polls.lock; NULL: never asked for */
	struct xmem_subscription *next;	/* of the pool, under pool->follows.list; or unused */
};

#define XL_ADDRESS_BITS	41	/* of an address below 2^48, without those that are 0 */
#define XL_NOTED	1	/* an error that has been noted, beside negative ones */
#define XL_LOOK_AGAIN	(~0ULL)	/* joins_seen, fast_joins: no count has this value */

static inline struct xmem_subscription *xl_subscription(struct xmem_subscription *handle)
{
	u64 address = (u64)handle & ((1ULL << XL_ADDRESS_BITS) - 1);

	return (void *)(address * XL_SUBSCRIPTION_ALIGN);
}

/* ---- subscription.c ---- */

/* Memory for one, empty but for lock and pool; NULL: an error, noted. */
struct xmem_subscription *xl_subscription_new(struct xmem_pool *pool);
/* It is unused from now on; no thread is in it, but one may still come to its lock. */
void xl_subscription_free(struct xmem_subscription *subscription);

/* Lock what a handle stands for; NULL: it stands for nothing, and the error is noted. */
struct xmem_subscription *xl_subscription_lock(struct xmem_subscription *handle);

/* Leave the lock for a while, and come back. -ECANCELED: it has been dropped meanwhile. */
void xl_subscription_leave(struct xmem_subscription *subscription);
int xl_subscription_return(struct xmem_subscription *subscription);

/* ---- history.c ---- */

/* What the options want of it; to be called before anything is followed. */
void xl_past_init(struct xmem_subscription *subscription,
		  const struct xmem_subscribe_options *options);
/* Ask for the history of a ring that is about to be followed. Under pool->follows.subscribing. */
void xl_past_ask(const struct xmem_subscription *subscription, u32 publisher, u64 incarnation);
/* It is followed now: find what is there. The ring is not in the circle yet. */
void xl_past_begin(const struct xmem_subscription *subscription, struct xl_ring *ring);
/* None is left, or the rest is not wanted. Locked. */
void xl_past_end(struct xmem_subscription *subscription, struct xl_ring *ring);

static inline bool xl_has_past(const struct xl_ring *ring)
{
	return ring->past.end;
}

/*
 * Hold the next publication of a ring, be it history or not, and then move past it. Results and
 * *pending are those of xm_receive_hold, or XL_NOTED. Locked.
 */
int xl_hold_next(struct xmem_subscription *subscription, struct xl_ring *ring,
		 struct xm_publication *what, struct xm_pending *pending);
void xl_pass_next(struct xmem_subscription *subscription, struct xl_ring *ring,
		  struct xm_pending *pending);

/* ---- follow.c ---- */

/*
 * Follow one ring, and map what its writer has attached. 0, or the error of the request, or
 * XL_NOTED. Under pool->follows.subscribing.
 */
int xl_follow(struct xmem_subscription *subscription, u32 publisher, u64 incarnation,
	      u64 deadline_ns);
/* Follow all other writers that it wants and that this client does not follow yet. */
int xl_follow_all(struct xmem_subscription *subscription, u64 deadline_ns);
/*
 * The same in a receive: leaves the lock and comes back. -ECANCELED: the subscription has been
 * dropped meanwhile; -EAGAIN: the host does not answer, so this is put off; or XL_NOTED.
 */
int xl_follow_newcomers(struct xmem_subscription *subscription, u64 deadline_ns);
/*
 * Let the pool's subscription to all writers follow those that have come, as its next receive
 * would. An error is left to that (receive.c).
 */
void xl_follow_who_came(struct xmem_pool *pool, u64 deadline_ns);
/*
 * Its ring is over: count what is lost, tell the host, and take it out of the circle. It waits
 * for nothing; xl_drain_posts does. Locked.
 */
void xl_follow_no_longer(struct xmem_subscription *subscription, struct xl_ring *ring);

/* It has ended for good, or is @dropped after that: descriptors to poll say so. Locked. */
void xl_follow_ended(const struct xmem_subscription *subscription, bool dropped);
/* Tell the host that a subscription that lasts begins, or is @dropped. Locked. */
void xl_follow_lasts(const struct xmem_subscription *subscription, bool dropped);

/*
 * Is it a writer, not this client itself, that this client does not follow? What the host's row
 * says about that is late, for an unsubscribe is only posted.
 */
static inline bool xl_is_strange_writer(const struct xmem_pool *pool, u32 client)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, client);

	return client != pool->me && xm_load_acquire(&row->state) == XMEM_CLIENT_ALIVE &&
	       xm_load(&row->role) == XMEM_ROLE_WRITER &&
	       xm_load_acquire(&pool->follows.origin[client]) != xm_load(&row->incarnation);
}

/* ---- label.c ---- */

/* What label the options want. 0, or an error, noted. */
int xl_label_take(const char *wanted, struct xm_label *ret);
/* Is it a strange writer with a label that is wanted? Its incarnation, or 0. */
u64 xl_wanted_writer(const struct xmem_subscription *subscription, u32 client);
/* The next receive looks for writers, and whether there is anything to follow. Locked. */
static inline void xl_look_again(struct xmem_subscription *subscription)
{
	subscription->joins_seen = subscription->fast_joins = XL_LOOK_AGAIN;
	subscription->looks++;
}

/* Was it made in this process? If not, nothing else in it is to be believed. */
static inline bool xl_is_ours(const struct xmem_subscription *subscription)
{
	u64 process = xm_load(&subscription->process);

	return process && process == *xl_process;
}

/* Have writers come since they were last looked for? */
static inline bool xl_writers_came(const struct xmem_subscription *subscription)
{
	return xm_load_acquire(subscription->joins) != subscription->joins_seen;
}

#endif
