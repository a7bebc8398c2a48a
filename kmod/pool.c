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

#include "xmem_private.h"

static DEFINE_SPINLOCK(pools_lock);
static LIST_HEAD(pools);		/* pools_lock; those that are used */
static unsigned int pools_count;	/* pools_lock; used or about to be */
static atomic_long_t pages_of_all;
static DEFINE_IDA(pool_numbers);

/* Has everything been given back? For the module's exit. */
bool xmem_pools_none(void)
{
	return list_empty(&pools) && !atomic_long_read(&pages_of_all);
}

/* ---- limits ---- */

/* Account for pages to come. -EDQUOT. */
int xmem_pool_charge(struct xmem_pool *pool, unsigned long pages)
{
	if (atomic_long_add_return(pages, &pages_of_all) > xmem_max_bytes >> PAGE_SHIFT)
		goto err_all;
	if (atomic_long_add_return(pages, &pool->pages) > xmem_max_pool_bytes >> PAGE_SHIFT)
		goto err_pool;
	return 0;

err_pool:
	atomic_long_sub(pages, &pool->pages);
err_all:
	atomic_long_sub(pages, &pages_of_all);
	return -EDQUOT;
}

void xmem_pool_uncharge(struct xmem_pool *pool, unsigned long pages)
{
	atomic_long_sub(pages, &pool->pages);
	atomic_long_sub(pages, &pages_of_all);
}

static int xmem_pools_count_up(void)
{
	int err = -EDQUOT;

	spin_lock(&pools_lock);
	if (pools_count < xmem_max_pools) {
		pools_count++;
		err = 0;
	}
	spin_unlock(&pools_lock);
	return err;
}

static void xmem_pools_count_down(void)
{
	spin_lock(&pools_lock);
	pools_count--;
	spin_unlock(&pools_lock);
}

/* ---- making and freeing ---- */

static void xmem_pool_init(struct xmem_pool *pool, kgid_t group)
{
	kref_init(&pool->kref);
	refcount_set(&pool->users, 1);
	INIT_LIST_HEAD(&pool->list);
	pool->net = get_net(current->nsproxy->net_ns);
	pool->owner = current_euid();
	pool->gid = group;
	mutex_init(&pool->lock);
	spin_lock_init(&pool->pages_lock);
	INIT_WORK(&pool->end_work, xmem_end_work);
	INIT_WORK(&pool->sysfs_work, xmem_sysfs_work);
}

/* The region: header and rows, which all may read and only the host writes. */
static int xmem_pool_lay_out(struct xmem_pool *pool, const struct xmem_join *join)
{
	struct xmem_pool_header header;
	struct xmem_chunk *region;
	int err = xm_host_layout(join, PAGE_SIZE, &header);

	if (err)
		return err;
	header.owner_uid = from_kuid(&init_user_ns, pool->owner);
	region = xmem_chunk_new(pool, header.groups_offset, false);
	if (IS_ERR(region))
		return PTR_ERR(region);
	memcpy(region->now->view, &header, sizeof(header));
	xm_host_init(&pool->host, region->now->view);
	pool->region = region;
	return 0;
}

/* All but pages and queues of a pool that may be half made. */
static void xmem_pool_free(struct xmem_pool *pool)
{
	if (pool->region)
		xmem_chunk_free(pool, pool->region);
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

static struct xmem_pool *xmem_pool_new(const struct xmem_join *join, kgid_t group)
{
	struct xmem_pool *pool;
	struct inode *inode;
	int err = xmem_pools_count_up();

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
	xmem_pool_init(pool, group);

	inode = xmem_inode_new();
	if (IS_ERR(inode)) {
		err = PTR_ERR(inode);
		goto err_pool;
	}
	pool->inode = inode;
	err = -ENOMEM;
	pool->zero = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!pool->zero)
		goto err_pool;
	err = xmem_pool_lay_out(pool, join);
	if (err)
		goto err_pool;
	err = xmem_queues_init(pool);
	if (err)
		goto err_pool;
	err = xmem_sysfs_prepare(pool);
	if (err)
		goto err_pool;
	return pool;

err_pool:
	xmem_pool_free(pool);
	goto err_count;
err_struct:
	kvfree(pool);
err_count:
	xmem_pools_count_down();
	return ERR_PTR(err);
}

void xmem_pool_get(struct xmem_pool *pool)
{
	kref_get(&pool->kref);
}

static void xmem_pool_release(struct kref *kref)
{
	struct xmem_pool *pool = container_of(kref, struct xmem_pool, kref);

	WARN_ON(!pool->dead || pool->device);
	xmem_pool_free(pool);
}

void xmem_pool_put(struct xmem_pool *pool)
{
	kref_put(&pool->kref, xmem_pool_release);
}

/* ---- use ---- */

/* One use more of a pool that may have none any more: -ENOENT. */
struct xmem_pool *xmem_pool_get_used(struct xmem_pool *pool)
{
	return refcount_inc_not_zero(&pool->users) ? pool : ERR_PTR(-ENOENT);
}

/* The last user's going frees the name at once, and then the pool. */
void xmem_pool_unuse(struct xmem_pool *pool)
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
	xmem_pool_queue_end(pool);
	xmem_pool_put(pool);
}

/* ---- by name ---- */

static struct xmem_pool *xmem_pool_find_locked(const struct xmem_join *join)
{
	struct xmem_pool *pool;

	lockdep_assert_held(&pools_lock);
	if (!join->name[0])
		return NULL;
	list_for_each_entry(pool, &pools, list)
		if (net_eq(pool->net, current->nsproxy->net_ns) &&
		    !strncmp(xmem_header(pool)->name, join->name, XMEM_NAME_BYTES) &&
		    refcount_inc_not_zero(&pool->users))
			return pool;
	return NULL;
}

/* May the caller have a pool that was there before him? */
static int xmem_pool_permit(const struct xmem_pool *pool, const struct xmem_join *join)
{
	if (join->flags & XMEM_JOIN_EXCLUSIVE)
		return -EEXIST;
	if (!(join->flags & XMEM_JOIN_FOREIGN) && !uid_eq(pool->owner, current_euid()))
		return -EPERM;
	return 0;
}

/* The pool that @join names, made if need be; the caller is one of its users. */
struct xmem_pool *xmem_pool_open(const struct xmem_join *join, kgid_t group)
{
	struct xmem_pool *pool, *new;
	int err;

	spin_lock(&pools_lock);
	pool = xmem_pool_find_locked(join);
	spin_unlock(&pools_lock);
	if (!pool) {
		if (join->flags & XMEM_JOIN_EXISTING)
			return ERR_PTR(-ENOENT);
		new = xmem_pool_new(join, group);
		if (IS_ERR(new))
			return new;
		spin_lock(&pools_lock);
		pool = xmem_pool_find_locked(join);
		if (!pool)
			list_add(&new->list, &pools);
		spin_unlock(&pools_lock);
		if (!pool)
			return new;
		xmem_pool_unuse(new);	/* somebody was faster */
	}
	err = xmem_pool_permit(pool, join);
	if (err) {
		xmem_pool_unuse(pool);
		return ERR_PTR(err);
	}
	return pool;
}
