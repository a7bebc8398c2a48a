// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: parameters, /dev/xmem, what is opened there, and the pseudo file
 * system that lends each pool an inode. An open file is nothing until it joins
 * a pool (join.c); what it asks then is in ioctl.c.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "xk.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

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

struct workqueue_struct *xk_end_wq, *xk_wq;

/* ---- one inode per pool ---- */

static struct vfsmount *xk_mount;

static int xk_fs_init_context(struct fs_context *context)
{
	return init_pseudo(context, XMEM_MAGIC & 0xffffffff) ? 0 : -ENOMEM;
}

/* No .owner: it would pin the module for as long as it is mounted, which is till exit. */
static struct file_system_type xk_fs = {
	.name = "xmem",
	.init_fs_context = xk_fs_init_context,
	.kill_sb = kill_anon_super,
};

/* Its address space is a pool's: all opens of a device file share one otherwise. */
struct inode *xk_inode_new(void)
{
	struct inode *inode = alloc_anon_inode(xk_mount->mnt_sb);

	/*
	 * mmap() counts writable mappings up in file->f_mapping before it calls us
	 * and down after it; a join by another thread changes f_mapping between the
	 * two. Below 0 nobody could map the pool any more, so it starts far above.
	 */
	if (!IS_ERR(inode))
		atomic_set(&inode->i_data.i_mmap_writable, 1 << 30);
	return inode;
}

/* ---- /dev/xmem ---- */

static int xk_open(struct inode *inode, struct file *filp)
{
	struct xk_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	file->file = filp;
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

/* Somebody closes a descriptor: is it the client on its way out? */
static int xk_flush(struct file *filp, fl_owner_t id)
{
	struct xk_file *file = filp->private_data;
	struct xk_client *client = smp_load_acquire(&file->client);

	if (client)
		xk_client_left(client);
	return 0;
}

static int xk_release(struct inode *inode, struct file *filp)
{
	struct xk_file *file = filp->private_data;

	if (file->client) {
		xk_client_end(file->client);
		xk_client_put(file->client);
	}
	mutex_destroy(&file->lock);
	kfree(file);
	return 0;
}

/* No compat_ioctl: the host is for 64-bit processes, others get ENOTTY. */
static const struct file_operations xk_fops = {
	.owner = THIS_MODULE,
	.open = xk_open,
	.flush = xk_flush,
	.release = xk_release,
	.unlocked_ioctl = xk_ioctl,
	.mmap = xk_mmap,
	.poll = xk_poll,
	.llseek = noop_llseek,
};

static struct miscdevice xk_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "xmem",
	.fops = &xk_fops,
};

/* ---- init and exit ---- */

static int __init xk_init(void)
{
	int err;

	xk_mount = kern_mount(&xk_fs);
	if (IS_ERR(xk_mount))
		return PTR_ERR(xk_mount);
	err = xk_payload_init();
	if (err)
		goto err_mount;
	err = -ENOMEM;
	xk_wq = alloc_workqueue("xmem", WQ_UNBOUND, 0);
	if (!xk_wq)
		goto err_mount;
	/* A queue of its own with a rescuer: the end of a client must not wait for memory. */
	xk_end_wq = alloc_workqueue("xk_end", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!xk_end_wq)
		goto err_wq;
	err = xk_sysfs_init();
	if (err)
		goto err_end_wq;
	err = misc_register(&xk_misc);
	if (err)
		goto err_sysfs;
	return 0;

err_sysfs:
	xk_sysfs_exit();
err_end_wq:
	destroy_workqueue(xk_end_wq);
err_wq:
	destroy_workqueue(xk_wq);
err_mount:
	kern_unmount(xk_mount);
	return err;
}

/* No file is open any more, so no pool is used; only their last works may be under way. */
static void __exit xk_exit(void)
{
	misc_deregister(&xk_misc);
	destroy_workqueue(xk_end_wq);
	destroy_workqueue(xk_wq);
	WARN_ON(!xk_pools_none());
	xk_sysfs_exit();
	kern_unmount(xk_mount);
}

module_init(xk_init);
module_exit(xk_exit);

MODULE_DESCRIPTION("share large buffers between processes; who dies holds nothing");
MODULE_AUTHOR("the xmem authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(XK_VERSION);
