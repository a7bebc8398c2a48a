// SPDX-License-Identifier: MIT
/*
 * Subscriptions: finding a publisher, following it, and following it no longer.
 */
#include <stdlib.h>
#include <string.h>

#include "died.h"
#include "handle.h"
#include "pages.h"
#include "payload/payload.h"
#include "request.h"
#include "structs.h"
#include "subscribe.h"

#define HOST_NS		1000000000	/* how long a host that may be stopped is waited for */

/* Does the host still count this client among the subscribers of that incarnation? */
static bool still_follows(const struct xmem_pool *pool, const struct xm_follow *follow)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, follow->publisher);

	return xm_load_acquire(&row->state) != XMEM_CLIENT_NONE &&
	       xm_load(&row->incarnation) == follow->incarnation &&
	       xm_bit(row->subscribers, pool->me);
}

/* Is the ring still there, and has all of it been received? */
static bool received_all(const struct xmem_pool *pool, const struct xm_follow *follow)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, follow->publisher);
	u64 tail = xm_load_acquire(&xm_ring(&pool->map, follow->publisher)->tail);

	return follow->place >= tail && xm_load_acquire(&row->state) == XMEM_CLIENT_ZOMBIE &&
	       xm_load(&row->incarnation) == follow->incarnation;
}

void xl_note_end(struct xmem_subscription *subscription)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_follow *follow = &subscription->follow;
	u64 cursor, end;

	if (subscription->ended || still_follows(pool, follow))
		return;
	xm_load_barrier();	/* the bit before the cursor: pairs with xm_forget_at */
	cursor = xm_load_acquire(xm_cursor(&pool->map, pool->me, follow->publisher));
	if (cursor == XMEM_CURSOR_NONE)
		return;
	end = cursor & ~XMEM_CURSOR_DROPPED;
	if (cursor == end) {		/* a later receive has overwritten what the host noted */
		if (!received_all(pool, follow))
			subscription->dropped = XL_DROPPED_UNCOUNTED;
	} else if (end > follow->place) {
		subscription->dropped = XL_DROPPED;
		follow->lost += end - follow->place;
		follow->place = end;
	}
}

/*
 * A subscription to an earlier client of this id has its cursor in the same place. It must
 * not move the cursor any more when the host sets it anew (I4). Under pool->slow.
 */
static void retire_older(struct xmem_pool *pool, u32 publisher, u64 incarnation)
{
	struct xmem_subscription *old;

	for (old = pool->subscriptions; old; old = old->next) {
		xl_lock(&old->lock);
		if (old->follow.publisher == publisher && old->follow.incarnation != incarnation) {
			xl_note_end(old);
			old->follow.incarnation = 0;	/* no client has it: receive says EPIPE */
			old->ended = true;
		}
		xl_unlock(&old->lock);
	}
}

static int subscribe_to(struct xmem_pool *pool, u32 publisher, u64 incarnation, u32 flags,
			u64 deadline, struct xmem_subscription *subscription)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = publisher, .incarnation = incarnation,
		.flags = flags & XMEM_SUBSCRIBE_WAITS ? XMEM_SUBSCRIBE_WAIT : 0,
	};
	int err;

	xl_lock(&pool->slow);
	retire_older(pool, publisher, incarnation);
	err = xl_request_until(pool, XMEM_IOC_SUBSCRIBE, &request, deadline);
	if (!err) {
		subscription->follow = (struct xm_follow){
			.publisher = publisher,
			.waits = flags & XMEM_SUBSCRIBE_WAITS,
			.incarnation = incarnation,
			.joined = request.position,
			.place = request.position,
		};
		subscription->next = pool->subscriptions;
		pool->subscriptions = subscription;
	}
	xl_unlock(&pool->slow);
	return err;
}

/* Follow one client, if it is a writer now. */
static int subscribe_one(struct xmem_pool *pool, u32 publisher, u32 flags, u64 deadline,
			 struct xmem_subscription *subscription)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, publisher);

	if (xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE ||
	    xm_load(&row->role) != XMEM_ROLE_WRITER)
		return -ENOENT;
	return subscribe_to(pool, publisher, xm_load(&row->incarnation), flags, deadline,
			    subscription);
}

