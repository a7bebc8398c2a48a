// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that the module keeps for clients. Work items drop them (drops.c), so that neither a system
 * call nor the end of a process waits for the ->release of such a file, which may take any time:
 * that of a GPU's driver may wait for a lock of the driver for seconds.
 *
 * So files of drivers count in a limit until their ->release is over (payload.c, pool.c), and keep
 * their pool until then. Each pool has two such work items, one for files of drivers and one for
 * all others, which does not wait for the first. A backlog delays only the pool that has it. Only
 * the unload of the module waits for these work items, for all of them.
 */
#include <linux/slab.h>

#include "xk.h"

static struct workqueue_struct *slow_wq;

int __init xk_keep_init(void)
{
	int err = xk_drops_init();

	if (err)
		return err;
	slow_wq = alloc_workqueue("xmem_drop", WQ_UNBOUND, XK_DROPPING_POOLS);
	if (slow_wq)
		return 0;
	xk_drops_exit();
	return -ENOMEM;
}

/* No file is kept any more. This waits for the last ones, which may still be being dropped. */
void xk_keep_exit(void)
{
	destroy_workqueue(slow_wq);
	xk_drops_exit();
}

/* ---- files of drivers ---- */

/* Files that are added meanwhile queue the work again. */
static void xk_slow_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, slow_work);
	struct llist_node *all = llist_reverse_order(llist_del_all(&pool->slow_drops));
	struct xk_keep *keep, *next;

	llist_for_each_entry_safe(keep, next, all, node) {
		xk_drop_now(keep);
		xk_pool_file_drop(pool);
	}
	xk_pool_put(pool);
}

/* 0 or -ENOMEM. */
int xk_keep_prepare(struct xk_pool *pool)
{
	init_llist_head(&pool->slow_drops);
	INIT_WORK(&pool->slow_work, xk_slow_work);
	pool->drops = xk_drops_new();
	return pool->drops ? 0 : -ENOMEM;
}

/* ---- keeping ---- */

/* Keep the files of @offer for @pool; takes over the caller's references. NULL: no memory. */
struct xk_keep *xk_keep_new(struct xk_pool *pool, const struct xk_offer *offer)
{
	struct xk_keep *keep = kzalloc(sizeof(*keep), GFP_KERNEL_ACCOUNT);

	if (!keep)
		return NULL;
	kref_init(&keep->kref);
	keep->pool = pool;
	keep->file = offer->file;
	keep->guard = offer->guard;
	return keep;
}

/* Undo xk_keep_new: the references to the files are the caller's again. */
void xk_keep_discard(struct xk_keep *keep)
{
	kfree(keep);
}

/* It is a driver's file: count it in its pool until it is released. */
void xk_keep_count(struct xk_keep *keep)
{
	keep->counted = true;
	xk_pool_file_add(keep->pool);
}

/* The caller has a reference to the pool, which may have been emptied. */
static void xk_keep_release(struct kref *kref)
{
	struct xk_keep *keep = container_of(kref, struct xk_keep, kref);
	struct xk_pool *pool = keep->pool;

	if (!keep->counted) {
		xk_drops_add(pool->drops, keep);
		return;
	}
	llist_add(&keep->node, &pool->slow_drops);
	xk_pool_get(pool);
	if (!queue_work(slow_wq, &pool->slow_work))
		xk_pool_put(pool);	/* it is queued already, with a reference */
}

/* @keep: or NULL. */
struct xk_keep *xk_keep_get(struct xk_keep *keep)
{
	if (keep)
		kref_get(&keep->kref);
	return keep;
}

/* @keep: or NULL. Any lock may be held. */
void xk_keep_put(struct xk_keep *keep)
{
	if (keep)
		kref_put(&keep->kref, xk_keep_release);
}
