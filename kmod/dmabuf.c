// SPDX-License-Identifier: GPL-2.0-only
/*
 * Payloads that are dma-bufs. Whoever has a descriptor of a dma-buf may be able to write it, so
 * nobody gets that: each client gets a file of ours, which can only be mapped, and only for
 * reading. What the exporter does with the memory is not in our hands: it may change the contents
 * and take the memory away, and the slot's row says so (XMEM_TRAIT_DMABUF).
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
 * The dma-buf that the caller's file is, or for which it stands: a client may attach what it got.
 * A module learns only by the number of a descriptor whether that is a dma-buf. So one counts that
 * another thread has put there meanwhile.
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
	file = xk_readonly_new("[xmem-dmabuf]", &xk_dmabuf_ops, dmabuf->file);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fput(offer->file);
	offer->file = file;
	return 0;
}

/* One more, for another client: such a file cannot be opened anew. */
static struct file *xk_dmabuf_open(const struct xk_call *call)
{
	return xk_readonly_new("[xmem-dmabuf]", &xk_dmabuf_ops,
			       get_file(xk_readonly_of(call->keep->file)));
}

const struct xk_kind xk_kind_dmabuf = {
	.bytes = sizeof(struct xk_payload),
	.check = xk_dmabuf_check,
	.serve = xk_file_serve,
	.open = xk_dmabuf_open,
	.goes = xk_payload_forget,
};
