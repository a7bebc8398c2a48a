// SPDX-License-Identifier: GPL-2.0-only
/*
 * Those who poll a client's descriptors: the queue that they hang in, how they are woken, and the
 * timer that wakes them when only the time has changed something. poll.c says what they wait for.
 *
 * A client puts as many epoll items into its queue as it likes, and whoever wakes it, a publisher
 * say, shall not pay for that. So who wakes looks at a few items only. If there are more, a work
 * item wakes all of them, a few at a time, and others get the queue's lock between. To queue work
 * costs as much as a wake-up. So the work comes half a millisecond later, and serves all wakes
 * until then: the client has made the queue long itself, and only its own wait is longer by this.
 */
#include <linux/init.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

#define XK_WOKEN_AT_ONCE	8u
#define XK_LATE_NS		500000u

/* It has a rescuer, because who waits for a buffer must not wait for memory. */
static struct workqueue_struct *xk_wake_wq;

int __init xk_pollers_init(void)
{
	xk_wake_wq = alloc_workqueue("xmem_wake", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return xk_wake_wq ? 0 : -ENOMEM;
}

/* All clients have gone. Waits for wake-ups that are on their way, and then wake nobody. */
void xk_pollers_exit(void)
{
	destroy_workqueue(xk_wake_wq);
}

/* ---- waking ---- */

static void xk_call_waiter(struct wait_queue_entry *waiter, __poll_t events)
{
	waiter->func(waiter, TASK_NORMAL, 0, poll_to_key(events));
}

/* In the place of the mark, which stands in the queue but waits for nothing. */
static int xk_mark_woken(struct wait_queue_entry *mark, unsigned int mode, int sync, void *key)
{
	return 0;
}

/* Under the queue's lock: all are woken, unless they are more than a few: false. */
static bool xk_wake_few(struct xk_pollers *pollers, __poll_t events)
{
	struct wait_queue_entry *waiter, *next;
	u32 count = 0;

	list_for_each_entry(waiter, &pollers->queue.head, entry)
		if (++count > XK_WOKEN_AT_ONCE)
			return false;
	list_for_each_entry_safe(waiter, next, &pollers->queue.head, entry)
		xk_call_waiter(waiter, events);
	return true;
}

/* Under the queue's lock: wakes the next few behind the mark. false: there are no more. */
static bool xk_wake_next(struct xk_pollers *pollers, __poll_t events)
{
	struct list_head *mark = &pollers->mark.entry;
	struct wait_queue_entry *waiter;
	u32 count;

	for (count = 0; count < XK_WOKEN_AT_ONCE; count++) {
		if (list_is_last(mark, &pollers->queue.head))
			return false;
		waiter = list_next_entry(&pollers->mark, entry);
		list_move(mark, &waiter->entry);	/* before it may leave the queue */
		xk_call_waiter(waiter, events);
	}
	return true;
}

static void xk_pollers_work(struct work_struct *work)
{
	struct xk_pollers *pollers = container_of(work, struct xk_pollers, work);
	spinlock_t *lock = &pollers->queue.lock;
	__poll_t events;

	spin_lock_irq(lock);
	/* Who still saw events in it (xk_pollers_wake) had stored before what a look finds now. */
	events = xchg(&pollers->late, 0);
	/* Who comes stands before the mark, and has yet to look. */
	list_add(&pollers->mark.entry, &pollers->queue.head);
	while (xk_wake_next(pollers, events)) {
		spin_unlock_irq(lock);
		cond_resched();
		spin_lock_irq(lock);
	}
	list_del_init(&pollers->mark.entry);
	spin_unlock_irq(lock);
	xk_pollers_put(pollers);
}

/* It is time for the work, which gets the timer's reference. It may run, but is not queued. */
static enum hrtimer_restart xk_late_timeout(struct hrtimer *timer)
{
	queue_work(xk_wake_wq, &container_of(timer, struct xk_pollers, late_timer)->work);
	return HRTIMER_NORESTART;
}

/*
 * Under the queue's lock, so whoever leaves the queue sees that the timer runs. Its reference is
 * one of the client's: if that has gone already, nobody polls.
 */
static void xk_wake_later(struct xk_pollers *pollers, __poll_t events)
{
	if (!pollers->late) {
		if (!kref_get_unless_zero(&pollers->kref))
			return;
		hrtimer_start(&pollers->late_timer, ktime_add_ns(ktime_get(), XK_LATE_NS),
			      HRTIMER_MODE_ABS);
	}
	WRITE_ONCE(pollers->late, pollers->late | events);
}

/* Wakes all who poll for one of @events; many of them a little later. */
void xk_pollers_wake(struct xk_pollers *pollers, __poll_t events)
{
	unsigned long flags;

	smp_mb();	/* what has changed before: pairs with the xchg of the work */
	if ((READ_ONCE(pollers->late) & events) == events)
		return;		/* the work has yet to begin, and wakes all of them */
	spin_lock_irqsave(&pollers->queue.lock, flags);
	if (!xk_wake_few(pollers, events))
		xk_wake_later(pollers, events);
	spin_unlock_irqrestore(&pollers->queue.lock, flags);
}

/* ---- making and freeing ---- */

/* The time has come at which the owner may demote those that it waits for. */
static enum hrtimer_restart xk_pollers_timeout(struct hrtimer *timer)
{
	xk_pollers_wake(container_of(timer, struct xk_pollers, timer), EPOLLOUT | EPOLLWRNORM);
	return HRTIMER_NORESTART;
}

/* The caller has the reference. */
struct xk_pollers *xk_pollers_new(void)
{
	struct xk_pollers *pollers = kzalloc(sizeof(*pollers), GFP_KERNEL_ACCOUNT);

	if (!pollers)
		return NULL;
	kref_init(&pollers->kref);
	init_waitqueue_head(&pollers->queue);
	init_waitqueue_func_entry(&pollers->mark, xk_mark_woken);
	INIT_LIST_HEAD(&pollers->mark.entry);
	INIT_WORK(&pollers->work, xk_pollers_work);
	xk_timer_setup(&pollers->timer, xk_pollers_timeout);
	xk_timer_setup(&pollers->late_timer, xk_late_timeout);
	return pollers;
}

/* Who wakes may still be looking at it. */
static void xk_pollers_release(struct kref *kref)
{
	struct xk_pollers *pollers = container_of(kref, struct xk_pollers, kref);

	kfree_rcu(pollers, rcu);
}

void xk_pollers_put(struct xk_pollers *pollers)
{
	kref_put(&pollers->kref, xk_pollers_release);
}

/*
 * Their client is being freed, so nobody polls any more. The caller's reference goes, and that of
 * the timer if that has yet to queue the work, for which the module would not wait.
 */
void xk_pollers_free(struct xk_pollers *pollers)
{
	hrtimer_cancel(&pollers->timer);
	if (hrtimer_cancel(&pollers->late_timer))
		xk_pollers_put(pollers);
	xk_pollers_put(pollers);
}
