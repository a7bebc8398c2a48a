// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads and their files: how they are made, charged and dropped. A payload counts for its payer
 * until its file has been truncated and closed, so whatever waits for that is in the payer's
 * limits.
 *
 * A process that lets the last slot go drops the file itself, without a lock: its control group
 * pays. A work item does so for a client that has ended, for a process that is being killed, and if
 * a request for the file ends later. Each user has one such work item. So a user whose files take
 * long delays nobody else, as long as fewer than XK_AT_ONCE users do so.
 *
 * The ->release of a driver's file may take any time: that of a GPU's driver may wait for a lock of
 * the driver for seconds. No process and no memfd waits for it. Each pool has a work item for such
 * files, in a work queue of their own, and drops them one after the other. The pool's struct stays
 * until they are dropped. Only the unload of the module waits for these work items.
 */
#include <linux/file.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "users.h"

/* How many work items of each queue run at a time; each may keep a kernel thread for long. */
#define XK_AT_ONCE	512

static struct workqueue_struct *drop_wq, *release_wq;

/* ---- dropping ---- */

/* Only its driver counts the bytes of GPU memory. */
static u64 xk_payload_file_bytes(const struct xk_payload *payload)
{
	return payload->kind->device ? 0 : payload->bytes;
}

static void xk_payload_release(struct kref *kref)
{
	struct xk_payload *payload = container_of(kref, struct xk_payload, kref);

	xk_uncharge(payload->payer, XMEM_QUOTA_USER_FILE_BYTES, xk_payload_file_bytes(payload));
	xk_uncharge(payload->payer, XMEM_QUOTA_USER_FILES, 1);
	xk_payer_put(payload->payer);
	kfree(payload);
}

/* Drop the reference of the table, or that of the file. */
void xk_payload_put(struct xk_payload *payload)
{
	kref_put(&payload->kref, xk_payload_release);
}

/*
 * Free all pages of the file, a memfd in ordinary pages, even while processes have it open or
 * mapped. Private copies of pages stay. The range ends with the file. Up to the end of all files,
 * the kernel would start over as long as a client reads the pages again, which makes new ones at
 * its own expense. Requests may still use the file: a client decides how long its request takes.
 */
static void xk_truncate(const struct file *file)
{
	struct inode *inode = file_inode(file);
	loff_t end = round_up(i_size_read(inode), PAGE_SIZE);

	/* All mappings of the whole file at once, not for each page. */
	unmap_mapping_range(inode->i_mapping, 0, end, 0);
	shmem_truncate_range(inode, 0, end - 1);
}

/*
 * fput() called from a kernel thread leaves the rest to one work item of the whole kernel. There a
 * slow ->release would delay files that have nothing to do with xmem, and nobody could tell when it
 * is over. fs/file_table.c warns about __fput_sync(): a ->release that it runs must not need
 * anybody that waits for the work items of this file. Only the unload of the module waits for them,
 * and that begins when no file of the module is open any more. They hold no lock.
 */
static void xk_fput(struct file *file)
{
	if (current->flags & PF_KTHREAD)
		__fput_sync(file);
	else
		fput(file);
}

/* Truncate the file if its pages are to go, and drop a use of it. The caller holds no lock. */
static void xk_use_drop(struct xk_payload *payload)
{
	if (payload->truncates)
		xk_truncate(payload->file);
	payload->truncates = false;
	if (!refcount_dec_and_test(&payload->uses))
		return;
	xk_fput(payload->file);
	if (payload->guard)
		xk_fput(payload->guard);
	xk_payload_put(payload);
}

/* Files that are added meanwhile queue the work again. */
static void xk_drops_run(struct xk_drops *drops)
{
	struct xk_payload *payload, *next;

	llist_for_each_entry_safe(payload, next,
				  llist_reverse_order(llist_del_all(&drops->files)), drop) {
		xk_use_drop(payload);
		cond_resched();
	}
}

static void xk_drop_work(struct work_struct *work)
{
	struct xk_user *user = container_of(work, struct xk_user, drops.work);

	xk_drops_run(&user->drops);
	xk_end_paid(user);
}

static void xk_release_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, releases.work);

	xk_drops_run(&pool->releases);
	xk_pool_put(pool);
}

