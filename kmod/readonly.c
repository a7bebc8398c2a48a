// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of the module's own that stand for other files. A process with a descriptor of a dma-buf or
 * of a shared memfd may be able to write it, or to open it again for writing. So a client that may
 * only read gets a file of ours, which can be mapped for reading, and cannot be read, written,
 * opened again or mapped for writing.
 *
 * Its mapping is a mapping of the other file, as if of a read-only descriptor, because a fault
 * needs the other file there. The file of a mapping can be opened through /proc/PID/map_files, but
 * only with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE in the initial user namespace.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>

#include "compat.h"
#include "xk.h"

/* The file for which @file, one of ours, stands. */
struct file *xk_readonly_of(const struct file *file)
{
	return file->private_data;
}

/* For the file_operations of files that xk_readonly_new makes. */
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
 * A work item must not call fput: a kernel thread would leave the other file's release to one work
 * item of the whole kernel. See xk_drop.
 */
int xk_readonly_release(struct inode *inode, struct file *file)
{
	if (current->flags & PF_KTHREAD)
		__fput_sync(xk_readonly_of(file));
	else
		fput(xk_readonly_of(file));
	return 0;
}

/*
 * Make a file that stands for @other. Takes over the caller's reference to @other, even if it
 * fails.
 */
struct file *xk_readonly_new(const char *name, const struct file_operations *ops,
			     struct file *other)
{
	struct file *file = anon_inode_getfile(name, ops, other, O_RDONLY | O_LARGEFILE);

	if (IS_ERR(file))
		fput(other);
	return file;
}
