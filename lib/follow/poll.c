// SPDX-License-Identifier: MIT
/*
 * Descriptors that programs poll, of pools and of subscriptions. This file makes and closes them;
 * host/notify.c keeps their states true.
 *
 * On the daemon's host a descriptor is a socket (daemon/poll.c). It is readable while a byte from
 * the daemon is in it, and writable unless it is filled.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/base/files.h"
#include "lib/base/uncancelled.h"
#include "lib/follow/subscription.h"
#include "lib/follow/wait.h"
#include "lib/host/quota.h"
#include "lib/host/request.h"
#include "lib/host/wire.h"
#include "lib/own/owned.h"
#include "lib/private.h"

/* Make a descriptor. Under no lock, because the host may be slow. NULL and *ret_err. */
static struct xl_poll *new_poll(struct xmem_pool *pool, const struct xm_poll *what, int *ret_err)
{
	struct xmem_poll_fd_request request = {
		.size = sizeof(request), .kind = what->kind, .publisher = what->publisher,
		.incarnation = what->incarnation,
	};
	struct xl_poll *poll = calloc(1, sizeof(*poll));

	*ret_err = !poll ? -ENOMEM : xl_request_until(pool, XMEM_IOC_POLL_FD, &request,
						      xl_deadline(XL_HOST_NS));
	if (*ret_err) {
		free(poll);
		return NULL;
	}
	poll->fd = request.fd;
	poll->what = *what;
	poll->what.client = pool->me;
	return poll;
}

static void close_poll(struct xl_poll *poll)
{
	/* A forked child may have the socket too, but shutdown() tells the daemon anyway. */
	shutdown(poll->fd, SHUT_RDWR);
	xl_file_close(poll->fd);
	free(poll);
}

/* Make the descriptor in *place unless it exists. 0 or -errno. */
static int take_poll(struct xmem_pool *pool, struct xl_poll **place, const struct xm_poll *what)
{
	struct xl_polls *polls = &pool->polls;
	struct xl_poll *poll;
	int err;

	if (__atomic_load_n(place, __ATOMIC_ACQUIRE))
		return 0;
	poll = new_poll(pool, what, &err);
	if (!poll)
		return err;
	pthread_mutex_lock(&polls->lock);
	if (!*place) {
		poll->next = polls->first;
		polls->first = poll;
		__atomic_store_n(place, poll, __ATOMIC_RELEASE);
		__atomic_store_n(&polls->settle, pool->link.backend->poke, __ATOMIC_RELAXED);
		poll = NULL;
	}
	pthread_mutex_unlock(&polls->lock);
	if (poll)
		close_poll(poll);	/* another thread was faster */
	else
		xl_receive_leave_fast_path(pool);
	/* The daemon has filled it, and has not looked at it yet. */
	if (pool->link.backend->poke)
		pool->link.backend->poke(&pool->link);
	return 0;
}

int xl_poll_file(struct xmem_pool *pool, u32 kind)
{
	struct xl_poll **place = &pool->polls.waits[kind == XMEM_POLL_JOINT];
	int err = take_poll(pool, place, &(struct xm_poll){ .kind = kind });

	return err ? err : (*place)->fd;
}

/* Describe the descriptor of a subscription. Under the subscription's lock. */
static struct xm_poll what_of(const struct xmem_subscription *subscription)
{
	struct xm_poll what = { .kind = XMEM_POLL_JOINT };

	if (subscription->joint)
		return what;
	what.kind = XMEM_POLL_RING;
	what.publisher = xl_origin_client(subscription->origin);
	/*
	 * If its ring has ended, the subscription has ended for good: no client ever has this
	 * incarnation.
	 */
	what.incarnation = ~0ULL;
	if (subscription->ring && subscription->ring->follow.incarnation)
		what.incarnation = subscription->ring->follow.incarnation;
	return what;
}

void xl_poll_drop(struct xmem_pool *pool, struct xl_poll **place)
{
	struct xl_poll *poll, **at = &pool->polls.first;

	pthread_mutex_lock(&pool->polls.lock);
	poll = *place;
	*place = NULL;
	while (*at && *at != poll)
		at = &(*at)->next;
	if (*at)
		*at = poll->next;
	if (!pool->polls.first)
		__atomic_store_n(&pool->polls.settle, false, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->polls.lock);
	if (poll)
		close_poll(poll);
}

void xl_polls_drop(struct xmem_pool *pool)
{
	struct xl_poll *poll;

	while ((poll = pool->polls.first)) {
		pool->polls.first = poll->next;
		close_poll(poll);
	}
	pool->polls = (struct xl_polls){ .settle = false };
}

/* ---- the API ---- */

static int failed(const struct xmem_pool *pool, const char *what, int err)
{
	char limit[XL_LIMIT_BYTES];

	if (err == -EDQUOT)
		return xl_fail(EDQUOT, "%s: %s; close pools or subscriptions that are not used",
			       what, xl_host_error(pool, err, limit));
	return xl_fail(-err, "%s: %s", what, xl_request_error(err));
}

XMEM_API int xmem_pool_poll_fd(struct xmem_pool *pool)
{
	XL_CALL;
	int err;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	err = take_poll(pool, &pool->polls.pool, &(struct xm_poll){ .kind = XMEM_POLL_CLIENT });
	return err ? failed(pool, "a descriptor to poll, of the pool", err) : pool->polls.pool->fd;
}

XMEM_API int xmem_subscribers_poll_fd(struct xmem_pool *pool)
{
	XL_CALL;
	int err;
	XL_USE(pool);

	err = xl_check_writer(pool, XMEM_FOREVER);
	if (err)
		return err;
	err = take_poll(pool, &pool->polls.subscribers,
			&(struct xm_poll){ .kind = XMEM_POLL_SUBSCRIBERS });
	return err ? failed(pool, "a descriptor to poll, of subscribers", err) :
		     pool->polls.subscribers->fd;
}

XMEM_API int xmem_subscription_poll_fd(struct xmem_subscription *handle)
{
	XL_CALL;
	struct xmem_subscription *subscription = xl_subscription_lock(handle);
	struct xm_poll what;
	int err;

	if (!subscription)
		return xl_last_error();
	what = what_of(subscription);
	xl_subscription_leave(subscription);
	err = take_poll(subscription->pool, &subscription->poll, &what);
	if (xl_subscription_return(subscription)) {
		xl_unlock(&subscription->lock);
		return xl_fail_fast(ECANCELED, "a descriptor to poll: the subscription has been "
					       "dropped meanwhile");
	}
	if (err)
		failed(subscription->pool, "a descriptor to poll, of the subscription", err);
	else
		err = subscription->poll->fd;
	xl_unlock(&subscription->lock);
	return err;
}
