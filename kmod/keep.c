// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that are kept for others. They are dropped by work items, so that neither a system call
 * nor the end of a process waits for the ->release of a file that is kept: nobody can know how
 * long that takes. That of a GPU's driver may wait for seconds for a lock of the driver.
 *
 * So files of drivers are in a limit until their ->release is over (payload.c, pool.c), and each
 * pool drops its own one after the other, in one work item. A backlog delays the pool that has
 * it, and no other. Nothing waits for these work items but the unload of the module, which waits
 * for all of them.
 */
#include <linux/file.h>
#include <linux/slab.h>

#include "xk.h"

/* Pools that drop files of drivers at a time: each may keep a thread of the kernel for long. */
#define XK_DROPPING_POOLS	256

static struct workqueue_struct *slow_wq;

int __init xk_keep_init(void)
{
	slow_wq = alloc_workqueue("xmem_drop", WQ_UNBOUND, XK_DROPPING_POOLS);
	return slow_wq ? 0 : -ENOMEM;
}

/* Nobody keeps a file any more. The last ones may still be being dropped: this waits for them. */
void xk_keep_exit(void)
{
	destroy_workqueue(slow_wq);
}

/* ---- in work items ---- */

/*
 * Not fput(): a thread of the kernel that calls it leaves the rest to one work item of the whole
 * kernel, where a slow ->release would delay files that have nothing to do with xmem; and nobody
 * could tell when it is over. fs/file_table.c warns of __fput_sync(): what it does here must not
 * need anybody who waits for this work item. Nobody does but the unload of the module, and that
 * begins when no file of the module is open any more. The work item holds no lock.
 */
static void xk_keep_drop(struct xk_keep *keep)
{
	__fput_sync(keep->file);
	kfree(keep);
}

static void xk_keep_work(struct work_struct *work)
{
	xk_keep_drop(container_of(work, struct xk_keep, drop));
}

/* Files of drivers. Those that come meanwhile ask for another run. */
static void xk_drop_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, drop_work);
	struct llist_node *all = llist_reverse_order(llist_del_all(&pool->drops));
	struct xk_keep *keep, *next;

	llist_for_each_entry_safe(keep, next, all, node) {
		xk_keep_drop(keep);
		xk_pool_file_goes(pool);
	}
	xk_pool_put(pool);
}

void xk_keep_prepare(struct xk_pool *pool)
{
	init_llist_head(&pool->drops);
	INIT_WORK(&pool->drop_work, xk_drop_work);
}

/* ---- keeping ---- */

/* Takes over the caller's reference to @file. NULL: no memory. */
struct xk_keep *xk_keep_new(struct file *file)
{
	struct xk_keep *keep = kzalloc(sizeof(*keep), GFP_KERNEL_ACCOUNT);

	if (!keep)
		return NULL;
	kref_init(&keep->kref);
	keep->file = file;
	return keep;
}

/* Undoes xk_keep_new: the reference to the file is the caller's again. */
void xk_keep_discard(struct xk_keep *keep)
{
	kfree(keep);
}

/* It is a driver's file, and @pool keeps it from now on: it counts there until it is released. */
void xk_keep_count(struct xk_keep *keep, struct xk_pool *pool)
{
	keep->pool = pool;
	xk_pool_file_comes(pool);
}

/* The caller has a reference to the pool, which may have been emptied. */
static void xk_keep_release(struct kref *kref)
{
	struct xk_keep *keep = container_of(kref, struct xk_keep, kref);
	struct xk_pool *pool = keep->pool;

	if (!pool) {
		INIT_WORK(&keep->drop, xk_keep_work);
		queue_work(xk_wq, &keep->drop);
		return;
	}
	llist_add(&keep->node, &pool->drops);
	xk_pool_get(pool);
	if (!queue_work(slow_wq, &pool->drop_work))
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
