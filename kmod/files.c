// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that are memfds, of ordinary or of huge pages: which memfds are accepted, and with what
 * access a client gets one.
 *
 * Nobody can shrink or punch an accepted memfd or write it through a new mapping. So no reader gets
 * SIGBUS or sees contents change, and files cannot keep each other in a cycle. A *shared* one is a
 * memfd that writers can write and punch, too; readers get a file of ours instead (readonly.c).
 *
 * The module keeps an open file of its own: see xk_memfd_own.
 */
#include <linux/cache.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/init.h>

#include "compat.h"
#include "xk.h"

/* the operations of every memfd in ordinary pages */
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

/* ---- attaching a memfd ---- */

/*
 * Is it a regular file of a mount of the kernel's own? Only such a file can be a memfd: files of a
 * tmpfs that a user has mounted have the same operations.
 */
static bool xk_is_unmounted(const struct file *file)
{
	const struct inode *inode = file_inode(file);

	return inode->i_sb->s_flags & SB_KERNMOUNT && S_ISREG(inode->i_mode);
}

/*
 * Open the memfd again for the host, with this access. Without O_NONBLOCK the open would wait until
 * a conflicting lease (F_SETLEASE) has been given up, for fs.lease-break-time if need be. -EBUSY:
 * there is such a lease, or the file is being run as a program. It is never -EAGAIN, which a
 * receiver would take for "nothing there".
 */
static struct file *xk_memfd_reopen(const struct file *file, int access)
{
	struct file *own = dentry_open(&file->f_path, access | O_LARGEFILE | O_NONBLOCK,
				       current_cred());

	if (IS_ERR(own)) {
		int err = PTR_ERR(own);

		return err == -EWOULDBLOCK || err == -ETXTBSY ? ERR_PTR(-EBUSY) : own;
	}
	/*
	 * The client reads as from any file: with O_NONBLOCK io_uring would not wait for pages in
	 * swap.
	 */
	own->f_flags &= ~O_NONBLOCK;
	return own;
}

/*
 * Replace the caller's file by an open file of the host's own. While that is open, the kernel
 * grants no lease for which a reader's open would wait; while the guard of a shared payload is
 * open, it grants none for which a writer's open would wait. check_conflicting_open() in fs/locks.c
 * (in kernels with leases, with or without CONFIG_IMA) counts files that are open read-only (r) and
 * files that are open for writing (w). The file of memfd_create counts in neither, but is treated
 * as one of w. A lease is granted
 *
 *	by a descriptor		F_RDLCK (a writer's	F_WRLCK (everybody's
 *				open waits) if		open waits) if
 *	of memfd_create		w = 0			w = 1, r = 0
 *	opened O_RDONLY		w = 0			w = 0, r = 1 (itself)
 *	opened O_RDWR		never: it is in w	w = 1 (itself), r = 0
 *	opened O_PATH		never			never
 *
 * So one more file in r prevents every F_WRLCK, and one more in w prevents every F_RDLCK; neither
 * prevents both. A file with only the caller's access did not stop the descriptor of memfd_create.
 * A payload that is not shared has no guard: a process with the uid that made the memfd may then
 * get F_RDLCK, which disturbs only the client that has attached it: its XMEM_PAYLOAD_WRITE gets
 * -EBUSY.
 *
 * The first open has the caller's access. So an existing lease gives -EBUSY, whether it conflicts
 * with an open for reading or for writing; and so does a program that is running.
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

/* Check and take over a memfd with these seals. */
static int xk_memfd_take(const struct xmem_attach_request *request, struct xk_offer *offer,
			 unsigned int seals)
{
	const bool shared = request->flags & XMEM_ATTACH_SHARED;
	/* otherwise nobody could read it, or write a shared one */
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
	/* In some kernels F_SEAL_EXEC adds F_SEAL_WRITE although somebody writes the file. */
	if (seals & F_SEAL_WRITE && !mapping_writably_mapped(inode->i_mapping))
		offer->traits |= XMEM_TRAIT_CONSTANT;
	/*
	 * A reader would have to fill a hole at its own expense, or be killed for it. The seals
	 * prevent new holes. A page in swap is no hole: it comes back at the expense of its owner's
	 * memory cgroup, which may be kept from having room (docs/kernel.md, "Taking time").
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

/* ---- the request payload ---- */

/* No client gets a file with more access than it was attached with. */
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

/* For every kind that is a file which all clients can map. */
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
	call->keep = xk_keep_get(payload);
	return 0;
}

/* A private mapping is a copy of the contents, as of any file. */
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

/* hugetlbfs decides where a mapping of huge pages may begin and end. */
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
 * Open the file again, so that neither its position nor its flags are shared. dentry_open checks no
 * permission; the access of the attached file decides. Anybody could open a read-only descriptor of
 * a shared file again for writing, so no client gets such a descriptor.
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
