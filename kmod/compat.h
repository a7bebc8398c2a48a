/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between kernels that the module knows, and nowhere else.
 * What can be seen in the headers is probed by Kbuild (XM_HAVE_*), not guessed
 * from the version. Supported: 5.15 and later.
 */
#ifndef XMEM_COMPAT_H
#define XMEM_COMPAT_H

#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/shmem_fs.h>

/* Tokens and offsets are 64 bits wide, and caches that alias would show kernel and user different pages. */
#if !defined(CONFIG_X86_64) && !defined(CONFIG_ARM64)
#error "xmem is for x86-64 and arm64"
#endif

#ifndef XM_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* A close-on-exec descriptor of @file, which stays the caller's; asks the security modules. */
static inline int xm_receive_fd(struct file *file)
{
#ifdef XM_HAVE_RECEIVE_FD_UFD
	return receive_fd(file, NULL, O_CLOEXEC);
#else
	return receive_fd(file, O_CLOEXEC);
#endif
}

#ifdef XM_HAVE_CONST_OWNERSHIP
#define XM_OWNERSHIP_CONST const
#else
#define XM_OWNERSHIP_CONST
#endif

/* The seals of a memfd in huge pages; memfd_get_seals is not for modules. */
static inline bool xm_hugetlb_seals(struct inode *inode, unsigned int *seals)
{
#ifdef CONFIG_HUGETLBFS
	if (inode->i_sb->s_magic == HUGETLBFS_MAGIC) {
		*seals = READ_ONCE(HUGETLBFS_I(inode)->seals);
		return true;
	}
#endif
	return false;
}

/* The same of one in ordinary pages. */
static inline unsigned int xm_shmem_seals(struct inode *inode)
{
	return READ_ONCE(SHMEM_I(inode)->seals);
}

#endif
