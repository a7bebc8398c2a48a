// SPDX-License-Identifier: MIT
/*
 * Taking the next publication of a subscription, by one look at each of its rings, and asking the
 * host where its help is needed. Waiting is in receive.c and any.c.
 */
#include "lib/follow/next.h"
#include "lib/hold/token.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

/* attempts at a ring whose publisher is faster than this loop, beyond one for each entry */
#define MAX_RETRIES	4

/*
 * The entry has bounds outside its slot, or contents that this process can never map: it is lost.
 */
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

/* Does @err mean that this process can never map the contents? */
static bool is_lost(int err)
{
	return err == -EACCES || err == -EIO;
}

/*
 * The publication cannot be handed out now, so it stays the next one. If its contents can never be
 * mapped, it is lost. @err is noted, except for -EAGAIN: the file is not mapped.
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
		return XL_UNMAPPED;
	subscription->put_off = true;
	return -EAGAIN;
}

/* The slot of the next publication is held, and may not be mapped. 0, or as leave_entry. */
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
 * Map the payload that the next publication of a ring needs. Leaves the lock and takes it again. 0:
 * look again; -ECANCELED: the subscription has been dropped meanwhile; or XL_NOTED.
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
	xl_ask_record(pool, err);
	dropped = xl_subscription_return(subscription);
	if (dropped)
		return dropped;
	subscription->unmapped = payload;
	subscription->unmappable = is_lost(err);
	/*
	 * The payload may be gone, because this client does not hold it now: the next look finds
	 * out.
	 */
	if (err && err != -ENOENT && err != -ETIMEDOUT && !is_lost(err))
		return XL_NOTED;
	xl_error_restore(&before);
	return 0;
}

/*
 * The contents are gone, or the slot is being scanned, and its owner may be stopped. 0: they are
 * held. -EBUSY: they are gone, and so is the hold. Else an error of the host.
 */
static XL_COLD int receive_resolved(struct xmem_pool *pool, struct xl_ring *ring, u64 token,
				    struct xm_pending *pending, int err)
{
	err = xl_hold_resolve(pool, token, err == -EINPROGRESS ? -EAGAIN : err);
	if (err == -ESTALE)
		return xm_receive_skip(&pool->map, pool->me, &ring->follow, pending);
	return err == -EAGAIN ? -EBUSY : err;
}

/*
 * The hold on the next publication is not certain, or the publication is not for this client.
 * Returns as receive_once; but after 0 the publication is only held.
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
 * Try once. Returns 0, -EAGAIN, -EPIPE, -EOVERFLOW, XL_NOTED or XL_UNMAPPED; or -EBUSY: the ring
 * moved meanwhile, so try again. Under the subscription's lock.
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
	if (!xl_within_slot(xm_slot_row(&pool->map, xm_token_slot(what.token)), &what))
		return refuse_entry(subscription, ring, what.token);
	if (unlikely(!xl_is_placed(&pool->mappings.place[xm_token_slot(what.token)],
				   xm_slot_row(&pool->map, xm_token_slot(what.token))))) {
		err = find_mapped(subscription, ring, what.token);
		if (err)
			return err;
	}
	/* Only now, so that a receive that finds nothing stores nothing. */
	buffer = xl_handle_new(pool);
	if (unlikely(!buffer))
		return leave_entry(subscription, ring, what.token, -ENOMEM);
	xl_pass_next(subscription, ring, &pending);
	xl_do(pool, pending);
	buffer->what = what;
	xl_fill_received(subscription, ring, xm_token_slot(what.token), buffer);
	*ret = xl_handle(buffer);
	return 0;
}

/* Try until the result is clear. -EBUSY: the publisher remains faster than this loop. */
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

bool xl_may_follow(struct xmem_subscription *subscription)
{
	if (!subscription->joint || !xl_has_new_writers(subscription))
		return false;
	subscription->put_off = xl_is_put_off(subscription->pool);
	return !subscription->put_off;
}