/* Follow the first other writer that this client does not follow yet. */
static int subscribe_any(struct xmem_pool *pool, u32 flags, u64 deadline,
			 struct xmem_subscription *subscription)
{
	int err, worst = -ENOENT;
	u32 c;

	for (c = 0; c < pool->map.clients; c++) {
		if (c == pool->me || xm_bit(xm_client_row(&pool->map, c)->subscribers, pool->me))
			continue;
		err = subscribe_one(pool, c, flags, deadline, subscription);
		if (!err)
			return 0;
		if (err != -ENOENT && err != -ESTALE && err != -EEXIST)
			worst = err;
	}
	return worst;
}

static int subscribe_now(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			 u64 deadline, struct xmem_subscription *subscription)
{
	if (options->flags & XMEM_SUBSCRIBE_PUBLISHER)
		return subscribe_one(pool, options->publisher, options->flags, deadline,
				     subscription);
	return subscribe_any(pool, options->flags, deadline, subscription);
}

static int subscribe_wait(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			  u64 deadline, struct xmem_subscription *subscription)
{
	u32 value;
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_CLIENTS, 0, &value);
		if (err)
			return err;
		err = subscribe_now(pool, options, deadline, subscription);
		if (err != -ENOENT)
			return err;
		err = xl_waiters_wait(pool, XMEM_WAIT_CLIENTS, 0, value, deadline);
		if (err)
			return err;
	}
}

static const char *subscribe_hint(int err, const struct xmem_subscribe_options *options)
{
	bool one = options->flags & XMEM_SUBSCRIBE_PUBLISHER;

	switch (-err) {
	case ENOENT:	return one ? "that client is no writer" : "no writer is there to follow";
	case ETIMEDOUT:
		return one ? "that client did not come in time, or the host did not answer" :
			     "no writer came in time, or the host did not answer";
	case EEXIST:	return "this client follows it already";
	case EOPNOTSUPP: return "it waits for nobody: its wait_bound_ns is 0";
	case ESTALE:	return "it has just ended";
	case EINTR:	return "a signal handler ran";
	case ENOTCONN:	return "the host has gone";
	}
	return strerror(-err);
}

static void note_failure(int err, const struct xmem_pool *pool,
			 const struct xmem_subscribe_options *options)
{
	char name[XL_NAME_BYTES];
	const char *hint = subscribe_hint(err, options);

	if (options->flags & XMEM_SUBSCRIBE_PUBLISHER)
		xl_fail(-err, "subscribe to client %u of %s: %s", options->publisher,
			xl_pool_name(pool, name, sizeof(name)), hint);
	else
		xl_fail(-err, "subscribe to a writer of %s: %s",
			xl_pool_name(pool, name, sizeof(name)), hint);
}

static int check_options(const struct xmem_pool *pool, const struct xmem_subscribe_options *o)
{
	u32 unknown = o->flags & ~(XMEM_SUBSCRIBE_WAITS | XMEM_SUBSCRIBE_PUBLISHER |
				   XMEM_SUBSCRIBE_NOWAIT);

	if (unknown)
		return xl_fail(EINVAL,
			       "xmem_subscribe_options: flags has 0x%x, which has no meaning",
			       unknown);
	if (o->publisher && !(o->flags & XMEM_SUBSCRIBE_PUBLISHER))
		return xl_fail(EINVAL, "xmem_subscribe_options: publisher is %u, but flags lack "
				       "XMEM_SUBSCRIBE_PUBLISHER", o->publisher);
	if (o->publisher >= pool->map.clients)
		return xl_fail(EINVAL,
			       "xmem_subscribe_options: publisher is %u, but ids of the pool "
			       "end at %u",
			       o->publisher, pool->map.clients - 1);
	if (o->timeout_ns < 0)
		return xl_fail(EINVAL, "xmem_subscribe_options: timeout_ns is negative");
	if (o->timeout_ns && o->flags & XMEM_SUBSCRIBE_NOWAIT)
		return xl_fail(EINVAL,
			       "xmem_subscribe_options: timeout_ns is not 0, but flags have "
			       "XMEM_SUBSCRIBE_NOWAIT");
	return 0;
}

