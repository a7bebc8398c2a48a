// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that the module keeps for clients. A work item of each pool drops them, one after the
 * other, so that neither a system call nor the end of a process waits for the ->release of such a
 * file, which may take any time: that of a GPU's driver may wait for a lock of the driver for
 * seconds.
 *
 * With an item for each file, a pool with many files would delay the files of other pools. With an
 * item for each pool, a backlog delays only the pool that has it, as long as fewer than
 * XK_DROPPING_POOLS have one. In a pool, a memfd may wait for a file of a driver. The pool's
 * struct stays until the files are dropped. Files of drivers count in a limit until their
 * ->release is over (payload.c). Nothing else waits in this work queue, and only the unload of the
 * module waits for it.
 */
#include <linux/file.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "xk.h"

/* How many pools can drop files at a time; each of them may keep a kernel thread for long. */
#define XK_DROPPING_POOLS	512

static struct workqueue_struct *drop_wq;

int __init xk_keep_init(void)
{
	drop_wq = alloc_workqueue("xmem_drop", WQ_UNBOUND, XK_DROPPING_POOLS);
	return drop_wq ? 0 : -ENOMEM;
}

/* No file is kept any more. This waits for the last ones, which may still be being dropped. */
void xk_keep_exit(void)
{
	destroy_workqueue(drop_wq);
}

/* ---- dropping ---- */

/*
 * fput() is not used: called from a kernel thread, it leaves the rest to one work item of the whole
 * kernel. There a slow ->release would delay files that have nothing to do with xmem, and nobody
 * could tell when it is over. fs/file_table.c warns about __fput_sync(): a ->release that it runs
 * must not need anybody that waits for this work item. Only the unload of the module waits for it,
 * and that begins when no file of the module is open any more. The work item holds no lock.
 */
static void xk_drop(struct xk_keep *keep)
{
	__fput_sync(keep->file);
	if (keep->guard)
		__fput_sync(keep->guard);
	if (keep->payer) {
		xk_uncharge(keep->payer, XMEM_QUOTA_USER_FILES, 1);
		xk_payer_put(keep->payer);
	}
	kfree(keep);
	cond_resched();
}

/* Drop the file after those that were added before it. The caller has a reference to the pool. */
static void xk_drop_later(struct xk_keep *keep)
{
	struct xk_pool *pool = keep->pool;

	llist_add(&keep->node, &pool->drops);
	xk_pool_get(pool);
	if (!queue_work(drop_wq, &pool->drop_work))
		xk_pool_put(pool);	/* it is queued already, with a reference */
}

/*
 * Free all pages of the file, a memfd in ordinary pages, even while processes have it open or
 * mapped. Private copies of pages stay. The range ends with the file. Up to the end of all files,
 * the kernel would start over as long as a client reads the pages again, which makes new ones at
 * its own expense.
 */
static void xk_truncate(struct xk_keep *keep)
{
	struct inode *inode = file_inode(keep->file);
	loff_t end = round_up(i_size_read(inode), PAGE_SIZE);

	/* All mappings of the whole file at once, not for each page. */
	unmap_mapping_range(inode->i_mapping, 0, end, 0);
	shmem_truncate_range(inode, 0, end - 1);
	keep->truncate = false;
	xk_keep_put(keep);
	cond_resched();
}

/* Files that are added meanwhile queue the work again. */
static void xk_drop_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, drop_work);
	struct llist_node *all = llist_reverse_order(llist_del_all(&pool->drops));
	struct xk_keep *keep, *next;

	llist_for_each_entry_safe(keep, next, all, node) {
		if (keep->truncate)
			xk_truncate(keep);
		else
			xk_drop(keep);
	}
	xk_pool_put(pool);
}

void xk_keep_prepare(struct xk_pool *pool)
{
	init_llist_head(&pool->drops);
	INIT_WORK(&pool->drop_work, xk_drop_work);
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

/* It is a driver's file, whose payload goes: it counts until it is released. */
void xk_keep_charge(struct xk_keep *keep, struct xk_payer *payer)
{
	xk_charge_anyhow(payer, XMEM_QUOTA_USER_FILES, 1);
	keep->payer = xk_payer_get(payer);
}

/* The caller has a reference to the pool, which may have been emptied. */
static void xk_keep_release(struct kref *kref)
{
	xk_drop_later(container_of(kref, struct xk_keep, kref));
}

/*
 * xk_keep_put, after which the pages of the file go, too. They do not wait until requests put their
 * references: a client decides how long its request takes to write the answer.
 */
void xk_keep_truncate(struct xk_keep *keep)
{
	keep->truncate = true;
	xk_drop_later(keep);
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
