// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limbo: finds clients that hold, or keep by claims, more of what ended clients have left than one
 * client may. core/limbo.c counts; this file decides when; leave.c evicts. A hold is a store by the
 * client, which nobody notices. So clients are checked at the end of each run of end_work, after
 * its ends and its sweep; and once a second while there is so much limbo that one client could hold
 * too much. Sweeps bound what a ring keeps (reap.c), and claims.c bounds what the claims of ended
 * clients keep.
 *
 * All this is done only where there is a limit. A check of a client goes group by group, and others
 * can take the pool's lock in between.
 */
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/printk.h>

#include "xk.h"
#include "trace.h"

/* Check at once: a client may exceed the new limit already. */
static int xk_max_limbo_set(const char *value, const struct kernel_param *param)
{
	int err = param_set_ulong(value, param);

	if (!err)
		xk_pools_recheck();
	return err;
}

static const struct kernel_param_ops xk_max_limbo_ops = {
	.set = xk_max_limbo_set, .get = param_get_ulong,
};
module_param_cb(max_limbo_bytes, &xk_max_limbo_ops, &xk_max_limbo_bytes, 0644);
MODULE_PARM_DESC(max_limbo_bytes, "how many bytes that ended clients have left one client may "
		 "hold; the maker of a pool may set less; a client that holds more is evicted");

/*
 * Ask for end_work, which checks the clients after a sweep; the sweep finds what rings have begun
 * to keep, and what is old by now. Like the work of claims, this work waits for no lock.
 */
static void xk_limbo_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(to_delayed_work(work), struct xk_pool, limbo_work);

	if (!READ_ONCE(pool->dead))
		xk_reclaim_all_later(pool);
	xk_pool_put(pool);
}

void xk_limbo_prepare(struct xk_pool *pool)
{
	INIT_DELAYED_WORK(&pool->limbo_work, xk_limbo_work);
}

/* The pool is dead, so the work must not wait any more. A run that has begun sees that. */
void xk_limbo_stop(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	if (cancel_delayed_work(&pool->limbo_work))
		xk_pool_put(pool);
}

static void xk_limbo_check_later(struct xk_pool *pool)
{
	xk_pool_get(pool);
	if (!queue_delayed_work(xk_wq, &pool->limbo_work, HZ))
		xk_pool_put(pool);	/* it is queued already, with a reference */
}

/* Is there more limbo than one client may hold? Then there will be another check, too. */
bool xk_limbo_is_much(struct xk_pool *pool)
{
	u64 left = xk_limbo_most(pool), bytes;
	u32 g, done = 0;

	lockdep_assert_held(&pool->lock);
	if (left == U64_MAX)
		return false;
	for (g = 0; g < pool->host.map.groups; g++) {
		bytes = xm_has_limbo(&pool->host, g) ? xm_limbo_in_group(&pool->host.map, g) : 0;
		if (bytes > left) {
			xk_limbo_check_later(pool);
			return true;
		}
		left -= bytes;
		xk_lock_yield(pool, &done, XK_BATCH / 32);
	}
	return false;
}

/* Ignore clients that have ended or have not joined yet: their holds do not count. */
static bool xk_limbo_may_hold(const struct xk_pool *pool, u32 id)
{
	const struct xk_client *client = pool->client[id];

	return client && !READ_ONCE(client->ended) &&
	       xm_client_row(&pool->host.map, id)->state == XMEM_CLIENT_ALIVE;
}

/*
 * The next client, from *at on, that keeps too much, or NULL. Only end_work calls it, so the struct
 * stays: nobody else takes a client out of the table.
 */
struct xk_client *xk_limbo_next(struct xk_pool *pool, u32 *at)
{
	struct xm_limbo_look *look = &pool->limbo;
	u32 done = 0, c;

	lockdep_assert_held(&pool->lock);
	while (*at < pool->host.map.clients) {
		c = (*at)++;
		if (!xk_limbo_may_hold(pool, c))
			continue;
		look->client = c;
		look->most = xk_limbo_most(pool);
		look->bytes = 0;
		look->first = 0;
		look->group = 0;
		look->again = false;
		look->since_ns = pool->host.limbo_ns;
		look->claims = pool->host.claims;
		look->now_ns = ktime_get_ns();
		while (!xm_limbo_step(&pool->host.map, look))
			xk_lock_yield(pool, &done, XK_BATCH / 64);
		if (look->bytes > look->most)
			return pool->client[c];
	}
	return NULL;
}

/* Report that @client, which the last check has found, has been evicted. */
void xk_limbo_report(const struct xk_client *client)
{
	const struct xk_pool *pool = client->pool;
	const struct xm_limbo_look *look = &pool->limbo;

	trace_xmem_limit(pool->number, xk_quota_name(XMEM_QUOTA_CLIENT_LIMBO), look->bytes,
			 look->most);
	pr_notice_ratelimited("xmem: pool%u: client %u (%.*s, pid %d) is evicted: it holds, or "
			      "keeps by claims, %llu bytes that ended clients have left; it may "
			      "hold %llu\n",
			      pool->number, client->id, XMEM_LABEL_BYTES,
			      xm_client_row(&pool->host.map, client->id)->label,
			      pid_nr(client->pid), look->bytes, look->most);
}
