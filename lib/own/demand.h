/* SPDX-License-Identifier: MIT */
/*
 * Buffers that are made when an acquire needs them (demand.c), and files that are given back to the
 * system while their owner lives (cache.c). READY, FREE and the lists: owned.h.
 *
 * A file is *idle* while all of its buffers that still have slots are FREE or READY. A *refresh*
 * (cache.c) finds out whether each file is idle, and since when. It goes through all lists, which
 * is slow, so it is done only where a file is made or given back.
 *
 * Buffers that are made on demand have sizes of *classes*, which are at most an eighth apart. A
 * buffer is *near* to the wanted size if it is at most a quarter larger than the class of that
 * size; no buffer is made while a near one is free. The fast path of acquire takes the next larger
 * size without a comparison. So that it never takes a size that is not near, each size has a
 * *fence* below it: the largest class to which it is not near, as a size without slots.
 */
#ifndef XMEM_DEMAND_H
#define XMEM_DEMAND_H

#include "lib/own/owned.h"
#include "lib/payload/payload.h"

/* ---- sizes (sizes.c) ---- */

/* The class of @bytes, which are at least 1. */
u64 xl_class(u64 bytes);
/* The largest size that is near to @bytes. */
u64 xl_near(u64 bytes);
/* The fence of a size of @bytes; 0: it needs none. */
u64 xl_fence(u64 bytes);

/* The bytes from one buffer to the next in a file, and the bytes of a file of @count buffers. */
u64 xl_stride_of(const struct xl_chain *chain, u64 class);
u64 xl_file_bytes(const struct xl_chain *chain, u64 class, u32 count);
/* Bytes as they are taken there: whole pages, or whole blocks of a GPU. */
u64 xl_whole_bytes(const struct xl_chain *chain, u64 bytes);
/* Bytes of a file in huge pages of the system's pool, if at most an eighth is unused; else 0. */
u64 xl_huge_file_bytes(const struct xl_demand *demand, u64 bytes);
/* The number of buffers of @class that are made at once, in one file. Under owned.lock. */
u32 xl_file_buffers(const struct xmem_pool *pool, const struct xl_chain *chain, u64 class);

/* ---- making (demand.c, make.c) ---- */

#define XL_UNKNOWN_LIMIT	(~0ULL)		/* it is computed at the first need */

void xl_demand_init(struct xmem_pool *pool, const struct xmem_pool_options *options);
/*
 * End making on demand in one place, because the program preallocates there. It goes on if the
 * program has asked for it in its options. Under pool->slow.
 */
void xl_demand_end(struct xmem_pool *pool, struct xl_chain *chain);

/*
 * Make buffers that are near to @bytes, if the limit allows it. With @evict, publications that
 * subscribers may lose are evicted for them. The host is waited for until @answer_by. Under
 * owned.lock, which is left meanwhile. 0: look again. -EAGAIN: not before other clients release
 * buffers. Else an error, noted: not at all now.
 */
int xl_demand_make(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes, bool evict,
		   u64 answer_by);

/*
 * The ring has no room for an entry now, so nothing is made. -EAGAIN; or another error, noted: such
 * a buffer is never made. Under owned.lock.
 */
int xl_demand_defer(const struct xl_chain *chain, u64 bytes);

/* Take pool->slow until @deadline_ns. 0, or -ETIMEDOUT or -EINTR, noted. */
int xl_slow_begin(struct xmem_pool *pool, u64 deadline_ns);
/* own/make_cuda.c: xmem_preallocate with XMEM_MEMORY_CUDA. */
int xl_preallocate_cuda(struct xmem_pool *pool, struct xl_buffers *buffers,
			const struct xmem_preallocate_options *options);
/*
 * own/make_cuda.c: make buffers of buffers->gpu, with XMEM_MEMORY_READERS and XMEM_MEMORY_LEGACY of
 * @flags. It takes pool->slow itself, because the driver is called under no lock. 0 or -errno,
 * noted.
 */
int xl_make_on_gpu(struct xmem_pool *pool, struct xl_buffers *buffers, u32 flags);
/* Take pool->slow and make buffers. A writer that preallocates makes none on demand. */
int xl_make_buffers(struct xmem_pool *pool, const struct xl_buffers *buffers);
/* Make buffers and add them to the lists. Under pool->slow. 0 or -errno, noted. */
int xl_make_slots(struct xmem_pool *pool, const struct xl_buffers *buffers);

/* ---- giving back (cache.c) ---- */

/*
 * Refresh the cache: collect all unused slots, and find out which files are idle. Returns the bytes
 * of the idle files. Under owned.lock.
 */
u64 xl_cache_refresh(struct xmem_pool *pool);

/*
 * Choose idle files until the other idle files have @keep bytes or fewer, beginning with the file
 * that has been idle longest, and take their slots out of the lists. @chain: only files of this
 * place (NULL: of all). @demand: only files that were made on demand. Under pool->slow and
 * owned.lock, after a refresh. Returns a list for xl_cache_drop.
 */
struct xl_mapping *xl_cache_shrink(struct xmem_pool *pool, const struct xl_chain *chain, u64 keep,
				   bool demand);

/* Slots have been detached, which may be the lacking ones. Under no lock. */
void xl_demand_detached(struct xmem_pool *pool);

/* Give the files of @list back: detach and unmap them. Under pool->slow. Returns their bytes. */
u64 xl_cache_drop(struct xmem_pool *pool, struct xl_mapping *list);

/*
 * Give back all idle files, and wait briefly until the host has detached them. @chain, @demand: as
 * above. Under pool->slow. Returns their bytes.
 */
u64 xl_cache_drop_idle(struct xmem_pool *pool, const struct xl_chain *chain, bool demand);

/* The bytes of idle files that may stay while demand->used bytes are in use. Under owned.lock. */
u64 xl_cache_limit(const struct xl_demand *demand);

/*
 * Give back the files that have been idle for too long, if the next refresh is due. Under no lock.
 */
void xl_cache_expire_slow(struct xmem_pool *pool);

static inline void xl_cache_expire(struct xmem_pool *pool)
{
	if (unlikely(__atomic_load_n(&pool->owned.on_demand, __ATOMIC_RELAXED)))
		xl_cache_expire_slow(pool);
}

#endif
