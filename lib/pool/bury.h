/* SPDX-License-Identifier: MIT */
/* Memory of GPUs that others still have open when its pool's handle is gone: bury.c. */
#ifndef XMEM_GPU_BURY_H
#define XMEM_GPU_BURY_H

#include "lib/private.h"

/* How the pool is joined once more as a reader, and left: pool.c. */
struct xl_reader_calls {
	/* The pool that @fd is of, if its host runs. NULL: the error is noted. */
	struct xmem_pool *(*join)(int fd, u64 deadline_ns);
	void (*leave)(struct xmem_pool *pool);
};

/*
 * The client of @pool is about to end; and it has ended. What must not be freed yet stays in
 * between. Under no lock, and nobody else uses the pool.
 */
struct xl_remnant *xl_cuda_bury_begin(struct xmem_pool *pool, const struct xl_reader_calls *calls);
void xl_cuda_bury_end(struct xl_remnant *remnant);

#endif
