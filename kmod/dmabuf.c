// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that are dma-bufs. A process with a descriptor of a dma-buf may be able to write it, so
 * no client gets one: each gets a file of ours, which can only be mapped, and only for reading. We
 * do not control the exporter: it may change the contents and take the memory away. The slot's row
 * says so (XMEM_TRAIT_DMABUF).
 */
#include <linux/dma-buf.h>
#include <linux/file.h>

#include "compat.h"
#include "xk.h"

XK_IMPORT_NS_DMA_BUF;

static const struct file_operations xk_dmabuf_ops = {
	.owner = THIS_MODULE,
	.mmap = xk_readonly_mmap,
	.release = xk_readonly_release,
};

/*
 * Get the dma-buf of the caller's file, which may also be one of our files, because a client may
 * attach what it has received. A module can check only a descriptor number, not a file, for a
 * dma-buf; so a dma-buf that another thread has put there meanwhile counts, too.
 */
static struct dma_buf *xk_dmabuf_get(const struct file *file, int fd)
{
	struct dma_buf *dmabuf;

	if (file->f_op != &xk_dmabuf_ops)
		return dma_buf_get(fd);
	dmabuf = xk_readonly_of(file)->private_data;
	get_dma_buf(dmabuf);
	return dmabuf;
}

/* 0 or an errno of attach. A shared dma-buf is refused, because no client could write it. */
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
	file = xk_readonly_new("[xmem-dmabuf]", &xk_dmabuf_ops, dmabuf->file);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fput(offer->file);
	offer->file = file;
	return 0;
}

/* Make another file for another client, because such a file cannot be opened again. */
static struct file *xk_dmabuf_open(const struct xk_call *call)
{
	return xk_readonly_new("[xmem-dmabuf]", &xk_dmabuf_ops,
			       get_file(xk_readonly_of(call->keep->file)));
}

const struct xk_kind xk_kind_dmabuf = {
	.bytes = sizeof(struct xk_payload),
	.driver = true,
	.check = xk_dmabuf_check,
	.serve = xk_file_serve,
	.open = xk_dmabuf_open,
	.goes = xk_payload_forget,
};
