/* SPDX-License-Identifier: MIT */
/*
 * Buffers that are made when an acquire needs them (demand.c), and files that are given back to
 * the system while their owner lives (cache.c).
 *
 * A file is *idle* while all of its buffers that still have slots are FREE or READY. Whether it
 * is, and since when, is found out by a *look* at all lists, which is slow and made only where a
 * file is made or given back. Sizes that are made on demand are those of *classes*, at most an
 * eighth apart. A buffer is *near* enough to what is asked for, if it is at most a quarter larger
 * than its class: then nothing is made. So that an acquire that takes the fast path never finds a
 * larger one, each size has a *fence* below it: the largest class to which it is not near, as a
 * size that has no slots.
 */
#ifndef XMEM_DEMAND_H
#define XMEM_DEMAND_H

#include "lib/own/owned.h"
#include "lib/payload/payload.h"

/* ---- sizes (sizes.c) ---- */

/* The class of @bytes, which are at least 1; and the largest class of at most @bytes, or 0. */
u64 xl_class(u64 bytes);
u64 xl_class_below(u64 bytes);
/* The largest size that is near to @bytes. */
u64 xl_near(u64 bytes);
/* The fence of a size of @bytes; 0: it needs none. */
u64 xl_fence(u64 bytes);

/* From one buffer to the next in a file, and bytes of a file of @count buffers. */
u64 xl_stride_of(u64 class);
u64 xl_file_bytes(u64 class, u32 count);
/* Bytes of a file in huge pages of the system's pool, if at most an eighth is unused; else 0. */
u64 xl_huge_file_bytes(const struct xl_demand *demand, u64 bytes);
/* How many buffers of @class are made at once, in one file? Under owned.lock. */
u32 xl_file_buffers(const struct xmem_pool *pool, u64 class);

/* ---- making (demand.c, make.c) ---- */

void xl_demand_init(struct xmem_pool *pool, const struct xmem_pool_options *options);
/*
 * The program makes its buffers itself from now on, unless it has said otherwise. Under pool->slow.
 */
void xl_demand_end(struct xmem_pool *pool);

/*
 * Make buffers that are near to @bytes, if the limit allows it; @evict: what subscribers may lose
 * goes for it. The host is waited for until @answer_by. Under owned.lock, which is left
 * meanwhile. 0: look again. -EAGAIN: not before others have let go of buffers. Else an error,
 * noted: not at all now.
 */
int xl_demand_make(struct xmem_pool *pool, u64 bytes, bool evict, u64 answer_by);

/*
 * The ring of entries has no room now, so nothing is made: say what will be lacking then. Under
 * owned.lock. -EAGAIN; or another error, noted: not at all.
 */
int xl_demand_lack(struct xmem_pool *pool, u64 bytes);

/* Take pool->slow until @deadline_ns. 0, or -ETIMEDOUT or -EINTR, noted. */
int xl_slow_begin(struct xmem_pool *pool, u64 deadline_ns);
/* gpu.c: as xmem_preallocate says of XMEM_MEMORY_CUDA. */
int xl_preallocate_cuda(struct xmem_pool *pool, struct xl_buffers *buffers,
			const struct xmem_preallocate_options *options);
/* Take pool->slow and make buffers. A writer that preallocates makes none on demand. */
int xl_make_buffers(struct xmem_pool *pool, const struct xl_buffers *buffers);
/* Make buffers and add them to the lists. Under pool->slow. 0 or -errno, noted. */
int xl_make_slots(struct xmem_pool *pool, const struct xl_buffers *buffers);

/* ---- what the ring says (lacks.c) ---- */

/*
 * Say what can be made now. @need: bytes of the file that is wanted; 0: none is. Under owned.lock.
 */
void xl_lacks_say(struct xmem_pool *pool, u64 need);
/*
 * Say in the ring what can be made, after a look. Under owned.lock, as is all that makes a buffer
 * FREE or READY without a look: else whoever polls is not told. Model: tests/model/demand.pml.
 */
void xl_demand_say(struct xmem_pool *pool);
/* Slots have been detached, perhaps those that are lacking. Under no lock. */
void xl_demand_detached(struct xmem_pool *pool);
/* A buffer of so many bytes has come free by what the owner did. Under owned.lock. */
void xl_demand_given_up(struct xmem_pool *pool, u64 bytes);

/* ---- giving back (cache.c) ---- */

/*
 * Collect all that nobody uses any more, and find out which files are idle. The bytes of these.
 * Under owned.lock.
 */
u64 xl_cache_look(struct xmem_pool *pool);

/*
 * Choose idle files, those first that have been idle longest, until the others have @keep bytes
 * or fewer, and take their slots out of the lists. @demand: only those made on demand. Under
 * pool->slow and owned.lock, after a look. Returns a list for xl_cache_drop.
 */
struct xl_mapping *xl_cache_shrink(struct xmem_pool *pool, u64 keep, bool demand);

/* Give them back: detach and unmap. Under pool->slow. Returns their bytes. */
u64 xl_cache_drop(struct xmem_pool *pool, struct xl_mapping *list);

/*
 * Give back all idle files, and wait for a moment until the host has done so. @demand: as above.
 * Under pool->slow. Returns their bytes.
 */
u64 xl_cache_drop_idle(struct xmem_pool *pool, bool demand);

/* How many bytes of idle files may stay, with so many in use? Under owned.lock. */
u64 xl_cache_limit(const struct xl_demand *demand);

/* Give back what has been idle for too long, if it is time for a look. Under no lock. */
void xl_cache_age(struct xmem_pool *pool);

static inline void xl_cache_settle(struct xmem_pool *pool)
{
	if (unlikely(__atomic_load_n(&pool->owned.demand.on, __ATOMIC_RELAXED)))
		xl_cache_age(pool);
}

#endif
