// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends that are under way, and who waits for them.
 *
 * A process that ends waits for nobody; what it leaves comes free in its pool's end_work (leave.c,
 * reap.c). So whoever finds too little of something waits first, until what had been asked of
 * end_work by then has been done. It does so under no lock, and no longer when it is killed.
 *
 * What is asked for has a number, one sequence for all pools: there are limits that they share.
 */
#include <linux/sched/signal.h>

#include "xk.h"

/* Who lacks what all pools share waits so long at most: a stranger's end may take its time. */
#define XK_ENDS_PATIENCE	(2 * HZ)

/* Interrupts are off where it is taken: a process's exit asks below tasklist_lock (exited.c). */
static DEFINE_SPINLOCK(ends_lock);
static LIST_HEAD(ends);			/* ends_lock; pools of whose end_work something is asked */
static u64 ends_last;			/* ends_lock: the last number */
static DECLARE_WAIT_QUEUE_HEAD(ends_queue);

/* The caller is about to queue end_work, with a reference to the pool. Any lock may be held. */
void xk_end_asked(struct xk_pool *pool)
{
	unsigned long flags;

	spin_lock_irqsave(&ends_lock, flags);
	WRITE_ONCE(pool->end_asked, ++ends_last);
	if (list_empty(&pool->end_node)) {
		pool->end_first = ends_last;
		list_add_tail(&pool->end_node, &ends);
	}
	spin_unlock_irqrestore(&ends_lock, flags);
}

/* A run of end_work begins. Returns what it is to say when it is over. */
u64 xk_end_begins(struct xk_pool *pool)
{
	u64 asked;

	spin_lock_irq(&ends_lock);
	asked = pool->end_asked;
	spin_unlock_irq(&ends_lock);
	return asked;
}

/* It has done all that had been asked for when it began. */
void xk_end_over(struct xk_pool *pool, u64 asked)
{
	spin_lock_irq(&ends_lock);
	WRITE_ONCE(pool->end_done, asked);
	if (pool->end_asked == asked)
		list_del_init(&pool->end_node);
	else
		pool->end_first = asked + 1;	/* for which there will be another run */
	spin_unlock_irq(&ends_lock);
	wake_up_all(&ends_queue);
}

/* Waits until all has been done that has been asked of end_work. -EINTR: the caller is killed. */
int xk_end_wait(struct xk_pool *pool)
{
	u64 asked = READ_ONCE(pool->end_asked);

	return wait_event_killable(ends_queue, READ_ONCE(pool->end_done) >= asked) ? -EINTR : 0;
}

/* Is there something to wait for? */
bool xk_end_comes(const struct xk_pool *pool)
{
	return READ_ONCE(pool->end_done) < READ_ONCE(pool->end_asked);
}

/* Is there something that was asked for by then, in any pool? */
static bool xk_any_end(u64 until)
{
	struct xk_pool *pool;
	bool any = false;

	spin_lock_irq(&ends_lock);
	list_for_each_entry(pool, &ends, end_node)
		any |= pool->end_first <= until;
	spin_unlock_irq(&ends_lock);
	return any;
}

/*
 * A request finds too little of what users share, as its error @err says. true: it may find more
 * now, for ends were under way, of any pools, and are over; that is so once for each request.
 */
bool xk_ends_bring(struct xk_call *call, int err)
{
	u64 until;

	if (err != -EDQUOT || call->waited)
		return false;
	call->waited = true;
	spin_lock_irq(&ends_lock);
	until = ends_last;
	spin_unlock_irq(&ends_lock);
	return xk_any_end(until) &&
	       wait_event_killable_timeout(ends_queue, !xk_any_end(until), XK_ENDS_PATIENCE) > 0;
}
