// SPDX-License-Identifier: MIT
/*
 * Following rings: the beginning and the end of each. subscribe.c begins subscriptions, history.c
 * finds earlier publications, and next.c receives.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/hold/publisher.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

/* ---- the end of a ring ---- */

/* Does the host still count this client among the subscribers of that incarnation? */
static bool still_follows(const struct xmem_pool *pool, const struct xm_follow *follow)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, follow->publisher);

	return xm_load_acquire(&row->state) != XMEM_CLIENT_NONE &&
	       xm_load(&row->incarnation) == follow->incarnation &&
	       xm_bit(row->subscribers, pool->me);
}

/* Does the ring still exist, and has all of it been received? */
static bool received_all(const struct xmem_pool *pool, const struct xm_follow *follow)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, follow->publisher);
	u64 tail = xm_load_acquire(&xm_ring(&pool->map, follow->publisher)->tail);

	return follow->place >= tail && xm_load_acquire(&row->state) == XMEM_CLIENT_ZOMBIE &&
	       xm_load(&row->incarnation) == follow->incarnation;
}

/*
 * If the host has dropped the ring before all of it was received, count the lost publications. To
 * be called before the host is told of the end.
 */
static void note_end(struct xmem_subscription *subscription, struct xl_ring *ring)
{
	struct xmem_pool *pool = subscription->pool;
	struct xm_follow *follow = &ring->follow;
	u64 cursor, end;

	if (ring->told || still_follows(pool, follow))
		return;
	xm_load_barrier();	/* the bit is read before the cursor: pairs with xm_forget_at */
	cursor = xm_load_acquire(xm_cursor(&pool->map, pool->me, follow->publisher));
	if (cursor == XMEM_CURSOR_NONE)
		return;
	end = cursor & ~XMEM_CURSOR_DROPPED;
	if (cursor == end) {		/* a later receive has overwritten the host's mark */
		if (!received_all(pool, follow))
			subscription->dropped = XL_DROPPED_UNCOUNTED;
	} else if (end > follow->place) {
		if (!subscription->dropped)
			subscription->dropped = XL_DROPPED;
		follow->lost += end - follow->place;
		follow->place = end;
	}
}

/*
 * Move the cursor to the end, so that no publisher waits for this client even before the host has
 * dropped the ring.
 */
static void pass_all(struct xmem_pool *pool, struct xm_follow *follow)
{
	struct xm_pending pending = { XM_NOTHING, 0 };

	if (!xm_followed_lives_on(&pool->map, follow))
		return;
	xm_receive_move(&pool->map, pool->me, follow, XMEM_CURSOR_NONE, &pending);
	xl_do(pool, pending);
}

/*
 * Tell the host once that the ring is not followed any more. The host refuses that if it has
 * forgotten the ring already. The caller has the lock of a listed subscription, or
 * pool->follows.subscribing. So the host sets no new cursor in this place meanwhile (retire_older).
 */
static void tell_host(struct xmem_pool *pool, struct xl_ring *ring)
{
	u32 publisher = ring->follow.publisher;
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .publisher = publisher,
		.incarnation = ring->follow.incarnation,
	};

	if (ring->told)
		return;
	pass_all(pool, &ring->follow);
	xl_post(pool, XMEM_IOC_UNSUBSCRIBE, &request);
	ring->told = true;
	/* Only now: a thread that finds the ring unfollowed may ask the host to follow it anew. */
	xm_cas_full(&pool->follows.origin[publisher], request.incarnation, 0);
}

/*
 * Post that the subscription has ended: its polled descriptor reports that until the subscription
 * is dropped.
 */
void xl_post_ended(const struct xmem_subscription *subscription, bool dropped)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request),
		.flags = (dropped ? XMEM_UNSUBSCRIBE_DROPPED : XMEM_UNSUBSCRIBE_ENDED) |
			 (subscription->joint ? XMEM_UNSUBSCRIBE_JOINT : 0),
	};

	xl_post(subscription->pool, XMEM_IOC_UNSUBSCRIBE, &request);
}

void xl_post_lasting(const struct xmem_subscription *subscription, bool dropped)
{
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request),
		.flags = XMEM_UNSUBSCRIBE_LASTS | (dropped ? XMEM_UNSUBSCRIBE_DROPPED : 0),
	};

	xl_post(subscription->pool, XMEM_IOC_UNSUBSCRIBE, &request);
}

void xl_unfollow(struct xmem_subscription *subscription, struct xl_ring *ring)
{
	struct xl_ring *before = ring;

	note_end(subscription, ring);
	if (xl_has_past(ring))
		xl_past_end(subscription, ring);
	tell_host(subscription->pool, ring);
	while (before->next != ring)
		before = before->next;
	before->next = ring->next;
	if (subscription->ring == ring)
		subscription->ring = before == ring ? NULL : ring->next;
	subscription->rings--;
	subscription->changes++;
	subscription->lost += ring->follow.lost;
	free(ring);
}

/*
 * A subscription to an earlier client with this id has its cursor in this place. It must not move
 * the cursor any more when the host sets it anew (I4). Under pool->follows.subscribing.
 */
static void retire_older(struct xmem_pool *pool, u32 publisher, u64 incarnation)
{
	struct xmem_subscription *one;
	struct xl_ring *ring;
	u32 i;

	xl_lock(&pool->follows.list);
	for (one = pool->follows.subscriptions; one; one = one->next) {
		xl_lock(&one->lock);
		for (i = 0, ring = one->ring; i < one->rings; i++, ring = ring->next) {
			if (ring->follow.publisher != publisher ||
			    ring->follow.incarnation == incarnation)
				continue;
			note_end(one, ring);
			ring->follow.incarnation = 0;	/* no client's: the next look gives EPIPE */
			ring->told = true;
		}
		xl_unlock(&one->lock);
	}
	xl_unlock(&pool->follows.list);
}

