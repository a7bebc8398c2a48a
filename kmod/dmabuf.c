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

#ifdef CONFIG_DMA_SHARED_BUFFER

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

static int xk_dmabuf_release(struct inode *inode, struct file *file)
{
	dma_buf_put(file->private_data);
	return 0;
}

static const struct file_operations xk_dmabuf_ops = {
	.owner = THIS_MODULE,
	.mmap = xk_dmabuf_mmap,
	.release = xk_dmabuf_release,
};

bool xk_is_dmabuf(const struct file *file)
{
	return file->f_op == &xk_dmabuf_ops;
}

u64 xk_dmabuf_bytes(const struct file *file)
{
	const struct dma_buf *dmabuf = file->private_data;

	return dmabuf->size;
}

/* Takes over the caller's reference to @dmabuf, also if it fails. */
static struct file *xk_dmabuf_wrap(struct dma_buf *dmabuf)
{
	struct file *file = anon_inode_getfile("[xmem-dmabuf]", &xk_dmabuf_ops, dmabuf,
					       O_RDONLY | O_LARGEFILE);

	if (IS_ERR(file))
		dma_buf_put(dmabuf);
	return file;
}

/* A file of ours for the dma-buf that the caller's descriptor is. -EMEDIUMTYPE: it is none. */
struct file *xk_dmabuf_get(int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (IS_ERR(dmabuf))
		return ERR_PTR(-EMEDIUMTYPE);
	if (dmabuf->file->f_mode & FMODE_READ)
		return xk_dmabuf_wrap(dmabuf);
	dma_buf_put(dmabuf);
	return ERR_PTR(-EACCES);
}

/* One more, for another client: such a file cannot be opened anew. */
struct file *xk_dmabuf_open(const struct file *file)
{
	struct dma_buf *dmabuf = file->private_data;

	get_dma_buf(dmabuf);
	return xk_dmabuf_wrap(dmabuf);
}

#else

bool xk_is_dmabuf(const struct file *file)
{
	return false;
}

u64 xk_dmabuf_bytes(const struct file *file)
{
	return 0;
}

struct file *xk_dmabuf_get(int fd)
{
	return ERR_PTR(-EMEDIUMTYPE);
}

struct file *xk_dmabuf_open(const struct file *file)
{
	return ERR_PTR(-EMEDIUMTYPE);
}

#endif
