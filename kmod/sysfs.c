// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/xmem: a folder for each pool, with the same files in each, and a file about the users.
 * It is for people and tools; nothing in xmem reads it. sysfs_text.c and sysfs_records.c have the
 * files of a pool.
 *
 * The join that makes a pool makes its folder. No memory cgroup pays for what sysfs allocates for
 * it, but that is the same amount for each pool, so the limits of pools bound it. A work item
 * removes the folder, because removing waits for readers; so readers need no reference to the pool.
 * There are no uevents, because any user can make and end pools at any rate.
 *
 * A throttled reader delays the removal for as long as it likes. So removals have a work queue of
 * their own, in which nothing else waits. A pool counts for its maker until its folder is removed.
 */
#include <linux/device.h>
#include <linux/init.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "xk.h"

/* How many folders can be removed at a time; each that is being read takes a kernel thread. */
#define XK_LEAVING_FOLDERS	512

static struct workqueue_struct *folder_wq;

/* ---- the class ---- */

static ssize_t users_show(XK_CLASS_CONST struct class *class,
			  XK_CLASS_CONST struct class_attribute *attr, char *page)
{
	return xk_users_print(page);
}

static CLASS_ATTR_RO(users);

static struct attribute *xk_class_attrs[] = { &class_attr_users.attr, NULL };
ATTRIBUTE_GROUPS(xk_class);

static const struct attribute_group *xk_pool_groups[] = {
	&xk_text_group, &xk_records_group,
	NULL
};

static void xk_device_release(struct device *device)
{
	kfree(device);
}

static struct class xk_class = {
	.name = "xmem",
	.class_groups = xk_class_groups,
	.dev_groups = xk_pool_groups,
	.dev_release = xk_device_release,
};

/* ---- the folder of a pool ---- */

static int xk_device_add(struct xk_pool *pool, struct device *device)
{
	int err = dev_set_name(device, "pool%u", pool->number);

	return err ?: device_add(device);
}

static void xk_sysfs_remove(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, sysfs_work);

	device_unregister(pool->device);
	pool->device = NULL;
	xk_pool_uncharge(pool);
	xk_pool_put(pool);
}

/* Make the folder of a pool that nobody else knows yet. */
int xk_sysfs_show(struct xk_pool *pool)
{
	struct device *device = kzalloc(sizeof(*device), GFP_KERNEL_ACCOUNT);
	int err;

	if (!device)
		return -ENOMEM;
	device_initialize(device);
	device->class = &xk_class;
	dev_set_drvdata(device, pool);
	dev_set_uevent_suppress(device, true);
	device_set_pm_not_required(device);
	err = xk_device_add(pool, device);
	if (err) {
		put_device(device);
		return err;
	}
	INIT_WORK(&pool->sysfs_work, xk_sysfs_remove);
	pool->device = device;
	return 0;
}

/* The pool has been emptied. Any lock may be held. */
void xk_sysfs_hide(struct xk_pool *pool)
{
	xk_pool_get(pool);
	queue_work(folder_wq, &pool->sysfs_work);
}

int __init xk_sysfs_init(void)
{
	int err;

	folder_wq = alloc_workqueue("xmem_sysfs", WQ_UNBOUND, XK_LEAVING_FOLDERS);
	if (!folder_wq)
		return -ENOMEM;
	err = class_register(&xk_class);
	if (err)
		destroy_workqueue(folder_wq);
	return err;
}

/* All pools have been emptied. This waits for folders that are still being read. */
void xk_sysfs_exit(void)
{
	destroy_workqueue(folder_wq);
	class_unregister(&xk_class);
}
