// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of all users together and of one pool: what the administrator allows, as parameters of
 * the module, and how much of it is in use. users.c has the limits of one user. EDQUOT tells a
 * caller that a limit is reached, and the request quota which one. Parameters with mode 0644 may
 * change at any time, under no lock, so they are read with READ_ONCE.
 */
#include <linux/atomic.h>
#include <linux/module.h>

#include "xk.h"

unsigned int xk_max_pools = 4096;
module_param_named(max_pools, xk_max_pools, uint, 0644);
MODULE_PARM_DESC(max_pools, "how many pools all users together may have; a pool that has ended "
		 "counts until its clients' files are closed and its drivers' files released");

unsigned int xk_max_payloads = 4096;
module_param_named(max_payloads, xk_max_payloads, uint, 0644);
MODULE_PARM_DESC(max_payloads, "how many payload files one pool may keep open");

unsigned int xk_max_device_files = 4096;
module_param_named(max_device_files, xk_max_device_files, uint, 0644);
MODULE_PARM_DESC(max_device_files, "how many allocations on GPUs one pool may have, and how many "
		 "files of GPU drivers; a file counts until it is released");

unsigned long xk_max_pool_bytes = 512UL << 20;
module_param_named(max_pool_bytes, xk_max_pool_bytes, ulong, 0644);
MODULE_PARM_DESC(max_pool_bytes, "how much memory the shared pages of one pool may take, in bytes");

unsigned long xk_max_bytes = 2048UL << 20;
module_param_named(max_bytes, xk_max_bytes, ulong, 0644);
MODULE_PARM_DESC(max_bytes, "how much memory the shared pages of all pools may take, in bytes");

/* ---- what is in use ---- */

static atomic_t pools_charged;
static atomic_long_t pages_charged;	/* of all pools */

/*
 * Under this lock a user's share is checked and then counted. So of many requests at one moment
 * each sees what those before it have got.
 */
static DEFINE_SPINLOCK(shares_lock);

static int xk_charge_pool_locked(struct xk_payer *payer)
{
	unsigned int most = READ_ONCE(xk_max_pools), pools = atomic_read(&pools_charged);
	int err;

	if (pools >= most)
		return xk_refuse(payer, NULL, XMEM_QUOTA_POOLS, pools, pools + 1ULL, most);
	err = xk_share(payer, NULL, XMEM_QUOTA_USER_POOLS, XMEM_QUOTA_SHARE_POOLS, 1, most - pools);
	if (!err)
		err = xk_charge(payer, NULL, XMEM_QUOTA_USER_POOLS, 1);
	if (!err)
		atomic_inc(&pools_charged);
	return err;
}

/*
 * Count one more pool, which the payer's user makes and has a stake in. -EDQUOT: all users
 * together, or this user, have as many as they may have.
 */
int xk_charge_pool(struct xk_payer *payer)
{
	int err;

	spin_lock(&shares_lock);
	err = xk_charge_pool_locked(payer);
	spin_unlock(&shares_lock);
	return err;
}

/* The maker's stake is dropped separately. */
void xk_uncharge_pool(void)
{
	atomic_dec(&pools_charged);
}

/*
 * Count one more pool that the payer's user keeps. It is no additional pool, but a user that did
 * not make it may keep it for as long, so the user gets no more pools than if it had made it.
 */
int xk_charge_stake(struct xk_pool *pool, struct xk_payer *payer)
{
	int most = min_t(unsigned int, READ_ONCE(xk_max_pools), INT_MAX), err = 0;

	spin_lock(&shares_lock);
	if (payer != pool->payer)
		err = xk_share(payer, pool, XMEM_QUOTA_USER_POOLS, XMEM_QUOTA_SHARE_POOLS, 1,
			       max(most - atomic_read(&pools_charged), 0));
	if (!err)
		err = xk_charge(payer, pool, XMEM_QUOTA_USER_POOLS, 1);
	spin_unlock(&shares_lock);
	return err;
}

/* Count the pages, unless there would be too many. */
static bool xk_try_pages(atomic_long_t *pages, unsigned long n, unsigned long most,
			 unsigned long *ret_used)
{
	unsigned long used = atomic_long_read(pages);

	do {
		*ret_used = used;
		if (used > most || n > most - used)
			return false;
	} while (!atomic_long_try_cmpxchg(pages, (long *)&used, used + n));
	return true;
}

static int xk_refuse_pages(struct xk_payer *payer, struct xk_pool *pool, u32 quota,
			   unsigned long used, unsigned long n, unsigned long most)
{
	return xk_refuse(payer, pool, quota, (u64)used << PAGE_SHIFT,
			 (u64)(used + n) << PAGE_SHIFT, (u64)most << PAGE_SHIFT);
}

static int xk_charge_pages_locked(struct xk_pool *pool, struct xk_payer *payer,
				  unsigned long pages)
{
	unsigned long most = READ_ONCE(xk_max_bytes) >> PAGE_SHIFT, used;
	int err;

	if (!xk_try_pages(&pages_charged, pages, most, &used))
		return xk_refuse_pages(payer, pool, XMEM_QUOTA_PAGE_BYTES, used, pages, most);
	err = xk_share(payer, pool, XMEM_QUOTA_USER_PAGE_BYTES, XMEM_QUOTA_SHARE_PAGE_BYTES,
		       (u64)pages << PAGE_SHIFT, (u64)(most - used) << PAGE_SHIFT);
	if (err)
		goto err_all;
	most = READ_ONCE(xk_max_pool_bytes) >> PAGE_SHIFT;
	if (!xk_try_pages(&pool->pages, pages, most, &used)) {
		err = xk_refuse_pages(payer, pool, XMEM_QUOTA_POOL_PAGE_BYTES, used, pages, most);
		goto err_all;
	}
	err = xk_charge(payer, pool, XMEM_QUOTA_USER_PAGE_BYTES, (u64)pages << PAGE_SHIFT);
	if (err)
		goto err_pool;
	return 0;

err_pool:
	atomic_long_sub(pages, &pool->pages);
err_all:
	atomic_long_sub(pages, &pages_charged);
	return err;
}

/* Count pages of @pool that @payer has allocated. -EDQUOT. */
int xk_charge_pages(struct xk_pool *pool, struct xk_payer *payer, unsigned long pages)
{
	int err;

	spin_lock(&shares_lock);
	err = xk_charge_pages_locked(pool, payer, pages);
	spin_unlock(&shares_lock);
	return err;
}

void xk_uncharge_pages(struct xk_pool *pool, struct xk_payer *payer, unsigned long pages)
{
	atomic_long_sub(pages, &pool->pages);
	xk_uncharge(payer, XMEM_QUOTA_USER_PAGE_BYTES, (u64)pages << PAGE_SHIFT);
	atomic_long_sub(pages, &pages_charged);
}

/* How much of a limit of the host is in use, and the limit. */
void xk_host_quota(u32 quota, u64 *ret_used, u64 *ret_most)
{
	if (quota == XMEM_QUOTA_POOLS) {
		*ret_used = atomic_read(&pools_charged);
		*ret_most = READ_ONCE(xk_max_pools);
	} else {
		*ret_used = (u64)atomic_long_read(&pages_charged) << PAGE_SHIFT;
		*ret_most = READ_ONCE(xk_max_bytes);
	}
}

/* Has everything been uncharged? The module checks this when it is unloaded. */
bool xk_nothing_charged(void)
{
	return !atomic_read(&pools_charged) && !atomic_long_read(&pages_charged) && xk_no_users();
}
