// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ends that are under way, and who waits for them.
 *
 * A process that ends waits for nobody; what it leaves comes free in its pool's end_work (leave.c,
 * reap.c). So whoever finds too little of something waits first, until what had been asked of
 * end_work by then has been done. It does so under no lock, and no longer when it is killed.
 *
 * What is asked for has a number, one sequence for all pools: there are limits that they share.
 *
 * A collect costs who sends it next to nothing, and end_work a sweep, for which no control group
 * pays. So what collects alone have asked for waits, once such a run is over, for as long as that
 * has taken: they get half of a worker's time at most, however many there are. The first after a
 * rest is served at once; so is all else, and collects with it; and who waits for what is asked
 * makes it come at once.
 *
 * While something is asked of a pool's end_work it is in the list `ends`, and end_work runs, or is
 * queued to run at once, or waits for its time. It gets a reference to the pool whenever it is
 * queued anew, and puts one in each run: a timer may have started a run that has yet to begin when
 * another is queued, and the first then serves what the second was queued for.
 */
#include <linux/sched/signal.h>

#include "xk.h"

struct workqueue_struct *xk_end_wq;

/* A run costs something besides its own time: a worker that wakes, and owners who look. */
#define XK_LEAST_REST_NS	NSEC_PER_MSEC

/* Who lacks what all pools share waits so long at most: a stranger's end may take its time. */
#define XK_ENDS_PATIENCE	(2 * HZ)

/* Interrupts are off where it is taken: a process's exit asks below tasklist_lock (exited.c). */
static DEFINE_SPINLOCK(ends_lock);
static LIST_HEAD(ends);			/* ends_lock; pools of whose end_work something is asked */
static u64 ends_last;			/* ends_lock: the last number */
static u64 ends_runs;			/* ends_lock: how many runs are over, of all pools */
/* Who lacks what all pools share. Who waits for one pool is in its end_waiters. */
static DECLARE_WAIT_QUEUE_HEAD(ends_queue);

/* ---- when it runs ---- */

static void xk_end_now(struct xk_pool *pool)
{
	lockdep_assert_held(&ends_lock);
	if (pool->end_queued)
		return;
	pool->end_queued = true;
	if (!mod_delayed_work(xk_end_wq, &pool->end_work, 0))
		kref_get(&pool->kref);	/* else it has been waiting, with a reference */
}

/*
 * Collects alone have asked for the next run, and no run is under way. A pool that is dead has
 * nothing to sweep, and nobody would wait for a timer of it when the module is unloaded.
 */
static void xk_end_rested(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&ends_lock);
	if (pool->end_queued)
		return;
	/* A tick more, for this one is not whole any more; and it may wait already. */
	if (now >= pool->end_rest || READ_ONCE(pool->dead))
		xk_end_now(pool);
	else if (queue_delayed_work(xk_end_wq, &pool->end_work,
				    nsecs_to_jiffies(pool->end_rest - now) + 1))
		kref_get(&pool->kref);
}

/* Somebody is going to wait for all that has been asked for. */
static void xk_end_hurry(struct xk_pool *pool)
{
	lockdep_assert_held(&ends_lock);
	if (!list_empty(&pool->end_node) &&
	    !(pool->end_runs && pool->end_serves == pool->end_asked))
		xk_end_now(pool);
}

/*
 * Something is asked of end_work, by a collect or by others. The caller has a reference to the
 * pool. Any lock may be held.
 */
void xk_end_ask(struct xk_pool *pool, bool collect)
{
	unsigned long flags;

	spin_lock_irqsave(&ends_lock, flags);
	WRITE_ONCE(pool->end_asked, ++ends_last);
	if (list_empty(&pool->end_node)) {
		pool->end_first = ends_last;
		list_add_tail(&pool->end_node, &ends);
	}
	if (!collect) {
		pool->end_others = ends_last;
		xk_end_now(pool);
	} else if (!pool->end_runs) {
		xk_end_rested(pool);
	}
	spin_unlock_irqrestore(&ends_lock, flags);
}

/* A run of end_work begins. It serves all that has been asked for by now. */
void xk_end_begins(struct xk_pool *pool)
{
	spin_lock_irq(&ends_lock);
	pool->end_queued = false;
	pool->end_runs = true;
	pool->end_serves = pool->end_asked;
	pool->end_collects = pool->end_others <= pool->end_done;
	pool->end_began = ktime_get_ns();
	spin_unlock_irq(&ends_lock);
}

/* That run is over, and it has asked for another one, which says so for both. */
void xk_end_goes_on(struct xk_pool *pool)
{
	spin_lock_irq(&ends_lock);
	pool->end_runs = false;
	spin_unlock_irq(&ends_lock);
}

/* A run is over. */
static void xk_end_rests(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&ends_lock);
	pool->end_runs = false;
	if (pool->end_collects)
		pool->end_rest = now + max_t(u64, now - pool->end_began, XK_LEAST_REST_NS);
}

/* It has done all that had been asked for when it began. */
void xk_end_over(struct xk_pool *pool)
{
	spin_lock_irq(&ends_lock);
	xk_end_rests(pool);
	smp_store_release(&ends_runs, ends_runs + 1);	/* all that it has given back is there */
	WRITE_ONCE(pool->end_done, pool->end_serves);
	if (pool->end_asked == pool->end_serves) {
		list_del_init(&pool->end_node);
	} else {
		pool->end_first = pool->end_serves + 1;
		xk_end_rested(pool);
	}
	spin_unlock_irq(&ends_lock);
	wake_up_all(&pool->end_waiters);
	wake_up_all(&ends_queue);
}

/* ---- who waits ---- */

/* Waits until all has been done that has been asked of end_work. -EINTR: the caller is killed. */
int xk_end_wait(struct xk_pool *pool)
{
	u64 asked;

	spin_lock_irq(&ends_lock);
	asked = pool->end_asked;
	xk_end_hurry(pool);
	spin_unlock_irq(&ends_lock);
	return wait_event_killable(pool->end_waiters, READ_ONCE(pool->end_done) >= asked) ?
	       -EINTR : 0;
}

/* How many runs are over. The caller looks at limits after this. */
u64 xk_end_runs(void)
{
	return smp_load_acquire(&ends_runs);
}

/*
 * A request finds too little of its pool. true: it may find more now, for an end was under way and
 * is over, or has been over since the request began.
 */
bool xk_end_brings(const struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;

	return (READ_ONCE(pool->end_done) < READ_ONCE(pool->end_asked) ||
		xk_end_runs() != call->runs) && !xk_end_wait(pool);
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
 * now, for ends were under way, of any pools, and are over, or one has been over since the request
 * began; that is so once for each request.
 */
bool xk_ends_bring(struct xk_call *call, int err)
{
	struct xk_pool *pool;
	u64 until;

	if (err != -EDQUOT || call->waited)
		return false;
	call->waited = true;
	spin_lock_irq(&ends_lock);
	until = ends_last;
	list_for_each_entry(pool, &ends, end_node)
		xk_end_hurry(pool);
	spin_unlock_irq(&ends_lock);
	return (xk_any_end(until) || xk_end_runs() != call->runs) &&
	       wait_event_killable_timeout(ends_queue, !xk_any_end(until), XK_ENDS_PATIENCE) > 0;
}
