// SPDX-License-Identifier: MIT
/*
 * Receive: take the next publication of a subscription, at once or after waiting.
 */
#include "died.h"
#include "handle.h"
#include "payload/payload.h"
#include "request.h"
#include "subscribe.h"

/* Looks at a ring whose publisher is faster than us, beyond one look at each entry. */
#define MAX_RETRIES	4

/* Check the bounds that the entry gives, because its publisher can write anything there. */
static inline bool within_slot(const struct xmem_pool *pool, const struct xm_publication *what)
{
	u64 length = xm_slot_row(&pool->map, xm_token_slot(what->token))->length;

	return likely(what->offset <= length && what->length <= length - what->offset);
}

/* The entry points outside its slot: put the buffer and count it as lost. */
static XL_COLD int refuse_entry(struct xmem_subscription *subscription,
				const struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = subscription->pool;

	subscription->follow.lost++;
	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(buffer->what.token)));
	return -EBUSY;
}

/*
 * Try once. Returns 0, -EAGAIN, -EPIPE, or -EBUSY if the ring moved meanwhile: try again.
 * @buffer is of use only after 0. Under the subscription's lock.
 */
static XL_INLINE int receive_once(struct xmem_subscription *subscription,
				  struct xmem_buffer *buffer)
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
	return 0;
}

/*
 * Try until the answer is clear. Returns 0, -EAGAIN, -EPIPE, or -EBUSY if the publisher
 * remains faster than this loop. Under the subscription's lock.
 */
static int receive_now(struct xmem_subscription *subscription, struct xmem_buffer *buffer)
{
	/* Evicted entries are passed one by one, so there is one try for each entry. */
	u32 tries = subscription->pool->map.ring_mask + 1 + MAX_RETRIES;
	int err;

	do
		err = receive_once(subscription, buffer);
	while (unlikely(err == -EBUSY) && --tries);
	if (unlikely(err == -EPIPE)) {
		xl_note_end(subscription);
		/* So that the host can drop the ring. */
		xl_tell_unsubscribed(subscription, false);
	}
	return err;
}

static int receive_wait(struct xmem_subscription *subscription, struct xmem_buffer *buffer,
			int64_t timeout_ns)
{
	struct xmem_pool *pool = subscription->pool;
	u32 publisher = subscription->follow.publisher, value;
	u64 deadline = xl_deadline(timeout_ns);
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_RING, publisher, &value);
		if (err && err != -ENOENT)
			return err;
		if (err)	/* the host has dropped the ring: a look finds that out */
			return receive_now(subscription, buffer);
		err = receive_now(subscription, buffer);
		if (err == -EBUSY && xl_now_ns() < deadline)
			continue;	/* there is something, so do not sleep */
		if (err != -EAGAIN)
			return err;
		xl_unlock(&subscription->lock);
		xl_payload_unmap_stale(pool);
		err = xl_waiters_wait(pool, XMEM_WAIT_RING, publisher, value, deadline);
		xl_lock(&subscription->lock);
		if (err)
			return err;
	}
}

static const char *end_hint(const struct xmem_subscription *subscription)
{
	switch (subscription->dropped) {
	case XL_DROPPED:
		return "receive: the publisher has ended, and the host has dropped its ring as the "
		       "oldest of more than 8; what was left in it is lost, and counted by "
		       "xmem_subscription_lost";
	case XL_DROPPED_UNCOUNTED:
		return "receive: the publisher has ended, and the host has dropped its ring as the "
		       "oldest of more than 8; what was left in it is lost, and how much that was "
		       "is not known";
	case XL_NOT_DROPPED:
		break;
	}
	return "receive: the publisher has ended, and all that was in flight has been received";
}

static const char *receive_hint(int err, const struct xmem_subscription *subscription)
{
	switch (-err) {
	case EAGAIN:	return "receive: nothing published yet";
	case ETIMEDOUT:	return "receive: nothing was published in time";
	case EPIPE:	return end_hint(subscription);
	case EINTR:	return "receive: a signal handler ran";
	case ENOTCONN:	return "receive: the host has gone";
	}
	return "receive: the host refused to wait";
}

static XL_COLD struct xmem_buffer *receive_refused(struct xmem_subscription *subscription,
						   int64_t timeout_ns)
{
	if (!subscription)
		xl_fail_fast(EINVAL, "receive: no subscription");
	else if (timeout_ns < 0)
		xl_fail_fast(EINVAL, "receive: a negative timeout");
	else
		xl_fail_forked();
	return NULL;
}

XMEM_API struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription,
					  int64_t timeout_ns)
{
	struct xmem_buffer *buffer;
	int err;

	if (unlikely(!subscription || timeout_ns < 0 || !xl_alive(subscription->pool)))
		return receive_refused(subscription, timeout_ns);
	if (xl_host_died(subscription->pool))
		return xl_fail_died(subscription->pool), NULL;
	buffer = xl_handle_new(subscription->pool);
	if (unlikely(!buffer))
		return NULL;
	xl_lock(&subscription->lock);
	err = receive_now(subscription, buffer);
	if ((err == -EAGAIN || err == -EBUSY) && timeout_ns)
		err = receive_wait(subscription, buffer, timeout_ns);
	if (unlikely(err == -EBUSY))
		err = timeout_ns ? -ETIMEDOUT : -EAGAIN;
	xl_unlock(&subscription->lock);
	xl_poll_settle(subscription->pool, POLLIN);
	if (likely(!err)) {
		xl_handle_use(buffer, XL_READING);
		return xl_handle(buffer);
	}
	if (err == -EPIPE)
		xl_payload_unmap_stale(subscription->pool);
	xl_handle_unused(buffer);
	xl_fail_fast(-err, receive_hint(err, subscription));
	return NULL;
}
