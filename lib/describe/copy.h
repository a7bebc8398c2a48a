/* SPDX-License-Identifier: MIT */
/* A copy and its two sides: copy.c, and copy_cuda.c for memory of a GPU. */
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
	CUstream stream;	/* NULL: the copy is complete when the call returns */
	struct xl_side to, from;
};

/*
 * May the stream take the copy? A copy without a stream uses the default stream if a buffer is on a
 * GPU. 0, or -EPERM, noted: it is captured. NULL stands for memory of this process.
 */
int xl_copy_check(const struct xl_copy *copy, const struct xmem_buffer *to,
		  const struct xmem_buffer *from);

/*
 * Find the address of a buffer on a GPU. Work of other streams there comes before the
 * copy. If copy->to is on a GPU, it must be found before copy->from. 0, or -errno, noted.
 */
int xl_copy_find(const struct xl_copy *copy, struct xl_side *side, bool writes);

/* For two sides on the CPU: wait until the stream has done its work so far. 0, or -errno, noted. */
int xl_copy_await(const struct xl_copy *copy);

/* Copy; at least one side is on a GPU. 0, or -errno, noted. */
int xl_copy_gpu(const struct xl_copy *copy);

#endif
