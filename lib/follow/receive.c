// SPDX-License-Identifier: MIT
/*
 * Receive: take the next publication of a subscription, at once or after waiting; and of any
 * subscription of a pool.
 */
#include <sched.h>

#include "lib/base/handle.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/hold/token.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

/* Looks at a ring whose publisher is faster than us, beyond one look at each entry. */
#define MAX_RETRIES	4
#define NEWCOMERS	2	/* look_at_all: writers came, or no ring is left */
#define UNMAPPED	3	/* and: subscription->unmapped has to be mapped first */

/* ---- one ring ---- */

/* Check the bounds that the entry gives, because its publisher can write anything there. */
static inline bool within_slot(const struct xmem_slot_row *row, const struct xm_publication *what)
{
	u64 left;

	return likely(!__builtin_sub_overflow(row->length, what->offset, &left) &&
		      what->length <= left);
}

/* Can it be handed out as it is? It lies within its slot, and its payload is mapped. */
static inline bool is_plain(const struct xmem_pool *pool, const struct xm_tried *tried,
			    const struct xm_publication *what)
{
	return within_slot(tried->row, what) &&
	       xl_is_placed(&pool->mappings.place[tried->slot], tried->row);
}

/* The entry points outside its slot: it is lost. */
static XL_COLD int refuse_entry(struct xmem_subscription *subscription, struct xl_ring *ring,
				u64 token)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_pending pending = { XM_NOTHING, 0 };

	ring->follow.lost += !xl_has_past(ring);
	xl_pass_next(subscription, ring, &pending);
	xl_do(pool, pending);
	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	return -EBUSY;
}

/* Can nobody here ever have contents that are not mapped because of @err? */
static bool is_lost(int err)
{
	return err == -EACCES || err == -EIO;
}

/*
 * There is a publication, and no way to hand it out now: it stays the next one. One whose
 * contents nobody can ever have is lost. @err is noted, but for -EAGAIN: its file is not mapped.
 */
static XL_COLD int leave_entry(struct xmem_subscription *subscription, struct xl_ring *ring,
			       u64 token, int err)
{
	struct xmem_pool *pool = subscription->pool;

	if (is_lost(err))
		return refuse_entry(subscription, ring, token);
	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	if (err != -EAGAIN)
		return XL_NOTED;
	if (!xl_is_put_off(pool))
		return UNMAPPED;
	subscription->put_off = true;
	return -EAGAIN;
}

/* The slot of the next publication is held, and not known to be mapped. 0, or as leave_entry. */
static XL_COLD int find_mapped(struct xmem_subscription *subscription, struct xl_ring *ring,
			       u64 token)
{
	u64 before = subscription->unmapped;
	int err = xl_payload_find_mapped(subscription->pool, xm_token_slot(token),
					 &subscription->unmapped, &subscription->unmapped_shared);

	if (err == -EAGAIN && subscription->unmapped == before && subscription->unmappable)
		err = -EIO;
	subscription->unmappable = false;
	return err ? leave_entry(subscription, ring, token, err) : 0;
}

/*
 * Map what the next publication of a ring needs. Leaves the lock and comes back. 0: look again;
 * -ECANCELED: the subscription has been dropped meanwhile; or XL_NOTED.
 */
static int map_unmapped(struct xmem_subscription *subscription, u64 deadline)
{
	struct xmem_pool *pool = subscription->pool;
	bool shared = subscription->unmapped_shared;
	u64 payload = subscription->unmapped;
	struct xl_error before;
	int err, dropped;

	xl_subscription_leave(subscription);
	xl_error_save(&before);
	err = xl_payload_map(pool, payload, shared, xl_ask_patiently(deadline));
	xl_ask_note(pool, err);
	dropped = xl_subscription_return(subscription);
	if (dropped)
		return dropped;
	subscription->unmapped = payload;
	subscription->unmappable = is_lost(err);
	/* It may have gone meanwhile, since nobody here holds it: a look says so. */
	if (err && err != -ENOENT && err != -ETIMEDOUT && !is_lost(err))
		return XL_NOTED;
	xl_error_restore(&before);
	return 0;
}

