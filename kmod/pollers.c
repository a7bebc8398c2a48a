// SPDX-License-Identifier: GPL-2.0-only
/*
 * Those who poll a client's descriptors: the queue that they hang in, and the timer that
 * wakes them when only the time has changed something. poll.c says what they wait for.
 */
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

/* The time has come at which the owner may demote those that it waits for. */
static enum hrtimer_restart xk_pollers_timeout(struct hrtimer *timer)
{
	xk_pollers_wake(container_of(timer, struct xk_pollers, timer), EPOLLOUT | EPOLLWRNORM);
	return HRTIMER_NORESTART;
}

struct xk_pollers *xk_pollers_new(void)
{
	struct xk_pollers *pollers = kzalloc(sizeof(*pollers), GFP_KERNEL_ACCOUNT);

	if (!pollers)
		return NULL;
	init_waitqueue_head(&pollers->queue);
	xk_timer_setup(&pollers->timer, xk_pollers_timeout);
	return pollers;
}

/* Who wakes may still be looking at it. */
void xk_pollers_free(struct xk_pollers *pollers)
{
	hrtimer_cancel(&pollers->timer);
	kfree_rcu(pollers, rcu);
}

/* Wakes all who poll for one of @events. */
void xk_pollers_wake(struct xk_pollers *pollers, __poll_t events)
{
	__wake_up(&pollers->queue, TASK_NORMAL, 0, poll_to_key(events));
}
