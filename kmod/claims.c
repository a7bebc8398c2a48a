// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims: references that are set aside for clients yet unknown. core/ counts them and checks the
 * requests (core/claims_host.c); this file has their memory, and a delayed work item for each
 * pool: the tick, which voids claims whose deadline has passed.
 */
#include <linux/slab.h>

#include "xk.h"

#define XK_TICK	nsecs_to_jiffies(XM_CLAIMS_TICK_NS)

/* ---- the tick ---- */

/* Claims of a slot have ended, so it may be free now: wake its owner, or reclaim it. */
static void xk_claims_do(struct xk_pool *pool, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER)
		xk_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	else if (pending.what == XM_RECLAIM_SLOT)
		xk_reclaim_later(pool, pending.who);
}

/*
 * Run the work, which is not queued, in so many jiffies. If the pool is dead or dies meanwhile, no
 * timer may be left when the work queue is destroyed (xk_claims_stop, xk_pools_exit).
 */
static void xk_claims_queue(struct xk_pool *pool, unsigned long pause)
{
	xk_pool_get(pool);
	queue_delayed_work(xk_wq, &pool->claims_work, pause);
	if (READ_ONCE(pool->dead) && cancel_delayed_work(&pool->claims_work))
		xk_pool_put(pool);
}

/* Let the tick run while claims have deadlines. */
static void xk_claims_arm(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (pool->claims_tick || !pool->host.claims || !pool->host.claims->timed)
		return;
	pool->claims_tick = true;
	xk_claims_queue(pool, XK_TICK);
}

/*
 * Void claims whose deadline has passed. Returns after how many jiffies the work continues; 0:
 * never. A client that may add claims to many slots can let them all expire at one moment. So after
 * each batch the work gives way to waiters for the lock, and the rest comes in a jiffy.
 */
static unsigned long xk_claims_expire(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();
	u32 done = 0;
	int slot;

	while ((slot = xm_host_expire_claims(&pool->host, now, &pool->claims_at)) != -ENOENT) {
		if (slot >= 0)
			xk_claims_do(pool, xm_put_pending(&pool->host.map, slot));
		if (++done % XK_BATCH)
			continue;
		if (xk_lock_is_wanted(pool))
			return 1;
		cond_resched();
	}
	pool->claims_at = 0;
	return pool->host.claims->timed ? XK_TICK : 0;
}

/*
 * The work never sleeps for the lock: a client that is throttled while it holds the lock would
 * occupy a worker, and the number of workers is limited for all pools together.
 */
static void xk_claims_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(to_delayed_work(work), struct xk_pool, claims_work);
	unsigned long pause = 1;

	if (xk_pool_trylock(pool)) {
		pause = pool->dead ? 0 : xk_claims_expire(pool);
		pool->claims_tick = pause;
		mutex_unlock(&pool->lock);
	}
	if (pause)
		xk_claims_queue(pool, pause);
	xk_pool_put(pool);
}

void xk_claims_prepare(struct xk_pool *pool)
{
	INIT_DELAYED_WORK(&pool->claims_work, xk_claims_work);
}

/* ---- ends ---- */

/*
 * A client has ended: void the claims that no client is left to take, and bound the client's own.
 * Others may take the lock meanwhile.
 */
void xk_claims_left(struct xk_pool *pool)
{
	u32 at = 0, done = 0;
	int slot;

	lockdep_assert_held(&pool->lock);
	while ((slot = xm_host_claims_left(&pool->host, ktime_get_ns(), &at)) != -ENOENT) {
		if (slot >= 0)
			xk_claims_do(pool, xm_put_pending(&pool->host.map, slot));
		xk_lock_yield(pool, &done, XK_BATCH / 64);
	}
	xk_claims_arm(pool);
}

/* The pool is dead, so the work must not wait any more. A run that has begun sees that. */
void xk_claims_stop(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (cancel_delayed_work(&pool->claims_work))
		xk_pool_put(pool);
}

/* ---- the request ---- */

/*
 * Give the pool the memory for claims, which the caller has allocated before it took the lock. If
 * another caller was faster, this returns the memory, and the caller frees it.
 */
static void *xk_claims_install(struct xk_pool *pool, void *memory)
{
	if (!memory || pool->host.claims)
		return memory;
	smp_store_release(&pool->host.claims, memory);	/* for readers without the lock */
	return NULL;
}

static bool xk_may_void_all(const struct xk_pool *pool)
{
	return xk_access_owns(pool) || ns_capable_noaudit(pool->user_ns, CAP_SYS_ADMIN);
}

int xk_claim_begin(struct xk_call *call)
{
	const struct xmem_claim_request *request = &call->u.claim;
	struct xk_client *client = call->client;
	struct xk_pool *pool = client->pool;
	bool privileged = request->op == XMEM_CLAIM_VOID && xk_may_void_all(pool);
	struct xm_pending pending;
	void *memory = NULL;
	int err;

	if (!READ_ONCE(pool->host.claims)) {
		memory = kvzalloc(xm_claims_bytes(&pool->host.map), GFP_KERNEL_ACCOUNT);
		if (!memory)
			return -ENOMEM;
	}
	err = xk_client_lock_mapped(client);
	if (err)
		goto out;
	memory = xk_claims_install(pool, memory);
	err = xm_host_claim(&pool->host, client->id, request, ktime_get_ns(), privileged, &pending);
	xk_claims_do(pool, pending);
	xk_claims_arm(pool);
	mutex_unlock(&pool->lock);
	if (pending.what == XM_RECLAIM_SLOT)
		xk_end_wait(pool);
out:
	kvfree(memory);
	return err;
}
