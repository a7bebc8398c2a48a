// SPDX-License-Identifier: GPL-2.0-only
/*
 * Those who poll a client's descriptors: the queue that they hang in, and the timer that wakes them
 * when only the time has changed something. poll.c says what they wait for. A client puts as many
 * epoll items into its queue as it likes: queues.c says what that costs who wakes it. The queue of
 * its threads in the request wait, which may be as many, is here too.
 */
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

/* Wakes all who poll for one of @events; many of them a little later. */
void xk_pollers_wake(struct xk_pollers *pollers, __poll_t events)
{
	xk_queue_wake(&pollers->queue, events);
}

/* The time has come at which the owner may demote those that it waits for. */
static enum hrtimer_restart xk_pollers_timeout(struct hrtimer *timer)
{
	xk_pollers_wake(container_of(timer, struct xk_pollers, timer), EPOLLOUT | EPOLLWRNORM);
	return HRTIMER_NORESTART;
}

/* Who wakes may still be looking at it. */
static void xk_pollers_release(struct kref *kref)
{
	struct xk_pollers *pollers = container_of(kref, struct xk_pollers, kref);

	kfree_rcu(pollers, rcu);
}

/* The caller has the reference. */
struct xk_pollers *xk_pollers_new(void)
{
	struct xk_pollers *pollers = kzalloc(sizeof(*pollers), GFP_KERNEL_ACCOUNT);

	if (!pollers)
		return NULL;
	kref_init(&pollers->kref);
	xk_queue_prepare(&pollers->queue, &pollers->kref, xk_pollers_release);
	xk_queue_prepare(&pollers->sleepers, &pollers->kref, xk_pollers_release);
	xk_timer_setup(&pollers->timer, xk_pollers_timeout);
	return pollers;
}

/* Their client is being freed, so nobody polls any more. The caller's reference goes. */
void xk_pollers_free(struct xk_pollers *pollers)
{
	hrtimer_cancel(&pollers->timer);
	xk_queue_stop(&pollers->queue);
	xk_queue_stop(&pollers->sleepers);
	kref_put(&pollers->kref, xk_pollers_release);
}
