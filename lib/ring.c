// SPDX-License-Identifier: MIT
/*
 * Subscriptions: finding a publisher, following its ring, sleeping for it.
 */
#include <stdlib.h>
#include <string.h>

#include "private.h"

#define MAX_RETRIES	4	/* looks at a ring that its publisher laps us in, beyond one of each entry */

/* ---- subscribe ---- */

/*
 * A subscription to who had this id before us has its cursor in the same place:
 * it must not be moving it any more when the host sets it anew (I4). Under pool->slow.
 */
static void retire_older(struct xmem_pool *pool, u32 publisher, u64 incarnation)
{
	struct xmem_subscription *old;

	for (old = pool->subscriptions; old; old = old->next) {
		xl_lock(&old->lock);
		if (old->follow.publisher == publisher && old->follow.incarnation != incarnation) {
			old->follow.incarnation = 0;	/* nobody's: it finds its publisher ended */
			old->ended = true;
		}
		xl_unlock(&old->lock);
	}
}

static int subscribe_to(struct xmem_pool *pool, u32 publisher, u64 incarnation, u32 flags,
			struct xmem_subscription *subscription)
{
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = publisher, .incarnation = incarnation,
		.flags = flags & XMEM_SUBSCRIBE_WAITS ? XMEM_SUBSCRIBE_WAIT : 0,
	};
	int err;

	xl_lock(&pool->slow);
	retire_older(pool, publisher, incarnation);
	err = xl_request(pool, XMEM_IOC_SUBSCRIBE, &request);
	if (!err) {
		subscription->follow = (struct xm_follow){
			.publisher = publisher, .waits = flags & XMEM_SUBSCRIBE_WAITS, .incarnation = incarnation,
			.joined = request.position, .place = request.position,
		};
		subscription->next = pool->subscriptions;
		pool->subscriptions = subscription;
	}
	xl_unlock(&pool->slow);
	return err;
}

/* One publisher by id, as it is now. */
static int subscribe_one(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			 struct xmem_subscription *subscription)
{
	const struct xmem_client_row *row;

	if (options->publisher < 0 || (u32)options->publisher >= pool->map.clients)
		return -EINVAL;
	row = xm_client_row(&pool->map, options->publisher);
	if (xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE || xm_load(&row->role) != XMEM_ROLE_WRITER)
		return -ENOENT;
	return subscribe_to(pool, options->publisher, xm_load(&row->incarnation), options->flags, subscription);
}

/* The first other publisher that we do not follow. */
static int subscribe_any(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			 struct xmem_subscription *subscription)
{
	struct xmem_subscribe_options one = *options;
	int err = -ENOENT, worst = -ENOENT;
	u32 c;

	for (c = 0; c < pool->map.clients; c++) {
		if (c == pool->me || xm_bit(xm_client_row(&pool->map, c)->subscribers, pool->me))
			continue;
		one.publisher = c;
		err = subscribe_one(pool, &one, subscription);
		if (!err)
			return 0;
		if (err != -ENOENT && err != -ESTALE && err != -EEXIST)
			worst = err;
	}
	return worst;
}

static int subscribe_now(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			 struct xmem_subscription *subscription)
{
	return options->publisher == XMEM_ANY_PUBLISHER ? subscribe_any(pool, options, subscription) :
							  subscribe_one(pool, options, subscription);
}

static int subscribe_wait(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			  struct xmem_subscription *subscription)
{
	u64 deadline = xl_deadline(options->timeout_ns);
	u32 value;
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_CLIENTS, 0, &value);
		if (err)
			return err;
		err = subscribe_now(pool, options, subscription);
		if (err != -ENOENT)
			return err;
		err = xl_waiters_wait(pool, XMEM_WAIT_CLIENTS, 0, value, deadline);
		if (err)
			return err;
	}
}

static const char *subscribe_hint(int err)
{
	switch (-err) {
	case ENOENT:	return "there is no such publisher";
	case ETIMEDOUT:	return "no publisher came in time";
	case EEXIST:	return "it is followed already";
	case EOPNOTSUPP: return "it waits for nobody: its wait_bound_ns is 0";
	case EINVAL:	return "no such client id";
	}
	return strerror(-err);
}