int xl_take_next(struct xmem_subscription *subscription, struct xmem_buffer **ret)
{
	bool lonely = !subscription->rings && subscription->lasts;
	int err, worst = -EAGAIN;
	u32 seen = 0;

	subscription->put_off = false;
	if (subscription->ended)
		return -EPIPE;
	if (xl_may_follow(subscription))
		return XL_NEWCOMERS;
	while (seen < subscription->rings) {
		struct xl_ring *ring = subscription->ring;

		err = receive_from(subscription, ring, ret);
		if (!err || err == XL_UNMAPPED)
			return err;
		if (err == -EPIPE) {
			xl_unfollow(subscription, ring);
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
	xl_recheck_writers(subscription);
	return !subscription->joint || xl_may_follow(subscription) ? XL_NEWCOMERS : -EAGAIN;
}

/*
 * New writers have come, or the last ring has ended: follow the new writers. 0: look again. -EPIPE:
 * the subscription has ended. -EAGAIN: there is no ring now. Other results are those of following.
 */
static int begin_anew(struct xmem_subscription *subscription, u64 deadline)
{
	int err = subscription->joint ? xl_follow_new_writers(subscription, deadline) : 0;

	if (err == -EAGAIN)
		return 0;	/* look at the rings that are followed already */
	if (err || subscription->ring)
		return err;
	if (subscription->lasts)
		return -EAGAIN;
	xm_store(&subscription->ended, true);
	xl_post_ended(subscription, false);
	xl_recheck_writers(subscription);
	return -EPIPE;
}

int xl_request_for_next(struct xmem_subscription *subscription, int what, u64 deadline)
{
	return what == XL_UNMAPPED ? map_unmapped(subscription, deadline) :
				  begin_anew(subscription, deadline);
}

static const char *end_hint(enum xl_dropped dropped)
{
	switch (dropped) {
	case XL_DROPPED:
		return "the publisher has ended, and the host has dropped its ring as the "
		       "oldest of more than 8; the rest of it is lost, and "
		       "xmem_subscription_stat counts it";
	case XL_DROPPED_UNCOUNTED:
		return "the publisher has ended, and the host has dropped its ring as the "
		       "oldest of more than 8; the rest of it is lost, and its length is not known";
	case XL_NOT_DROPPED:
		break;
	}
	return "the publisher has ended, and all that was in flight has been received";
}

void xl_fail_receive(struct xmem_pool *pool, int err, enum xl_dropped dropped)
{
	const char *hint = "the host refused to wait";
	bool silent = xm_load(&pool->asking.again_ns);

	if ((err == -EPIPE || err == -ENOTCONN) && xl_host_died(pool)) {
		xl_fail_died(pool);
		return;
	}
	switch (-err) {
	case -XL_NOTED:	return;
	case EAGAIN:
		hint = silent ? "nothing can be received while the host does not answer; "
				"is it stopped?" : "nothing published yet";
		break;
	case ETIMEDOUT:
		hint = silent ? "nothing could be received in time, because the host does "
				"not answer; is it stopped?" :
				"nothing was published in time";
		break;
	case EPIPE:	hint = end_hint(dropped); break;
	case EINTR:	hint = "a signal handler ran"; break;
	case ENOTCONN:	hint = "the host has gone, or has ended this client";
			break;
	case EOVERFLOW:	hint = "too many handles of one buffer"; break;
	case EMFILE:	hint = "no descriptor is left to wait with"; break;
	case ECANCELED:	hint = "xmem_cancel, xmem_unsubscribe or xmem_pool_close has "
			       "ended the wait"; break;
	}
	xl_fail_fast(-err, hint);
}

void xl_joint_follow_new_writers(struct xmem_pool *pool, u64 deadline)
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
	if (xl_may_follow(one))
		xl_follow_new_writers(one, deadline);
	xl_unlock(&one->lock);
}
