// SPDX-License-Identifier: MIT
/*
 * Buffers: getting one by its token, cloning and releasing handles, and reading what a handle says.
 * lib/base/handle.c has the memory of handles; publish.c publishes.
 */
#include <string.h>

#include "lib/base/handle.h"
#include "lib/base/structs.h"
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/hold/claims.h"
#include "lib/hold/inplace.h"
#include "lib/hold/publisher.h"
#include "lib/hold/token.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/owned.h"
#include "lib/payload/payload.h"
#include "lib/payload/view.h"

/* ---- get ---- */

#define TRIES		64	/* attempts to get the contents of a slot that change each time */

static XL_COLD struct xmem_buffer *get_failed(int err)
{
	if (err == -ESTALE)
		xl_fail_fast(ESTALE,
			     "the contents of this token are gone, or it is another pool's");
	else if (err == -EACCES)
		xl_fail_fast(EACCES, "the buffer is another user's, and this client has not "
				     "subscribed to the client that publishes or forwards it: "
				     "subscribe first, or have the owner call xmem_pool_grant");
	else if (err)
		xl_fail(-err, "%s", xl_request_error(err));
	return NULL;
}

/* Fill a handle with the facts that a get by token has. @took: XL_TOOK, or 0. */
static inline struct xmem_buffer *fill_got(struct xmem_buffer *buffer, u64 token, u32 took)
{
	buffer->slot = xm_token_slot(token);
	buffer->what.token = token;
	xl_handle_use(buffer, XL_READING | XL_OPEN | took);
	return xl_handle(buffer);
}

/* The hold is taken, and this thread has no free handle. */
static XL_COLD struct xmem_buffer *get_refill(struct xmem_pool *pool, u64 token)
{
	XL_CALL_AS("get");
	struct xmem_buffer *buffer = xl_handle_new(pool);

	if (buffer)
		return fill_got(buffer, token, 0);
	xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	return NULL;
}

static struct xmem_buffer *slow_failed(struct xmem_pool *pool, int err)
{
	if (xl_host_died(pool))		/* meanwhile: an ended client reads zeros */
		return xl_fail_died(pool), NULL;
	return get_failed(err);
}

/*
 * The hold is not certain yet: resolve it. If references are set aside, one of them becomes the
 * hold. NULL: *err, which is not noted; or 0 if the error is noted.
 */
static struct xmem_buffer *resolve(struct xmem_pool *pool, u64 token, int *err)
{
	struct xmem_buffer *buffer;
	u32 slot = xm_token_slot(token), took = 0;

	*err = xl_hold_resolve(pool, token, *err);
	if (*err)
		return NULL;
	buffer = xl_handle_new(pool);
	if (!buffer)
		goto put;
	XM_STEP(XM_STEP_CLAIM_HELD);
	if (xm_claims_of(&pool->map, slot)) {
		*err = xl_claim_take(pool, token);
		took = *err ? 0 : XL_TOOK;
	}
	XM_STEP(XM_STEP_CLAIM_TAKEN);
	if (!*err || *err == -ERANGE)	/* other clients have taken the claims meanwhile */
		return fill_got(buffer, token, took);
	xl_handle_unused(buffer);
put:
	xl_do(pool, xm_put(&pool->map, pool->me, slot));
	return NULL;
}

/*
 * Get the contents of a slot by its number. They may go at any moment, unless they are held or have
 * claims.
 */
static XL_COLD struct xmem_buffer *get_in_slot(struct xmem_pool *pool, u64 number)
{
	struct xmem_buffer *buffer;
	int err = -ESTALE, tries;

	for (tries = 0; err == -ESTALE && tries < TRIES; tries++) {
		u64 token;

		if (xl_host_died(pool))
			return xl_fail_died(pool), NULL;
		token = xl_token_of(pool, number, "get");
		if (!token)
			return NULL;
		err = xm_is_counted(&pool->map, pool->me) ? 0 :
		      xm_may_hold(&pool->map, pool->me, token);
		if (err)
			continue;
		err = xm_get_at(&pool->map, pool->holds, token);
		buffer = resolve(pool, token, &err);
		if (buffer)
			return buffer;
	}
	return slow_failed(pool, err);
}

/*
 * A number made by XMEM_SLOT has a higher generation than any token, so the fast path finds no such
 * token.
 */
static XL_COLD struct xmem_buffer *get_slow(struct xmem_pool *pool, u64 token, int err)
{
	XL_CALL_AS("get");
	struct xmem_buffer *buffer = resolve(pool, token, &err);

	if (buffer)
		return buffer;
	return err == -ESTALE && token >= XMEM_SLOT(0) ? get_in_slot(pool, token) :
							 slow_failed(pool, err);
}

/*
 * This client is of another user than the pool's owner. So each of its gets comes here, where it
 * checks whether its hold would count (I1).
 */
