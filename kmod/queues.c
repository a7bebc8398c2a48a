// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues of which clients decide the length, with epoll items or with threads, and how they are
 * woken: pollers (pollers.c), and threads that sleep in the request wait (wait.c).
 *
 * The cost for a waker, for example a publisher or a process that ends, must not depend on the
 * length of the queue. So the waker itself wakes only a short queue. If more than a few wait, a
 * work item wakes all of them, a few at a time, and others can take the queue's lock in between.
 * Queueing the work costs as much as a wake-up, so the work runs half a millisecond later and
 * serves all wake-ups until then. Only the client that has made the queue long waits longer for
 * that.
 *
 * No wake-up is lost. A waiter enters the queue before it looks at what it waits for. A waker
 * changes that first, and then finds `late` set or sets it. The work clears `late` and wakes all
 * waiters in the queue; a waiter that enters after that finds the change when it looks. A thread
 * that was woken stays in the queue until its wait is over; a poller that goes on enters again
 * before it looks again. Model: tests/model/late.pml, whose poller stands for both.
 */
#include <linux/init.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

#define XK_WOKEN_AT_ONCE	8u
#define XK_LATE_NS		500000u

/* With a rescuer (WQ_MEM_RECLAIM), because a waiter for a buffer must not wait for memory. */
static struct workqueue_struct *xk_wake_wq;

int __init xk_queues_init(void)
{
	xk_wake_wq = alloc_workqueue("xmem_wake", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return xk_wake_wq ? 0 : -ENOMEM;
}

/* All pools and clients are gone. This waits for work that is queued and will wake nobody. */
void xk_queues_exit(void)
{
	destroy_workqueue(xk_wake_wq);
}

/* ---- waking ---- */

static void xk_call_waiter(struct wait_queue_entry *waiter, __poll_t events)
{
	waiter->func(waiter, TASK_NORMAL, 0, poll_to_key(events));
}

/* The function of the mark, which is in the queue but waits for nothing. */
static int xk_mark_woken(struct wait_queue_entry *mark, unsigned int mode, int sync, void *key)
{
	return 0;
}

/* Under the queue's lock: wake all waiters, unless there are more than a few: false. */
static bool xk_wake_few(struct xk_queue *queue, __poll_t events)
{
	struct wait_queue_entry *waiter, *next;
	u32 count = 0;

	list_for_each_entry(waiter, &queue->head.head, entry)
		if (++count > XK_WOKEN_AT_ONCE)
			return false;
	list_for_each_entry_safe(waiter, next, &queue->head.head, entry)
		xk_call_waiter(waiter, events);
	return true;
}

/* Under the queue's lock: wake the next few after the mark. false: there are no more. */
static bool xk_wake_next(struct xk_queue *queue, __poll_t events)
{
	struct list_head *mark = &queue->mark.entry;
	struct wait_queue_entry *waiter;
	u32 count;

	for (count = 0; count < XK_WOKEN_AT_ONCE; count++) {
		if (list_is_last(mark, &queue->head.head))
			return false;
		waiter = list_next_entry(&queue->mark, entry);
		list_move(mark, &waiter->entry);	/* before the waiter may leave the queue */
		xk_call_waiter(waiter, events);
	}
	return true;
}

static void xk_queue_work(struct work_struct *work)
{
	struct xk_queue *queue = container_of(work, struct xk_queue, work);
	spinlock_t *lock = &queue->head.lock;
	__poll_t events;

	spin_lock_irq(lock);
	/* A waker that still saw these events in it (xk_queue_wake) has made its change already. */
	events = xchg(&queue->late, 0);
	/* New waiters enter before the mark (EPOLLEXCLUSIVE: after it) and have yet to look. */
	list_add(&queue->mark.entry, &queue->head.head);
	while (xk_wake_next(queue, events)) {
		spin_unlock_irq(lock);
		cond_resched();
		spin_lock_irq(lock);
	}
	list_del_init(&queue->mark.entry);
	spin_unlock_irq(lock);
	kref_put(queue->kref, queue->release);
}

/* The work takes over the timer's reference. It may be running, but is not queued. */
static enum hrtimer_restart xk_late_timeout(struct hrtimer *timer)
{
	queue_work(xk_wake_wq, &container_of(timer, struct xk_queue, timer)->work);
	return HRTIMER_NORESTART;
}

/*
 * Under the queue's lock, so a waiter that leaves the queue sees that the timer runs. The timer has
 * a reference to the queue's container; if that is gone already, nobody waits.
 */
static void xk_wake_later(struct xk_queue *queue, __poll_t events)
{
	if (!queue->late) {
		if (!kref_get_unless_zero(queue->kref))
			return;
		hrtimer_start(&queue->timer, ktime_add_ns(ktime_get(), XK_LATE_NS),
			      HRTIMER_MODE_ABS);
	}
	WRITE_ONCE(queue->late, queue->late | events);
}

/* Wake all waiters for one of @events; many of them a little later. Takes only spinlocks. */
void xk_queue_wake(struct xk_queue *queue, __poll_t events)
{
	unsigned long flags;

	smp_mb();	/* the change comes before this: pairs with the xchg of the work */
	if ((READ_ONCE(queue->late) & events) == events)
		return;		/* the work has not begun, and will wake all of them */
	spin_lock_irqsave(&queue->head.lock, flags);
	if (!xk_wake_few(queue, events))
		xk_wake_later(queue, events);
	spin_unlock_irqrestore(&queue->head.lock, flags);
}

/* ---- making and freeing ---- */

/* @kref: of the queue's container. The timer has a reference to it, and then the work. */
void xk_queue_prepare(struct xk_queue *queue, struct kref *kref,
		      void (*release)(struct kref *kref))
{
	init_waitqueue_head(&queue->head);
	init_waitqueue_func_entry(&queue->mark, xk_mark_woken);
	INIT_LIST_HEAD(&queue->mark.entry);
	INIT_WORK(&queue->work, xk_queue_work);
	xk_timer_setup(&queue->timer, xk_late_timeout);
	queue->late = 0;
	queue->kref = kref;
	queue->release = release;
}

/*
 * Nobody waits any more. If the timer has not queued the work yet, it is cancelled and its
 * reference dropped, because the unload of the module would not wait for it. The caller has a
 * reference of its own.
 */
void xk_queue_stop(struct xk_queue *queue)
{
	if (hrtimer_cancel(&queue->timer))
		kref_put(queue->kref, queue->release);
}

/* ---- the queues of a pool ---- */

static void xk_queues_release(struct kref *kref)
{
	kvfree(container_of(kref, struct xk_queues, kref));
}

/* Returns them with a reference. */
struct xk_queues *xk_queues_new(u32 count)
{
	struct xk_queues *queues = kvzalloc(struct_size(queues, word, count), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!queues)
		return NULL;
	kref_init(&queues->kref);
	queues->count = count;
	for (i = 0; i < count; i++) {
		init_waitqueue_head(&queues->word[i].few);
		xk_queue_prepare(&queues->word[i].many, &queues->kref, xk_queues_release);
	}
	return queues;
}

/* Nobody waits any more, but a work item may still be running. @queues may be NULL. */
void xk_queues_free(struct xk_queues *queues)
{
	u32 i;

	for (i = 0; queues && i < queues->count; i++)
		xk_queue_stop(&queues->word[i].many);
	if (queues)
		kref_put(&queues->kref, xk_queues_release);
}