/* ---- the beginning ---- */

/* Add a ring to the circle. Its turn comes last. */
static void add_ring(struct xmem_subscription *subscription, struct xl_ring *ring)
{
	struct xl_ring *last;

	xl_lock(&subscription->lock);
	if (!subscription->ring) {
		ring->next = subscription->ring = ring;
		if (!subscription->changes)
			subscription->origin = ring->origin;
	} else {
		for (last = subscription->ring; last->next != subscription->ring; last = last->next)
			;
		last->next = ring;
		ring->next = subscription->ring;
	}
	subscription->rings++;
	xm_store(&subscription->pool->follows.told_waiting, 0);
	subscription->pasts += xl_has_past(ring);
	subscription->changes++;
	xl_unlock(&subscription->lock);
}

/*
 * Map the payloads that the writer has attached. XL_NOTED: that failed. A subscription to all
 * writers does not fail because of one: receive maps again before it hands a publication out, and
 * reports the error then.
 */
static int map_ahead(const struct xmem_subscription *subscription, u32 publisher,
		     u64 deadline_ns)
{
	struct xl_error before;

	xl_error_save(&before);
	if (!xl_payload_ahead_all(subscription->pool, publisher, deadline_ns))
		return 0;
	if (!subscription->joint)
		return XL_NOTED;
	xl_error_restore(&before);
	return 0;
}

int xl_follow(struct xmem_subscription *subscription, u32 publisher, u64 incarnation,
	      u64 deadline_ns)
{
	struct xmem_pool *pool = subscription->pool;
	const struct xmem_client_row *row = xm_client_row(&pool->map, publisher);
	bool waits = subscription->waits &&
		     (!subscription->joint || xm_load(&row->wait_bound_ns));
	struct xmem_subscribe_request request = {
		.size = sizeof(request), .publisher = publisher, .incarnation = incarnation,
		.flags = (waits ? XMEM_SUBSCRIBE_WAIT : 0) |
			 (subscription->joint ? XMEM_SUBSCRIBE_JOINT : 0),
	};
	struct xl_ring *ring;
	int err;

	/*
	 * The host must never refuse this request with -EEXIST: a request that is given up is
	 * undone (host/exchange.c).
	 */
	if (xm_load_acquire(&pool->follows.origin[publisher]) == incarnation)
		return -EEXIST;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	retire_older(pool, publisher, incarnation);
	xl_past_request(subscription, publisher, incarnation);
	err = xl_request_until(pool, XMEM_IOC_SUBSCRIBE, &request, deadline_ns);
	if (err) {
		free(ring);
		return err;
	}
	ring->follow = (struct xm_follow){
		.publisher = publisher,
		.waits = waits,
		.incarnation = incarnation,
		.place = request.position,
	};
	ring->origin = xl_origin(publisher, incarnation);
	ring->words = xm_followed_words(&pool->map, pool->me, publisher);
	xl_label_record(pool, publisher, incarnation);
	xl_past_find(subscription, ring);
	xm_store(&pool->follows.origin[publisher], incarnation);
	add_ring(subscription, ring);
	/* For a new subscription, xmem_subscribe kicks when it is in the pool's list. */
	if (subscription->old)
		xl_kick(pool);
	return map_ahead(subscription, publisher, deadline_ns);
}

/* A writer that ends meanwhile, or that another subscription follows, is skipped. */
int xl_follow_all(struct xmem_subscription *subscription, u64 deadline_ns)
{
	struct xmem_pool *pool = subscription->pool;
	u64 incarnation;
	u32 c;
	int err;

	for (c = 0; c < pool->map.clients; c++) {
		incarnation = xl_wanted_writer(subscription, c);
		if (!incarnation)
			continue;
		err = xl_follow(subscription, c, incarnation, deadline_ns);
		if (err && err != -ENOENT && err != -ESTALE && err != -EEXIST)
			return err;
	}
	return 0;
}

static int request_new_writers(struct xmem_subscription *subscription, u64 until)
{
	struct xmem_pool *pool = subscription->pool;
	int err = xl_turn_take(&pool->follows.subscribing, until);

	if (err)
		return err;
	err = xl_follow_all(subscription, until);
	xl_turn_end(&pool->follows.subscribing);
	return err;
}

/*
 * A writer that comes, or that another subscription stops following, during this request is looked
 * for later.
 */
int xl_follow_new_writers(struct xmem_subscription *subscription, u64 deadline_ns)
{
	struct xmem_pool *pool = subscription->pool;
	u64 joins = xm_load_acquire(&pool->map.pool->writers);
	u32 looks = subscription->looks;
	int err, dropped;

	xl_subscription_leave(subscription);
	err = request_new_writers(subscription, xl_ask_until(deadline_ns));
	xl_ask_record(pool, err);
	dropped = xl_subscription_return(subscription);
	if (!dropped && !err && looks == subscription->looks)
		subscription->joins_seen = joins;
	if (dropped || !err)
		return dropped;
	if (err == -ETIMEDOUT)
		return -EAGAIN;
	xl_fail(-err, "follow a new writer: %s", xl_request_error(err));
	return XL_NOTED;
}
