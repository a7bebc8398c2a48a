// SPDX-License-Identifier: MIT
/*
 * xmem_subscribe: its options, which writers to follow, and waiting for writers. follow.c follows a
 * ring.
 */
#include <string.h>

#include "lib/base/structs.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/host/died.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

/*
 * Fail because the client is a reader: a reader stays one, so waiting is in vain. ENOENT is noted,
 * so this returns XL_NOTED.
 */
static int is_a_reader(const struct xmem_pool *pool, u32 client)
{
	char name[XL_NAME_BYTES];

	xl_fail(ENOENT, "client %u of %s: that client is a reader, not a writer",
		client, xl_pool_name(pool, name, sizeof(name)));
	return XL_NOTED;
}

/*
 * Follow the client that the options name, if it is a writer now. Under pool->follows.subscribing.
 */
static int follow_one(struct xmem_subscription *subscription, u32 publisher, u64 deadline)
{
	const struct xmem_client_row *row = xm_client_row(&subscription->pool->map, publisher);

	if (xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE)
		return -ENOENT;
	if (xm_load(&row->role) != XMEM_ROLE_WRITER)
		return is_a_reader(subscription->pool, publisher);
	return xl_follow(subscription, publisher, xm_load(&row->incarnation), deadline);
}

static bool any_joint(struct xmem_pool *pool)
{
	const struct xmem_subscription *one;
	bool any = false;

	xl_lock(&pool->follows.list);
	for (one = pool->follows.subscriptions; one; one = one->next)
		any |= one->joint && !xm_load(&one->ended);
	xl_unlock(&pool->follows.list);
	return any;
}

/*
 * Does any writer that would be followed wait for subscribers? 0, or the error that says why not.
 */
static int any_waits(const struct xmem_subscription *subscription)
{
	const struct xmem_pool *pool = subscription->pool;
	int err = -ENOENT;
	u32 c;

	for (c = 0; c < pool->map.clients; c++) {
		if (!xl_wanted_writer(subscription, c))
			continue;
		if (xm_load(&xm_client_row(&pool->map, c)->wait_bound_ns))
			return 0;
		err = -EOPNOTSUPP;
	}
	return err;
}

static int follow_pool(struct xmem_subscription *subscription, u64 deadline)
{
	struct xmem_pool *pool = subscription->pool;
	int err = 0;

	if (any_joint(pool))
		return -EEXIST;
	/* Before the first request: after it, the host looks for writers that join. */
	xm_want_label(&pool->map, pool->me, &subscription->label);
	subscription->joins = &pool->map.pool->writers;
	subscription->joins_seen = xm_load_acquire(subscription->joins);
	/* A lasting subscription also follows later writers, and those may wait for subscribers. */
	if (subscription->waits && !subscription->lasts)
		err = any_waits(subscription);
	if (!err)
		err = xl_follow_all(subscription, deadline);
	return err || subscription->ring || subscription->lasts ? err : -ENOENT;
}

/* Put the subscription into the pool's list, and let it have a share of the pool (base/share.h). */
static void add_to_list(struct xmem_pool *pool, struct xmem_subscription *subscription)
{
	xl_lock(&pool->share.lock);
	pool->share.out++;
	xl_unlock(&pool->share.lock);
	xl_lock(&pool->follows.list);
	xl_lock(&subscription->lock);
	subscription->old = true;
	subscription->next = pool->follows.subscriptions;
	pool->follows.subscriptions = subscription;
	xl_unlock(&subscription->lock);
	xl_unlock(&pool->follows.list);
}

static int subscribe_now(struct xmem_subscription *subscription,
			 const struct xmem_subscribe_options *options, u64 deadline)
{
	struct xmem_pool *pool = subscription->pool;
	int err = xl_turn_take(&pool->follows.subscribing, deadline);

	if (err)
		return err;
	err = subscription->joint ? follow_pool(subscription, deadline) :
				    follow_one(subscription, options->publisher, deadline);
	while (err && subscription->ring)
		xl_unfollow(subscription, subscription->ring);
	if (!err)
		add_to_list(pool, subscription);
	if (!err && subscription->lasts)
		xl_post_lasting(subscription, false);
	xl_turn_end(&pool->follows.subscribing);
	if (!err)
		xl_kick(pool);		/* threads in xmem_receive_any do not wait for it yet */
	return err;
}

static int subscribe_wait(struct xmem_subscription *subscription,
			  const struct xmem_subscribe_options *options, u64 deadline, u32 cancels)
{
	struct xmem_pool *pool = subscription->pool;
	struct xl_armed armed;
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_CLIENTS, 0, &armed);
		if (err)
			return err;
		if (xl_wait_cancelled(&pool->calls, cancels))
			return -ECANCELED;
		err = subscribe_now(subscription, options, deadline);
		if (err != -ENOENT)
			return err;
		err = xl_await_writer(pool, armed, deadline);
		if (err)
			return err;
	}
}

