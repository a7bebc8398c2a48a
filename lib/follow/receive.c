// SPDX-License-Identifier: MIT
/*
 * xmem_receive: take the next publication of a subscription, at once or after waiting. next.c has
 * the look at its rings, and wait.c the wait.
 */
#include <sched.h>

#include "lib/base/handle.h"
#include "lib/follow/next.h"
#include "lib/follow/wait.h"
#include "lib/hold/token.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

/*
 * Can the publication be handed out as it is? It must lie within its slot, and its payload must be
 * mapped.
 */
static inline bool is_fast(const struct xmem_pool *pool, const struct xm_tried *tried,
			    const struct xm_publication *what)
{
	return xl_within_slot(tried->row, what) &&
	       xl_is_placed(&pool->mappings.place[tried->slot], tried->row);
}

/*
 * Look at the rings, and ask the host for what they need, until there is a result. May leave the
 * lock: -ECANCELED.
 */
static int receive_now(struct xmem_subscription *subscription, struct xmem_buffer **ret,
		       u64 deadline)
{
	int err;

	while ((err = xl_take_next(subscription, ret)) == XL_NEWCOMERS || err == XL_UNMAPPED) {
		err = xl_request_for_next(subscription, err, deadline);
		if (err)
			return err;
	}
	return err;
}

/* Arm the words of the rings. 0, or an error. A ring that the host has dropped is no error. */
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
		if (xl_wait_cancelled(&pool->calls, cancels))
			return -ECANCELED;
		err = receive_now(subscription, ret, deadline);
		if (err == -EBUSY && xl_now_ns() < deadline) {
			/* There is a publication, so do not wait; but let other threads in. */
			xl_subscription_leave(subscription);
			sched_yield();
			if (xl_subscription_return(subscription))
				return -ECANCELED;
			continue;
		}
		if (err != -EAGAIN)
			return err;
		if (changes != subscription->changes)
			continue;	/* another ring has to be armed */
		until = subscription->put_off ? xl_sleep_until(pool, deadline) : deadline;
		xl_subscription_leave(subscription);
		xl_payload_reap(pool, 0);
		err = xl_wait_rings(pool, &watch, until);
		if (xl_subscription_return(subscription))
			return -ECANCELED;
		if (err && (err != -ETIMEDOUT || until == deadline))
			return err;
	}
}

static XL_COLD struct xmem_buffer *receive_refused(const struct xmem_subscription *subscription)
{
	xl_fail_fast(EINVAL, subscription ? "receive: a negative timeout" :
					    "receive: no subscription");
	return NULL;
}

/*
 * The value of subscription->fast_joins. The fast path is for a subscription that follows rings,
 * and needs no further step after each receive.
 */
static u64 fast_joins(const struct xmem_subscription *subscription)
{
	const struct xmem_pool *pool = subscription->pool;
	bool waits = subscription->rings == 1 ? subscription->ring->follow.waits :
						subscription->waits;

	if (waits || !subscription->rings || subscription->pasts || subscription->depth ||
	    xl_cancelled(&pool->calls) || xm_load(&pool->polls.settle))
		return XL_LOOK_AGAIN;
	return subscription->joins_seen;
}

/* All rare cases. The caller has the lock, and this function leaves it. */
static XL_SLOW struct xmem_buffer *receive_slow(struct xmem_subscription *subscription,
						int64_t timeout_ns)
{
	XL_CALL_AS("receive");
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
	xl_poll_update(pool, POLLIN);
	subscription->fast_joins = fast_joins(subscription);
	xl_unlock(&subscription->lock);
	xl_cuda_reap(pool, 0);
	if (likely(!err))
		return buffer;
	xl_fail_receive(pool, err, dropped);
	return NULL;
}

static XL_COLD struct xmem_buffer *receive_dropped(struct xmem_subscription *subscription)
{
	xl_unlock(&subscription->lock);
	xl_fail_fast(EBADF, "receive: this subscription has been dropped");
	return NULL;
}

/*
 * The lock is not biased to this thread. A child must not take its parent's lock, so that is
 * checked first.
 */
static XL_SLOW struct xmem_buffer *receive_with_mutex(struct xmem_subscription *handle,
						      int64_t timeout_ns)
{
	XL_CALL_AS("receive");
	struct xmem_subscription *subscription = xl_subscription(handle);

	if (!xl_is_ours(subscription))
		return xl_fail_forked(), NULL;
	xl_lock(&subscription->lock);
	return likely(subscription->handle == (u64)handle) ?
		receive_slow(subscription, timeout_ns) : receive_dropped(subscription);
}

/*
 * The fast path has taken a hold, but cannot hand the buffer out. Put the hold, and take the slow
 * path.
 */
static XL_SLOW struct xmem_buffer *receive_again(struct xmem_subscription *subscription,
						 int64_t timeout_ns, u64 token)
{
	struct xmem_pool *pool = subscription->pool;

	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	return receive_slow(subscription, timeout_ns);
}

/* There is no entry yet. A receive that does not wait, with one ring, gets a quick answer. */
static XL_SLOW struct xmem_buffer *receive_in_vain(struct xmem_subscription *subscription,
						   int64_t timeout_ns, u64 position)
{
	const struct xl_ring *ring = subscription->ring;

	if (timeout_ns || subscription->rings != 1 ||
	    !xm_receive_is_early(&subscription->pool->map, &ring->words, &ring->follow, position))
		return receive_slow(subscription, timeout_ns);
	xl_unlock(&subscription->lock);
	xl_fail_polling(EAGAIN, "receive: nothing published yet");
	return NULL;
}

/*
 * The common case is here. All other cases are tail calls, so that no registers have to be saved. A
 * publication is copied from its entry directly into a free handle of this thread. The handle stays
 * free if the buffer turns out not to be handed out.
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
	if (unlikely(xl_peek(subscription->joins) != subscription->fast_joins ||
		     xl_host_died(pool) || !buffer))
		return receive_slow(subscription, timeout_ns);
	err = xm_receive_try(&pool->map, &ring->words, &ring->follow, &buffer->what, &tried);
	if (unlikely(err == -EAGAIN))
		return receive_in_vain(subscription, timeout_ns, tried.position);
	if (unlikely(err && err != -EBUSY))
		return receive_slow(subscription, timeout_ns);
	if (unlikely(err || !is_fast(pool, &tried, &buffer->what)))
		return receive_again(subscription, timeout_ns, buffer->what.token);
	xm_receive_pass_at_once(&ring->words, &ring->follow, tried.position);
	xl_handle_take(buffer, pool);
	xl_fill_received(subscription, ring, tried.slot, buffer);
	if (unlikely(!xl_unlock_biased(&subscription->lock, xl_self.thread)))
		return xl_unlock_revoked(&subscription->lock, xl_handle(buffer));
	return xl_handle(buffer);
}

