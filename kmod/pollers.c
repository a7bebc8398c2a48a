// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pollers of a client's descriptors: their queue, and the timer that wakes them when time alone
 * has changed something. poll.c says what they wait for. A client can put any number of epoll items
 * into its queue; queues.c bounds what they cost the waker. The queue of the client's threads in
 * the request wait, of which there may be any number, too, is here as well.
 */
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

/* Wake all pollers for one of @events; many of them a little later. */
void xk_pollers_wake(struct xk_pollers *pollers, __poll_t events)
{
	xk_queue_wake(&pollers->queue, events);
}

/* An acquire may succeed now, because the owner may demote subscribers, say. */
static enum hrtimer_restart xk_pollers_timeout(struct hrtimer *timer)
{
	xk_pollers_wake(container_of(timer, struct xk_pollers, timer), EPOLLOUT | EPOLLWRNORM);
	return HRTIMER_NORESTART;
}

/*
 * A thread of the client is about to look for a slot: wake the pollers when time alone has changed
 * something (core/poll.h). If that time has passed already, a poll finds it (xm_writable).
 */
void xk_pollers_wake_at(struct xk_client *client)
{
	ktime_t at;
	u64 ns;

	xk_look_begin(client->pool);
	ns = xm_load(&xm_ring(&client->pool->look, client->id)->look_at_ns);
	xk_look_end(client->pool);
	at = xk_host_time(ns, client->clock_offset);
	if (ns && at < KTIME_MAX)
		hrtimer_start(&client->pollers->timer, at, HRTIMER_MODE_ABS);
}

/* A waker may still be reading it. */
static void xk_pollers_release(struct kref *kref)
{
	struct xk_pollers *pollers = container_of(kref, struct xk_pollers, kref);

	kfree_rcu(pollers, rcu);
}

/* Returns it with a reference. */
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

/* Their client is being freed, so nobody polls any more. Drops the caller's reference. */
void xk_pollers_free(struct xk_pollers *pollers)
{
	hrtimer_cancel(&pollers->timer);
	xk_queue_stop(&pollers->queue);
	xk_queue_stop(&pollers->sleepers);
	kref_put(&pollers->kref, xk_pollers_release);
}
