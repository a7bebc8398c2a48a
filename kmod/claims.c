// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims: references that are set aside for clients yet unknown. core/claims.c counts them and
 * says who may do what; here are their memory, and the work that voids those whose time has
 * passed. It is one delayed work item per pool, which waits for the next deadline.
 */
#include <linux/slab.h>

#include "xk.h"
#include "trace.h"

#define XK_LONGEST_NS	(3600 * NSEC_PER_SEC)	/* then the work looks again, and waits on */

/* ---- when their time has passed ---- */

/* A slot may be free now: its owner hears of it, or it is reclaimed. */
static void xk_claims_do(struct xk_pool *pool, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER)
		xk_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	else if (pending.what == XM_TELL_HOST)
		xk_reclaim_slot(pool, pending.who);
}

/* Sees to it that the work runs at @deadline at the latest (~0: no need). */
static void xk_claims_arm(struct xk_pool *pool, u64 now, u64 deadline)
{
	u64 wait;

	lockdep_assert_held(&pool->lock);
	if (deadline == ~0ULL || pool->dead || (pool->claims_at && pool->claims_at <= deadline))
		return;
	pool->claims_at = deadline;
	wait = deadline > now ? min_t(u64, deadline - now, XK_LONGEST_NS) : 0;
	/* A jiffy more, so that many deadlines that follow each other closely share a run. */
	xk_pool_get(pool);
	if (mod_delayed_work(xk_wq, &pool->claims_work, nsecs_to_jiffies(wait) + 1))
		xk_pool_put(pool);	/* it waited already, with a reference */
}

/* There may be more whose time has passed. */
static void xk_claims_arm_now(struct xk_pool *pool)
{
	u64 now = ktime_get_ns();

	xk_claims_arm(pool, now, now);
}

/*
 * Voids those of one slot, if their time has passed: there may be more then. false: there are none,
 * and the work waits for the next. Whoever set them aside waits for nothing and gives their time,
 * which may be short; so a sweep for them comes no sooner than for a collect.
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
	if (pending.what == XM_TELL_HOST)
		xk_reclaim_later(pool, pending.who);
	else
		xk_claims_do(pool, pending);
	return true;
}

/*
 * The work runs again in a jiffy, unless the pool is dead, or dies meanwhile: no timer of a dead
 * pool may be there when the queue goes (xk_claims_stop, xk_pools_exit).
 */
static void xk_claims_try_again(struct xk_pool *pool)
{
	if (READ_ONCE(pool->dead))
		return;
	xk_pool_get(pool);
	if (!queue_delayed_work(xk_wq, &pool->claims_work, 1))
		xk_pool_put(pool);	/* it waits already, with a reference */
	else if (READ_ONCE(pool->dead) && cancel_delayed_work(&pool->claims_work))
		xk_pool_put(pool);
}

/*
 * Who may set aside references of many slots lets them all expire at the same moment. So whoever
 * wants the lock gets it after each batch of them, and the rest comes in a jiffy.
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
 * It never sleeps for the lock: a member that is throttled while it has that would keep a worker of
 * the queue, of which there are so many for all pools together.
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
 * A client has ended: voids the claims that nobody is left to take, and bounds its own. Others get
 * the lock meanwhile: what each slot has is bounded by itself. The rest is the work's.
 */
void xk_claims_left(struct xk_pool *pool)
{
	u32 at = 0, done = 0, g;
	int slot;

	lockdep_assert_held(&pool->lock);
	while ((slot = xm_host_orphaned_claims(&pool->host, &at)) >= 0) {
		xk_claims_do(pool, xm_claims_pending(&pool->host, slot));
		xk_let_others(pool, &done, XK_BATCH / 64);
	}
	for (g = 0; g < pool->host.map.groups; g++)
		if (xm_host_bound_group(&pool->host, g, ktime_get_ns()))
			xk_let_others(pool, &done, XK_BATCH / 64);
	if (xk_claims_expire_one(pool))
		xk_claims_arm_now(pool);
}

/* Whose these claims were is not known any more. Who was evicted because of them has been named. */
static void xk_claims_tell(const struct xk_pool *pool, const struct xm_kept *kept)
{
	trace_xmem_limit(pool->number, xk_quota_name(XMEM_QUOTA_CLIENT_LIMBO), kept->over,
			 kept->most);
	pr_notice_ratelimited("xmem: pool%u: claims of clients that have ended keep no more than "
			      "%llu bytes of what other ended ones have left\n", pool->number,
			      kept->most);
}

/*
 * Who ends leaves its claims to those for whom they are. But all who have ended keep no more of
 * what others have left than one that lives may: else who joins once a minute, renews all claims
 * and ends keeps everything, and there is nobody to evict. What is beyond that is void.
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
		xk_let_others(pool, &done, XK_BATCH / 64);
	}
	if (kept.over)
		xk_claims_tell(pool, &kept);
}

/* The pool is dead, so the work is not to wait for anything. If it runs just now it finds that. */
void xk_claims_stop(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (cancel_delayed_work(&pool->claims_work))
		xk_pool_put(pool);
}

/* ---- the request ---- */

/*
 * Sees to it that the pool has the memory for claims. It is made before the lock is taken; of two
 * callers at once the second finds that of the first, and returns its own for the caller to free.
 */
static void *xk_claims_install(struct xk_pool *pool, void *memory)
{
	if (!memory || pool->host.claims)
		return memory;
	smp_store_release(&pool->host.claims, memory);	/* to who looks without the lock */
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
	/* Others' claims whose time has passed are the work's, but for one slot's. */
	if (!err && request->op == XMEM_CLAIM_ADD && xk_claims_expire_one(pool))
		xk_claims_arm_now(pool);
	mutex_unlock(&pool->lock);
	if (pending.what == XM_TELL_HOST)
		xk_reap_wait(pool);
out:
	kvfree(memory);
	return err;
}
