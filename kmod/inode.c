// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pseudo file system that lends each pool an inode: every mapping of a pool is
 * in that inode's address space.
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

/* No .owner: it would pin the module for as long as it is mounted, which is till exit. */
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
