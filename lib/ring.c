// SPDX-License-Identifier: MIT
/*
 * Subscriptions: finding a publisher, following its ring, sleeping for it.
 */
#include <stdlib.h>
#include <string.h>

#include "private.h"

#define MAX_RETRIES	4	/* looks at a ring that its publisher laps us in, beyond one of each entry */

/* ---- subscribe ---- */

static int subscribe_to(struct xmem_pool *pool, u32 publisher, u64 incarnation, u32 flags,
			struct xmem_subscription *subscription)
{
	struct xmem_subscribe request = {
		.size = sizeof(request), .publisher = publisher, .incarnation = incarnation,
		.flags = flags & XMEM_SUBSCRIBE_WAITS ? XMEM_SUBSCRIBE_WAIT : 0,
	};
	int err = xm_request(pool, XMEM_IOC_SUBSCRIBE, &request);

	if (err)
		return err;
	subscription->follow = (struct xm_follow){
		.publisher = publisher, .waits = flags & XMEM_SUBSCRIBE_WAITS, .incarnation = incarnation,
		.joined = request.position, .place = request.position,
	};
	return 0;
}

/* One publisher by id, as it is now. */
static int subscribe_one(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			 struct xmem_subscription *subscription)
{
	const struct xmem_client_row *row;

	if (options->publisher < 0 || (u32)options->publisher >= pool->map.clients)
		return -EINVAL;
	row = &pool->map.client[options->publisher];
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
		if (c == pool->me || xm_bit(pool->map.client[c].subscribers, pool->me))
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
	u64 deadline = xm_deadline(options->timeout_ns);
	u32 value;
	int err;

	for (;;) {
		err = xm_sleep_arm(pool, XMEM_SLEEP_CLIENTS, 0, &value);
		if (err)
			return err;
		err = subscribe_now(pool, options, subscription);
		if (err != -ENOENT)
			return err;
		err = xm_sleep_wait(pool, XMEM_SLEEP_CLIENTS, 0, value, deadline);
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
		return xm_fail_fast(EINVAL, "xmem_subscribe_options: wrong size, unknown flags, or a negative timeout");
	*ret = *given;
	return 0;
}

XMEM_API struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool, const struct xmem_subscribe_options *given)
{
	struct xmem_subscription *subscription;
	struct xmem_subscribe_options options;
	int err;

	if (!pool) {
		xm_fail_fast(EINVAL, "subscribe: no pool");
		return NULL;
	}
	if (!xm_alive(pool)) {
		xm_fail_forked();
		return NULL;
	}
	if (check_options(given, &options))
		return NULL;
	subscription = calloc(1, sizeof(*subscription));
	if (!subscription) {
		xm_fail_fast(ENOMEM, "no memory for a subscription");
		return NULL;
	}
	err = subscribe_now(pool, &options, subscription);
	if (err == -ENOENT && options.timeout_ns)
		err = subscribe_wait(pool, &options, subscription);
	if (err) {
		free(subscription);
		xm_fail(-err, "subscribe: %s", subscribe_hint(err));
		return NULL;
	}
	pthread_mutex_init(&subscription->lock.mutex, NULL);
	subscription->pool = pool;
	xm_lock(&pool->lock);
	pool->out++;
	xm_unlock(&pool->lock);
	return subscription;
}

static void tell_unsubscribed(struct xmem_subscription *subscription)
{
	struct xmem_unsubscribe request = {
		.size = sizeof(request), .publisher = subscription->follow.publisher,
		.incarnation = subscription->follow.incarnation,
	};

	/* Refused where the host has forgotten that ring already. */
	if (!subscription->ended)
		xm_request(subscription->pool, XMEM_IOC_UNSUBSCRIBE, &request);
	subscription->ended = true;
}

XMEM_API void xmem_unsubscribe(struct xmem_subscription *subscription)
{
	struct xmem_pool *pool;

	if (!subscription)
		return;
	pool = subscription->pool;
	if (xm_alive(pool)) {
		tell_unsubscribed(subscription);
		xmem_pool_close(pool);		/* our share of it */
	}
	free(subscription);
}

/* ---- receive ---- */

