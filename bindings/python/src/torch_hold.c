// SPDX-License-Identifier: MIT
/*
 * Holds: the buffers that storages of torch lie in. A storage only knows the address of its
 * contents, so holds are found by it. The deleter of a storage drops its share in any thread, at
 * any time, without the GIL, and touches no Python object.
 */
#include "hold.h"
#include "torch.h"

#include <stdlib.h>

static void delete(struct xt_dlpack *dlpack)
{
	xt_hold_put(dlpack->context);
}

struct xt_hold *xt_hold_new(struct xt_pool *pool, struct xmem_buffer *buffer, void *address,
			    bool own)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	struct xt_hold *hold = calloc(1, sizeof(*hold));

	if (!hold)
		return NULL;
	xmem_buffer_stat(buffer, &info);
	*hold = (struct xt_hold){
		.shares = 1, .pool = pool, .buffer = buffer, .address = address,
		.bytes = info.bytes, .token = info.token, .own = own,
		.gpu = info.flags & XMEM_BUFFER_CUDA,
	};
	hold->shape[0] = hold->bytes;
	hold->dlpack = (struct xt_dlpack){
		.data = address, .device_type = XT_DLPACK_CPU, .ndim = 1, .code = XT_DLPACK_UINT,
		.bits = 8, .lanes = 1, .shape = hold->shape, .context = hold, .deleter = delete,
	};
	if (xt_hold_insert(hold))
		return hold;
	free(hold);
	return NULL;
}

/*
 * torch may have put reads of memory of a GPU into the stream that was its current one when it got
 * the memory, or into the default stream, before it dropped the memory.
 */
void xt_hold_put(struct xt_hold *hold)
{
	if (hold->gpu) {
		xt_hold_put_on(hold, hold->stream);
		return;
	}
	if (!xt_hold_drop_share(hold))
		return;
	xt_hold_settle(hold);
	xmem_release(hold->buffer);
	free(hold);
}

void xt_hold_put_on(struct xt_hold *hold, void *stream)
{
	if (!xt_hold_drop_share(hold))
		return;
	xt_hold_settle(hold);
	xp_release_on(hold->buffer, stream);
	free(hold);
}

/*
 * The buffer is published at once, although there are no subscribers, and its handle is kept. So it
 * has a token, and releasing it needs no request. Its contents are shared memory that all holders
 * write, as users of torch expect.
 */
struct xt_hold *xt_hold_make(struct xt_pool *pool, size_t bytes, const void *contents)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer;
	struct xt_hold *hold;
	void *address;

	if (!handle)
		return NULL;
	buffer = xmem_acquire(handle, bytes, 0);
	if (!buffer)
		return NULL;
	address = xmem_data_mut(buffer);
	if (!address || (contents && xmem_copy_from_host(buffer, 0, contents, bytes, NULL)) ||
	    xmem_publish(buffer, &keep, NULL) < 0)
		goto release;
	hold = xt_hold_new(pool, buffer, address, true);
	if (hold)
		return hold;
	xmem_clear_last_error();
release:
	xmem_release(buffer);
	return NULL;
}

struct xt_hold *xt_hold_get(struct xt_pool *pool, uint64_t token)
{
	struct xmem_pool *handle = xt_pool_handle(pool);
	struct xmem_buffer *buffer;
	struct xt_hold *hold;
	const void *address;

	if (!handle)
		return NULL;
	buffer = xmem_get(handle, token);
	if (!buffer)
		return NULL;
	address = xmem_data(buffer);
	hold = address ? xt_hold_new(pool, buffer, (void *)address, false) : NULL;
	if (hold)
		return hold;
	if (address)
		xmem_clear_last_error();
	xmem_release(buffer);
	return NULL;
}

void xt_hold_describe(struct xt_hold *hold, unsigned int type, int dimensions,
		      const int64_t *shape)
{
	int i;

	hold->dlpack.code = type >> 8;
	hold->dlpack.bits = type;
	hold->dlpack.ndim = dimensions;
	for (i = 0; i < dimensions; i++)
		hold->shape[i] = shape[i];
}