/* Follow the writers that the options name, at once or after waiting for them. */
static int subscribe(struct xmem_subscription *subscription,
		     const struct xmem_subscribe_options *options)
{
	struct xmem_pool *pool = subscription->pool;
	bool may_wait = !(options->flags & (XMEM_SUBSCRIBE_NOWAIT | XMEM_SUBSCRIBE_LASTS));
	u64 deadline = xl_deadline(may_wait ? options->timeout_ns : XL_HOST_NS);
	u32 cancels = xl_wait_begin(&pool->calls);
	int err;

	if (may_wait && cancels & XL_CANCEL_ALWAYS)
		err = -ECANCELED;
	else
		err = subscribe_now(subscription, options, deadline);
	if (err == -ENOENT && may_wait)
		err = subscribe_wait(subscription, options, deadline, cancels);
	return err;
}

static const char *subscribe_hint(int err, const struct xmem_subscribe_options *options)
{
	bool one = options->flags & XMEM_SUBSCRIBE_PUBLISHER;

	switch (-err) {
	case ENOENT:
		if (options->label)
			return "no writer with such a label is there to follow";
		return one ? "no client has that id now" : "no writer is there to follow";
	case ETIMEDOUT:
		return one ? "that client did not come in time, or the host did not answer" :
			     "no writer came in time, or the host did not answer";
	case EEXIST:	return one ? "this client follows it already" :
				     "this pool handle has a subscription to all writers already";
	case EOPNOTSUPP: return one ? "it waits for no subscriber: its wait_bound_ns is 0" :
				      "no writer here waits for subscribers: wait_bound_ns is 0";
	case ECANCELED:	return "xmem_cancel or xmem_pool_close has ended the wait";
	case ESTALE:	return "it has just ended";
	case EINTR:	return "a signal handler ran";
	case ENOTCONN:	return "the host has gone, or has ended this client";
	}
	return strerror(-err);
}

static void note_failure(int err, const struct xmem_pool *pool,
			 const struct xmem_subscribe_options *options)
{
	char name[XL_NAME_BYTES];
	const char *hint = subscribe_hint(err, options);

	if (options->flags & XMEM_SUBSCRIBE_PUBLISHER)
		xl_fail(-err, "client %u of %s: %s", options->publisher,
			xl_pool_name(pool, name, sizeof(name)), hint);
	else
		xl_fail(-err, "a writer of %s: %s",
			xl_pool_name(pool, name, sizeof(name)), hint);
}

static int check_options(const struct xmem_pool *pool, const struct xmem_subscribe_options *o)
{
	u32 unknown = o->flags & ~(XMEM_SUBSCRIBE_WAITS | XMEM_SUBSCRIBE_PUBLISHER |
				   XMEM_SUBSCRIBE_NOWAIT | XMEM_SUBSCRIBE_LASTS);

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
	if (o->flags & XMEM_SUBSCRIBE_LASTS && o->flags & XMEM_SUBSCRIBE_PUBLISHER)
		return xl_fail(EINVAL, "xmem_subscribe_options: flags has XMEM_SUBSCRIBE_LASTS and "
				       "XMEM_SUBSCRIBE_PUBLISHER; a subscription to one client "
				       "ends with that client");
	if (o->timeout_ns && o->timeout_ns != XMEM_FOREVER && o->flags & XMEM_SUBSCRIBE_LASTS)
		return xl_fail(EINVAL, "xmem_subscribe_options: timeout_ns is given, but flags has "
				       "XMEM_SUBSCRIBE_LASTS, which waits for no publisher");
	if (o->label && o->flags & XMEM_SUBSCRIBE_PUBLISHER)
		return xl_fail(EINVAL, "xmem_subscribe_options: label is '%.40s', but flags have "
				       "XMEM_SUBSCRIBE_PUBLISHER", o->label);
	if (o->depth && o->flags & XMEM_SUBSCRIBE_WAITS)
		return xl_fail(EINVAL,
			       "xmem_subscribe_options: depth is %u, but flags have "
			       "XMEM_SUBSCRIBE_WAITS, with which everything is received", o->depth);
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
	XL_CALL;
	struct xmem_subscription *subscription;
	struct xmem_subscribe_options options;
	struct xm_label label;
	u64 handle;
	int err;
	XL_USE(pool);

	if (!pool) {
		xl_fail_fast(EINVAL, "no pool");
		return NULL;
	}
	if (!xl_is_open(pool)) {
		xl_fail_not_alive(pool);
		return NULL;
	}
	if (take_options(pool, given, &options) || xl_label_take(options.label, &label))
		return NULL;
	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	xl_payload_reap(pool, 0);
	subscription = xl_subscription_new(pool);
	if (!subscription)
		return NULL;
	subscription->joint = !(options.flags & XMEM_SUBSCRIBE_PUBLISHER);
	subscription->waits = options.flags & XMEM_SUBSCRIBE_WAITS;
	subscription->lasts = options.flags & XMEM_SUBSCRIBE_LASTS;
	subscription->label = label;
	xl_past_init(subscription, &options);
	handle = subscription->handle;
	err = subscribe(subscription, &options);
	if (err) {
		if (err != XL_NOTED)
			note_failure(err, pool, &options);
		xl_subscription_free(subscription);
	}
	xl_poll_update(pool, POLLIN);
	xl_wait_end(&pool->calls);
	return err ? NULL : (void *)handle;
}
