// SPDX-License-Identifier: MIT
/*
 * xmem_attach_cuda: memory of a GPU that the program has made becomes the payload of a buffer. Its
 * slot is for one content, as in attach.c. The memory stays the program's, and the program is
 * called when no client uses it any more. lib/cuda/take.c finds out what the memory is.
 */
#include <stdlib.h>

#include "lib/base/handle.h"
#include "lib/base/uncancelled.h"
#include "lib/cuda/memory.h"
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/owned.h"
#include "lib/payload/payload.h"
#include "lib/payload/remnant.h"
#include "lib/pool/bury.h"

/* The memory to attach. */
struct wish {
	void *at;
	u64 bytes;
	u32 flags;			/* XMEM_CUDA_* */
	xl_memory_done *done;
	void *user;
};

/* Take the memory and make a mapping of it. NULL: an error, noted, and nothing is left. */
static struct xl_mapping *new_mapping(const struct wish *wish, u64 *ret_offset, int *ret_fd)
{
	struct xl_mapping *mapping = calloc(1, sizeof(*mapping));

	if (!mapping) {
		xl_fail_fast(ENOMEM, "no memory for a mapping");
		return NULL;
	}
	if (xl_memory_take(wish->at, wish->bytes, &mapping->memory, ret_offset, ret_fd)) {
		free(mapping);
		return NULL;
	}
	mapping->kind = &xl_payload_cuda;
	mapping->bytes = mapping->memory->bytes;
	mapping->flags = XMEM_ATTACH_CUDA |
			 (mapping->memory->kind == XL_MEMORY_FILE ? 0 : XMEM_ATTACH_HANDLE) |
			 (wish->flags & XMEM_MEMORY_READERS ? XMEM_ATTACH_READERS : 0);
	return mapping;
}

/* Attach the mapping. 0 and *ret_slot, or -errno, noted. Under pool->slow. */
static int attach_mapping(struct xmem_pool *pool, struct xl_mapping *mapping, u64 offset, u64 bytes,
			  int fd, u16 *ret_slot)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .flags = XMEM_ATTACH_ONCE, .fd = fd, .offset = offset,
		.length = bytes, .stride = (bytes + 63) / 64 * 64, .count = 1,
	};
	int err = xl_cuda_bury_prepare(pool);

	if (err)
		return err;
	XM_STEP(XM_STEP_CUDA_MADE);
	xl_cuda_describe(mapping, &request);
	err = xl_attach_request(pool, &request);
	if (err)
		return xl_cuda_attach_refused(pool, mapping->memory->gpu, fd, err);
	mapping->payload = request.payload;
	*ret_slot = request.slot[0];
	XM_STEP(XM_STEP_CUDA_ATTACHED);
	return xl_attach_take(pool, *ret_slot, mapping);
}

/*
 * Take the memory and attach it. The driver is called under no lock, so only the second step is
 * under pool->slow. 0 and *ret_slot, or -errno, noted; then the memory is the caller's as before.
 */
static int take_and_attach(struct xmem_pool *pool, const struct wish *wish, u16 *ret_slot)
{
	struct xl_mapping *mapping;
	u64 offset;
	int fd, err = xl_cuda_places(pool);

	if (err)
		return err;
	mapping = new_mapping(wish, &offset, &fd);
	if (!mapping)
		return xl_last_error();
	err = offset % 64 ? xl_fail(EINVAL, "0x%llx is %llu bytes behind the "
				    "beginning of its allocation, not a multiple of 64",
				    (unsigned long long)wish->at, (unsigned long long)offset) :
			    xl_slow_begin(pool, ~0ULL);
	if (!err) {
		err = attach_mapping(pool, mapping, offset, wish->bytes, fd, ret_slot);
		xl_turn_end(&pool->slow);
	}
	if (fd >= 0)
		xl_file_close(fd);
	if (!err) {
		/* Only now: after an error, `done` must not be called. */
		mapping->memory->user = wish->user;
		mapping->memory->done = wish->done;
		return 0;
	}
	/* Other memory may have waited for this, and is given back now. */
	xl_memory_put(mapping->memory);
	free(mapping);
	return err;
}

static int attach_reserved(struct xmem_pool *pool, const struct wish *wish, u16 *ret_slot)
{
	int err = xl_reserve_entry(pool, "attach_cuda");
	/*
	 * A thread that is cancelled here would keep the turn, and leak the mapping that it has
	 * made.
	 */
	XL_UNCANCELLED;

	if (err)
		return err;
	err = take_and_attach(pool, wish, ret_slot);
	if (err)
		xl_unreserve_entry(pool);
	return err;
}

static int check(struct xmem_pool *pool, const struct wish *wish)
{
	int err = xl_check_writer(pool, XMEM_FOREVER);

	if (err)
		return err;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (wish->flags & ~XMEM_MEMORY_READERS)
		return xl_fail(EINVAL, "flags has 0x%x, which has no meaning",
			       wish->flags & ~XMEM_MEMORY_READERS);
	if (!wish->at)
		return xl_fail(EINVAL, "the address is NULL");
	if (!wish->bytes || wish->bytes > XL_MAX_BYTES)
		return xl_fail(EINVAL, "%llu bytes, but a buffer has 1 to %llu",
			       (unsigned long long)wish->bytes,
			       (unsigned long long)XL_MAX_BYTES);
	return 0;
}

XMEM_API struct xmem_buffer *xmem_attach_cuda(struct xmem_pool *pool, void *ptr, size_t bytes,
					      uint32_t flags, void (*done)(void *user), void *user)
{
	XL_CALL;
	const struct wish wish = {
		.at = ptr, .bytes = bytes, .flags = flags, .done = done, .user = user,
	};
	struct xmem_buffer *buffer;
	u16 slot = 0;
	XL_USE(pool);

	if (check(pool, &wish))
		return NULL;
	xl_attached_sweep(pool);
	xl_payload_reap(pool, XL_HOST_NS);
	buffer = xl_handle_new(pool);
	if (!buffer)
		return NULL;
	if (attach_reserved(pool, &wish, &slot)) {
		xl_handle_unused(buffer);
		return NULL;
	}
	return xl_attach_hand_out(buffer, slot, bytes, XL_WRITING | XL_FIXED | XL_CUDA);
}
