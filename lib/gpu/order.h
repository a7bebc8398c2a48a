/* SPDX-License-Identifier: MIT */
/*
 * Order on the GPU: contents may be published while a stream still writes them. Behind its writes
 * the stream writes a value into the slot's ready word, which is in its owner's page; the metadata
 * say which value makes the contents complete. Who reads them lets its own stream, or its thread,
 * wait for that. tests/model/ready.pml has the steps, and what each of them is for:
 *
 *   - The values of a slot are counted up, and a stream is behind the last one before it is told
 *     to write the next. So the word never has a later one too early, nor an older one after it.
 *   - All that the library puts into streams for a slot that is being written has such a value
 *     behind it: what is published there, and each copy into it or out of it. So a slot is settled
 *     once its word has the last value, whether the buffer was published or released.
 *   - When the owner's process has exited, the host writes XMEM_READY_ENDED into the words whose
 *     value is not there. So nobody waits for ever, and who looks at the word afterwards finds
 *     out that the contents are not complete (EOWNERDEAD).
 *
 * Where the device has no 64-bit memory operations, or does not register the pool's pages, a host
 * function in the stream writes the word, and who waits does so in its thread. Events between
 * processes could wait in the stream there. But what becomes of a stream that waits for an event
 * whose process was killed is not known, and nothing here may wait for ever.
 *
 *   order.c     publishing on a stream, telling a stream to wait
 *   goal.[ch]   what makes contents complete, and whether it ever will
 *   wait.c      waiting in a thread
 *   ready.c     where a GPU finds ready words: pages that are registered with the driver
 *   mark.c      words that a host function writes
 *   release.c   dropping a handle when a stream has got there
 *
 * A call of the driver may wait for a host function that has yet to run, so release.c takes no
 * lock under which the driver is called.
 */
#ifndef XMEM_GPU_ORDER_H
#define XMEM_GPU_ORDER_H

#include "lib/base/handle.h"
#include "lib/cuda/device.h"

#define XL_MAX_GPUS	64	/* of one process: whose addresses of a page are remembered */
#define XL_READY_NEAR	XMEM_READY_OVER	/* a word within so much of its value is not ENDED */

/* A page with the ready words of a group, as this process's driver knows it. */
struct xl_ready_page {
	u64 origin;		/* whose group it was when it was registered; 0: it is not */
	struct xl_gpu *gpu;	/* in whose context that was done */
	void *at;
	bool retiring;		/* this thread unregisters it, and is to be joined: */
	pthread_t thread;
	struct xl_orders *orders;	/* it is one of these */
	CUdeviceptr device[XL_MAX_GPUS];	/* by ordinal; 0: not asked for yet */
};

/* What is known of a slot; all but the last of an own one. */
struct xl_order {
	u64 issued;		/* the last value that a stream was told to write */
	struct xl_gpu *gpu;	/* What is put into this stream of this GPU comes after that; */
	CUstream behind;	/* it is only compared, for its program may have destroyed it. */
	u64 awaited;		/* the last value of another process's that a stream waits for */
};

struct xl_orders {
	struct xl_lock lock;		/* guards page; nobody waits for a stream under it */
	struct xl_order *slot;		/* [slots of the pool] */
	struct xl_ready_page **page;	/* [groups] */
};

/* Those of @pool; NULL: there is no memory, which is noted. */
struct xl_orders *xl_orders(struct xmem_pool *pool);

/* Those of @pool, or NULL if nothing in it was ever ordered here. */
static inline struct xl_orders *xl_orders_if(const struct xmem_pool *pool)
{
	return __atomic_load_n(&pool->gpus.orders, __ATOMIC_ACQUIRE);
}

/* Wait for what own streams have yet to write, unless they never will. */
void xl_orders_settle(struct xmem_pool *pool);

/* The same when the pool's handles are dropped, and let go of all that the driver was given. */
void xl_orders_close(struct xmem_pool *pool);

/* Has every stream of this process done what it was to write into this own slot? */
static inline bool xl_order_is_settled(const struct xmem_pool *pool, u32 slot)
{
	const struct xl_orders *orders = xl_orders_if(pool);
	u64 issued = orders ? xm_load(&orders->slot[slot].issued) : 0;

	return likely(!issued) ||
	       xm_load_acquire(xm_ready_word(&pool->map, slot)) - issued <= ~0ULL >> 1;
}

