// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims: references that are set aside for clients yet unknown. core/ counts them and checks the
 * requests (core/claims_request.c); this file has their memory, and a delayed work item for each
 * pool that voids claims whose deadline has passed.
 */
#include <linux/slab.h>

#include "xk.h"
#include "trace.h"

#define XK_LONGEST_NS	(3600 * NSEC_PER_SEC)	/* then the work looks again */

/* ---- deadlines ---- */

/* A slot may be free now: wake its owner, or reclaim it. */
static void xk_claims_do(struct xk_pool *pool, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER)
		xk_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	else if (pending.what == XM_RECLAIM_SLOT)
		xk_reclaim_slot(pool, pending.who);
}

/* Make the work run at @deadline at the latest (~0: no need). */
static void xk_claims_arm(struct xk_pool *pool, u64 now, u64 deadline)
{
	u64 wait;

	lockdep_assert_held(&pool->lock);
	if (deadline == ~0ULL || pool->dead || (pool->claims_at && pool->claims_at <= deadline))
		return;
	pool->claims_at = deadline;
	wait = deadline > now ? min_t(u64, deadline - now, XK_LONGEST_NS) : 0;
	/* One jiffy later, so that many deadlines close together share a run. */
	xk_pool_get(pool);
	if (mod_delayed_work(xk_wq, &pool->claims_work, nsecs_to_jiffies(wait) + 1))
		xk_pool_put(pool);	/* it was queued already, with a reference */
}

/* Run the work at once: there may be more claims whose deadline has passed. */
static void xk_claims_arm_now(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();

	xk_claims_arm(pool, now, now);
}

/*
 * Void the claims of one slot, if their deadline has passed; there may be more then. false: there
 * are none, and the work waits for the next deadline. A client that adds claims chooses their
 * deadline, which may be short, and waits for nothing. So the sweep for them comes no sooner than
 * for a collect.
 */
static bool xk_claims_expire_one(struct xk_pool *pool)
{
	u64 now = ktime_get_ns(), deadline;
	struct xm_pending pending;
	int slot;

	lockdep_assert_held(&pool->lock);
	slot = xm_host_expire_claims(&pool->host, now, &deadline);
	if (slot < 0) {
		xk_claims_arm(pool, now, deadline);
		return false;
	}
	pending = xm_claims_pending(&pool->host, slot);
	if (pending.what == XM_RECLAIM_SLOT)
		xk_reclaim_later(pool, pending.who);
	else
		xk_claims_do(pool, pending);
	return true;
}

/*
 * Run the work again in a jiffy, unless the pool is dead or dies meanwhile: no timer of a dead pool
 * may be left when the work queue is destroyed (xk_claims_stop, xk_pools_exit).
 */
static void xk_claims_try_again(struct xk_pool *pool)
{
	if (READ_ONCE(pool->dead))
		return;
	xk_pool_get(pool);
	if (!queue_delayed_work(xk_wq, &pool->claims_work, 1))
		xk_pool_put(pool);	/* it is queued already, with a reference */
	else if (READ_ONCE(pool->dead) && cancel_delayed_work(&pool->claims_work))
		xk_pool_put(pool);
}

/*
 * A client that may add claims to many slots can let them all expire at one moment. So after each
 * batch the work gives way to waiters for the lock, and the rest comes in a jiffy.
 */
static void xk_claims_expire(struct xk_pool *pool)
{
	u32 done = 0;

	pool->claims_at = 0;
	while (!pool->dead && xk_claims_expire_one(pool)) {
		if (++done % XK_BATCH)
			continue;
		if (xk_lock_is_wanted(pool)) {
			xk_claims_arm_now(pool);
			break;
		}
		cond_resched();
	}
}

/*
 * The work never sleeps for the lock: a client that is throttled while it holds the lock would
 * occupy a worker, and the number of workers is limited for all pools together.
 */
static void xk_claims_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(to_delayed_work(work), struct xk_pool, claims_work);

	if (xk_pool_trylock(pool)) {
		xk_claims_expire(pool);
		mutex_unlock(&pool->lock);
	} else {
		xk_claims_try_again(pool);
	}
	xk_pool_put(pool);
}

void xk_claims_prepare(struct xk_pool *pool)
{
	INIT_DELAYED_WORK(&pool->claims_work, xk_claims_work);
}

/* ---- ends ---- */

/*
 * A client has ended: void the claims that no client is left to take, and bound the client's own.
 * Others may take the lock meanwhile, because each slot is bounded by itself. The work does the
 * rest.
 */
void xk_claims_left(struct xk_pool *pool)
{
	u32 at = 0, done = 0, g;
	int slot;

	lockdep_assert_held(&pool->lock);
	while ((slot = xm_host_orphaned_claims(&pool->host, &at)) >= 0) {
		xk_claims_do(pool, xm_claims_pending(&pool->host, slot));
		xk_lock_yield(pool, &done, XK_BATCH / 64);
	}
	for (g = 0; g < pool->host.map.groups; g++)
		if (xm_host_bound_group(&pool->host, g, ktime_get_ns()))
			xk_lock_yield(pool, &done, XK_BATCH / 64);
	if (xk_claims_expire_one(pool))
		xk_claims_arm_now(pool);
}

/*
 * The clients whose claims these were are not known any more. A client that was evicted because of
 * its claims has been named.
 */
static void xk_claims_report(const struct xk_pool *pool, const struct xm_kept *kept)
{
	trace_xmem_limit(pool->number, xk_quota_name(XMEM_QUOTA_CLIENT_LIMBO), kept->over,
			 kept->most);
	pr_notice_ratelimited("xmem: pool%u: claims of ended clients keep no more than %llu bytes "
			      "that other ended clients have left\n", pool->number,
			      kept->most);
}

/*
 * A client that ends leaves its claims to the clients for which they are. But all ended clients
 * together may keep no more limbo of others than one living client may. Otherwise a client that
 * joins once a minute, renews all claims and ends would keep everything, and there would be nobody
 * to evict. Claims beyond that limit are void.
 */
void xk_claims_limit(struct xk_pool *pool)
{
	struct xm_kept kept = { .now_ns = ktime_get_ns(), .most = xk_limbo_most(pool) };
	u32 done = 0;
	int slot;

	lockdep_assert_held(&pool->lock);
	if (kept.most == U64_MAX)
		return;
	while ((slot = xm_host_void_kept(&pool->host, &kept)) != -ENOENT) {
		if (slot >= 0)
			xk_claims_do(pool, xm_claims_pending(&pool->host, slot));
		xk_lock_yield(pool, &done, XK_BATCH / 64);
	}
	if (kept.over)
		xk_claims_report(pool, &kept);
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
	/* The work voids the claims whose deadline has passed; this does so for one slot only. */
	if (!err && request->op == XMEM_CLAIM_ADD && xk_claims_expire_one(pool))
		xk_claims_arm_now(pool);
	mutex_unlock(&pool->lock);
	if (pending.what == XM_RECLAIM_SLOT)
		xk_reap_wait(pool);
out:
	kvfree(memory);
	return err;
}
