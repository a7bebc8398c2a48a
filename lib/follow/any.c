// SPDX-License-Identifier: MIT
/*
 * xmem_receive_any: receive from any subscription of a pool. receive.c receives from one
 * subscription, and next.c takes the publication.
 */
#include "lib/follow/next.h"
#include "lib/follow/wait.h"
#include "lib/host/died.h"
#include "lib/host/request.h"

/*
 * Look at each subscription once, beginning with the one whose turn it is. Returns as xl_take_next,
 * or -ENOENT: there is no subscription. *ret_one is the subscription that the result is about;
 * after XL_NEWCOMERS and XL_UNMAPPED it is locked. *ret_put_off: a request to the host is put off.
 * Under follows.list.
 */
static int try_any(struct xmem_pool *pool, struct xmem_buffer **ret,
		   struct xmem_subscription **ret_one, u64 *ret_handle, bool *ret_put_off)
{
	struct xl_following *follows = &pool->follows;
	struct xmem_subscription *first = follows->turn ? follows->turn : follows->subscriptions;
	struct xmem_subscription *one = first;
	int err, worst = one ? -EAGAIN : -ENOENT;

	*ret_put_off = false;
	for (; one; one = one->next ? one->next : follows->subscriptions) {
		xl_lock(&one->lock);
		err = one->handle ? xl_take_next(one, ret) : -EAGAIN;
		if (err != -EAGAIN && err != -EBUSY && (err != -EPIPE || worst != -EPIPE)) {
			*ret_one = one;
			*ret_handle = one->handle;
		}
		if (err == XL_NEWCOMERS || err == XL_UNMAPPED)
			return err;
		*ret_put_off |= one->handle && one->put_off;
		xl_unlock(&one->lock);
		if (err != -EAGAIN && err != -EBUSY && err != -EPIPE) {
			follows->turn = one->next;
			return err;
		}
		if (err == -EPIPE || (err == -EBUSY && worst == -EAGAIN))
			worst = err;
		if ((one->next ? one->next : pool->follows.subscriptions) == first)
			break;
	}
	return worst;
}

/* Look at all subscriptions, and ask the host for what they need, until there is a result. */
static int any_now(struct xmem_pool *pool, struct xmem_buffer **ret, u64 *ret_handle, u64 deadline,
		   bool *ret_put_off)
{
	struct xmem_subscription *one = NULL;
	int err;

	do {
		xl_lock(&pool->follows.list);
		err = try_any(pool, ret, &one, ret_handle, ret_put_off);
		xl_unlock(&pool->follows.list);
		if (err != XL_NEWCOMERS && err != XL_UNMAPPED)
			return err;
		err = xl_request_for_next(one, err, deadline);
		xl_unlock(&one->lock);
	} while (err != XL_NOTED);	/* the next look finds out if it has ended */
	return err;
}

/* Arm the words of all rings that this client follows, in all subscriptions. */
static int watch_all(struct xmem_pool *pool, struct xl_watch *watch)
{
	u32 c;
	int err;

	for (c = 0; c < pool->map.clients; c++) {
		if (!xm_bit(xm_client_row(&pool->map, c)->subscribers, pool->me))
			continue;
		err = xl_watch_ring(pool, watch, c);
		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

static int any_wait(struct xmem_pool *pool, struct xmem_buffer **ret, u64 *ret_handle,
		    u64 deadline, u32 cancels)
{
	struct xl_watch watch;
	bool put_off;
	u64 until;
	int err;

	for (;;) {
		xl_watch_begin(pool, &watch, XMEM_POLL_CLIENT);
		err = watch_all(pool, &watch);
		if (!err)
			err = xl_watch_writers(pool, &watch);
		if (err)
			return err;
		if (xl_wait_cancelled(&pool->calls, cancels))
			return -ECANCELED;
		err = any_now(pool, ret, ret_handle, deadline, &put_off);
		if (err == -EBUSY && xl_now_ns() < deadline)
			continue;
		if (err != -EAGAIN)
			return err;
		if (watch.kicks != xm_load(&pool->follows.kicks))
			continue;	/* another ring may have to be armed: wait.h */
		until = put_off ? xl_sleep_until(pool, deadline) : deadline;
		err = xl_wait_rings(pool, &watch, until);
		if (err && (err != -ETIMEDOUT || until == deadline))
			return err;
	}
}

static int receive_any(struct xmem_pool *pool, struct xmem_buffer **ret, u64 *ret_handle,
		       int64_t timeout_ns)
{
	u64 deadline = timeout_ns ? xl_deadline(timeout_ns) : 0;
	u32 cancels = xl_wait_begin(&pool->calls);
	bool put_off;
	int err;

	if (timeout_ns && cancels & XL_CANCEL_ALWAYS)
		return -ECANCELED;
	err = any_now(pool, ret, ret_handle, deadline, &put_off);
	if ((err == -EAGAIN || err == -EBUSY) && timeout_ns)
		err = any_wait(pool, ret, ret_handle, deadline, cancels);
	return err == -EBUSY ? (timeout_ns ? -ETIMEDOUT : -EAGAIN) : err;
}

XMEM_API struct xmem_buffer *xmem_receive_any(struct xmem_pool *pool, int64_t timeout_ns,
					      struct xmem_subscription **ret_subscription)
{
	XL_CALL;
	struct xmem_buffer *buffer = NULL;
	u64 handle = 0;
	int err;
	XL_USE(pool);

	if (ret_subscription)
		*ret_subscription = NULL;
	if (!pool || timeout_ns < 0) {
		xl_fail_fast(EINVAL, pool ? "a negative timeout" : "no pool");
		return NULL;
	}
	if (!xl_is_open(pool)) {
		xl_fail_not_alive(pool);
		return NULL;
	}
	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	err = receive_any(pool, &buffer, &handle, timeout_ns);
	if (err == -ENOENT)
		xl_fail_fast(ENOENT, "the pool's handle has no subscription");
	else if (err)
		xl_fail_receive(pool, err, XL_NOT_DROPPED);
	xl_poll_update(pool, POLLIN);
	if (ret_subscription && (!err || err == -EPIPE))
		*ret_subscription = (void *)handle;
	xl_wait_end(&pool->calls);
	return err ? NULL : buffer;
}
