// SPDX-License-Identifier: GPL-2.0-only
/*
 * A work item for each pool drops files, one after the other. A work queue runs a limited number of
 * items at a time, and each takes its share of the processors. With an item for each file, a pool
 * with many files would delay everything else in the queue, and the files of other pools. With an
 * item for each pool it delays only its own files, and because the queue is separate it delays
 * nothing else.
 *
 * The list is not part of the pool's struct, because it lives until its files have been released: a
 * file that all clients can map does not keep its pool.
 */
#include <linux/file.h>
#include <linux/slab.h>

#include "xk.h"

struct xk_drops {
	struct kref kref;		/* of the pool, and of the work item while it is queued */
	struct llist_head files;	/* struct xk_keep, by node */
	struct work_struct work;
};

static struct workqueue_struct *drop_wq;

int __init xk_drops_init(void)
{
	drop_wq = alloc_workqueue("xmem_files", WQ_UNBOUND, XK_DROPPING_POOLS);
	return drop_wq ? 0 : -ENOMEM;
}

/* No pool keeps a file any more. Waits for the files that are being dropped. */
void xk_drops_exit(void)
{
	destroy_workqueue(drop_wq);
}

/*
 * fput() is not used: called from a kernel thread, it leaves the rest to one work item of the whole
 * kernel. There a slow ->release would delay files that have nothing to do with xmem, and nobody
 * could tell when it is over. fs/file_table.c warns about __fput_sync(): a ->release that it runs
 * must not need anybody that waits for this work item. Only the unload of the module waits for it,
 * and that begins when no file of the module is open any more. The work item holds no lock.
 */
void xk_drop_now(struct xk_keep *keep)
{
	__fput_sync(keep->file);
	if (keep->guard)
		__fput_sync(keep->guard);
	kfree(keep);
	cond_resched();
}

/* Files that are added meanwhile queue the work again. */
static void xk_drops_work(struct work_struct *work)
{
	struct xk_drops *drops = container_of(work, struct xk_drops, work);
	struct llist_node *all = llist_reverse_order(llist_del_all(&drops->files));
	struct xk_keep *keep, *next;

	llist_for_each_entry_safe(keep, next, all, node)
		xk_drop_now(keep);
	xk_drops_put(drops);
}

/* NULL: no memory. */
struct xk_drops *xk_drops_new(void)
{
	struct xk_drops *drops = kzalloc(sizeof(*drops), GFP_KERNEL_ACCOUNT);

	if (!drops)
		return NULL;
	kref_init(&drops->kref);
	init_llist_head(&drops->files);
	INIT_WORK(&drops->work, xk_drops_work);
	return drops;
}

static void xk_drops_release(struct kref *kref)
{
	kfree(container_of(kref, struct xk_drops, kref));
}

/* @drops: or NULL. */
void xk_drops_put(struct xk_drops *drops)
{
	if (drops)
		kref_put(&drops->kref, xk_drops_release);
}

/* Drop @keep after the files that were added before it. Any lock may be held. */
void xk_drops_add(struct xk_drops *drops, struct xk_keep *keep)
{
	llist_add(&keep->node, &drops->files);
	kref_get(&drops->kref);
	if (!queue_work(drop_wq, &drops->work))
		xk_drops_put(drops);	/* it is queued already, with a reference */
}