/* What was received is in @buffer, and no other thread has it yet. */
static XL_INLINE void fill_received(struct xmem_subscription *subscription, struct xl_ring *ring,
				    u32 slot, struct xmem_buffer *buffer)
{
	u64 origin = ring->origin;

	buffer->slot = slot;
	buffer->origin = origin;
	subscription->origin = origin;
	subscription->ring = ring->next;
	xl_handle_use(buffer, XL_READING);
}

/*
 * The contents are gone, or the slot is being scanned, and its owner may be stopped. 0: it is held;
 * -EBUSY: it is gone, and so is the hold; or an error of the host.
 */
static XL_COLD int receive_resolved(struct xmem_pool *pool, struct xl_ring *ring, u64 token,
				    struct xm_pending *pending, int err)
{
	err = xl_hold_resolved(pool, token, err == -EINPROGRESS ? -EAGAIN : err);
	if (err == -ESTALE)
		return xm_receive_skip(&pool->map, pool->me, &ring->follow, pending);
	return err == -EAGAIN ? -EBUSY : err;
}

/*
 * The hold on the next publication is not certain, or that is not for this client. As
 * receive_once, but after 0 it is only held.
 */
static XL_COLD int receive_uncertain(struct xmem_pool *pool, struct xl_ring *ring, u64 token,
				     struct xm_pending *pending, int err)
{
	if (err == -EINPROGRESS || err == -ESTALE)
		return receive_resolved(pool, ring, token, pending, err);
	if (err != -ENOMSG)
		return err;
	xl_do(pool, *pending);
	*pending = xm_put_pending(&pool->map, xm_token_slot(token));
	return -EBUSY;
}

/*
 * Try once. Returns 0, -EAGAIN, -EPIPE, -EOVERFLOW, -EBUSY if the ring moved meanwhile: try
 * again; XL_NOTED or UNMAPPED. Under the subscription's lock.
 */
static int receive_once(struct xmem_subscription *subscription, struct xl_ring *ring,
				  struct xmem_buffer **ret)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_pending pending = { XM_NOTHING, 0 };
	struct xm_publication what;
	struct xmem_buffer *buffer;
	int err = xl_hold_next(subscription, ring, &what, &pending);

	if (unlikely(err))
		err = receive_uncertain(pool, ring, what.token, &pending, err);
	if (unlikely(err)) {
		xl_do(pool, pending);
		return err;
	}
	if (!within_slot(xm_slot_row(&pool->map, xm_token_slot(what.token)), &what))
		return refuse_entry(subscription, ring, what.token);
	if (unlikely(!xl_is_placed(&pool->mappings.place[xm_token_slot(what.token)],
				   xm_slot_row(&pool->map, xm_token_slot(what.token))))) {
		err = find_mapped(subscription, ring, what.token);
		if (err)
			return err;
	}
	/* Only now, so that polling in vain stores nothing. */
	buffer = xl_handle_new(pool);
	if (unlikely(!buffer))
		return leave_entry(subscription, ring, what.token, -ENOMEM);
	xl_pass_next(subscription, ring, &pending);
	xl_do(pool, pending);
	buffer->what = what;
	fill_received(subscription, ring, xm_token_slot(what.token), buffer);
	*ret = xl_handle(buffer);
	return 0;
}

/* Try until the answer is clear; -EBUSY if the publisher remains faster than this loop. */
static int receive_from(struct xmem_subscription *subscription, struct xl_ring *ring,
			struct xmem_buffer **ret)
{
	/* Evicted entries are passed one by one, so there is one try for each entry. */
	u32 tries = subscription->pool->map.ring_mask + 1 + MAX_RETRIES;
	int err;