static XL_COLD struct xmem_buffer *get_as_stranger(struct xmem_pool *pool, u64 token)
{
	int err;

	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	err = xm_may_hold(&pool->map, pool->me, token);
	if (err)
		return slow_failed(pool, err);
	err = xm_get_at(&pool->map, pool->holds, token);
	return err ? get_slow(pool, token, err) : get_refill(pool, token);
}

static XL_COLD struct xmem_buffer *get_refused(struct xmem_pool *pool, u64 token)
{
	XL_CALL_AS("get");
	XL_USE(pool);

	if (!pool)
		xl_fail_fast(EINVAL, "no pool");
	else if (!xl_is_open(pool))
		xl_fail_not_alive(pool);
	else if (token >= XMEM_SLOT(0))
		return get_in_slot(pool, token);
	else if (xm_token_slot(token) < pool->map.slots)
		return get_as_stranger(pool, token);
	else			/* the pool has no such slot: this is a token of another pool */
		get_failed(-ESTALE);
	return NULL;
}

static XL_COLD struct xmem_buffer *get_died(struct xmem_pool *pool)
{
	XL_CALL_AS("get");

	xl_fail_died(pool);
	return NULL;
}

/*
 * The handle is taken after the hold, because stores between two locked additions cost more than
 * the additions. Each way out is a tail call, so that no registers have to be saved.
 */
XMEM_API struct xmem_buffer *xmem_get(struct xmem_pool *pool, uint64_t token)
{
	const struct xl_live *live;
	int err;

	if (unlikely(!pool))
		return get_refused(pool, token);
	live = pool->live;
	if (unlikely((token & 0xffff) >= xl_peek(&live->slots)))
		return get_refused(pool, token);
	if (unlikely(!xm_test(&pool->map.pool->host, XMEM_HOST_ALIVE)))
		return get_died(pool);
	err = xm_get_at(&pool->map, live->holds, token);
	if (unlikely(err))
		return get_slow(pool, token, err);
	if (unlikely(!xl_self.handles))
		return get_refill(pool, token);
	return fill_got(xl_handle_new(pool), token, 0);
}

bool xl_took_claim(const struct xmem_buffer *buffer)
{
	return xm_load(&buffer->mode) & XL_TOOK;
}

/* ---- clone, release ---- */

XMEM_API struct xmem_buffer *xmem_clone(struct xmem_buffer *handle)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle), *clone;
	int err;

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "clone");
		return NULL;
	}
	if (xm_load(&buffer->mode) & XL_WRITING) {
		xl_fail_fast(EPERM, "the buffer is still being written");
		return NULL;
	}
	if (xl_host_died(buffer->pool))
		return xl_fail_died(buffer->pool), NULL;
	clone = xl_handle_new(buffer->pool);
	if (!clone)
		return NULL;
	err = xm_hold_add(&buffer->pool->holds[buffer->slot]);
	if (err) {
		xl_handle_unused(clone);
		xl_fail_fast(-err, "too many handles of one buffer");
		return NULL;
	}
	xl_place_contents(buffer);
	clone->slot = buffer->slot;
	clone->what = buffer->what;
	clone->origin = buffer->origin;
	xl_handle_use(clone, XL_READING);
	xl_compiler_barrier();
	if (unlikely(xm_load(&clone->pool->share.ending)))
		xl_handle_cloned_late(clone);
	return xl_handle(clone);
}

/* The handle is being written, or has a private view. */
static XL_SLOW void release_slow(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;

	xl_view_end(buffer);
	if (!(xm_load(&buffer->mode) & XL_WRITING))
		xl_do(pool, xm_put(&pool->map, pool->me, buffer->slot));
	else if (xm_load(&buffer->mode) & XL_FIXED)
		xl_attached_give_up(pool, buffer->slot);
	else if (xm_load(&buffer->mode) & XL_UPGRADED)
		xl_upgrade_give_up(buffer);
	else
		xl_owned_give_up(pool, buffer->slot);
	xl_handle_drop(pool, buffer);
}

static XL_SLOW void release_pending(struct xmem_buffer *buffer, struct xm_pending pending)
{
	xl_do_pending(buffer->pool, pending);
	xl_cuda_reap(buffer->pool, 0);
	xl_handle_drop(buffer->pool, buffer);
}

XMEM_API void xmem_release(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xm_pending pending;
	struct xmem_pool *pool;
	u64 slot;

	if (unlikely(!buffer)) {
		xl_stale_buffer(handle, "release");
		return;
	}
	if (unlikely(xl_peek(&buffer->mode) & (XL_WRITING | XL_PRIVATE)))
		return release_slow(buffer);
	pool = buffer->pool;
	slot = buffer->slot;
	pending = xm_put_at(&pool->map, &pool->holds[slot], slot);
	if (unlikely(pending.what != XM_NOTHING))
		return release_pending(buffer, pending);
	xl_handle_drop(pool, buffer);
}

