// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits of all users together, and of one pool: what the administrator allows, as parameters
 * of the module, and how much of it is in use; users.c has those of one user. EDQUOT tells a caller
 * that one of them is reached, and the request quota which. Those with mode 0644 may change at any
 * time, under no lock: hence READ_ONCE wherever they are read.
 */
#include <linux/atomic.h>
#include <linux/module.h>

#include "xk.h"
#include "trace.h"

unsigned int xk_max_pools = 4096;
module_param_named(max_pools, xk_max_pools, uint, 0644);
MODULE_PARM_DESC(max_pools, "how many pools there may be, of all users together; one that has "
		 "ended counts until its clients' files are closed and its drivers' released");

unsigned int xk_max_payloads = 4096;
module_param_named(max_payloads, xk_max_payloads, uint, 0644);
MODULE_PARM_DESC(max_payloads, "how many payload files one pool may keep open");

unsigned int xk_max_device_files = 4096;
module_param_named(max_device_files, xk_max_device_files, uint, 0644);
MODULE_PARM_DESC(max_device_files, "how many allocations on GPUs one pool may have, and how many "
		 "files of their drivers, which count until they are released");

unsigned long xk_max_pool_bytes = 512UL << 20;
module_param_named(max_pool_bytes, xk_max_pool_bytes, ulong, 0644);
MODULE_PARM_DESC(max_pool_bytes, "how much memory the shared pages of one pool may take, in bytes");

unsigned long xk_max_bytes = 2048UL << 20;
module_param_named(max_bytes, xk_max_bytes, ulong, 0644);
MODULE_PARM_DESC(max_bytes, "how much memory the shared pages of all pools may take, in bytes");

unsigned long xk_max_limbo_bytes = ULONG_MAX;	/* its parameter is in limbo.c */

/* ---- what is in use ---- */

static atomic_t pools_charged;
static atomic_long_t pages_charged;	/* of all pools */

/*
 * What a user has of what all share is looked at, and counted, under this lock: so of many who ask
 * at once each sees what those before it have got.
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
 * Account for one more pool, which the payer's user makes, so that it has a stake in it. -EDQUOT:
 * there are as many as there may be, or its user has.
 */
int xk_charge_pool(struct xk_payer *payer)
{
	int err;

	spin_lock(&shares_lock);
	err = xk_charge_pool_locked(payer);
	spin_unlock(&shares_lock);
	return err;
}

/* The maker's stake goes by itself. */
void xk_uncharge_pool(void)
{
	atomic_dec(&pools_charged);
}

/*
 * Account for one more pool that the payer's user has something of. It takes none of all pools, but
 * who did not make it may keep it for as long, so it is given no more of them than if it had.
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

/* Counts them, if there are not too many then. */
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

/* Account for pages of @pool that @payer has allocated. -EDQUOT. */
int xk_charge_pages(struct xk_pool *pool, struct xk_payer *payer, unsigned long pages)
{
	int err;

	spin_lock(&shares_lock);
	err = xk_charge_pages_locked(pool, payer, pages);
	spin_unlock(&shares_lock);
	return err;
}

/* Their pool has none of them any more, and they will be freed in a moment. */
void xk_uncharge_pool_pages(struct xk_pool *pool, unsigned long pages)
{
	atomic_long_sub(pages, &pool->pages);
}

/* Now they have been. */
void xk_uncharge_freed_pages(struct xk_payer *payer, unsigned long pages)
{
	xk_uncharge(payer, XMEM_QUOTA_USER_PAGE_BYTES, (u64)pages << PAGE_SHIFT);
	atomic_long_sub(pages, &pages_charged);
}

void xk_uncharge_pages(struct xk_pool *pool, struct xk_payer *payer, unsigned long pages)
{
	xk_uncharge_pool_pages(pool, pages);
	xk_uncharge_freed_pages(payer, pages);
}

/* How many bytes of what ended clients have left one client of the pool may hold. */
u64 xk_limbo_most(const struct xk_pool *pool)
{
	unsigned long most = READ_ONCE(xk_max_limbo_bytes);
	u64 host = most == ULONG_MAX ? U64_MAX : most;

	return pool->limbo_bytes ? min(pool->limbo_bytes, host) : host;
}

/* How much of a limit of the host is in use, and how much there may be. */
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

/* Has everything been given back? The module asks this when it is unloaded. */
bool xk_nothing_charged(void)
{
	return !atomic_read(&pools_charged) && !atomic_long_read(&pages_charged) && xk_no_users();
}
