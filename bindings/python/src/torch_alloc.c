// SPDX-License-Identifier: MIT
/*
 * Allocators by which torch puts ordinary tensors into a pool. That of the CPU is called by the
 * C++ file that ../xmem/torch/allocator.py compiles, because only torch's own headers say what an
 * allocator of torch is. That of CUDA is what torch.cuda.memory.CUDAPluggableAllocator wants: two
 * functions in C, whose names it is given.
 */
#include "torch.h"

/* ---- the CPU ---- */

static struct xt_pool *from;		/* these three are atomic */
static size_t most;			/* buffers at a time: other processes need slots, too */
static size_t now;

void xt_allocate_from(struct xt_pool *pool, size_t most_buffers)
{
	__atomic_store_n(&most, most_buffers, __ATOMIC_RELAXED);
	__atomic_store_n(&from, pool, __ATOMIC_RELEASE);
}

void *xt_allocate(size_t bytes)
{
	struct xt_pool *pool = __atomic_load_n(&from, __ATOMIC_ACQUIRE);
	struct xt_hold *hold = NULL;

	if (__atomic_add_fetch(&now, 1, __ATOMIC_RELAXED) <=
	    __atomic_load_n(&most, __ATOMIC_RELAXED) && pool)
		hold = xt_hold_make(pool, bytes, NULL);
	if (!hold) {
		__atomic_sub_fetch(&now, 1, __ATOMIC_RELAXED);
		xmem_clear_last_error();	/* the caller has another allocator */
		return NULL;
	}
	xt_hold_mark(hold);
	return hold->address;
}

bool xt_free(void *address)
{
	struct xt_hold *hold = xt_hold_unmark(address);

	if (!hold)
		return false;
	__atomic_sub_fetch(&now, 1, __ATOMIC_RELAXED);
	xt_hold_put(hold);
	return true;
}

/* ---- CUDA ---- */

#define EXPORT		__attribute__((visibility("default")))
#define SMALLEST	512		/* what torch aligns memory of a GPU to */
#define TOGETHER	(2u << 20)	/* smaller buffers are made as many as fill this, */
#define MOST		64		/* but not more */

static struct xt_pool *cuda_from;	/* atomic */

void xt_cuda_allocate_from(struct xt_pool *pool)
{
	__atomic_store_n(&cuda_from, pool, __ATOMIC_RELEASE);
}

/* Up to an eighth more, so that buffers of about the same size serve each other. */
static size_t class_of(size_t bytes)
{
	size_t step = SMALLEST;

	while (bytes / 8 > step)
		step *= 2;
	return (bytes + step - 1) / step * step;
}

/*
 * A buffer that is not much larger. Memory of GPUs is not made on demand: what lacks is made here,
 * and stays the pool's until xmem_collect gives it back.
 */
static struct xmem_buffer *acquire(struct xmem_pool *pool, size_t bytes, int device)
{
	size_t wanted = class_of(bytes);
	size_t count = wanted < TOGETHER ? TOGETHER / wanted : 1;
	const struct xmem_preallocate_options on_gpu = {
		.size = sizeof(on_gpu), .flags = XMEM_MEMORY_CUDA, .device_id = device,
	};
	struct xmem_buffer *buffer = xmem_acquire_cuda(pool, bytes, device, 0);

	if (buffer && xmem_capacity(buffer) <= 2 * wanted)
		return buffer;
	xmem_release(buffer);
	if (xmem_preallocate(pool, wanted, count < MOST ? count : MOST, &on_gpu)) {
		xmem_collect(pool, 0, NULL);	/* other sizes may have used up the GPU */
		if (xmem_preallocate(pool, wanted, 1, &on_gpu))
			return NULL;
	}
	return xmem_acquire_cuda(pool, bytes, device, 0);
}

static struct xt_hold *make(struct xt_pool *pool, size_t bytes, int device)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer = handle ? acquire(handle, bytes, device) : NULL;
	struct xt_hold *hold;
	void *address;

	if (!buffer)
		return NULL;
	address = xmem_cuda_ptr_mut(buffer);
	hold = address && !xmem_publish(buffer, &keep, NULL) ?
	       xt_hold_new(pool, buffer, address, true) : NULL;
	if (!hold)
		xmem_release(buffer);
	return hold;
}

/*
 * What torch.cuda.memory.CUDAPluggableAllocator is given. A buffer is acquired only when all that
 * streams had to do with it is done, so any stream may use it at once. NULL is torch's
 * out-of-memory; it asks nobody for a message.
 */
EXPORT void *xmem_torch_cuda_allocate(size_t bytes, int device, void *stream);
EXPORT void xmem_torch_cuda_free(void *address, size_t bytes, int device, void *stream);

EXPORT void *xmem_torch_cuda_allocate(size_t bytes, int device, void *stream)
{
	struct xt_pool *pool = __atomic_load_n(&cuda_from, __ATOMIC_ACQUIRE);
	struct xt_hold *hold = pool && bytes ? make(pool, bytes, device) : NULL;

	if (!hold)
		return NULL;
	xt_hold_mark(hold);
	return hold->address;
}

/* The stream may still use it; it is dropped when the stream has got there. */
EXPORT void xmem_torch_cuda_free(void *address, size_t bytes, int device, void *stream)
{
	struct xt_hold *hold = address ? xt_hold_unmark(address) : NULL;

	if (hold)
		xt_hold_put_on(hold, stream);
}
