// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the administrator allows, as the module's parameters, and how much of it
 * is in use.
 */
#include <linux/atomic.h>
#include <linux/module.h>

#include "xk.h"

unsigned int xk_max_pools = 64;
module_param_named(max_pools, xk_max_pools, uint, 0644);
MODULE_PARM_DESC(max_pools, "pools of all users together");

unsigned int xk_max_payloads = 4096;
module_param_named(max_payloads, xk_max_payloads, uint, 0644);
MODULE_PARM_DESC(max_payloads, "payload files that one pool keeps open");

unsigned long xk_max_pool_bytes = 512UL << 20;
module_param_named(max_pool_bytes, xk_max_pool_bytes, ulong, 0644);
MODULE_PARM_DESC(max_pool_bytes, "kernel memory for the pages of one pool, in bytes");

unsigned long xk_max_bytes = 2048UL << 20;
module_param_named(max_bytes, xk_max_bytes, ulong, 0644);
MODULE_PARM_DESC(max_bytes, "kernel memory for the pages of all pools, in bytes");

unsigned int xk_max_sysfs_slots = 256;
module_param_named(max_sysfs_slots, xk_max_sysfs_slots, uint, 0444);
MODULE_PARM_DESC(max_sysfs_slots, "slots of one pool that are shown in sysfs");

atomic_long_t xk_pages_of_all;

/* Account for pages to come. -EDQUOT. */
int xk_pool_charge(struct xk_pool *pool, unsigned long pages)
{
	if (atomic_long_add_return(pages, &xk_pages_of_all) > xk_max_bytes >> PAGE_SHIFT)
		goto err_all;
	if (atomic_long_add_return(pages, &pool->pages) > xk_max_pool_bytes >> PAGE_SHIFT)
		goto err_pool;
	return 0;

err_pool:
	atomic_long_sub(pages, &pool->pages);
err_all:
	atomic_long_sub(pages, &xk_pages_of_all);
	return -EDQUOT;
}

void xk_pool_uncharge(struct xk_pool *pool, unsigned long pages)
{
	atomic_long_sub(pages, &pool->pages);
	atomic_long_sub(pages, &xk_pages_of_all);
}