void xk_keep_prepare(struct xk_pool *pool)
{
	INIT_WORK(&pool->releases.work, xk_release_work);
}

/*
 * Give a use of the file to a work item, which drops it. @payload: or NULL. The caller has a
 * reference to the pool; any lock may be held.
 */
void xk_keep_later(struct xk_payload *payload)
{
	struct xk_pool *pool;
	struct xk_user *user;

	if (!payload)
		return;
	if (payload->kind->driver) {
		pool = payload->pool;	/* work that is queued already may free the payload */
		xk_pool_get(pool);
		llist_add(&payload->drop, &pool->releases.files);
		if (!queue_work(release_wq, &pool->releases.work))
			xk_pool_put(pool);	/* it is queued, with a reference */
		return;
	}
	user = xk_payer_last(payload->payer);
	xk_end_owe(user);
	llist_add(&payload->drop, &user->drops.files);
	if (!queue_work(drop_wq, &user->drops.work))
		xk_end_paid(user);
}

/*
 * As xk_keep_later, for a process that has let the last slot go. It has no lock, and drops the use
 * itself, unless it would wait for a driver or is being killed.
 */
void xk_keep_drop(struct xk_payload *payload)
{
	if (!payload || payload->kind->driver || fatal_signal_pending(current))
		xk_keep_later(payload);
	else
		xk_use_drop(payload);
}

int __init xk_keep_init(void)
{
	xk_user_drop_work = xk_drop_work;
	drop_wq = alloc_workqueue("xmem_drop", WQ_UNBOUND, XK_AT_ONCE);
	if (!drop_wq)
		return -ENOMEM;
	release_wq = alloc_workqueue("xmem_release", WQ_UNBOUND, XK_AT_ONCE);
	if (release_wq)
		return 0;
	destroy_workqueue(drop_wq);
	return -ENOMEM;
}

/* No file is kept any more. This waits for the last ones, which may still be being dropped. */
void xk_keep_exit(void)
{
	destroy_workqueue(release_wq);
	destroy_workqueue(drop_wq);
}

/* ---- using the file ---- */

/* Under pool->lock: a request uses the file. NULL: there is none, or the last slot has gone. */
struct xk_payload *xk_keep_get(struct xk_payload *payload)
{
	if (!payload->open)
		return NULL;
	refcount_inc(&payload->uses);
	return payload;
}

/* Any lock may be held. The caller is never the one that drops the file. @payload: or NULL. */
void xk_keep_put(struct xk_payload *payload)
{
	if (payload && !refcount_dec_not_one(&payload->uses))
		xk_keep_later(payload);
}

/* ---- making a payload ---- */

static int xk_payload_charge(const struct xk_client *client, const struct xk_payload *payload)
{
	const struct xk_pool *pool = client->pool;
	int err = xk_charge(client->payer, pool, XMEM_QUOTA_USER_FILES, 1);

	if (err)
		return err;
	err = xk_charge(client->payer, pool, XMEM_QUOTA_USER_FILE_BYTES,
			xk_payload_file_bytes(payload));
	if (err)
		xk_uncharge(client->payer, XMEM_QUOTA_USER_FILES, 1);
	return err;
}

/*
 * Make a payload that is not in the pool's table or its device table yet. @flags: XMEM_ATTACH_*.
 * Takes over the caller's references to the files only when it enters the table.
 */
struct xk_payload *xk_payload_new(const struct xk_client *client, const struct xk_kind *kind,
				  const struct xk_offer *offer, u32 flags)
{
	struct xk_payload *payload = kzalloc(kind->bytes, GFP_KERNEL_ACCOUNT);
	int err;

	if (!payload)
		return ERR_PTR(-ENOMEM);
	kref_init(&payload->kref);
	payload->kind = kind;
	payload->incarnation = client->incarnation;
	payload->owner = client->id;
	payload->bytes = offer->bytes;
	payload->traits = offer->traits | xm_attach_traits(flags);
	payload->writable = offer->writable;
	payload->truncates = xm_attach_truncates(flags, payload->traits);
	payload->pool = client->pool;
	payload->file = offer->file;
	payload->guard = offer->guard;
	err = xk_payload_charge(client, payload);
	if (err) {
		kfree(payload);
		return ERR_PTR(err);
	}
	payload->payer = xk_payer_get(client->payer);
	return payload;
}
