// SPDX-License-Identifier: GPL-2.0-only
/* The module's beginning and end. */
#include <linux/module.h>
#include <linux/workqueue.h>

#include "xk.h"

struct workqueue_struct *xk_end_wq, *xk_wq;

static int __init xk_init(void)
{
	int err;

	err = xk_inode_init();
	if (err)
		return err;
	err = xk_payload_init();
	if (err)
		goto err_inode;
	err = -ENOMEM;
	xk_wq = alloc_workqueue("xmem", WQ_UNBOUND, 0);
	if (!xk_wq)
		goto err_inode;
	/* A queue of its own with a rescuer: the end of a client must not wait for memory. */
	xk_end_wq = alloc_workqueue("xk_end", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!xk_end_wq)
		goto err_wq;
	err = xk_sysfs_init();
	if (err)
		goto err_end_wq;
	err = xk_device_init();
	if (err)
		goto err_sysfs;
	return 0;

err_sysfs:
	xk_sysfs_exit();
err_end_wq:
	destroy_workqueue(xk_end_wq);
err_wq:
	destroy_workqueue(xk_wq);
err_inode:
	xk_inode_exit();
	return err;
}

/* No file is open any more, so no pool is used; only their last works may be under way. */
static void __exit xk_exit(void)
{
	xk_device_exit();
	destroy_workqueue(xk_end_wq);
	destroy_workqueue(xk_wq);
	WARN_ON(!xk_pools_none());
	xk_sysfs_exit();
	xk_inode_exit();
}

module_init(xk_init);
module_exit(xk_exit);

MODULE_DESCRIPTION("share large buffers between processes; who dies holds nothing");
MODULE_AUTHOR("the xmem authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(XK_VERSION);