	do
		err = receive_once(subscription, ring, ret);
	while (unlikely(err == -EBUSY) && --tries);
	return err;
}

/* ---- one subscription, whose lock the caller has ---- */

/* Have writers come that this client can be asked to follow now? */
static bool may_follow(struct xmem_subscription *subscription)
{
	if (!subscription->joint || !xl_writers_came(subscription))
		return false;
	subscription->put_off = xl_is_put_off(subscription->pool);
	return !subscription->put_off;
}

/*
 * Look at each ring once, from that on whose turn it is. Returns as receive_once, -EPIPE if
 * all is over, or NEWCOMERS. The lock is not left.
 */
static int look_at_all(struct xmem_subscription *subscription, struct xmem_buffer **ret)
{
	bool lonely = !subscription->rings && subscription->lasts;
	int err, worst = -EAGAIN;
	u32 seen = 0;

	subscription->put_off = false;
	if (subscription->ended)
		return -EPIPE;
	if (may_follow(subscription))
		return NEWCOMERS;
	while (seen < subscription->rings) {
		struct xl_ring *ring = subscription->ring;

		err = receive_from(subscription, ring, ret);
		if (!err || err == UNMAPPED)
			return err;
		if (err == -EPIPE) {
			xl_follow_no_longer(subscription, ring);
			continue;
		}
		subscription->ring = ring->next;
		if (err != -EAGAIN && err != -EBUSY)
			return err;
		if (err == -EBUSY)
			worst = err;
		seen++;
	}
	if (subscription->rings || lonely)
		return worst;
	xl_look_again(subscription);
	return !subscription->joint || may_follow(subscription) ? NEWCOMERS : -EAGAIN;
}

/* The last ring is over. Is another writer there? 0: look at it; -EPIPE, -EAGAIN; or as below. */
static int begin_anew(struct xmem_subscription *subscription, u64 deadline)
{
	int err = subscription->joint ? xl_follow_newcomers(subscription, deadline) : 0;

	if (err == -EAGAIN)
		return 0;	/* look at what is followed already */
	if (err || subscription->ring)
		return err;
	if (subscription->lasts)
		return -EAGAIN;
	xm_store(&subscription->ended, true);
	xl_follow_ended(subscription, false);
	xl_look_again(subscription);
	return -EPIPE;
}

/* Do what look_at_all has said. 0: look again; or as begin_anew and map_unmapped. */
static int ask_host(struct xmem_subscription *subscription, int what, u64 deadline)
{
	return what == UNMAPPED ? map_unmapped(subscription, deadline) :
				  begin_anew(subscription, deadline);
}

/* Look, and ask the host for what that needs. May leave the lock: -ECANCELED. */
static int receive_now(struct xmem_subscription *subscription, struct xmem_buffer **ret,
		       u64 deadline)
{
	int err;

	while ((err = look_at_all(subscription, ret)) == NEWCOMERS || err == UNMAPPED) {
		err = ask_host(subscription, err, deadline);
		if (err)
			return err;
	}
	return err;
}