/* ---- what a handle can be asked ---- */

/* @call: the name of the public function. */
static XL_SLOW char *find_data(struct xmem_buffer *buffer, const char *call)
{
	XL_CALL_AS(call);
	char *data = xl_payload_find(buffer->pool, buffer->slot);

	if (!data)
		return NULL;
	xl_place_contents(buffer);
	return data + buffer->what.offset;
}

static XL_INLINE char *data_of(struct xmem_buffer *buffer, const char *call)
{
	char *data = xl_payload_placed(buffer->pool, buffer->slot);

	if (unlikely(!data) || xl_must_place(buffer))
		return find_data(buffer, call);
	return data + buffer->what.offset;
}

XMEM_API const void *xmem_data(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "data");
		return NULL;
	}
	return data_of(buffer, "data");
}

static XL_COLD void *data_is_rare(struct xmem_buffer *buffer)
{
	if (xm_load(&buffer->mode) & (XL_UPGRADED | XL_CUDA))
		return data_of(buffer, "data_mut");	/* data_of refuses memory of a GPU */
	if (xm_load(&buffer->mode) & XL_FIXED)
		xl_fail_fast(EPERM, "data_mut: the contents of a file that was attached do not "
				    "change");
	else
		xl_fail_fast(EPERM, "data_mut: published contents do not change; only a buffer "
				    "from xmem_acquire is writable");
	return NULL;
}

XMEM_API void *xmem_data_mut(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "data_mut");
		return NULL;
	}
	if (unlikely(xl_peek(&buffer->mode) != XL_WRITING))
		return data_is_rare(buffer);
	return data_of(buffer, "data_mut");
}

/* For functions that return 0 without a buffer: note the error, unless the handle is NULL. */
static XL_COLD u64 nothing(const struct xmem_buffer *handle, const char *what)
{
	xl_stale_buffer(handle, what);
	return 0;
}

XMEM_API size_t xmem_size(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer))
		return nothing(handle, "size");
	xl_place_contents(buffer);
	return buffer->what.length;
}

XMEM_API int xmem_slot(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	return buffer ? (int)buffer->slot : xl_no_buffer(handle, "slot");
}

XMEM_API size_t xmem_capacity(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer))
		return nothing(handle, "capacity");
	return xl_capacity(buffer);
}

XMEM_API uint64_t xmem_token(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	return likely(buffer) ? buffer->what.token : nothing(handle, "token");
}

XMEM_API int xmem_buffer_stat(struct xmem_buffer *handle, struct xmem_buffer_info *ret_info)
{
	XL_CALL;
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xmem_buffer_info info;
	struct xm_label label;
	int err;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "buffer_stat");
	err = xl_answer_check("xmem_buffer_info", ret_info);
	if (unlikely(err))
		return err;
	xl_place_contents(buffer);
	info = (struct xmem_buffer_info){
		.size = sizeof(info),
		.flags = (xl_traits(buffer) & ((1u << XMEM_TRAIT_DEVICE_SHIFT) - 1)) |
			 (xl_took_claim(buffer) ? XMEM_BUFFER_CLAIMED : 0),
		.slot = buffer->slot,
		.token = buffer->what.token,
		.sequence = buffer->what.sequence,
		.timestamp_ns = buffer->what.timestamp_ns,
		.bytes = buffer->what.length,
		.capacity = xl_capacity(buffer),
	};
	info.publisher = xl_publisher_of(buffer, &label);
	if (likely(info.publisher != XMEM_NOBODY))
		memcpy(info.label, label.bytes, sizeof(info.label));
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

XMEM_API const struct xmem_metadata *xmem_metadata_ptr(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "metadata_ptr");
		return NULL;
	}
	if (unlikely(xm_load(&buffer->mode) & XL_UPGRADED))
		return &buffer->upgrade->metadata;
	return xm_metadata(&buffer->pool->map, buffer->slot);
}

XMEM_API struct xmem_metadata *xmem_metadata_mut(struct xmem_buffer *handle)
{
	struct xmem_buffer *buffer = xl_buffer(handle);

	if (unlikely(!buffer)) {
		xl_no_buffer(handle, "metadata_mut");
		return NULL;
	}
	if (!(xm_load(&buffer->mode) & XL_WRITING)) {
		xl_fail_fast(EPERM, "metadata_mut: only a buffer from xmem_acquire is writable");
		return NULL;
	}
	if (unlikely(xm_load(&buffer->mode) & XL_UPGRADED))
		return &buffer->upgrade->metadata;
	return xm_metadata(&buffer->pool->map, buffer->slot);
}
