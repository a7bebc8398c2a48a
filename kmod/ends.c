// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cleanup that is under way, and the requests that wait for it.
 *
 * A process that ends waits for nobody; end_work of its pool frees what it leaves (leave.c,
 * reap.c). So a request that lacks something first waits until end_work has done everything that it
 * had been asked for by then. It waits under no lock, and no longer once it is killed.
 *
 * Everything that end_work is asked for has a number, from one sequence for all pools, because
 * pools share limits.
 *
 * A collect costs its sender next to nothing, but it costs end_work a sweep, for which no control
 * group pays. So after a run that only collects have asked for, further collects wait as long as
 * that run has taken: they use at most half of a worker's time, however many there are. The first
 * collect after such a rest is served at once. So is everything else, and all waiting collects with
 * it. A request that waits for end_work makes it run at once.
 *
 * While something is asked of a pool's end_work, the pool is in the list `ends`, and end_work runs,
 * is queued to run at once, or waits for its time. It gets a reference to the pool each time it is
 * queued, and drops one in each run. A timer may have started a run that has not begun when another
 * is queued; then the first run serves what the second was queued for.
 */
#include <linux/sched/signal.h>

#include "xk.h"

struct workqueue_struct *xk_end_wq;

/* A run costs more than its own time: a worker wakes, and owners look again. */
#define XK_LEAST_REST_NS	NSEC_PER_MSEC

/*
 * A request that lacks something that all pools share waits at most this long, because the end of
 * another user's client may take its time.
 */
#define XK_ENDS_PATIENCE	(2 * HZ)

/* Taken with interrupts off, because the exit of a process asks below tasklist_lock (exited.c). */
static DEFINE_SPINLOCK(ends_lock);
static LIST_HEAD(ends);			/* ends_lock; pools whose end_work is asked for something */
static u64 ends_last;			/* ends_lock: the last number */
static u64 ends_runs;			/* ends_lock: number of runs that are over, of all pools */
/* Waiters for what all pools share. Waiters for a single pool are in its end_waiters. */
static DECLARE_WAIT_QUEUE_HEAD(ends_queue);

/* ---- when it runs ---- */

static void xk_end_now(struct xk_pool *pool)
{
	lockdep_assert_held(&ends_lock);
	if (pool->end_queued)
		return;
	pool->end_queued = true;
	if (!mod_delayed_work(xk_end_wq, &pool->end_work, 0))
		kref_get(&pool->kref);	/* otherwise it was waiting, with a reference */
}

/*
 * Only collects have asked for the next run, and no run is under way. A dead pool has nothing to
 * sweep, and nobody would wait for its timer when the module is unloaded.
 */
static void xk_end_rested(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();

	lockdep_assert_held(&ends_lock);
	if (pool->end_queued)
		return;
	/* One tick more, because the current one has begun. The work may be waiting already. */
	if (now >= pool->end_rest || READ_ONCE(pool->dead))
		xk_end_now(pool);
	else if (queue_delayed_work(xk_end_wq, &pool->end_work,
				    nsecs_to_jiffies(pool->end_rest - now) + 1))
		kref_get(&pool->kref);
}

/* A request is going to wait for everything that has been asked for. */
static void xk_end_hurry(struct xk_pool *pool)
{
	lockdep_assert_held(&ends_lock);
	if (!list_empty(&pool->end_node) &&
	    !(pool->end_runs && pool->end_serves == pool->end_asked))
		xk_end_now(pool);
}

/*
 * Ask for a run of end_work, for a collect or for something else. The caller has a reference to the
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

/* A run of end_work begins. It serves everything that has been asked for by now. */
void xk_end_start(struct xk_pool *pool)
{
	spin_lock_irq(&ends_lock);
	pool->end_queued = false;
	pool->end_runs = true;
	pool->end_serves = pool->end_asked;
	pool->end_collects = pool->end_others <= pool->end_done;
	pool->end_began = ktime_get_ns();
	spin_unlock_irq(&ends_lock);
}

/* The run is over and has asked for another one, which reports the end of both. */
void xk_end_continue(struct xk_pool *pool)
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

/* The run has done everything that had been asked for when it began. */
void xk_end_done(struct xk_pool *pool)
{
	spin_lock_irq(&ends_lock);
	xk_end_rests(pool);
	smp_store_release(&ends_runs, ends_runs + 1);	/* after all that the run freed */
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

/* ---- waiting ---- */

/*
 * Wait until everything has been done that end_work has been asked for. -EINTR: the caller is
 * killed.
 */
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

/* The number of runs that are over. The caller looks at limits after this. */
u64 xk_end_runs(void)
{
	return smp_load_acquire(&ends_runs);	/* pairs with xk_end_done */
}

/*
 * A request lacks something of its pool. true: it may find more now, because cleanup was under way
 * and is over, or a run has ended since the request began.
 */
bool xk_end_retry(const struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;

	return (READ_ONCE(pool->end_done) < READ_ONCE(pool->end_asked) ||
		xk_end_runs() != call->runs) && !xk_end_wait(pool);
}

/* Has anything been asked for, in any pool, up to the number @until, that is not done? */
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
 * A request lacks something that users share, as its error @err says. true: it may find more now,
 * because cleanup of some pools was under way and is over, or a run has ended since the request
 * began. A request gets true once.
 */
bool xk_ends_retry(struct xk_call *call, int err)
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
