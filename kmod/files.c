// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that are memfds, of ordinary pages or of huge ones: which of them may be one, and who
 * gets it with what access.
 *
 * It is a memfd that nobody can shrink, punch or write through a new mapping. So no reader
 * gets SIGBUS or sees contents change, and files cannot hold each other in a cycle. A shared
 * one is a memfd that writers can write and punch, too; readers get a file of ours (readonly.c).
 *
 * What is kept is an open file of the host's own: see xk_memfd_own.
 */
#include <linux/cache.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/init.h>

#include "compat.h"
#include "xk.h"

/* Of every memfd in ordinary pages. */
static const struct file_operations *shmem_file_ops __ro_after_init;

/* Modules cannot name these operations, but every file of shmem_file_setup() has them. */
int __init xk_files_init(void)
{
	struct file *file = xk_shmem_file("xmem");

	if (IS_ERR(file))
		return PTR_ERR(file);
	shmem_file_ops = file->f_op;
	fput(file);
	return 0;
}

/* ---- attaching one ---- */

/*
 * Is it a regular file of a mount of the kernel's own? Only then can it be a memfd: files of a
 * tmpfs that somebody has mounted have the same operations.
 */
static bool xk_is_unmounted(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	return inode->i_sb->s_flags & SB_KERNMOUNT && S_ISREG(inode->i_mode);
}

/*
 * An open file of the host's own, with this access: without O_NONBLOCK the open waits until a lease
 * (F_SETLEASE) that is in its way has been given up, for fs.lease-break-time if need be. -EBUSY:
 * there is one, or somebody is running the file as a program. It is never -EAGAIN: a receiver would
 * take that for "nothing there".
 */
static struct file *xk_memfd_reopen(const struct file *file, int access)
{
	struct file *own = dentry_open(&file->f_path, access | O_LARGEFILE | O_NONBLOCK,
				       current_cred());

	if (IS_ERR(own)) {
		int err = PTR_ERR(own);

		return err == -EWOULDBLOCK || err == -ETXTBSY ? ERR_PTR(-EBUSY) : own;
	}
	/* Who gets it reads as from any file: io_uring would not wait for pages in swap. */
	own->f_flags &= ~O_NONBLOCK;
	return own;
}

/*
 * Puts an open file of the host's own in the place of the caller's: while it is open the kernel
 * gives nobody a lease for which a reader's open would wait, and while a shared payload's guard is
 * open, none for which a writer's would. What check_conflicting_open() in fs/locks.c counts, if the
 * kernel has leases at all (with or without CONFIG_IMA), are files that are open read-only (r) and
 * those that are open for writing (w). That of memfd_create counts in neither, and is taken for one
 * of w all the same. It is given
 *
 *	by a descriptor		F_RDLCK (a writer's	F_WRLCK (everybody's
 *				open waits) if		open waits) if
 *	of memfd_create		w = 0			w = 1, r = 0
 *	opened O_RDONLY		w = 0			w = 0, r = 1 (itself)
 *	opened O_RDWR		never: it is in w	w = 1 (itself), r = 0
 *	opened O_PATH		never			never
 *
 * So one more in r is in the way of every F_WRLCK, one more in w of every F_RDLCK, and neither of
 * them alone of both: a file with the caller's access did not stop memfd_create's descriptor. A
 * payload that is not shared has no guard. Whoever has the uid that made the memfd may get F_RDLCK
 * then, and nobody minds but the client that attached it: its XMEM_PAYLOAD_WRITE is -EBUSY.
 *
 * The first open has the caller's access, so a lease that is there already is -EBUSY whether the
 * open in its way is a reader's or the owner's, and so is a program that is running.
 */
static int xk_memfd_own(struct xk_offer *offer, bool shared)
{
	struct file *guard = NULL, *own;

	offer->writable = offer->file->f_mode & FMODE_WRITE;
	if (offer->writable) {
		guard = xk_memfd_reopen(offer->file, O_RDWR);
		if (IS_ERR(guard))
			return PTR_ERR(guard);
	}
	own = xk_memfd_reopen(offer->file, O_RDONLY);
	if (guard && (IS_ERR(own) || !shared)) {
		fput(guard);
		guard = NULL;
	}
	if (IS_ERR(own))
		return PTR_ERR(own);
	fput(offer->file);
	offer->file = own;
	offer->guard = guard;
	return 0;
}

