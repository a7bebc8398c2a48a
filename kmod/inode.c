// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pseudo file system that gives each client an inode of its own, and the client's file on it.
 * Everything that the client maps is in the address space of that inode, so it can be unmapped
 * without a look at the mappings of other clients (unmap.c).
 *
 * The file system exists, and keeps the module loaded, as long as an inode or a file of it does: a
 * file drops its mount only after it has used the module's functions for the last time.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "xk.h"

static struct vfsmount *xk_mount;
static int xk_mount_count;

static int xk_fs_init_context(struct fs_context *context)
{
	return init_pseudo(context, XMEM_MAGIC & 0xffffffff) ? 0 : -ENOMEM;
}

static struct file_system_type xk_fs = {
	.name = "xmem",
	.owner = THIS_MODULE,
	.init_fs_context = xk_fs_init_context,
	.kill_sb = kill_anon_super,
};

/* An inode with an address space of its own. */
struct inode *xk_inode_new(void)
{
	int err = simple_pin_fs(&xk_fs, &xk_mount, &xk_mount_count);
	struct inode *inode;

	if (err)
		return ERR_PTR(err);
	inode = alloc_anon_inode(xk_mount->mnt_sb);
	if (IS_ERR(inode))
		simple_release_fs(&xk_mount, &xk_mount_count);
	return inode;
}

void xk_inode_put(struct inode *inode)
{
	iput(inode);
	simple_release_fs(&xk_mount, &xk_mount_count);
}

/* Make a file of that inode. No process has it yet: fput undoes everything that is done here. */
struct file *xk_inode_file(struct inode *inode, const struct file_operations *ops, void *private)
{
	struct file *file;

	ihold(inode);
	file = alloc_file_pseudo(inode, xk_mount, "xmem-client", O_RDWR, ops);
	if (IS_ERR(file)) {
		iput(inode);
		return file;
	}
	__module_get(ops->owner);	/* the last fput drops it */
	file->private_data = private;
	return file;
}