/* ---- for those who make contents or look at them (order.c, wait.c) ---- */

/*
 * Are the contents there, or is a stream that uses them told to wait? If not, wait until they are.
 * 0, or -errno, noted: EOWNERDEAD, EINTR, ECANCELED, ENOTCONN.
 */
int xl_order_wait(struct xmem_buffer *buffer);
/* The same, whatever streams have been told, for who looks at the contents without a stream. */
int xl_order_wait_here(struct xmem_buffer *buffer);

/*
 * Wait in this thread until a stream of @gpu has done what is in it; the close of @pool and
 * xmem_cancel end that. 0, or -errno, noted: EINTR, ECANCELED, or as the driver says.
 */
int xl_order_finish(struct xmem_pool *pool, struct xl_gpu *gpu, CUstream stream);

/* The same for a stream of @gpu, NULL: the buffer's, which is told to wait; see xmem_wait_on. */
int xl_order_wait_on(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream);

/*
 * What has been put into a stream of @gpu is work of this buffer, which is being written: whatever
 * becomes of the buffer, its slot is not settled before. A stream that takes no value is waited
 * for. 0, or -errno, noted.
 */
int xl_order_work(struct xmem_buffer *buffer, struct xl_gpu *gpu, CUstream stream);

/* As xl_gpu_enter; but what the driver says is returned, and nothing is noted. */
CUresult xl_order_enter(struct xl_gpu *gpu, struct xl_gpu_scope *ret_scope);

/*
 * A call that takes a stream of its own needs no current context, or finds the caller's. A default
 * stream is one of a context: that of the buffer's GPU.
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
 * Is there nothing to wait for? The common answer costs a load or two. What a stream has been told
 * to wait for counts as done, unless it will never be. So does, for who writes the buffer, what it
 * has put into streams itself.
 */
static inline bool xl_order_is_done(const struct xmem_buffer *buffer)
{
	const struct xmem_pool *pool = buffer->pool;
	u32 mode = xm_load(&buffer->mode);
	u64 value, word;

	/* What is written in place is another client's slot, and was published there. */
	if (mode & XL_WRITING && !(mode & XL_UPGRADED))
		return mode & XL_ORDERED || xl_order_is_settled(pool, buffer->slot);
	value = xm_load(&xm_metadata(&pool->map, buffer->slot)->order_value);
	if (likely(!value))
		return true;
	word = xm_load_acquire(xm_ready_word(&pool->map, buffer->slot));
	return word - value < XL_READY_NEAR ||
	       (mode & XL_ORDERED && !(word & XMEM_READY_ENDED));
}

/* ---- dropping (release.c) ---- */

/* Is this thread the driver's, in a host function of ours? Then the driver may not be called. */
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
 * Where the GPU finds the ready word of @slot, to write it if it is an own one. 0: *ret.
 * -EOPNOTSUPP, not noted: this device does not reach such words, or not yet. Else -errno, noted.
 * It waits for no stream.
 */
int xl_ready_find(struct xmem_pool *pool, u32 slot, struct xl_gpu *gpu, CUdeviceptr *ret);
void xl_ready_drop(struct xl_orders *orders, struct xm_map *map);

/* ---- host functions (mark.c) ---- */

/* Behind what is in the stream, write @value into the ready word of an own slot. 0 or -errno. */
int xl_mark_put(struct xmem_pool *pool, u32 slot, u64 value, struct xl_gpu *gpu,
		CUstream stream);
/* The words of @pool go, and nothing is written there any more. */
void xl_marks_drop(struct xmem_pool *pool);

/*
 * Say on which GPU the contents are, whatever the program has written there, and when they are
 * complete. For memory of the CPU it may say what it likes.
 */
static inline void xl_note_storage(const struct xmem_buffer *buffer,
				   struct xmem_metadata *metadata)
{
	u32 traits = xl_traits(buffer);

	if (likely(!(traits & XMEM_TRAIT_CUDA)))
		return;
	metadata->storage = XMEM_STORAGE_CUDA;
	metadata->device = xm_device(traits);
	xl_order_note(buffer, metadata);
}

#endif
