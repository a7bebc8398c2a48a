// SPDX-License-Identifier: MIT
/* xmem_unsubscribe: how a subscription is dropped. */
#include <stdlib.h>
#include <string.h>

#include "lib/follow/kick.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/host/futex.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

/* From now on no call begins in the subscription. false: it was dropped before. */
static bool shut(struct xmem_subscription *subscription, struct xmem_subscription *handle)
{
	bool ours;

	xl_lock(&subscription->lock);
	ours = subscription->handle == (u64)handle;
	if (ours)
		subscription->handle = 0;
	xl_unlock(&subscription->lock);
	return ours;
}

static void wait_until_empty(struct xmem_subscription *subscription)
{
	u32 inside;

	for (;;) {
		xl_lock(&subscription->lock);
		inside = subscription->inside;
		xl_unlock(&subscription->lock);
		if (!inside)
			return;
		xm_futex_wait(&subscription->inside, inside, NULL);
	}
}

static void take_off_list(struct xmem_pool *pool, struct xmem_subscription *subscription)
{
	struct xmem_subscription **at;

	xl_lock(&pool->follows.list);
	for (at = &pool->follows.subscriptions; *at != subscription; at = &(*at)->next)
		;
	*at = subscription->next;
	if (pool->follows.turn == subscription)
		pool->follows.turn = subscription->next;
	xl_unlock(&pool->follows.list);
}

/*
 * A writer that only this subscription followed is free for the joint subscription of the pool now.
 */
static void offer_writers(struct xmem_pool *pool)
{
	struct xmem_subscription *other;

	xl_lock(&pool->follows.list);
	for (other = pool->follows.subscriptions; other; other = other->next) {
		xl_lock(&other->lock);
		if (other->joint)
			xl_recheck_writers(other);
		xl_unlock(&other->lock);
	}
	xl_unlock(&pool->follows.list);
	xl_kick(pool);
}

XMEM_API void xmem_unsubscribe(struct xmem_subscription *handle)
{
	struct xmem_subscription *subscription = xl_subscription(handle);
	struct xmem_pool *pool;

	if (!subscription || !xl_is_ours(subscription) || !shut(subscription, handle))
		return;
	pool = subscription->pool;
	xl_kick(pool);
	wait_until_empty(subscription);
	xl_lock(&subscription->lock);
	while (subscription->ring)
		xl_unfollow(subscription, subscription->ring);
	if (subscription->ended)
		xl_post_ended(subscription, true);
	if (subscription->lasts)
		xl_post_lasting(subscription, true);
	xl_unlock(&subscription->lock);
	take_off_list(pool, subscription);
	xl_drain_posts(pool);
	xl_poll_drop(pool, &subscription->poll);
	offer_writers(pool);
	xl_poll_update(pool, POLLIN);
	xl_payload_reap(pool, XL_HOST_NS);
	xl_subscription_free(subscription);
	xl_pool_unshare(pool);
}