/* What the entry says of the buffer, bounds checked: the entry is its publisher's to write. */
static bool fill(struct xmem_buffer *buffer, const struct xm_publication *what)
{
	u64 length = buffer->pool->map.row[xm_token_slot(what->token)].length;

	if (unlikely(what->offset > length || what->length > length - what->offset))
		return false;
	buffer->slot = xm_token_slot(what->token);
	buffer->mode = XM_READING;
	buffer->token = what->token;
	buffer->sequence = what->sequence;
	buffer->timestamp_ns = what->timestamp_ns;
	buffer->offset = what->offset;
	buffer->length = what->length;
	return true;
}

/*
 * 0, -EAGAIN, -EPIPE, or -EBUSY: there may be more, but the publisher is quicker
 * than we are. Under the subscription's lock.
 */
static int receive_now(struct xmem_subscription *subscription, struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_publication what;
	u32 tries = pool->map.ring_mask + 1 + MAX_RETRIES;	/* entries taken back are passed one by one */
	struct xm_todo todo;
	int err;

	for (;;) {
		err = xm_receive(&pool->map, pool->me, &subscription->follow, &what, &todo);
		xm_do(pool, todo);
		if (likely(!err)) {
			if (likely(fill(buffer, &what)))
				return 0;
			subscription->follow.lost++;
			xm_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(what.token)));
			err = -EBUSY;
		}
		if (err != -EBUSY || !--tries)
			break;
	}
	if (err == -EPIPE)
		tell_unsubscribed(subscription);	/* the last subscriber at the end lets the ring go */
	return err;
}

static int receive_wait(struct xmem_subscription *subscription, struct xmem_buffer *buffer, int64_t timeout_ns)
{
	struct xmem_pool *pool = subscription->pool;
	u32 publisher = subscription->follow.publisher, value;
	u64 deadline = xm_deadline(timeout_ns);
	int err;

	for (;;) {
		err = xm_sleep_arm(pool, XMEM_SLEEP_RING, publisher, &value);
		if (err && err != -ENOENT)
			return err;
		if (err)		/* the host has dropped us: the look says EPIPE */
			return receive_now(subscription, buffer) == 0 ? 0 : -EPIPE;
		err = receive_now(subscription, buffer);
		if (err == -EBUSY && xm_now_ns() < deadline)
			continue;	/* not asleep while there is something */
		if (err != -EAGAIN)
			return err;
		xm_unlock(&subscription->lock);
		err = xm_sleep_wait(pool, XMEM_SLEEP_RING, publisher, value, deadline);
		xm_lock(&subscription->lock);
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

static bool can_receive(const struct xmem_subscription *subscription, int64_t timeout_ns)
{
	if (unlikely(!subscription || timeout_ns < 0))
		return xm_fail_fast(EINVAL, "receive: no subscription, or a negative timeout"), false;
	if (unlikely(!xm_alive(subscription->pool)))
		return xm_fail_forked(), false;
	return true;
}

XMEM_API struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns)
{
	struct xmem_buffer *buffer;
	int err;

	if (unlikely(!can_receive(subscription, timeout_ns)))
		return NULL;
	buffer = xm_handle_new(subscription->pool);
	if (unlikely(!buffer))
		return NULL;
	xm_lock(&subscription->lock);
	err = receive_now(subscription, buffer);
	if ((err == -EAGAIN || err == -EBUSY) && timeout_ns)
		err = receive_wait(subscription, buffer, timeout_ns);
	if (unlikely(err == -EBUSY))
		err = timeout_ns ? -ETIMEDOUT : -EAGAIN;
	xm_unlock(&subscription->lock);
	if (likely(!err))
		return buffer;
	xm_handle_free(buffer);
	xm_fail_fast(-err, receive_hint(err));
	return NULL;
}

XMEM_API uint64_t xmem_subscription_lost(struct xmem_subscription *subscription)
{
	u64 lost;

	if (!subscription)
		return 0;
	xm_lock(&subscription->lock);
	lost = subscription->follow.lost;
	xm_unlock(&subscription->lock);
	return lost;
}

XMEM_API int xmem_subscription_publisher(struct xmem_subscription *subscription)
{
	return subscription ? (int)subscription->follow.publisher :
			      xm_fail_fast(EINVAL, "xmem_subscription_publisher: no subscription");
}
