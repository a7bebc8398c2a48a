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

static DEFINE_SPINLOCK(pools_lock);
static LIST_HEAD(pools);		/* pools_lock; those that are used */
static unsigned int pools_count;	/* pools_lock; used or about to be */
static DEFINE_IDA(pool_numbers);

/* Has everything been given back? For the module's exit. */
bool xk_pools_none(void)
{
	return list_empty(&pools) && !atomic_long_read(&xk_pages_of_all);
}

/* ---- making and freeing ---- */

static int xk_pools_count_up(void)
{
	int err = -EDQUOT;

	spin_lock(&pools_lock);
	if (pools_count < xk_max_pools) {
		pools_count++;
		err = 0;
	}
	spin_unlock(&pools_lock);
	return err;
}

static void xk_pools_count_down(void)
{
	spin_lock(&pools_lock);
	pools_count--;
	spin_unlock(&pools_lock);
}

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
	INIT_WORK(&pool->end_work, xk_end_work);
	INIT_WORK(&pool->sysfs_work, xk_sysfs_work);
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

static struct xk_pool *xk_pool_new(const struct xmem_join_request *join, kgid_t group)
{
	struct xk_pool *pool;
	struct inode *inode;
	int err = xk_pools_count_up();

	if (err)
		return ERR_PTR(err);
	err = -ENOMEM;
	pool = kvzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		goto err_count;
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
	err = xk_queues_init(pool);
	if (err)
		goto err_pool;
	err = xk_sysfs_prepare(pool);
	if (err)
		goto err_pool;
	return pool;

err_pool:
	xk_pool_free(pool);
	goto err_count;
err_struct:
	kvfree(pool);
err_count:
	xk_pools_count_down();
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
		pools_count--;
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

/* How many are used, or about to be. */
unsigned int xk_pools_used(void)
{
	unsigned int count;

	spin_lock(&pools_lock);
	count = pools_count;
	spin_unlock(&pools_lock);
	return count;
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

/* May the caller have a pool that was there before him? */
static int xk_pool_permit(const struct xk_pool *pool, const struct xmem_join_request *join)
{
	if (join->flags & XMEM_JOIN_EXCLUSIVE)
		return -EEXIST;
	if (!(join->flags & XMEM_JOIN_FOREIGN) && !uid_eq(pool->owner, current_euid()))
		return -EPERM;
	return 0;
}

/* The pool that @join names, made if need be; the caller is one of its users. */
struct xk_pool *xk_pool_open(const struct xmem_join_request *join, kgid_t group)
{
	struct xk_pool *pool, *new;
	int err;

	spin_lock(&pools_lock);
	pool = xk_pool_find_locked(join);
	spin_unlock(&pools_lock);
	if (!pool) {
		if (join->flags & XMEM_JOIN_EXISTING)
			return ERR_PTR(-ENOENT);
		new = xk_pool_new(join, group);
		if (IS_ERR(new))
			return new;
		spin_lock(&pools_lock);
		pool = xk_pool_find_locked(join);
		if (!pool)
			list_add(&new->list, &pools);
		spin_unlock(&pools_lock);
		if (!pool)
			return new;
		xk_pool_unuse(new);	/* somebody was faster */
	}
	err = xk_pool_permit(pool, join);
	if (err) {
		xk_pool_unuse(pool);
		return ERR_PTR(err);
	}
	return pool;
}
