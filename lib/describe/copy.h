/* SPDX-License-Identifier: MIT */
/* One copy and its two sides: copy.c, and describe/copy_cuda.c where memory of a GPU takes part. */
#ifndef XMEM_COPIES_H
#define XMEM_COPIES_H

#include "lib/cuda/device.h"
#include "lib/private.h"

/* One side of a copy: in a buffer, or in memory of this process. */
struct xl_side {
	struct xmem_buffer *buffer;	/* NULL: memory of this process */
	struct xl_gpu *gpu;		/* NULL: memory of the CPU */
	u64 address;			/* where the copy begins */
};

struct xl_copy {
	const char *what;	/* the call, for its messages */
	u64 bytes;
	CUstream stream;	/* NULL: it is over when the call returns */
	struct xl_side to, from;
};

/*
 * Find the address of a buffer on a GPU, after what other streams have yet to do there. The GPU of
 * the other side is known by then, if it has one and comes first. 0, or -errno, noted.
 */
int xl_copy_find(const struct xl_copy *copy, struct xl_side *side, bool writes);

/* Wait until the stream has done what is in it, for two sides on the CPU. 0, or -errno, noted. */
int xl_copy_await(const struct xl_copy *copy);

/* Copy; one side is on a GPU at least. 0, or -errno, noted. */
int xl_copy_gpu(const struct xl_copy *copy);

#endif
