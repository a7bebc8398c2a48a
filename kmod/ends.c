// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cleanup that is under way, and the requests that wait for it.
 *
 * A process that ends waits for nobody; end_work of its pool frees what it leaves (leave.c,
 * reap.c). Everything that end_work of a pool is asked for has a number. So a request that lacks
 * something of its pool waits until end_work has done everything up to the last number. A request
 * that lacks something of its user waits until no work item owes that user anything: end_work for
 * a client that has ended, the work item that drops the user's files (keep.c), or the one that
 * removes the folder of a pool that has ended. It waits for nothing of users that its user does not
 * pay for. The request waits under no lock, and no longer once it is killed.
 *
 * A collect costs its sender next to nothing, but it costs end_work a sweep, for which no control
 * group pays. So after a run that only collects have asked for, further collects wait as long as
 * that run has taken: they use at most half of a worker's time, however many there are. The first
 * collect after such a rest is served at once. So is everything else, and all waiting collects with
 * it. A request that waits for end_work makes it run at once.
 *
 * While something is asked of a pool's end_work, end_work runs, is queued to run at once, or waits
 * for its time. It gets a reference to the pool each time it is queued, and drops one in each run.
 * A timer may have started a run that has not begun when another is queued; then the first run
 * serves what the second was queued for.
 */
#include <linux/sched/signal.h>

#include "users.h"

struct workqueue_struct *xk_end_wq;

/* A run costs more than its own time: a worker wakes, and owners look again. */
#define XK_LEAST_REST_NS	NSEC_PER_MSEC

/*
 * A request that lacks something of its user waits at most this long, because an ended client of
 * this user may be in another user's pool, whose members can make its cleanup take any time, and
 * readers can make the removal of a folder take any time.
 */
#define XK_ENDS_PATIENCE	(2 * HZ)

/* Taken with interrupts off, because a caller of xk_end_ask may hold any lock. */
static DEFINE_SPINLOCK(ends_lock);

/* ---- what users get back ---- */

/* A work item will give the user something back. Any lock may be held. */
void xk_end_owe(struct xk_user *user)
{
	xk_user_ref(user);
	atomic_inc(&user->owed);
}

/* It has done so. */
void xk_end_paid(struct xk_user *user)
{
	if (atomic_dec_and_test(&user->owed))
		wake_up_all(&user->owed_queue);
	xk_user_put(user);
}

/* A client ends that has joined, so end_work will call xk_end_serves for it. */
void xk_end_begins(struct xk_client *client)
{
	xk_end_owe(xk_payer_last(client->payer));
}

/* This run of end_work will have given back all that the client had. */
void xk_end_serves(struct xk_client *client)
{
	struct xk_payer *payer = xk_payer_get(client->payer);

	payer->served = client->pool->served;
	client->pool->served = payer;
}

/* The last use of the pool has gone. It counts for its maker until xk_end_left. */
void xk_end_leaves(struct xk_pool *pool)
{
	xk_end_owe(xk_payer_last(pool->payer));
}

/* The pool does not count any more. */
void xk_end_left(struct xk_pool *pool)
{
	xk_end_paid(xk_payer_last(pool->payer));
}

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
	if (pool->end_done != pool->end_asked &&
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
	WRITE_ONCE(pool->end_asked, pool->end_asked + 1);
	if (!collect) {
		pool->end_others = pool->end_asked;
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

/* The run has done everything that had been asked for when it began. */
void xk_end_done(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();
	struct xk_payer *payer;

	spin_lock_irq(&ends_lock);
	pool->end_runs = false;
	if (pool->end_collects)
		pool->end_rest = now + max_t(u64, now - pool->end_began, XK_LEAST_REST_NS);
	smp_store_release(&pool->end_done, pool->end_serves);	/* after all that the run freed */
	if (pool->end_asked != pool->end_serves)
		xk_end_rested(pool);
	spin_unlock_irq(&ends_lock);
	wake_up_all(&pool->end_waiters);
	while ((payer = pool->served)) {
		pool->served = payer->served;
		xk_end_paid(xk_payer_last(payer));
		xk_payer_put(payer);
	}
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

/*
 * A request lacks something of its pool; @done: pool->end_done from before it looked. true: it may
 * find more now, because cleanup was under way then, or has been asked for since, and is over.
 */
bool xk_end_retry(struct xk_pool *pool, u64 done)
{
	return READ_ONCE(pool->end_asked) != done && !xk_end_wait(pool);
}

/*
 * A request lacks something of its user, as its error @err says. true: it tries again, and gets
 * true only once. By now, clients and pools of this user that ended before this call have given
 * back everything, or the request has waited long enough.
 */
bool xk_ends_retry(struct xk_call *call, int err)
{
	struct xk_user *user = xk_payer_last(call->payer);

	if (err != -EDQUOT || call->waited)
		return false;
	call->waited = true;
	return wait_event_killable_timeout(user->owed_queue, !atomic_read(&user->owed),
					   XK_ENDS_PATIENCE) >= 0;
}
