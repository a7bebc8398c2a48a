/* SPDX-License-Identifier: MIT */
/* Memory of GPUs that others still have open when its pool's handle is gone: bury.c. */
#ifndef XMEM_GPU_BURY_H
#define XMEM_GPU_BURY_H

#include "../private.h"

/*
 * What the pool's end will need, before it makes or takes the first memory that must not be freed
 * while others have it open. 0 or -errno, noted. Under pool->slow.
 */
int xl_cuda_bury_prepare(struct xmem_pool *pool);

/*
 * The client of @pool is about to end; and it has ended. What must not be freed yet stays in
 * between. Under no lock, and nobody else uses the pool.
 */
struct xl_remnant *xl_cuda_bury_begin(struct xmem_pool *pool);
void xl_cuda_bury_end(struct xl_remnant *remnant);

/* Free what others have closed since. Under no lock. */
void xl_cuda_settle_remnants_slowly(void);

/*
 * Join the pool that @fd is of once more as a reader, until @deadline_ns, if its host runs; see
 * pool.c. NULL: the error is noted.
 */
struct xmem_pool *xl_pool_join_again(int fd, u64 deadline_ns);

extern struct xl_remnant *xl_remnants __attribute__((visibility("hidden")));

static inline void xl_cuda_settle_remnants(void)
{
	if (unlikely(__atomic_load_n(&xl_remnants, __ATOMIC_RELAXED)))
		xl_cuda_settle_remnants_slowly();
}

#endif