static int check_options(const struct xmem_subscribe_options *given, struct xmem_subscribe_options *ret)
{
	*ret = (struct xmem_subscribe_options){ .publisher = XMEM_ANY_PUBLISHER, .timeout_ns = XMEM_FOREVER };
	if (!given)
		return 0;
	if (given->size != sizeof(*given) || given->flags & ~XMEM_SUBSCRIBE_WAITS || given->timeout_ns < 0)
		return xl_fail_fast(EINVAL, "xmem_subscribe_options: wrong size, unknown flags, or a negative timeout");
	*ret = *given;
	return 0;
}

XMEM_API struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool, const struct xmem_subscribe_options *given)
{
	struct xmem_subscription *subscription;
	struct xmem_subscribe_options options;
	int err;

	if (!pool) {
		xl_fail_fast(EINVAL, "subscribe: no pool");
		return NULL;
	}
	if (!xl_alive(pool)) {
		xl_fail_forked();
		return NULL;
	}
	if (check_options(given, &options))
		return NULL;
	subscription = calloc(1, sizeof(*subscription));
	if (!subscription) {
		xl_fail_fast(ENOMEM, "no memory for a subscription");
		return NULL;
	}
	subscription->pool = pool;
	pthread_mutex_init(&subscription->lock.mutex, NULL);
	err = subscribe_now(pool, &options, subscription);
	if (err == -ENOENT && options.timeout_ns)
		err = subscribe_wait(pool, &options, subscription);
	if (err) {
		free(subscription);
		xl_fail(-err, "subscribe: %s", subscribe_hint(err));
		return NULL;
	}
	xl_lock(&pool->lock);
	pool->out++;
	xl_unlock(&pool->lock);
	return subscription;
}

static void tell_unsubscribed(struct xmem_subscription *subscription)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .publisher = subscription->follow.publisher,
		.incarnation = subscription->follow.incarnation,
	};

	/* Refused where the host has forgotten that ring already. */
	if (!subscription->ended)
		xl_request(subscription->pool, XMEM_IOC_UNSUBSCRIBE, &request);
	subscription->ended = true;
}

static void forget(struct xmem_pool *pool, struct xmem_subscription *subscription)
{
	struct xmem_subscription **at;

	xl_lock(&pool->slow);
	for (at = &pool->subscriptions; *at != subscription; at = &(*at)->next)
		;
	*at = subscription->next;
	tell_unsubscribed(subscription);
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
		xl_payload_unmap_stale(pool);
		xl_pool_unshare(pool);
	}
	free(subscription);
}

/* ---- receive ---- */

/* What the entry says, bounds checked: it is its publisher's to write. */
static inline bool within_slot(const struct xmem_pool *pool, const struct xm_publication *what)
{
	u64 length = xm_slot_row(&pool->map, xm_token_slot(what->token))->length;

	return likely(what->offset <= length && what->length <= length - what->offset);
}

/* Held, but it points outside its slot: as good as lost. */
static XL_COLD int refuse_entry(struct xmem_subscription *subscription, const struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = subscription->pool;

	subscription->follow.lost++;
	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(buffer->what.token)));
	return -EBUSY;
}

/*
 * One attempt. 0; -EAGAIN, -EPIPE; -EBUSY: again, it moved. Under the
 * subscription's lock, and nothing of @buffer is kept but after 0.
 */
static XL_INLINE int receive_once(struct xmem_subscription *subscription, struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_pending pending;
	int err = xm_receive(&pool->map, pool->me, &subscription->follow, &buffer->what, &pending);

	xl_do(pool, pending);
	if (unlikely(err))
		return err;
	if (!within_slot(pool, &buffer->what))
		return refuse_entry(subscription, buffer);
	buffer->slot = xm_token_slot(buffer->what.token);
	buffer->mode = XL_READING;
	return 0;
}

/*
 * 0, -EAGAIN, -EPIPE, or -EBUSY: there may be more, but the publisher is quicker
 * than we are. Under the subscription's lock.
 */
