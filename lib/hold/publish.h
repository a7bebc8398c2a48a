/* SPDX-License-Identifier: MIT */
/* The parts of xmem_publish that are outside publish.c. */
#ifndef XMEM_LIB_PUBLISH_H
#define XMEM_LIB_PUBLISH_H

#include "lib/base/handle.h"

/* The checked options of a publication. */
struct xl_wish {
	struct xmem_publish_options options;
	struct xm_publication what;	/* contents that are being written have no token yet */
	u64 addressee;			/* the incarnation of the only subscriber that may
					 * receive it, or 0 */
};

/*
 * Publish contents again that are held for reading (forward.c). The handle stays. 0 or -errno,
 * noted.
 */
int xl_forward(struct xmem_buffer *buffer, const struct xl_wish *wish, uint64_t *ret_token);

/* The contents are about to be published, and a stream has yet to write them (gpu/order.c). */
int xl_order_publish(struct xmem_buffer *buffer, struct CUstream_st *stream);

#endif