/* Arm the words of the rings. 0, or an error other than that the host has dropped one. */
static int watch_rings(struct xmem_subscription *subscription, struct xl_watch *watch)
{
	const struct xl_ring *ring = subscription->ring;
	u32 i;
	int err;

	for (i = 0; i < subscription->rings; i++, ring = ring->next) {
		err = xl_watch_ring(subscription->pool, watch, ring->follow.publisher);
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

static int receive_wait(struct xmem_subscription *subscription, struct xmem_buffer **ret,
			u64 deadline, u32 cancels)
{
	struct xmem_pool *pool = subscription->pool;
	struct xl_watch watch;
	u32 changes;
	u64 until;
	int err;

	for (;;) {
		changes = subscription->changes;
		xl_watch_begin(pool, &watch, XMEM_POLL_JOINT);
		err = watch_rings(subscription, &watch);
		if (!err)
			err = xl_watch_writers(pool, &watch);
		if (err)
			return err;
		if (xl_wait_cancelled(pool, cancels))
			return -ECANCELED;
		err = receive_now(subscription, ret, deadline);
		if (err == -EBUSY && xl_now_ns() < deadline) {
			/* There is something, so do not wait; but let others in. */
			xl_subscription_leave(subscription);
			sched_yield();
			if (xl_subscription_return(subscription))
				return -ECANCELED;
			continue;
		}
		if (err != -EAGAIN)
			return err;
		if (changes != subscription->changes)
			continue;	/* another ring is to be armed */
		until = subscription->put_off ? xl_sleep_until(pool, deadline) : deadline;
		xl_subscription_leave(subscription);
		xl_payload_settle(pool, 0);
		err = xl_wait_rings(pool, &watch, until);
		if (xl_subscription_return(subscription))
			return -ECANCELED;
		if (err && (err != -ETIMEDOUT || until == deadline))
			return err;
	}
}

static const char *end_hint(enum xl_dropped dropped)
{
	switch (dropped) {
	case XL_DROPPED:
		return "receive: the publisher has ended, and the host has dropped its ring as the "
		       "oldest of more than 8; what was left in it is lost, and counted by "
		       "xmem_subscription_stat";
	case XL_DROPPED_UNCOUNTED:
		return "receive: the publisher has ended, and the host has dropped its ring as the "
		       "oldest of more than 8; what was left in it is lost, and how much that was "
		       "is not known";
	case XL_NOT_DROPPED:
		break;
	}
	return "receive: the publisher has ended, and all that was in flight has been received";
}

/*
 * Note the error, unless that has been done. A client that has been ended reads zeros: what it
 * took for the end of its publishers is its own.
 */
static void note(struct xmem_pool *pool, int err, enum xl_dropped dropped)
{
	const char *hint = "receive: the host refused to wait";
	bool silent = xm_load(&pool->asking.again_ns);

	if ((err == -EPIPE || err == -ENOTCONN) && xl_host_died(pool)) {
		xl_fail_died(pool);
		return;
	}
	switch (-err) {
	case -XL_NOTED:	return;
	case EAGAIN:
		hint = silent ? "receive: nothing that can be had while the host does not answer; "
				"is it stopped?" : "receive: nothing published yet";
		break;
	case ETIMEDOUT:
		hint = silent ? "receive: nothing that can be had without the host came in time, "
				"and the host does not answer; is it stopped?" :
				"receive: nothing was published in time";
		break;
	case EPIPE:	hint = end_hint(dropped); break;
	case EINTR:	hint = "receive: a signal handler ran"; break;
	case ENOTCONN:	hint = "receive: the host has gone, or has ended this client";
			break;
	case EOVERFLOW:	hint = "receive: too many handles of one buffer"; break;
	case EMFILE:	hint = "receive: no descriptor is left to wait with"; break;
	case ECANCELED:	hint = "receive: xmem_cancel, xmem_unsubscribe or xmem_pool_close has "
			       "ended the wait"; break;
	}
	xl_fail_fast(-err, hint);
}

/* ---- the calls ---- */

static XL_COLD struct xmem_buffer *receive_refused(const struct xmem_subscription *subscription)
{
	xl_fail_fast(EINVAL, subscription ? "receive: a negative timeout" :
					    "receive: no subscription");
	return NULL;
}

/* The short way is for those who follow, and do nothing that takes a look after each receive. */
static u64 short_joins(const struct xmem_subscription *subscription)
{
	const struct xmem_pool *pool = subscription->pool;
	bool waits = subscription->rings == 1 ? subscription->ring->follow.waits :
						subscription->waits;

	if (waits || !subscription->rings || subscription->pasts || subscription->depth ||
	    xl_cancelled(pool) || xm_load(&pool->polls.settle))
		return XL_LOOK_AGAIN;
	return subscription->joins_seen;
}

/* All that is not common. The caller has the lock. */
static XL_SLOW struct xmem_buffer *receive_slow(struct xmem_subscription *subscription,
						int64_t timeout_ns)
{
	struct xmem_pool *pool = subscription->pool;
	u64 deadline = timeout_ns ? xl_deadline(timeout_ns) : 0;
	struct xmem_buffer *buffer = NULL;
	enum xl_dropped dropped;
	u32 cancels;
	int err;

	if (xl_host_died(pool)) {
		xl_unlock(&subscription->lock);
		xl_fail_died(pool);
		return NULL;
	}
	cancels = xm_load(&pool->calls.cancels);
	if (timeout_ns && cancels & XL_CANCEL_ALWAYS)
		err = -ECANCELED;
	else
		err = receive_now(subscription, &buffer, deadline);
	if ((err == -EAGAIN || err == -EBUSY) && timeout_ns)
		err = receive_wait(subscription, &buffer, deadline, cancels);
	if (unlikely(err == -EBUSY))
		err = timeout_ns ? -ETIMEDOUT : -EAGAIN;
	dropped = subscription->dropped;
	if (err == -EPIPE)
		xl_payload_unmap_stale(pool);
	xl_poll_settle(pool, POLLIN);
	subscription->short_joins = short_joins(subscription);
	xl_unlock(&subscription->lock);
	xl_cuda_settle(pool, 0);
	if (likely(!err))
		return buffer;
	note(pool, err, dropped);
	return NULL;
}

static XL_COLD struct xmem_buffer *receive_dropped(struct xmem_subscription *subscription)
{
	xl_unlock(&subscription->lock);
	xl_fail_fast(EBADF, "receive: this subscription has been dropped");
	return NULL;
}

/* Its lock is not biased to this thread. In a child it is nobody's. */
static XL_SLOW struct xmem_buffer *receive_with_mutex(struct xmem_subscription *handle,
						      int64_t timeout_ns)
{
	struct xmem_subscription *subscription = xl_subscription(handle);

	if (!xl_is_ours(subscription))
		return xl_fail_forked(), NULL;
	xl_lock(&subscription->lock);
	return likely(subscription->handle == (u64)handle) ?
		receive_slow(subscription, timeout_ns) : receive_dropped(subscription);
}

/* There is a hold, and it takes a further look whether and how its buffer is handed out. */
static XL_SLOW struct xmem_buffer *receive_again(struct xmem_subscription *subscription,
						 int64_t timeout_ns, u64 token)
{
	struct xmem_pool *pool = subscription->pool;

	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	return receive_slow(subscription, timeout_ns);
}

/* The entry is not there. Who polls, and follows one ring, gets a quick answer. */
static XL_SLOW struct xmem_buffer *receive_in_vain(struct xmem_subscription *subscription,
						   int64_t timeout_ns, u64 position)
{
	const struct xl_ring *ring = subscription->ring;

	if (timeout_ns || subscription->rings != 1 ||
	    !xm_receive_is_early(&subscription->pool->map, &ring->words, &ring->follow, position))
		return receive_slow(subscription, timeout_ns);
	xl_unlock(&subscription->lock);
	xl_fail_fast(EAGAIN, "receive: nothing published yet");
	return NULL;
}

/*
 * What is common is here, and all else is a tail call, so that no registers have to be saved. A
 * publication goes from its entry right into a free handle of this thread, which stays free if it
 * turns out not to be handed out.
 */
XMEM_API struct xmem_buffer *xmem_receive(struct xmem_subscription *handle, int64_t timeout_ns)
{
	struct xmem_subscription *subscription = xl_subscription(handle);
	struct xmem_buffer *buffer;
	struct xmem_pool *pool;
	struct xm_tried tried;
	struct xl_ring *ring;
	int err;

	if (unlikely(!subscription || timeout_ns < 0))
		return receive_refused(subscription);
	if (unlikely(!xl_lock_biased(&subscription->lock, xl_self.thread)))
		return receive_with_mutex(handle, timeout_ns);
	if (unlikely(subscription->handle != (u64)handle))
		return receive_dropped(subscription);
	ring = subscription->ring;
	pool = subscription->pool;
	buffer = xl_self.handles;
	if (unlikely(xl_peek(subscription->joins) != subscription->short_joins ||
		     xl_host_died(pool) || !buffer))
		return receive_slow(subscription, timeout_ns);
	err = xm_receive_try(&pool->map, &ring->words, &ring->follow, &buffer->what, &tried);
	if (unlikely(err == -EAGAIN))
		return receive_in_vain(subscription, timeout_ns, tried.position);
	if (unlikely(err && err != -EBUSY))
		return receive_slow(subscription, timeout_ns);
	if (unlikely(err || !is_plain(pool, &tried, &buffer->what)))
		return receive_again(subscription, timeout_ns, buffer->what.token);
	xm_receive_pass_at_once(&ring->words, &ring->follow, tried.position);
	xl_handle_take(buffer, pool);
	fill_received(subscription, ring, tried.slot, buffer);
	if (unlikely(!xl_unlock_biased(&subscription->lock, xl_self.thread)))
		return xl_unlock_revoked(&subscription->lock, xl_handle(buffer));
	return xl_handle(buffer);
}

void xl_follow_who_came(struct xmem_pool *pool, u64 deadline)
{
	struct xmem_subscription *one;

	xl_lock(&pool->follows.list);
	for (one = pool->follows.subscriptions; one; one = one->next) {
		xl_lock(&one->lock);
		if (one->handle && one->joint && !one->ended)
			break;
		xl_unlock(&one->lock);
	}
	xl_unlock(&pool->follows.list);
	if (!one)
		return;
	if (may_follow(one))
		xl_follow_newcomers(one, deadline);
	xl_unlock(&one->lock);
}

/* ---- any subscription of a pool ---- */

/*
 * Look at each subscription once, from that on whose turn it is. Returns as look_at_all, or
 * -ENOENT: there is none. *ret_one is the one that it is about, and after NEWCOMERS and UNMAPPED
 * locked. *ret_put_off: something is put off.
 */
static int look_at_any(struct xmem_pool *pool, struct xmem_buffer **ret,
		       struct xmem_subscription **ret_one, u64 *ret_handle, bool *ret_put_off)
{
	struct xl_following *follows = &pool->follows;
	struct xmem_subscription *first = follows->turn ? follows->turn : follows->subscriptions;
	struct xmem_subscription *one = first;
	int err, worst = one ? -EAGAIN : -ENOENT;

	*ret_put_off = false;
	for (; one; one = one->next ? one->next : follows->subscriptions) {
		xl_lock(&one->lock);
		err = one->handle ? look_at_all(one, ret) : -EAGAIN;
		if (err != -EAGAIN && err != -EBUSY && (err != -EPIPE || worst != -EPIPE)) {
			*ret_one = one;
			*ret_handle = one->handle;
		}
		if (err == NEWCOMERS || err == UNMAPPED)
			return err;
		*ret_put_off |= one->handle && one->put_off;
		xl_unlock(&one->lock);
		if (err != -EAGAIN && err != -EBUSY && err != -EPIPE) {
			follows->turn = one->next;
			return err;
		}
		if (err == -EPIPE || (err == -EBUSY && worst == -EAGAIN))
			worst = err;
		if ((one->next ? one->next : pool->follows.subscriptions) == first)
			break;
	}
	return worst;
}

/* Look, and ask the host for what that needs. */
static int any_now(struct xmem_pool *pool, struct xmem_buffer **ret, u64 *ret_handle, u64 deadline,
		   bool *ret_put_off)
{
	struct xmem_subscription *one = NULL;
	int err;

	do {
		xl_lock(&pool->follows.list);
		err = look_at_any(pool, ret, &one, ret_handle, ret_put_off);
		xl_unlock(&pool->follows.list);
		if (err != NEWCOMERS && err != UNMAPPED)
			return err;
		err = ask_host(one, err, deadline);
		xl_unlock(&one->lock);
	} while (err != XL_NOTED);	/* if it has ended or been dropped, a look says so */
	return err;
}

/* Arm the words of all rings that this client follows, whichever subscription it is. */
static int watch_all(struct xmem_pool *pool, struct xl_watch *watch)
{
	u32 c;
	int err;

	for (c = 0; c < pool->map.clients; c++) {
		if (!xm_bit(xm_client_row(&pool->map, c)->subscribers, pool->me))
			continue;
		err = xl_watch_ring(pool, watch, c);
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

static int any_wait(struct xmem_pool *pool, struct xmem_buffer **ret, u64 *ret_handle,
		    u64 deadline, u32 cancels)
{
	struct xl_watch watch;
	bool put_off;
	u64 until;
	int err;

	for (;;) {
		xl_watch_begin(pool, &watch, XMEM_POLL_CLIENT);
		err = watch_all(pool, &watch);
		if (!err)
			err = xl_watch_writers(pool, &watch);
		if (err)
			return err;
		if (xl_wait_cancelled(pool, cancels))
			return -ECANCELED;
		err = any_now(pool, ret, ret_handle, deadline, &put_off);
		if (err == -EBUSY && xl_now_ns() < deadline)
			continue;
		if (err != -EAGAIN)
			return err;
		if (watch.kicks != xm_load(&pool->follows.kicks))
			continue;	/* another ring may have to be armed: wait.h */
		until = put_off ? xl_sleep_until(pool, deadline) : deadline;
		err = xl_wait_rings(pool, &watch, until);
		if (err && (err != -ETIMEDOUT || until == deadline))
			return err;
	}
}

static int receive_any(struct xmem_pool *pool, struct xmem_buffer **ret, u64 *ret_handle,
		       int64_t timeout_ns)
{
	u64 deadline = timeout_ns ? xl_deadline(timeout_ns) : 0;
	u32 cancels = xl_wait_begin(pool);
	bool put_off;
	int err;

	if (timeout_ns && cancels & XL_CANCEL_ALWAYS)
		return -ECANCELED;
	err = any_now(pool, ret, ret_handle, deadline, &put_off);
	if ((err == -EAGAIN || err == -EBUSY) && timeout_ns)
		err = any_wait(pool, ret, ret_handle, deadline, cancels);
	return err == -EBUSY ? (timeout_ns ? -ETIMEDOUT : -EAGAIN) : err;
}

XMEM_API struct xmem_buffer *xmem_receive_any(struct xmem_pool *pool, int64_t timeout_ns,
					      struct xmem_subscription **ret_subscription)
{
	struct xmem_buffer *buffer = NULL;
	u64 handle = 0;
	int err;
	XL_USE(pool);

	if (!pool || timeout_ns < 0) {
		xl_fail_fast(EINVAL, pool ? "receive: a negative timeout" : "receive: no pool");
		return NULL;
	}
	if (!xl_is_open(pool)) {
		xl_fail_not_alive(pool);
		return NULL;
	}
	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	err = receive_any(pool, &buffer, &handle, timeout_ns);
	if (err == -ENOENT)
		xl_fail_fast(ENOENT, "receive: the pool's handle has no subscription");
	else if (err)
		note(pool, err, XL_NOT_DROPPED);
	xl_poll_settle(pool, POLLIN);
	if (ret_subscription)
		*ret_subscription = !err || err == -EPIPE ? (void *)handle : NULL;
	xl_wait_end(pool);
	return err ? NULL : buffer;
}