static int receive_now(struct xmem_subscription *subscription, struct xmem_buffer *buffer)
{
	/* Entries evicted are passed one by one. */
	u32 tries = subscription->pool->map.ring_mask + 1 + MAX_RETRIES;
	int err;

	do
		err = receive_once(subscription, buffer);
	while (unlikely(err == -EBUSY) && --tries);
	if (unlikely(err == -EPIPE))
		tell_unsubscribed(subscription);	/* the last subscriber at the end lets the ring go */
	return err;
}

static int receive_wait(struct xmem_subscription *subscription, struct xmem_buffer *buffer, int64_t timeout_ns)
{
	struct xmem_pool *pool = subscription->pool;
	u32 publisher = subscription->follow.publisher, value;
	u64 deadline = xl_deadline(timeout_ns);
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_RING, publisher, &value);
		if (err && err != -ENOENT)
			return err;
		if (err)		/* the host has dropped us: the look says EPIPE, if not now then soon */
			return receive_now(subscription, buffer);
		err = receive_now(subscription, buffer);
		if (err == -EBUSY && xl_now_ns() < deadline)
			continue;	/* not asleep while there is something */
		if (err != -EAGAIN)
			return err;
		xl_unlock(&subscription->lock);
		err = xl_waiters_wait(pool, XMEM_WAIT_RING, publisher, value, deadline);
		xl_lock(&subscription->lock);
		if (err)
			return err;
	}
}

static const char *receive_hint(int err)
{
	switch (-err) {
	case EAGAIN:	return "receive: nothing published yet";
	case ETIMEDOUT:	return "receive: nothing was published in time";
	case EPIPE:	return "receive: the publisher has ended, and all that was in flight has been received";
	case EINTR:	return "receive: a signal handler ran";
	case ENOTCONN:	return "receive: the host has gone";
	}
	return "receive: the host refused to wait";
}

static XL_COLD struct xmem_buffer *receive_refused(struct xmem_subscription *subscription, int64_t timeout_ns)
{
	if (!subscription || timeout_ns < 0)
		xl_fail_fast(EINVAL, "receive: no subscription, or a negative timeout");
	else
		xl_fail_forked();
	return NULL;
}

/* Not at the first look, or not without locks. */
static XL_SLOW struct xmem_buffer *receive_slow(struct xmem_subscription *subscription, int64_t timeout_ns)
{
	struct xmem_buffer *buffer = xl_handle_new(subscription->pool);
	int err;

	if (unlikely(!buffer))
		return NULL;
	xl_lock(&subscription->lock);
	err = receive_now(subscription, buffer);
	if ((err == -EAGAIN || err == -EBUSY) && timeout_ns)
		err = receive_wait(subscription, buffer, timeout_ns);
	if (unlikely(err == -EBUSY))
		err = timeout_ns ? -ETIMEDOUT : -EAGAIN;
	xl_unlock(&subscription->lock);
	if (likely(!err))
		return buffer;
	if (err == -EPIPE)
		xl_payload_unmap_stale(subscription->pool);
	xl_handle_free(buffer);
	xl_fail_fast(-err, receive_hint(err));
	return NULL;
}

XMEM_API struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns)
{
	struct xmem_pool *pool;
	int err;

	if (unlikely(!subscription || timeout_ns < 0 || !xl_alive(subscription->pool)))
		return receive_refused(subscription, timeout_ns);
	pool = subscription->pool;
	if (unlikely(!xl_handles_ready(pool)))
		return receive_slow(subscription, timeout_ns);
	/* The handle is taken only if there is something for it: polling in vain stores nothing. */
	err = receive_once(subscription, pool->spare);
	if (likely(!err))
		return xl_handle_pop(pool);
	if (err != -EAGAIN || timeout_ns)
		return receive_slow(subscription, timeout_ns);
	xl_fail_fast(EAGAIN, "receive: nothing published yet");
	return NULL;
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
	return xl_alive(subscription->pool) ? (int)subscription->follow.publisher : xl_fail_forked();
}