/* Take the caller's options and fill in the defaults. Returns 0, or an error, noted. */
static int take_options(const struct xmem_pool *pool, const struct xmem_subscribe_options *given,
			struct xmem_subscribe_options *ret)
{
	int err;

	*ret = (struct xmem_subscribe_options){ 0 };
	err = xl_options_take("xmem_subscribe_options", given, ret, sizeof(*ret));
	if (!err)
		err = check_options(pool, ret);
	if (!err && !ret->timeout_ns)
		ret->timeout_ns = XMEM_FOREVER;
	return err;
}

XMEM_API struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool,
						  const struct xmem_subscribe_options *given)
{
	struct xmem_subscription *subscription;
	struct xmem_subscribe_options options;
	u64 deadline;
	bool nowait;
	int err;

	if (!pool) {
		xl_fail_fast(EINVAL, "subscribe: no pool");
		return NULL;
	}
	if (!xl_alive(pool)) {
		xl_fail_forked();
		return NULL;
	}
	if (take_options(pool, given, &options))
		return NULL;
	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	subscription = calloc(1, sizeof(*subscription));
	if (!subscription) {
		xl_fail_fast(ENOMEM, "no memory for a subscription");
		return NULL;
	}
	xl_payload_unmap_stale(pool);
	subscription->pool = pool;
	nowait = options.flags & XMEM_SUBSCRIBE_NOWAIT;
	deadline = xl_deadline(nowait ? HOST_NS : options.timeout_ns);
	err = subscribe_now(pool, &options, deadline, subscription);
	if (err == -ENOENT && !nowait)
		err = subscribe_wait(pool, &options, deadline, subscription);
	if (err) {
		free(subscription);
		note_failure(err, pool, &options);
		return NULL;
	}
	xl_lock(&pool->lock);
	pool->out++;
	xl_unlock(&pool->lock);
	xl_poll_settle(pool, POLLIN);
	return subscription;
}

void xl_tell_unsubscribed(struct xmem_subscription *subscription, bool wait)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .publisher = subscription->follow.publisher,
		.incarnation = subscription->follow.incarnation,
	};

	/* The host refuses this if it has forgotten the ring already. */
	if (!subscription->ended && wait)
		xl_request_until(subscription->pool, XMEM_IOC_UNSUBSCRIBE, &request,
				 xl_deadline(HOST_NS));
	else if (!subscription->ended)
		xl_post(subscription->pool, XMEM_IOC_UNSUBSCRIBE, &request);
	subscription->ended = true;
}

static void forget(struct xmem_pool *pool, struct xmem_subscription *subscription)
{
	struct xmem_subscription **at;

	xl_lock(&pool->slow);
	for (at = &pool->subscriptions; *at != subscription; at = &(*at)->next)
		;
	*at = subscription->next;
	xl_tell_unsubscribed(subscription, true);
	xl_unlock(&pool->slow);
}

XMEM_API void xmem_unsubscribe(struct xmem_subscription *subscription)
{
	struct xmem_pool *pool;

	if (!subscription)
		return;
	pool = subscription->pool;
	if (xl_alive(pool)) {
		forget(pool, subscription);
		xl_poll_drop(pool, &subscription->poll);
		xl_poll_settle(pool, POLLIN);
		xl_payload_unmap_stale(pool);
		xl_pool_unshare(pool);
	}
	free(subscription);
}

XMEM_API uint64_t xmem_subscription_lost(struct xmem_subscription *subscription)
{
	u64 lost;

	if (!subscription || !xl_alive(subscription->pool))
		return 0;
	xl_lock(&subscription->lock);
	lost = subscription->follow.lost;
	xl_unlock(&subscription->lock);
	return lost;
}

XMEM_API int xmem_subscription_publisher(struct xmem_subscription *subscription)
{
	if (!subscription)
		return xl_fail_fast(EINVAL, "xmem_subscription_publisher: no subscription");
	return xl_alive(subscription->pool) ? (int)subscription->follow.publisher
					    : xl_fail_forked();
}