/* The file is a memfd with these seals. */
static int xk_memfd_take(const struct xmem_attach_request *request, struct xk_offer *offer,
			 unsigned int seals)
{
	const bool shared = request->flags & XMEM_ATTACH_SHARED;
	/* Nobody could read what is published in it, or a shared one could not be written. */
	const fmode_t mode = shared ? FMODE_READ | FMODE_WRITE : FMODE_READ;
	struct inode *inode = file_inode(offer->file);
	int err;

	BUILD_BUG_ON(XM_SEAL_SEAL != F_SEAL_SEAL || XM_SEAL_SHRINK != F_SEAL_SHRINK ||
		     XM_SEAL_GROW != F_SEAL_GROW || XM_SEAL_WRITE != F_SEAL_WRITE ||
		     XM_SEAL_FUTURE_WRITE != F_SEAL_FUTURE_WRITE);
	if ((offer->file->f_mode & mode) != mode)
		return -EACCES;
	err = xm_seals_check(seals, shared);
	if (err)
		return err;
	if (seals & F_SEAL_WRITE)
		offer->traits |= XMEM_TRAIT_CONSTANT;
	/*
	 * A reader would have to fill a hole at its own expense, or be killed for it. The
	 * seals prevent new holes. What is in swap is none: that comes back at the expense of its
	 * owner's memory cgroup, which may be kept from having room (docs/kernel.md, "Taking
	 * time").
	 */
	err = xk_has_all_pages(inode);
	offer->bytes = i_size_read(inode);
	return err ? err : xk_memfd_own(offer, shared);
}

static int xk_memfd_check(const struct xmem_attach_request *request, struct xk_offer *offer)
{
	if (!xk_is_unmounted(offer->file) || offer->file->f_op != shmem_file_ops)
		return -EMEDIUMTYPE;
	return xk_memfd_take(request, offer, xk_shmem_seals(file_inode(offer->file)));
}

static int xk_hugetlb_check(const struct xmem_attach_request *request, struct xk_offer *offer)
{
	unsigned int seals;

	if (!xk_is_unmounted(offer->file) || !xk_hugetlb_seals(file_inode(offer->file), &seals))
		return -EMEDIUMTYPE;
	offer->traits |= XMEM_TRAIT_HUGE;
	return xk_memfd_take(request, offer, seals);
}

/* ---- giving it to those who ask ---- */

/* Nobody gets a file with more access than it was attached with. */
static bool xk_file_may(const struct xk_client *client, const struct xk_payload *payload,
			bool write)
{
	if (!write)
		return true;
	if (!payload->writable)
		return false;
	if (payload->traits & XMEM_TRAIT_SHARED)
		return client->role != XMEM_ROLE_READER;
	return payload->incarnation == client->incarnation;
}

/* For every kind that is a file which all can map. */
int xk_file_serve(struct xk_call *call, struct xk_payload *payload)
{
	struct xmem_payload_request *request = &call->u.payload;
	int err = xm_payload_file_check(request);

	if (err)
		return err;
	if (!xk_file_may(call->client, payload, request->flags & XMEM_PAYLOAD_WRITE))
		return -EACCES;
	request->bytes = payload->bytes;
	request->traits = payload->traits;
	call->keep = xk_keep_get(payload->keep);
	return 0;
}

/* A private mapping is a copy of what is stored there, as one of any file. */
static int xk_shmem_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_MAYSHARE)
		return xk_readonly_mmap(file, vma);
	return xk_mmap_instead(xk_readonly_of(file), vma);
}

static const struct file_operations xk_shmem_ops = {
	.owner = THIS_MODULE,
	.mmap = xk_shmem_mmap,
	.release = xk_readonly_release,
};

/* Where a mapping of huge pages may begin and end, these know. */
static unsigned long xk_hugetlb_area(struct file *file, unsigned long at, unsigned long bytes,
				     unsigned long offset, unsigned long flags)
{
	struct file *other = xk_readonly_of(file);

	return other->f_op->get_unmapped_area(other, at, bytes, offset, flags);
}

static const struct file_operations xk_hugetlb_ops = {
	.owner = THIS_MODULE,
	.mmap = xk_readonly_mmap,
	.get_unmapped_area = xk_hugetlb_area,
	.release = xk_readonly_release,
};

/*
 * Opens the file anew, so that neither position nor flags are shared. dentry_open checks
 * no permission; the access of the file that was attached decides. A shared file forbids nobody to
 * open a read-only descriptor anew for writing, so nobody gets one of those.
 */
static struct file *xk_memfd_open(const struct xk_call *call)
{
	int access = call->u.payload.flags & XMEM_PAYLOAD_WRITE ? O_RDWR : O_RDONLY;
	struct file *file = xk_memfd_reopen(call->keep->file, access);
	u32 traits = call->u.payload.traits;

	if (IS_ERR(file) || access == O_RDWR || !(traits & XMEM_TRAIT_SHARED))
		return file;
	return xk_readonly_new("[xmem-shared]", traits & XMEM_TRAIT_HUGE ? &xk_hugetlb_ops :
			       &xk_shmem_ops, file);
}

/* ---- the kinds ---- */

const struct xk_kind xk_kind_memfd = {
	.bytes = sizeof(struct xk_payload),
	.check = xk_memfd_check,
	.serve = xk_file_serve,
	.open = xk_memfd_open,
	.goes = xk_payload_forget,
};

const struct xk_kind xk_kind_hugetlb = {
	.bytes = sizeof(struct xk_payload),
	.check = xk_hugetlb_check,
	.serve = xk_file_serve,
	.open = xk_memfd_open,
	.goes = xk_payload_forget,
};
