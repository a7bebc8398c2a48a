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

#include "xmem_private.h"
#define CREATE_TRACE_POINTS
#include "trace.h"

unsigned int xmem_max_pools = 64;
module_param_named(max_pools, xmem_max_pools, uint, 0644);
MODULE_PARM_DESC(max_pools, "pools of all users together");

unsigned int xmem_max_payloads = 4096;
module_param_named(max_payloads, xmem_max_payloads, uint, 0644);
MODULE_PARM_DESC(max_payloads, "payload files that one pool keeps open");

unsigned long xmem_max_pool_bytes = 512UL << 20;
module_param_named(max_pool_bytes, xmem_max_pool_bytes, ulong, 0644);
MODULE_PARM_DESC(max_pool_bytes, "kernel memory for the pages of one pool, in bytes");

unsigned long xmem_max_bytes = 2048UL << 20;
module_param_named(max_bytes, xmem_max_bytes, ulong, 0644);
MODULE_PARM_DESC(max_bytes, "kernel memory for the pages of all pools, in bytes");

unsigned int xmem_max_sysfs_slots = 256;
module_param_named(max_sysfs_slots, xmem_max_sysfs_slots, uint, 0444);
MODULE_PARM_DESC(max_sysfs_slots, "slots of one pool that are shown in sysfs");

struct workqueue_struct *xmem_end_wq, *xmem_wq;

/* ---- one inode per pool ---- */

static struct vfsmount *xmem_mount;

static int xmem_fs_init_context(struct fs_context *context)
{
	return init_pseudo(context, XMEM_MAGIC & 0xffffffff) ? 0 : -ENOMEM;
}

/* No .owner: it would pin the module for as long as it is mounted, which is till exit. */
static struct file_system_type xmem_fs = {
	.name = "xmem",
	.init_fs_context = xmem_fs_init_context,
	.kill_sb = kill_anon_super,
};

/* Its address space is a pool's: all opens of a device file share one otherwise. */
struct inode *xmem_inode_new(void)
{
	struct inode *inode = alloc_anon_inode(xmem_mount->mnt_sb);

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

static int xmem_open(struct inode *inode, struct file *filp)
{
	struct xmem_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	file->file = filp;
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

/* Somebody closes a descriptor: is it the client on its way out? */
static int xmem_flush(struct file *filp, fl_owner_t id)
{
	struct xmem_file *file = filp->private_data;
	struct xmem_client *client = smp_load_acquire(&file->client);

	if (client)
		xmem_client_left(client);
	return 0;
}

static int xmem_release(struct inode *inode, struct file *filp)
{
	struct xmem_file *file = filp->private_data;

	if (file->client) {
		xmem_client_end(file->client);
		xmem_client_put(file->client);
	}
	mutex_destroy(&file->lock);
	kfree(file);
	return 0;
}

/* No compat_ioctl: the host is for 64-bit processes, others get ENOTTY. */
static const struct file_operations xmem_fops = {
	.owner = THIS_MODULE,
	.open = xmem_open,
	.flush = xmem_flush,
	.release = xmem_release,
	.unlocked_ioctl = xmem_ioctl,
	.mmap = xmem_mmap,
	.poll = xmem_poll,
	.llseek = noop_llseek,
};

static struct miscdevice xmem_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "xmem",
	.fops = &xmem_fops,
};

/* ---- init and exit ---- */

static int __init xmem_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct xmem_group) % sizeof(struct xmem_metadata));
	xmem_mount = kern_mount(&xmem_fs);
	if (IS_ERR(xmem_mount))
		return PTR_ERR(xmem_mount);
	err = xmem_payload_init();
	if (err)
		goto err_mount;
	err = -ENOMEM;
	xmem_wq = alloc_workqueue("xmem", WQ_UNBOUND, 0);
	if (!xmem_wq)
		goto err_mount;
	/* A queue of its own with a rescuer: the end of a client must not wait for memory. */
	xmem_end_wq = alloc_workqueue("xmem_end", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!xmem_end_wq)
		goto err_wq;
	err = xmem_sysfs_init();
	if (err)
		goto err_end_wq;
	err = misc_register(&xmem_misc);
	if (err)
		goto err_sysfs;
	return 0;

err_sysfs:
	xmem_sysfs_exit();
err_end_wq:
	destroy_workqueue(xmem_end_wq);
err_wq:
	destroy_workqueue(xmem_wq);
err_mount:
	kern_unmount(xmem_mount);
	return err;
}

/* No file is open any more, so no pool is used; only their last works may be under way. */
static void __exit xmem_exit(void)
{
	misc_deregister(&xmem_misc);
	destroy_workqueue(xmem_end_wq);
	destroy_workqueue(xmem_wq);
	WARN_ON(!xmem_pools_none());
	xmem_sysfs_exit();
	kern_unmount(xmem_mount);
}

module_init(xmem_init);
module_exit(xmem_exit);

MODULE_DESCRIPTION("share large buffers between processes; who dies holds nothing");
MODULE_AUTHOR("the xmem authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
