// SPDX-License-Identifier: MIT
/*
 * Subscriptions: finding a publisher, following it, giving it up.
 */
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "payload/payload.h"
#include "request.h"
#include "subscribe.h"

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

/* One publisher by id, as it is now. */
static int subscribe_one(struct xmem_pool *pool, const struct xmem_subscribe_options *options,
			 struct xmem_subscription *subscription)
{
	const struct xmem_client_row *row;

	if (options->publisher < 0 || (u32)options->publisher >= pool->map.clients)
		return -EINVAL;
	row = xm_client_row(&pool->map, options->publisher);
	if (xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE ||
	    xm_load(&row->role) != XMEM_ROLE_WRITER)
		return -ENOENT;
	return subscribe_to(pool, options->publisher, xm_load(&row->incarnation), options->flags,
			    subscription);
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
	return options->publisher == XMEM_ANY_PUBLISHER
		       ? subscribe_any(pool, options, subscription)
		       : subscribe_one(pool, options, subscription);
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

static int check_options(const struct xmem_subscribe_options *given,
			 struct xmem_subscribe_options *ret)
{
	*ret = (struct xmem_subscribe_options){ .publisher = XMEM_ANY_PUBLISHER,
						.timeout_ns = XMEM_FOREVER };
	if (!given)
		return 0;
	if (given->size != sizeof(*given) || given->flags & ~XMEM_SUBSCRIBE_WAITS ||
	    given->timeout_ns < 0)
		return xl_fail_fast(
			EINVAL,
			"xmem_subscribe_options: wrong size, unknown flags, or a negative timeout");
	*ret = *given;
	return 0;
}

XMEM_API struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool,
						  const struct xmem_subscribe_options *given)
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

void xl_tell_unsubscribed(struct xmem_subscription *subscription)
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
	xl_tell_unsubscribed(subscription);
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
