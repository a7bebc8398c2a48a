// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pseudo file system that gives each pool an inode. All mappings of a pool are in
 * the address space of its inode, so that pages.c can zap them.
 */
#include <linux/fs.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "xk.h"

static struct vfsmount *xk_mount;

static int xk_fs_init_context(struct fs_context *context)
{
	return init_pseudo(context, XMEM_MAGIC & 0xffffffff) ? 0 : -ENOMEM;
}

/*
 * It has no .owner: that would pin the module for as long as the file system is mounted,
 * which is until the module's exit.
 */
static struct file_system_type xk_fs = {
	.name = "xmem",
	.init_fs_context = xk_fs_init_context,
	.kill_sb = kill_anon_super,
};

int __init xk_inode_init(void)
{
	xk_mount = kern_mount(&xk_fs);
	return PTR_ERR_OR_ZERO(xk_mount);
}

void xk_inode_exit(void)
{
	kern_unmount(xk_mount);
}

/*
 * An inode whose address space is for one pool. Without it all opens of the device file
 * would share the device's address space.
 */
struct inode *xk_inode_new(void)
{
	struct inode *inode = alloc_anon_inode(xk_mount->mnt_sb);

	/*
	 * mmap() increments the count of writable mappings in file->f_mapping before
	 * it calls us and decrements it afterwards; a join by another thread changes
	 * f_mapping between the two. If the count fell below 0 nobody could map the
	 * pool any more, so it starts far above.
	 */
	if (!IS_ERR(inode))
		atomic_set(&inode->i_data.i_mmap_writable, 1 << 30);
	return inode;
}
