// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lock of a pool, and how end_work lets others take it. The work that voids claims (claims.c)
 * holds it for long, too; it gives up when others want the lock, and runs again later.
 *
 * end_work holds the lock for long, except for a moment after each batch. A mutex is not fair
 * enough for that. A waiter on another processor spins and only checks whether the owner has
 * changed. If the owner takes the lock back at once, the waiter has seen no change, nobody is in
 * the mutex's queue, and the lock is handed to nobody. That can last for the whole end of a client.
 * So callers that find the lock taken are counted, and end_work sleeps until one of them has had
 * it.
 *
 * A throttled waiter may not take the lock for long. end_work waits for it no longer than it has
 * held the lock before. So such processes make the cleanup of others take at most twice as long.
 */
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/wait.h>

#include "xk.h"

#define XK_MOST_PATIENCE	(10 * NSEC_PER_MSEC)

void xk_lock_prepare(struct xk_pool *pool)
{
	mutex_init(&pool->lock);
	atomic_set(&pool->lock_wanted, 0);
	init_waitqueue_head(&pool->lock_queue);
}

/* The caller has stopped waiting: it has the lock, or is killed. */
static void xk_lock_waited(struct xk_pool *pool)
{
	atomic_dec(&pool->lock_wanted);
	if (wq_has_sleeper(&pool->lock_queue))
		wake_up(&pool->lock_queue);
}

void xk_pool_lock(struct xk_pool *pool)
{
	if (mutex_trylock(&pool->lock))
		return;
	atomic_inc(&pool->lock_wanted);
	mutex_lock(&pool->lock);
	WRITE_ONCE(pool->lock_turns, pool->lock_turns + 1);
	xk_lock_waited(pool);
}

/* For a caller that tries again later instead of waiting. In a test module it often fails. */
bool xk_pool_trylock(struct xk_pool *pool)
{
#ifdef XMEM_DEBUG
	if (get_random_u32() & 1)
		return false;
#endif
	return mutex_trylock(&pool->lock);
}

/* -EINTR: the caller is killed, and does not have the lock. */
int xk_pool_lock_killable(struct xk_pool *pool)
{
	int err = 0;

	if (mutex_trylock(&pool->lock))
		return 0;
	atomic_inc(&pool->lock_wanted);
	if (mutex_lock_killable(&pool->lock))
		err = -EINTR;
	else
		WRITE_ONCE(pool->lock_turns, pool->lock_turns + 1);
	xk_lock_waited(pool);
	return err;
}

/* Does somebody wait for the lock, so that its holder should give way? */
bool xk_lock_is_wanted(const struct xk_pool *pool)
{
	return atomic_read(&pool->lock_wanted);
}

/* Sleep until a waiter has got the lock, nobody waits for it, or time is up. */
static void xk_wait_for_turn(struct xk_pool *pool, u64 turns, u64 patience)
{
	if (atomic_read(&pool->lock_wanted))
		wait_event_hrtimeout(pool->lock_queue, READ_ONCE(pool->lock_turns) != turns ||
				     !atomic_read(&pool->lock_wanted), ns_to_ktime(patience));
}

/* For end_work, which holds it for long. */
void xk_pool_lock_long(struct xk_pool *pool)
{
	mutex_lock(&pool->lock);
	pool->lock_since = ktime_get_ns();
}

/* Let a waiter take the lock, then take it back. Only end_work calls it. */
void xk_pool_let_in(struct xk_pool *pool)
{
	u64 had = ktime_get_ns() - pool->lock_since, turns = pool->lock_turns;

	lockdep_assert_held(&pool->lock);
	mutex_unlock(&pool->lock);
	cond_resched();
	xk_wait_for_turn(pool, turns, min_t(u64, had, XK_MOST_PATIENCE));
	xk_pool_lock_long(pool);
}
