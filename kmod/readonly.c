// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of the module's own that stand for others. A process with a descriptor of a dma-buf or of
 * a shared memfd may be able to write it, or can open it anew for writing. So a client that is
 * only to read gets a file of ours, which can be mapped for reading, and cannot be read, written,
 * opened anew or mapped for writing.
 *
 * Its mapping is one of the other file, as of a descriptor that is open for reading only: a fault
 * needs that file there. The file of a mapping is to be had from /proc/PID/map_files, and only with
 * CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE in the initial user namespace.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>

#include "compat.h"
#include "xk.h"

/* The other file. @file: one of ours. */
struct file *xk_readonly_of(const struct file *file)
{
	return file->private_data;
}

/* For struct file_operations of files that xk_readonly_new has made. */
int xk_readonly_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	return xk_mmap_instead(xk_readonly_of(file), vma);
}

/*
 * In a work item it must not be fput, by which a thread of the kernel leaves the other file's
 * release to one work item of the whole kernel: see xk_drop_now.
 */
int xk_readonly_release(struct inode *inode, struct file *file)
{
	if (current->flags & PF_KTHREAD)
		__fput_sync(xk_readonly_of(file));
	else
		fput(xk_readonly_of(file));
	return 0;
}

/* One that stands for @other. Takes over the caller's reference to @other, also if it fails. */
struct file *xk_readonly_new(const char *name, const struct file_operations *ops,
			     struct file *other)
{
	struct file *file = anon_inode_getfile(name, ops, other, O_RDONLY | O_LARGEFILE);

	if (IS_ERR(file))
		fput(other);
	return file;
}
