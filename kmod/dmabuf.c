// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that are dma-bufs. Whoever has a descriptor of a dma-buf may be able to write it, so
 * nobody gets that: each client gets a file of ours, which can only be mapped, and only for
 * reading. What the exporter does with the memory is not in our hands: it may change the contents
 * and take the memory away, and the slot's row says so (XMEM_TRAIT_DMABUF).
 */
#include <linux/anon_inodes.h>
#include <linux/dma-buf.h>
#include <linux/file.h>

#include "compat.h"
#include "xk.h"

XK_IMPORT_NS_DMA_BUF;

static int xk_dmabuf_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct dma_buf *dmabuf = file->private_data;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	vm_flags_clear(vma, VM_MAYWRITE | VM_MAYEXEC);
	return dma_buf_mmap(dmabuf, vma, vma->vm_pgoff);
}

/*
 * In a work item it must not be dma_buf_put, by which a thread of the kernel leaves the exporter's
 * release to one work item of the whole kernel: see xk_drop_now.
 */
static int xk_dmabuf_release(struct inode *inode, struct file *file)
{
	struct dma_buf *dmabuf = file->private_data;

	if (current->flags & PF_KTHREAD)
		__fput_sync(dmabuf->file);
	else
		dma_buf_put(dmabuf);
	return 0;
}

static const struct file_operations xk_dmabuf_ops = {
	.owner = THIS_MODULE,
	.mmap = xk_dmabuf_mmap,
	.release = xk_dmabuf_release,
};

/* Takes over the caller's reference to @dmabuf, also if it fails. */
static struct file *xk_dmabuf_wrap(struct dma_buf *dmabuf)
{
	struct file *file = anon_inode_getfile("[xmem-dmabuf]", &xk_dmabuf_ops, dmabuf,
					       O_RDONLY | O_LARGEFILE);

	if (IS_ERR(file))
		dma_buf_put(dmabuf);
	return file;
}

/*
 * The dma-buf that the caller's file is, or for which it stands: a client may attach what it got.
 * A module learns only by the number of a descriptor whether that is a dma-buf. So one counts that
 * another thread has put there meanwhile.
 */
static struct dma_buf *xk_dmabuf_get(const struct file *file, int fd)
{
	if (file->f_op != &xk_dmabuf_ops)
		return dma_buf_get(fd);
	get_dma_buf(file->private_data);
	return file->private_data;
}

/* 0 or an errno of attach. Nobody could write a shared one, so there is none. */
static int xk_dmabuf_may(const struct dma_buf *dmabuf, u32 flags)
{
	if (!(dmabuf->file->f_mode & FMODE_READ))
		return -EACCES;
	return flags & XMEM_ATTACH_SHARED ? -EMEDIUMTYPE : 0;
}

static int xk_dmabuf_check(const struct xmem_attach_request *request, struct xk_offer *offer)
{
	struct dma_buf *dmabuf = xk_dmabuf_get(offer->file, request->fd);
	struct file *file;
	int err;

	if (IS_ERR(dmabuf))
		return -EMEDIUMTYPE;
	err = xk_dmabuf_may(dmabuf, request->flags);
	if (err) {
		dma_buf_put(dmabuf);
		return err;
	}
	offer->bytes = dmabuf->size;
	offer->traits = XMEM_TRAIT_DMABUF;
	file = xk_dmabuf_wrap(dmabuf);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fput(offer->file);
	offer->file = file;
	return 0;
}

/* One more, for another client: such a file cannot be opened anew. */
static struct file *xk_dmabuf_open(const struct xk_call *call)
{
	struct dma_buf *dmabuf = call->keep->file->private_data;

	get_dma_buf(dmabuf);
	return xk_dmabuf_wrap(dmabuf);
}

const struct xk_kind xk_kind_dmabuf = {
	.bytes = sizeof(struct xk_payload),
	.check = xk_dmabuf_check,
	.serve = xk_file_serve,
	.open = xk_dmabuf_open,
	.goes = xk_payload_forget,
};
