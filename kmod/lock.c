// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lock of a pool, and how end_work lets others have it. The work that voids claims (claims.c)
 * has it for long, too; it goes away when others want it, and comes again.
 *
 * end_work has the lock for long, but for a moment after each batch. A mutex is not fair enough for
 * that. Who waits on another processor spins, and only looks whether the lock still has the same
 * owner; so if it is taken back at once, nothing was seen, nobody is in the mutex's queue, and it
 * is handed to nobody. That can last for the whole end. So who finds the lock taken is counted, and
 * end_work sleeps until one of them has had it.
 *
 * Who is throttled may not come for long. It is waited for no longer than end_work has had the lock
 * before. So such processes make the ends of others take twice as long at most.
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

/* The caller has waited, and has the lock, or is killed. */
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

/* For who comes again rather than wait. A module for tests often finds it taken. */
bool xk_pool_trylock(struct xk_pool *pool)
{
#ifdef XMEM_DEBUG
	if (get_random_u32() & 1)
		return false;
#endif
	return mutex_trylock(&pool->lock);
}

/* -EINTR: the caller is killed, and has not got it. */
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

/* Does somebody wait for it who is to have it before whoever has it now goes on? */
bool xk_lock_is_wanted(const struct xk_pool *pool)
{
	return atomic_read(&pool->lock_wanted);
}

/* Sleeps until one of those who wait for the lock has got it; or there is none, or time is up. */
static void xk_wait_for_turn(struct xk_pool *pool, u64 turns, u64 patience)
{
	if (atomic_read(&pool->lock_wanted))
		wait_event_hrtimeout(pool->lock_queue, READ_ONCE(pool->lock_turns) != turns ||
				     !atomic_read(&pool->lock_wanted), ns_to_ktime(patience));
}

/* For end_work, which has it for long. */
void xk_pool_lock_long(struct xk_pool *pool)
{
	mutex_lock(&pool->lock);
	pool->lock_since = ktime_get_ns();
}

/* Gives the lock to one of those who wait for it, and takes it back. Only end_work calls it. */
void xk_pool_let_in(struct xk_pool *pool)
{
	u64 had = ktime_get_ns() - pool->lock_since, turns = pool->lock_turns;

	lockdep_assert_held(&pool->lock);
	mutex_unlock(&pool->lock);
	cond_resched();
	xk_wait_for_turn(pool, turns, min_t(u64, had, XK_MOST_PATIENCE));
	xk_pool_lock_long(pool);
}
