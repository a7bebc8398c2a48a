// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limits: what the administrator allows, as parameters of the module, and how
 * much of it is in use. EDQUOT tells a caller that one of them is reached. Those with mode 0644
 * may change at any time, under no lock: hence READ_ONCE wherever they are read.
 */
#include <linux/atomic.h>
#include <linux/module.h>

#include "xk.h"
#include "trace.h"

unsigned int xk_max_pools = 64;
module_param_named(max_pools, xk_max_pools, uint, 0644);
MODULE_PARM_DESC(max_pools, "how many pools there may be, of all users together; one that has "
		 "ended counts until its files of drivers are released");

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

unsigned int xk_max_sysfs_slots = 256;
module_param_named(max_sysfs_slots, xk_max_sysfs_slots, uint, 0444);
MODULE_PARM_DESC(max_sysfs_slots, "how many slots of one pool are shown in sysfs");

/* ---- what is in use ---- */

static atomic_t pools_charged;
static atomic_long_t pages_charged;	/* of all pools */

/* Account for one more pool. -EDQUOT: there are as many as there may be. */
int xk_charge_pool(void)
{
	int pools = atomic_read(&pools_charged);
	unsigned int most;

	do {
		most = READ_ONCE(xk_max_pools);
		if (pools >= most) {
			trace_xmem_limit(XK_NO_POOL, "max_pools", pools + 1, most);
			return -EDQUOT;
		}
	} while (!atomic_try_cmpxchg(&pools_charged, &pools, pools + 1));
	return 0;
}

void xk_uncharge_pool(void)
{
	atomic_dec(&pools_charged);
}

/* Account for pages of @pool that the caller will allocate. -EDQUOT. */
int xk_charge_pages(struct xk_pool *pool, unsigned long pages)
{
	unsigned long most_of_all = READ_ONCE(xk_max_bytes) >> PAGE_SHIFT;
	unsigned long most = READ_ONCE(xk_max_pool_bytes) >> PAGE_SHIFT, wanted;

	wanted = atomic_long_add_return(pages, &pages_charged);
	if (wanted > most_of_all) {
		trace_xmem_limit(pool->number, "max_bytes", (u64)wanted << PAGE_SHIFT,
				 (u64)most_of_all << PAGE_SHIFT);
		goto err_all;
	}
	wanted = atomic_long_add_return(pages, &pool->pages);
	if (wanted > most) {
		trace_xmem_limit(pool->number, "max_pool_bytes", (u64)wanted << PAGE_SHIFT,
				 (u64)most << PAGE_SHIFT);
		goto err_pool;
	}
	return 0;

err_pool:
	atomic_long_sub(pages, &pool->pages);
err_all:
	atomic_long_sub(pages, &pages_charged);
	return -EDQUOT;
}

void xk_uncharge_pages(struct xk_pool *pool, unsigned long pages)
{
	atomic_long_sub(pages, &pool->pages);
	atomic_long_sub(pages, &pages_charged);
}

/* Has everything been given back? The module asks this when it is unloaded. */
bool xk_nothing_charged(void)
{
	return !atomic_read(&pools_charged) && !atomic_long_read(&pages_charged);
}
