/* SPDX-License-Identifier: MIT */
/* Memory of GPUs that other clients still have open when its pool has been closed: bury.c. */
#ifndef XMEM_POOL_BURY_H
#define XMEM_POOL_BURY_H

#include "lib/private.h"

/* Functions of pool.c that join a pool once more as a reader, and leave it. */
struct xl_reader_calls {
	/* Join the pool of the descriptor @fd, if its host runs. NULL: the error is noted. */
	struct xmem_pool *(*join)(int fd, u64 deadline_ns);
	void (*leave)(struct xmem_pool *pool);
};

/*
 * Call begin before the client of @pool ends, and end after it has ended. begin returns the memory
 * that must not be freed yet. Under no lock, and no other thread uses the pool.
 */
struct xl_remnant *xl_cuda_bury_begin(struct xmem_pool *pool, const struct xl_reader_calls *calls);
void xl_cuda_bury_end(struct xl_remnant *remnant);

#endif
