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
	xl_fail_fast(EOWNERDEAD, "the owner of this memory of a GPU has ended, and the memory has "
				 "gone with it");
	return 0;
}

static bool has_ended(const struct xmem_slot_row *row, u32 traits)
{
	return traits & XMEM_TRAIT_HANDLE && xm_load(&row->owner) == XMEM_OWNER_HOST;
}

/*
 * The address of the slot on its GPU; 0: it is not open in this process. The offset is read before
 * the payload's id: see xl_payload_placed.
 */
static XL_INLINE u64 placed(const struct xmem_pool *pool, u32 slot, const struct xmem_slot_row *row)
{
	const struct xl_place *places = __atomic_load_n(&pool->mappings.device, __ATOMIC_ACQUIRE);
	u64 offset = xm_load_acquire(&row->offset), base;

	XM_STEP(XM_STEP_ROW_OFFSET);
	base = likely(places) ? (u64)xl_placed(&places[slot], row) : 0;
	return likely(base) ? base + offset : 0;
}

static u64 open_slot(struct xmem_buffer *buffer, const struct xmem_slot_row *row)
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
	u64 address;

	if (!(traits & XMEM_TRAIT_CUDA))
		return xl_not_cuda(pool);
	if (has_ended(row, traits))
		return owner_ended();
	address = placed(pool, buffer->slot, row);
	if (!address)
		address = open_slot(buffer, row);
	if (!address)
		return 0;
	mark_hold(pool, buffer->slot);
	if (!xl_order_is_done(buffer) && xl_order_wait(buffer))
		return 0;
	xl_place_contents(buffer);
	return address + buffer->what.offset;
}

static XL_COLD u64 not_writable(u32 mode)
{
	if (mode & XL_FIXED)
		xl_fail_fast(EPERM, "the contents of memory that was attached do not change");
	else
		xl_fail_fast(EPERM, "published contents do not change; only a buffer from "
				    "xmem_acquire_cuda is writable");
	return 0;
}

static bool is_writable(u32 mode)
{
	return likely((mode & (XL_WRITING | XL_FIXED)) == XL_WRITING);
}

u64 xl_cuda_address_mut(struct xmem_buffer *buffer)
{
	u32 mode = xm_load(&buffer->mode);

	return is_writable(mode) ? xl_cuda_address(buffer) : not_writable(mode);
}

/* ---- the calls ---- */

/* The address, if there is nothing to open, to wait for, or to tell the host; 0: look closer. */
static XL_INLINE u64 address_at_once(const struct xmem_buffer *buffer)
{
	const struct xmem_pool *pool = buffer->pool;
	const struct xmem_slot_row *row = xm_slot_row(&pool->map, buffer->slot);
	u32 traits = xm_load(&row->traits);
	u64 address;

	if (unlikely(!(traits & XMEM_TRAIT_CUDA) || has_ended(row, traits)))
		return 0;
	address = placed(pool, buffer->slot, row);
	if (unlikely(!address || !(xm_load(&pool->holds[buffer->slot]) & XM_HOLD_DEVICE) ||
		     !xl_order_is_done(buffer)) || xl_must_place(buffer))
		return 0;
	return address + buffer->what.offset;
}

static XL_SLOW void *find_ptr(struct xmem_buffer *buffer)
{
	XL_CALL_AS("cuda_ptr");

	return (void *)xl_cuda_address(buffer);
}

static XL_SLOW void *find_ptr_mut(struct xmem_buffer *buffer)
{
	XL_CALL_AS("cuda_ptr_mut");

	return (void *)xl_cuda_address_mut(buffer);
}

XMEM_API const void *xmem_cuda_ptr(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	u64 address;

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "cuda_ptr");
		return NULL;
	}
	address = address_at_once(buffer);
	return likely(address) ? (const void *)address : find_ptr(buffer);
}

XMEM_API void *xmem_cuda_ptr_mut(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	u64 address;

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "cuda_ptr_mut");
		return NULL;
	}
	address = is_writable(xm_load(&buffer->mode)) ? address_at_once(buffer) : 0;
	return likely(address) ? (void *)address : find_ptr_mut(buffer);
}

XMEM_API int xmem_cuda_peer(struct xmem_buffer *handle, int device)
{
	XL_CALL;
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
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	const struct xl_gpu *gpu;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "cuda_device");
	gpu = xl_cuda_gpu(buffer);
	return gpu ? gpu->ordinal : xl_last_error();
}
