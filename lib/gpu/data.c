// SPDX-License-Identifier: MIT
/*
 * The addresses of contents in memory of GPUs. An address that has been found once is found again
 * without a lock or a call; payload/payload.h says why that is right.
 */
#include "lib/gpu/data.h"
#include "lib/gpu/order.h"
#include "lib/host/died.h"
#include "lib/payload/payload.h"

/* The library is about to hand out an address of this slot. The host must know it before (I9). */
static inline void mark_hold(struct xmem_pool *pool, u32 slot)
{
	u32 *hold = &pool->holds[slot];

	if (unlikely(!(xm_load(hold) & XM_HOLD_DEVICE)))
		__atomic_fetch_or(hold, XM_HOLD_DEVICE, __ATOMIC_SEQ_CST);
}

/* Such memory ends with its owner, and other memory may have its address later. */
static XL_COLD u64 owner_ended(void)
{
	xl_fail_fast(EOWNERDEAD, "cuda_ptr: the owner of this memory of a GPU has ended, and the "
				 "memory has gone with it");
	return 0;
}

static bool has_ended(const struct xmem_slot_row *row, u32 traits)
{
	return traits & XMEM_TRAIT_HANDLE && xm_load(&row->owner) == XMEM_OWNER_HOST;
}

/* The address of the slot on its GPU; 0: it is not open in this process. */
static inline u64 placed(const struct xmem_pool *pool, u32 slot, const struct xmem_slot_row *row)
{
	const struct xl_place *places = __atomic_load_n(&pool->mappings.device, __ATOMIC_ACQUIRE);

	return likely(places) ? (u64)xl_placed(&places[slot], row) : 0;
}

static XL_SLOW u64 open_slot(struct xmem_buffer *buffer, const struct xmem_slot_row *row)
{
	struct xmem_pool *pool = buffer->pool;

	if (!xl_cuda_open(pool, buffer->slot))
		return placed(pool, buffer->slot, row);
	/*
	 * Without the host no memory can be opened. But streams may wait in vain, and this ends
	 * their waits.
	 */
	if (xl_host_died(pool))
		xl_order_wait_here(buffer);
	return 0;
}

u64 xl_cuda_address(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, buffer->slot);
	u32 traits = xm_load(&row->traits);
	u64 offset = xm_load_acquire(&row->offset), base;	/* before the id: xl_payload_data */

	if (unlikely(!(traits & XMEM_TRAIT_CUDA)))
		return xl_not_cuda();
	if (unlikely(has_ended(row, traits)))
		return owner_ended();
	XM_STEP(XM_STEP_ROW_OFFSET);
	base = placed(pool, buffer->slot, row);
	if (unlikely(!base))
		base = open_slot(buffer, row);
	if (unlikely(!base))
		return 0;
	mark_hold(pool, buffer->slot);
	if (unlikely(!xl_order_is_done(buffer)) && xl_order_wait(buffer))
		return 0;
	xl_place_contents(buffer);
	return base + offset + buffer->what.offset;
}

static XL_COLD u64 not_writable(u32 mode)
{
	if (mode & XL_FIXED)
		xl_fail_fast(EPERM, "cuda_ptr_mut: the contents of memory that was attached do not "
				    "change");
	else
		xl_fail_fast(EPERM, "cuda_ptr_mut: published contents do not change; only a "
				    "buffer from xmem_acquire_cuda is writable");
	return 0;
}

u64 xl_cuda_address_mut(struct xmem_buffer *buffer)
{
	u32 mode = xm_load(&buffer->mode);

	if (unlikely(!(mode & XL_WRITING) || mode & XL_FIXED))
		return not_writable(mode);
	return xl_cuda_address(buffer);
}

XMEM_API const void *xmem_cuda_ptr(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "cuda_ptr");
		return NULL;
	}
	return (const void *)xl_cuda_address(buffer);
}

XMEM_API void *xmem_cuda_ptr_mut(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "cuda_ptr_mut");
		return NULL;
	}
	return (void *)xl_cuda_address_mut(buffer);
}

XMEM_API int xmem_cuda_peer(struct xmem_buffer *handle, int device)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xl_gpu *gpu;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "cuda_peer");
	if (!xl_cuda_address(buffer))
		return xl_last_error();
	gpu = xl_gpu(device);
	return gpu ? xl_cuda_reach(buffer->pool, buffer->slot, gpu) : xl_last_error();
}

XMEM_API int xmem_cuda_device(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	const struct xl_gpu *gpu;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "cuda_device");
	gpu = xl_cuda_gpu(buffer);
	return gpu ? gpu->ordinal : xl_last_error();
}
