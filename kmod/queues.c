// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues that clients can make as long as they like, with epoll items or with threads, and how
 * they are woken: those who poll (pollers.c), and those who sleep in the request wait (wait.c).
 *
 * Whoever wakes such a queue, a publisher say, or a process that ends, shall not pay for its
 * length. So who wakes looks at a few who stand there only. If there are more, a work item wakes
 * all of them, a few at a time, and others get the queue's lock between. To queue work costs as
 * much as a wake-up. So the work comes half a millisecond later, and serves all wakes until then:
 * who stands there has made the queue long itself, and only its own wait is longer by this.
 *
 * No wake-up is lost. Who waits stands in the queue before it looks at what it waits for; who wakes
 * changes that first, and then finds `late` or sets it. The work takes `late` away, and wakes all
 * who stand there then. So who comes behind that finds the change when it looks. A thread that was
 * woken stands there until its wait is over; a poller that goes on is queued again before it looks
 * again. Model: tests/model/late.pml, whose poller is either of the two.
 */
#include <linux/init.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

#define XK_WOKEN_AT_ONCE	8u
#define XK_LATE_NS		500000u

/* It has a rescuer, because who waits for a buffer must not wait for memory. */
static struct workqueue_struct *xk_wake_wq;

int __init xk_queues_init(void)
{
	xk_wake_wq = alloc_workqueue("xmem_wake", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return xk_wake_wq ? 0 : -ENOMEM;
}

/* All pools and clients have gone. Waits for wake-ups that are on their way, and wake nobody. */
void xk_queues_exit(void)
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

/* Under the queue's lock: wakes the next few behind the mark. false: there are no more. */
static bool xk_wake_next(struct xk_queue *queue, __poll_t events)
{
	struct list_head *mark = &queue->mark.entry;
	struct wait_queue_entry *waiter;
	u32 count;

	for (count = 0; count < XK_WOKEN_AT_ONCE; count++) {
		if (list_is_last(mark, &queue->head.head))
			return false;
		waiter = list_next_entry(&queue->mark, entry);
		list_move(mark, &waiter->entry);	/* before it may leave the queue */
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
	/* Who still saw events in it (xk_queue_wake) had stored before what a look finds now. */
	events = xchg(&queue->late, 0);
	/* Who comes stands before the mark (EPOLLEXCLUSIVE: behind) and has yet to look. */
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

/* It is time for the work, which gets the timer's reference. It may run, but is not queued. */
static enum hrtimer_restart xk_late_timeout(struct hrtimer *timer)
{
	queue_work(xk_wake_wq, &container_of(timer, struct xk_queue, timer)->work);
	return HRTIMER_NORESTART;
}

/*
 * Under the queue's lock, so whoever leaves the queue sees that the timer runs. Its reference is
 * one of what the queue is in: if that has gone already, nobody waits.
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

/* Wakes all who wait for one of @events; many of them a little later. It takes spinlocks only. */
void xk_queue_wake(struct xk_queue *queue, __poll_t events)
{
	unsigned long flags;

	smp_mb();	/* what has changed before: pairs with the xchg of the work */
	if ((READ_ONCE(queue->late) & events) == events)
		return;		/* the work has yet to begin, and wakes all of them */
	spin_lock_irqsave(&queue->head.lock, flags);
	if (!xk_wake_few(queue, events))
		xk_wake_later(queue, events);
	spin_unlock_irqrestore(&queue->head.lock, flags);
}

/* ---- making and freeing ---- */

/* @kref: of what the queue is in. The timer has a reference to it, and then the work. */
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
 * Nobody waits any more. The timer's reference goes if that has yet to queue the work, for which
 * the module would not wait. The caller still has one of its own.
 */
void xk_queue_stop(struct xk_queue *queue)
{
	if (hrtimer_cancel(&queue->timer))
		kref_put(queue->kref, queue->release);
}

/* ---- those of a pool ---- */

static void xk_queues_release(struct kref *kref)
{
	kvfree(container_of(kref, struct xk_queues, kref));
}

/* The caller has the reference. */
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

/* Nobody waits any more; a work item may still be at it. NULL: there is nothing to do. */
void xk_queues_free(struct xk_queues *queues)
{
	u32 i;

	for (i = 0; queues && i < queues->count; i++)
		xk_queue_stop(&queues->word[i].many);
	if (queues)
		kref_put(&queues->kref, xk_queues_release);
}
