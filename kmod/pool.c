// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools: making, finding by name, counting who uses them, limits, and the last
 * free. What happens in a pool is elsewhere; how it is emptied is in leave.c.
 *
 * Names are those of one network namespace, as abstract sockets' are, so that
 * containers see the same pools whichever host they use.
 */
#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "xk.h"

struct workqueue_struct *xk_end_wq, *xk_wq;
static DEFINE_SPINLOCK(pools_lock);
static LIST_HEAD(pools);		/* pools_lock; those that are used */
static DEFINE_IDA(pool_numbers);

/* ---- the module's begin and end ---- */

int __init xk_pools_init(void)
{
	xk_wq = alloc_workqueue("xmem", WQ_UNBOUND, 0);
	if (!xk_wq)
		return -ENOMEM;
	/* A queue of its own with a rescuer: the end of a client must not wait for memory. */
	xk_end_wq = alloc_workqueue("xk_end", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (xk_end_wq)
		return 0;
	destroy_workqueue(xk_wq);
	return -ENOMEM;
}

/* No file is open any more, so no pool is used; only their last works may be under way. */
void xk_pools_exit(void)
{
	destroy_workqueue(xk_end_wq);
	destroy_workqueue(xk_wq);
	WARN_ON(!list_empty(&pools) || !xk_nothing_charged());
}

/* ---- making and freeing ---- */

static void xk_pool_init(struct xk_pool *pool, kgid_t group)
{
	kref_init(&pool->kref);
	refcount_set(&pool->users, 1);
	INIT_LIST_HEAD(&pool->list);
	pool->net = get_net(current->nsproxy->net_ns);
	pool->owner = current_euid();
	pool->gid = group;
	mutex_init(&pool->lock);
	spin_lock_init(&pool->pages_lock);
}

/* The table: header and rows, which all may read and only the host writes. */
static int xk_pool_lay_out(struct xk_pool *pool, const struct xmem_join_request *join)
{
	struct xmem_pool_header header;
	struct xk_chunk *table;
	int err = xm_host_layout(join, PAGE_SIZE, &header);

	if (err)
		return err;
	header.owner_uid = from_kuid(&init_user_ns, pool->owner);
	table = xk_chunk_new(pool, header.groups_offset, false);
	if (IS_ERR(table))
		return PTR_ERR(table);
	memcpy(table->now->view, &header, sizeof(header));
	xm_host_init(&pool->host, table->now->view);
	pool->table = table;
	return 0;
}

/* All but pages and queues of a pool that may be half made. */
static void xk_pool_free(struct xk_pool *pool)
{
	if (pool->table)
		xk_chunk_free(pool, pool->table);
	kvfree(pool->slot_node);
	bitmap_free(pool->slots_shown);
	kvfree(pool->queues);
	if (pool->zero)
		put_page(pool->zero);
	if (pool->inode)
		iput(pool->inode);
	ida_free(&pool_numbers, pool->number);
	put_net(pool->net);
	mutex_destroy(&pool->lock);
	kvfree(pool);
}

/* One that could not be made ready, so that only the caller knows it. */
void xk_pool_discard(struct xk_pool *pool)
{
	xk_pool_free(pool);
	xk_uncharge_pool();
}

/*
 * A pool with its table, which has one use: the caller's. Before it is found by
 * others (xk_pool_enlist), the files above prepare what is theirs in it.
 */
struct xk_pool *xk_pool_new(const struct xmem_join_request *join, kgid_t group)
{
	struct xk_pool *pool;
	struct inode *inode;
	int err = xk_charge_pool();

	if (err)
		return ERR_PTR(err);
	err = -ENOMEM;
	pool = kvzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		goto err_charge;
	err = ida_alloc(&pool_numbers, GFP_KERNEL);
	if (err < 0)
		goto err_struct;
	pool->number = err;
	xk_pool_init(pool, group);

	inode = xk_inode_new();
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		goto err_pool;
	}
	pool->inode = inode;
	err = -ENOMEM;
	pool->zero = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!pool->zero)
		goto err_pool;
	err = xk_pool_lay_out(pool, join);
	if (err)
		goto err_pool;
	return pool;

