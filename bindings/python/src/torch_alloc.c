// SPDX-License-Identifier: MIT
/*
 * Allocators by which torch puts ordinary tensors into a pool. The C++ file that
 * ../xmem/torch/allocator.py compiles calls the allocator of the CPU, because only torch's own
 * headers define an allocator of torch. The allocator of CUDA consists of two C functions, whose
 * names torch.cuda.memory.CUDAPluggableAllocator gets.
 */
#include "torch.h"

/* ---- the CPU ---- */

static struct xt_pool *from;		/* these three are atomic */
static size_t most;			/* buffers at a time: other processes also need slots */
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
		xmem_clear_last_error();	/* the caller uses another allocator */
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

static struct xt_pool *cuda_from;	/* atomic */

void xt_cuda_allocate_from(struct xt_pool *pool)
{
	__atomic_store_n(&cuda_from, pool, __ATOMIC_RELEASE);
}

struct xmem_buffer *xt_cuda_acquire(struct xt_pool *pool, size_t bytes, int device)
{
	struct xmem_pool *handle = xt_pool_handle(pool);

	return handle ? xmem_acquire_cuda(handle, bytes, device, 0) : NULL;
}

static struct xt_hold *make(struct xt_pool *pool, size_t bytes, int device)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *buffer = xt_cuda_acquire(pool, bytes, device);
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
 * The allocator for torch.cuda.memory.CUDAPluggableAllocator. A buffer is acquired only after all
 * work of streams on it is done, so any stream may use it at once. NULL means out of memory for
 * torch, which takes no message.
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

/* The stream may still use the memory; it is dropped once the stream has done its work so far. */
EXPORT void xmem_torch_cuda_free(void *address, size_t bytes, int device, void *stream)
{
	struct xt_hold *hold = address ? xt_hold_unmark(address) : NULL;

	if (hold)
		xt_hold_put_on(hold, stream);
}
