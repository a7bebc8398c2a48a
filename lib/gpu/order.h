/* SPDX-License-Identifier: MIT */
/*
 * Order on the GPU. Contents may be published while a stream still writes them. After its writes,
 * the stream writes a value into the slot's ready word, which is in its owner's page. The metadata
 * say which value makes the contents complete. A reader makes its own stream, or its thread, wait
 * for this value. tests/model/ready.pml has the steps, and the reason for each of them:
 *
 *   - The values of a slot are counted up. Before a stream is told to write a value, it is ordered
 *     after the write of the last one. So the word never gets a later value too early, and never an
 *     older value after a later one.
 *   - All work that the library puts into streams for a slot that is being written is followed by
 *   such
 *     a value: publications, and each copy into the slot or out of it. So the slot is idle on all
 *     GPUs when its word has the last value, even if the buffer was released and not published.
 *   - When the owner's process has exited, the host writes XMEM_READY_ENDED into the words that
 *   have
 *     not reached their value. So nobody waits for ever, and a reader of the word sees that the
 *     contents are incomplete (EOWNERDEAD).
 *
 * If the device has no 64-bit memory operations, or cannot register the pool's pages, a host
 * function in the stream writes the word, and readers wait in their threads. There, a stream could
 * wait for an event of another process. But it is not known what a stream does that waits for an
 * event whose process was killed, and nothing here may wait for ever.
 *
 *   order.c      publishing on a stream, telling a stream to wait
 *   orders.c     the state of a pool's slots: struct xl_orders
 *   goal.c       the value that makes contents complete, and whether it can be reached
 *   wait.c       waiting in a thread
 *   ready.c      the addresses of ready words on a GPU: pages that are registered with the driver
 *   mark.c       words that a host function writes
 *   data.c       the addresses of contents on a GPU
 *   passed.c     dropping handles when streams have written a word
 *   hold/release_on.c   telling a stream to drop a handle
 *
 * A call of the driver may wait for a host function that has not run yet. So the host function of
 * release_on.c takes no lock under which the driver is called.
 */
#ifndef XMEM_GPU_ORDER_H
#define XMEM_GPU_ORDER_H

#include "lib/base/handle.h"
#include "lib/cuda/device.h"

#define XL_MAX_GPUS	64	/* of one process, for which addresses of a page are stored */
#define XL_READY_NEAR	XMEM_READY_OVER	/* a word this close above its value is not ENDED */

/* A page with the ready words of a group, registered with this process's driver. */
struct xl_ready_page {
	u64 origin;		/* the owner of the group when it was registered; 0: not
				 * registered */
	struct xl_gpu *gpu;	/* the GPU in whose context it was registered */
	void *at;
	bool changing;		/* a thread registers it, or asks for an address */
	bool retiring;		/* a thread unregisters the page, and must be joined: */
	pthread_t thread;
	struct xl_orders *orders;	/* the struct that has this page */
	CUdeviceptr device[XL_MAX_GPUS];	/* addresses, by ordinal; 0: not asked for yet */
};

/* The state of a slot. Only `awaited` is used for slots of other owners. */
struct xl_order {
	u64 issued;		/* the last value that a stream was told to write */
	struct xl_gpu *gpu;	/* Work in this stream of this GPU comes after that value. */
	CUstream behind;	/* It is only compared, because the program may have destroyed
				 * it. */
	u64 awaited;		/* another process's last value that a stream of this one waits
				 * for */
};

/* The state of all slots of a pool. */
struct xl_orders {
	struct xl_lock lock;		/* guards page, except that one which is `changing` */
	struct xl_order *slot;		/* for each slot of the pool; atomic fields */
	struct xl_ready_page **page;	/* for each group */
};

/* The state of @pool, which is made if necessary. NULL, noted: there is no memory. */
struct xl_orders *xl_orders(struct xmem_pool *pool);

/* The state of @pool, or NULL if no stream was ever ordered in it by this process. */
static inline struct xl_orders *xl_orders_if(const struct xmem_pool *pool)
{
	return __atomic_load_n(&pool->gpus.orders, __ATOMIC_ACQUIRE);
}

/* Wait until own streams have written all their values, unless they never will. */
void xl_orders_wait_idle(struct xmem_pool *pool);

/*
 * Call xl_orders_wait_idle, and then free all that the driver was given. The pool's handles are
 * dropped.
 */
void xl_orders_close(struct xmem_pool *pool);

/* Has every stream of this process done its work on this own slot? */
static inline bool xl_order_is_idle(const struct xmem_pool *pool, u32 slot)
{
	const struct xl_orders *orders = xl_orders_if(pool);
	u64 issued = orders ? xm_load(&orders->slot[slot].issued) : 0;

	return likely(!issued) ||
	       xm_load_acquire(xm_ready_word(&pool->map, slot)) - issued <= ~0ULL >> 1;
}

/* ---- for writers and readers of contents (order.c, wait.c) ---- */

/*
 * Wait until the contents are complete, unless a stream that uses them was told to wait for them.
 * 0, or -errno, noted: EOWNERDEAD, EINTR, ECANCELED, ENOTCONN.
 */
int xl_order_wait(struct xmem_buffer *buffer);
/* Wait until the contents are complete, for a caller that reads them without a stream. */
int xl_order_wait_here(struct xmem_buffer *buffer);

/*
 * Wait in this thread until a stream of @gpu has done its work so far. The close of @pool and
 * xmem_cancel end the wait. 0, or -errno, noted: EINTR, ECANCELED, or the driver's error.
 */