err_pool:
	xk_pool_discard(pool);
	return ERR_PTR(err);
err_struct:
	kvfree(pool);
err_charge:
	xk_uncharge_pool();
	return ERR_PTR(err);
}

void xk_pool_get(struct xk_pool *pool)
{
	kref_get(&pool->kref);
}

static void xk_pool_release(struct kref *kref)
{
	struct xk_pool *pool = container_of(kref, struct xk_pool, kref);

	WARN_ON(!pool->dead || pool->device);
	xk_pool_free(pool);
}

void xk_pool_put(struct xk_pool *pool)
{
	kref_put(&pool->kref, xk_pool_release);
}

/* ---- use ---- */

/* One use more of a pool that may have none any more: -ENOENT. */
struct xk_pool *xk_pool_get_used(struct xk_pool *pool)
{
	return refcount_inc_not_zero(&pool->users) ? pool : ERR_PTR(-ENOENT);
}

/* What the end of a client or of the pool's use asks for: see leave.c, which prepared it. */
void xk_pool_queue_end(struct xk_pool *pool)
{
	xk_pool_get(pool);
	if (!queue_work(xk_end_wq, &pool->end_work))
		xk_pool_put(pool);	/* queued already, with a reference */
}

/* The last user's going frees the name at once, and then the pool. */
void xk_pool_unuse(struct xk_pool *pool)
{
	bool last;

	if (refcount_dec_not_one(&pool->users))
		return;
	spin_lock(&pools_lock);
	last = refcount_dec_and_test(&pool->users);
	if (last) {
		list_del_init(&pool->list);
		xk_uncharge_pool();
	}
	spin_unlock(&pools_lock);
	if (!last)
		return;
	xk_pool_queue_end(pool);
	xk_pool_put(pool);
}

/* The pool of the caller's network namespace with the least number above @number, used once more. */
struct xk_pool *xk_pool_after(u64 number)
{
	struct xk_pool *pool, *next = NULL;

	spin_lock(&pools_lock);
	list_for_each_entry(pool, &pools, list)
		if (net_eq(pool->net, current->nsproxy->net_ns) && pool->number + 1ULL > number &&
		    (!next || pool->number < next->number))
			next = pool;
	if (next && !refcount_inc_not_zero(&next->users))
		next = NULL;
	spin_unlock(&pools_lock);
	return next;
}

/* ---- by name ---- */

static struct xk_pool *xk_pool_find_locked(const struct xmem_join_request *join)
{
	struct xk_pool *pool;

	lockdep_assert_held(&pools_lock);
	if (!join->name[0])
		return NULL;
	list_for_each_entry(pool, &pools, list)
		if (net_eq(pool->net, current->nsproxy->net_ns) &&
		    !strncmp(xk_header(pool)->name, join->name, XMEM_NAME_BYTES) &&
		    refcount_inc_not_zero(&pool->users))
			return pool;
	return NULL;
}

/* The pool that @join names, with one use more, or NULL. */
struct xk_pool *xk_pool_find(const struct xmem_join_request *join)
{
	struct xk_pool *pool;

	spin_lock(&pools_lock);
	pool = xk_pool_find_locked(join);
	spin_unlock(&pools_lock);
	return pool;
}

/* From here on @new is found by its name; or returns the one that has it, with one use more. */
struct xk_pool *xk_pool_enlist(struct xk_pool *new, const struct xmem_join_request *join)
{
	struct xk_pool *pool;

	spin_lock(&pools_lock);
	pool = xk_pool_find_locked(join);
	if (!pool)
		list_add(&new->list, &pools);
	spin_unlock(&pools_lock);
	return pool ? pool : new;
}
