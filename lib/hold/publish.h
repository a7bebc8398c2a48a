/* SPDX-License-Identifier: MIT */
/* The parts of xmem_publish, which publish.c brings together. */
#ifndef XMEM_LIB_PUBLISH_H
#define XMEM_LIB_PUBLISH_H

#include "lib/base/handle.h"

/* What the caller wants. It has been checked. */
struct xl_wish {
	struct xmem_publish_options options;
	struct xm_publication what;	/* contents that are being written have no token yet */
	u64 addressee;			/* the incarnation of the only subscriber that may
					 * receive it, or 0 */
};

/*
 * Publish what is held for reading once more (forward.c). The handle stays. 0 or -errno, noted.
 */
int xl_forward(struct xmem_buffer *buffer, const struct xl_wish *wish, uint64_t *ret_token);

/* A stream has yet to write the contents, which are about to be published (order.c). */
int xl_order_publish(struct xmem_buffer *buffer, struct CUstream_st *stream);

#endif