int xl_order_finish(struct xmem_pool *pool, struct xl_gpu *gpu, CUstream stream);

/*
 * Make a stream of @gpu (NULL: of the buffer's GPU) wait until the contents are complete:
 * xmem_wait_on.
 */
int xl_order_wait_on(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream);

/*
 * The work in a stream of @gpu belongs to this buffer, which is being written. Even if the buffer
 * is released, its slot is not idle before the work is done. If the stream takes no value, this
 * waits for the stream. 0, or -errno, noted.
 */
int xl_order_work(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream);

/* Like xl_gpu_enter, but it returns the driver's result and notes nothing. */
CUresult xl_order_enter(struct xl_gpu *gpu, struct xl_gpu_scope *ret_scope);

/*
 * A call with a stream that the program has made needs no current context, or uses the caller's. A
 * default stream belongs to a context: that of the buffer's GPU.
 */
#define XL_IS_DEFAULT(stream)	((u64)(stream) <= (u64)CU_STREAM_PER_THREAD)
#define XL_ON_STREAM(gpu, stream, result, call) do {					\
	struct xl_gpu_scope scope_;							\
											\
	result = XL_IS_DEFAULT(stream) ? CUDA_ERROR_INVALID_CONTEXT : call;		\
	if (likely(result != CUDA_ERROR_INVALID_CONTEXT))				\
		break;									\
	result = xl_order_enter(gpu, &scope_);						\
	if (result)									\
		break;									\
	result = call;									\
	xl_gpu_leave(&scope_);								\
} while (0)

/*
 * May the library put work into a stream of @gpu? 0, or noted, with @what as the name of the call:
 * -EINVAL (XMEM_ALL_STREAMS is no stream, and the driver might crash on it), or
 * -EPERM: the program captures this stream, or one with which the default stream is ordered. A
 * captured stream makes each call a part of the program's graph, without an error. Each launch of
 * the graph would repeat it: write an old value into the ready word, wait for old contents, drop a
 * handle that has other contents by then. So a call asks this before it changes anything. Other
 * errors of the driver are left to the call itself.
 */
int xl_order_check_capture(struct xl_gpu *gpu, CUstream stream, const char *what);

/*
 * Is there nothing to wait for? The usual answer costs a load or two. Contents for which a stream
 * was told to wait count as complete, unless they never will be. For the writer of the buffer, its
 * own work in streams counts as done, too.
 */
static inline bool xl_order_is_done(const struct xmem_buffer *buffer)
{
	const struct xmem_pool *pool = buffer->pool;
	u32 mode = xm_load(&buffer->mode);
	u64 value, word;

	/*
	 * A buffer that is written in place was published by another client, in that client's slot.
	 */
	if (mode & XL_WRITING && !(mode & XL_UPGRADED))
		return mode & XL_ORDERED || xl_order_is_idle(pool, buffer->slot);
	value = xm_load(&xm_metadata(&pool->map, buffer->slot)->order_value);
	if (likely(!value))
		return true;
	word = xm_load_acquire(xm_ready_word(&pool->map, buffer->slot));
	return word - value < XL_READY_NEAR ||
	       (mode & XL_ORDERED && !(word & XMEM_READY_ENDED));
}

/* ---- dropping (hold/release_on.c) ---- */

/*
 * Does this thread drop a handle for a stream? Then it must not call the driver, because it may be
 * one of the driver's threads.
 */
extern _Thread_local bool xl_in_driver __attribute__((visibility("hidden")));

/* Destroy @pool in a thread of its own. */
void xl_destroy_elsewhere(struct xmem_pool *pool);

/* ---- ready words (ready.c) ---- */

static inline bool xl_is_reached(u64 word, u64 value)
{
	return word - value <= ~0ULL >> 1;
}

static inline bool xl_is_ended(u64 word)
{
	return word & XMEM_READY_ENDED;
}

/*
 * Find the address of @slot's ready word on the GPU, for writing if the slot is an own one. 0: *ret
 * is set. -EOPNOTSUPP, not noted: this device cannot reach the word, or not yet. Or -errno, noted.
 * It waits for no stream.
 */
int xl_ready_find(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu, CUdeviceptr *ret);
void xl_ready_drop(struct xl_orders *orders, struct xm_map *map);

/* ---- host functions (mark.c) ---- */

/*
 * After the stream's work so far, write @value into the ready word of an own slot. 0 or -errno,
 * noted.
 */
int xl_mark_put(struct xmem_pool *pool, u32 slot, u64 value, struct xl_gpu *gpu,
		CUstream stream);
/* The words of @pool go: nothing is written there any more. */
void xl_marks_drop(struct xmem_pool *pool);

/*
 * Set on which GPU the contents are, and when they are complete, whatever the program has written
 * there. For memory of the CPU, the program's values stay. Readers look at these fields, so a store
 * that changes nothing would cost them a cache line.
 */
static inline void xl_fill_storage(const struct xmem_buffer *buffer,
				   struct xmem_metadata *metadata)
{
	u32 traits = xl_traits(buffer);

	if (likely(!(traits & XMEM_TRAIT_CUDA)))
		return;
	if (unlikely(metadata->storage != XMEM_STORAGE_CUDA))
		metadata->storage = XMEM_STORAGE_CUDA;
	if (unlikely(metadata->device != xm_device(traits)))
		metadata->device = xm_device(traits);
	xl_order_fill(buffer, metadata);
}

#endif
