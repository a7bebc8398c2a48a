// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: what is set up when it is loaded, in the order of the layers (xk.h), and undone when
 * it is unloaded. Its parameters are in users.c and drivers.c.
 */
#include <linux/module.h>

#include "xk.h"

static int __init xk_init(void)
{
	int err;

	err = xk_files_init();
	if (err)
		return err;
	err = xk_keep_init();
	if (err)
		return err;
	err = xk_queues_init();
	if (err)
		goto err_keep;
	err = xk_pools_init();
	if (err)
		goto err_queues;
	err = xk_sysfs_init();
	if (err)
		goto err_pools;
	err = xk_device_init();
	if (err)
		goto err_sysfs;
	return 0;

err_sysfs:
	xk_sysfs_exit();
err_pools:
	xk_pools_exit();
err_queues:
	xk_queues_exit();
err_keep:
	xk_keep_exit();
	return err;
}

static void __exit xk_exit(void)
{
	xk_device_exit();
	xk_pools_exit();
	xk_sysfs_exit();	/* waits for the last folders, which keep their pools */
	xk_keep_exit();		/* waits for the last files */
	xk_queues_exit();
	WARN_ON(!xk_nothing_charged());
}

module_init(xk_init);
module_exit(xk_exit);

MODULE_DESCRIPTION("Shares large buffers between processes and survives their crashes");
MODULE_AUTHOR("The xmem authors <maintainers@users.noreply.a-seed-31fca847.example>");
MODULE_LICENSE("GPL");
MODULE_VERSION(XK_VERSION);
