// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which files may be payloads that all can map. payload.c keeps them; drivers.c says which
 * files stand for memory of GPUs.
 *
 * It is a memfd that nobody can shrink, punch or write through a new mapping. So no reader
 * gets SIGBUS or sees contents change, and files cannot hold each other in a cycle. A shared
 * one is a memfd that writers can write and punch, too; so readers do not get it at all.
 * dmabuf.c has what else is taken.
 */
#include <linux/cache.h>
#include <linux/file.h>
#include <linux/init.h>

#include "compat.h"
#include "xk.h"

/* Of every memfd in ordinary pages. */
static const struct file_operations *shmem_file_ops __ro_after_init;

/* Modules cannot name these operations, but every file of shmem_file_setup() has them. */
int __init xk_files_init(void)
{
	struct file *file = shmem_file_setup("xmem", 0, 0);

	if (IS_ERR(file))
		return PTR_ERR(file);
	shmem_file_ops = file->f_op;
	fput(file);
	return 0;
}

/*
 * Is it a memfd? If so, *seals are its seals. The mount must be the kernel's own, so that
 * no file of a tmpfs is taken for a memfd.
 */
static bool xk_memfd_seals(const struct file *file, unsigned int *seals)
{
	struct inode *inode = file_inode(file);

	if (!(inode->i_sb->s_flags & SB_KERNMOUNT) || !S_ISREG(inode->i_mode))
		return false;
	if (file->f_op != shmem_file_ops)
		return xk_hugetlb_seals(inode, seals);
	*seals = xk_shmem_seals(inode);
	return true;
}

static int xk_memfd_check(const struct file *file, bool shared, u32 *ret_traits)
{
	/* Nobody could read what is published in it, or a shared one could not be written. */
	const fmode_t mode = shared ? FMODE_READ | FMODE_WRITE : FMODE_READ;
	unsigned int seals;
	int err;

	BUILD_BUG_ON(XM_SEAL_SEAL != F_SEAL_SEAL || XM_SEAL_SHRINK != F_SEAL_SHRINK ||
		     XM_SEAL_GROW != F_SEAL_GROW || XM_SEAL_WRITE != F_SEAL_WRITE ||
		     XM_SEAL_FUTURE_WRITE != F_SEAL_FUTURE_WRITE);
	if (!xk_memfd_seals(file, &seals))
		return -EMEDIUMTYPE;
	if ((file->f_mode & mode) != mode)
		return -EACCES;
	err = xm_seals_check(seals, shared);
	if (err)
		return err;
	*ret_traits = (seals & F_SEAL_WRITE ? XMEM_TRAIT_CONSTANT : 0) |
		      (file->f_op != shmem_file_ops ? XMEM_TRAIT_HUGE : 0);
	/*
	 * A reader would have to fill a hole at its own expense, or be killed for it. The
	 * seals prevent new holes.
	 */
	return xk_has_all_pages(file_inode(file));
}

/* 0, and what the file is like; or an errno of attach. */
int xk_file_check(const struct file *file, bool shared, u32 *ret_traits, u64 *ret_bytes)
{
	int err;

	if (xk_is_dmabuf(file) && !shared) {
		*ret_traits = XMEM_TRAIT_DMABUF;
		*ret_bytes = xk_dmabuf_bytes(file);
		return 0;
	}
	err = xk_memfd_check(file, shared, ret_traits);
	*ret_bytes = i_size_read(file_inode(file));
	return err;
}
