// SPDX-License-Identifier: MIT
/*
 * Buffers: getting one by its token, making another handle, dropping a handle, and asking a
 * handle.
 */
#include <string.h>

#include "died.h"
#include "handle.h"
#include "owned.h"
#include "payload/payload.h"
#include "request.h"

/* ---- get ---- */

#define LOOKS		200	/* at a state word in SCANNING, before the host is asked */
#define RESOLVES	64 /* requests to the host, which fails only while the owner works */

/*
 * The hold is taken while the owner scans the slot. If the owner goes on, the state word says
 * what it found. If the owner is stopped, the host resolves the slot, which takes 1 ms.
 */
static int look_again(struct xmem_pool *pool, u64 token)
{
	struct xmem_slot_request request = {
		.size = sizeof(request),
		.slot = xm_token_slot(token),
		.generation = xm_generation(token),
	};
	int err = -EAGAIN, asked, looks;

	for (asked = 0; asked < RESOLVES; asked++) {
		for (looks = 0; looks < LOOKS && err == -EAGAIN; looks++)
			err = xm_look(&pool->map, token);
		if (err != -EAGAIN)
			return err;
		err = xl_request(pool, XMEM_IOC_RESOLVE, &request);
		if (err && err != -EAGAIN && err != -ESTALE)
			return err;
		err = xm_look(&pool->map, token);
	}
	return err;
}

/* xm_get did not return 0: find out whether the hold is good, or drop it. */
static XL_COLD int hold_resolved(struct xmem_pool *pool, u64 token, int err)
{
	if (err == -EINVAL)
		return -ESTALE;		/* no such slot here: a token of another pool */
	if (err == -EOVERFLOW)
		return err;
	if (err == -EAGAIN)
		err = look_again(pool, token);
	if (err)
		xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	return err;
}

/* Read offset and length from the metadata, which the owner can write, once; check the bounds. */
static XL_INLINE void place_contents(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	const struct xmem_metadata *metadata = xm_metadata(&pool->map, buffer->slot);
	u64 bytes = xm_slot_row(&pool->map, buffer->slot)->length;
	u64 offset = xm_load(&metadata->offset), length = xm_load(&metadata->size);

	offset = offset <= bytes ? offset : 0;
	buffer->what.offset = offset;
	buffer->what.length = length <= bytes - offset ? length : bytes - offset;
}

static XL_COLD struct xmem_buffer *get_refused(struct xmem_pool *pool)
{
	if (!pool)
		xl_fail_fast(EINVAL, "get: no pool");
	else
		xl_fail_forked();
	return NULL;
}

static XL_COLD struct xmem_buffer *get_failed(struct xmem_pool *pool, int err)
{
	if (err == -ESTALE)
		xl_fail_fast(ESTALE,
			     "get: what this token names is gone, or the token is another pool's");
	else if (err)
		xl_fail(-err, "get: %s", strerror(-err));
	return NULL;
}

/* Fill a handle with what a get by token knows. */
static inline struct xmem_buffer *fill_got(struct xmem_buffer *buffer, u64 token)
{
	buffer->slot = xm_token_slot(token);
	buffer->mode = XL_READING;
	buffer->what.token = token;
	buffer->what.sequence = buffer->what.timestamp_ns = 0;
	place_contents(buffer);
	return buffer;
}

/* Either the hold is not certain yet, or it is (@err is 0) and no handle was at hand. */
static XL_COLD struct xmem_buffer *get_slow(struct xmem_pool *pool, u64 token, int err)
{
	struct xmem_buffer *buffer;

	err = err ? hold_resolved(pool, token, err) : 0;
	if (err)
		return get_failed(pool, err);
	buffer = xl_handle_new(pool);
	if (!buffer) {
		xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
		return NULL;
	}
	return fill_got(buffer, token);
}

/*
 * The handle is taken after the hold, because stores between two locked additions cost more
 * than the additions. Each way out is a tail call, so that no registers have to be saved.
 */
XMEM_API struct xmem_buffer *xmem_get(struct xmem_pool *pool, uint64_t token)
{
	int err;

	if (unlikely(!pool || !xl_alive(pool)))
		return get_refused(pool);
	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	err = xm_get(&pool->map, pool->me, token);
	if (unlikely(err || !xl_handles_ready(pool)))
		return get_slow(pool, token, err);
	return fill_got(xl_handle_pop(pool), token);
}

/* ---- clone, release ---- */

static int check(const struct xmem_buffer *buffer, const char *message)
{
	if (unlikely(!buffer))
		return xl_fail_fast(EINVAL, message);
	if (unlikely(!xl_alive(buffer->pool)))
		return xl_fail_forked();
	return 0;
}

XMEM_API struct xmem_buffer *xmem_clone(struct xmem_buffer *buffer)
{
	struct xmem_buffer *clone;
	int err;

	if (check(buffer, "clone: no buffer"))
		return NULL;
	if (buffer->mode != XL_READING) {
		xl_fail_fast(EPERM, "clone: it is still being written");
		return NULL;
	}
	clone = xl_handle_new(buffer->pool);
	if (!clone)
		return NULL;
	err = xm_hold_more(&buffer->pool->map, buffer->pool->me, buffer->slot);
	if (err) {
		xl_handle_free(clone);
		xl_fail_fast(-err, "clone: too many handles of one buffer");
		return NULL;
	}
	clone->slot = buffer->slot;
	clone->mode = XL_READING;
	clone->what = buffer->what;
	return clone;
}

static XL_SLOW void release_slow(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;

	if (buffer->mode == XL_READING) {
		xl_do(pool, xm_put(&pool->map, pool->me, buffer->slot));
	} else if (buffer->mode == XL_WRITING) {
		xl_owned_give_up(pool, buffer->slot);
	} else {
		return;		/* it has been dropped already */
	}
	xl_handle_free(buffer);
}

XMEM_API void xmem_release(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool;
	struct xm_pending pending;
	u32 slot;

	if (unlikely(!buffer || !xl_alive(buffer->pool)))
		return;
	pool = buffer->pool;
	if (unlikely(buffer->mode != XL_READING || !xl_handles_free(pool)))
		return release_slow(buffer);
	slot = buffer->slot;
	xl_handle_push(pool, buffer);	/* before the put, for the reason that xmem_get has */
	pending = xm_put(&pool->map, pool->me, slot);
	if (unlikely(pending.what != XM_NOTHING))
		xl_do_pending(pool, pending);
}

/* ---- what a handle can be asked ---- */

static char *data_of(struct xmem_buffer *buffer)
{
	char *data = xl_payload_data(buffer->pool, buffer->slot);

	return likely(data) ? data + buffer->what.offset : NULL;
}

XMEM_API const void *xmem_data(struct xmem_buffer *buffer)
{
	return check(buffer, "data: no buffer") ? NULL : data_of(buffer);
}

XMEM_API void *xmem_data_mut(struct xmem_buffer *buffer)
{
	if (check(buffer, "data: no buffer"))
		return NULL;
	if (buffer->mode != XL_WRITING) {
		xl_fail_fast(EPERM, "data: published contents do not change; only a buffer from "
				    "xmem_acquire is writable");
		return NULL;
	}
	return data_of(buffer);
}

XMEM_API size_t xmem_size(struct xmem_buffer *buffer)
{
	return buffer ? buffer->what.length : 0;
}

XMEM_API size_t xmem_capacity(struct xmem_buffer *buffer)
{
	if (!buffer || !xl_alive(buffer->pool))
		return 0;
	return xm_slot_row(&buffer->pool->map, buffer->slot)
		->length; /* a held slot's length does not change */
}

XMEM_API uint64_t xmem_token(struct xmem_buffer *buffer)
{
	return buffer ? buffer->what.token : 0;
}

XMEM_API uint64_t xmem_sequence(struct xmem_buffer *buffer)
{
	return buffer ? buffer->what.sequence : 0;
}

XMEM_API uint64_t xmem_timestamp_ns(struct xmem_buffer *buffer)
{
	return buffer ? buffer->what.timestamp_ns : 0;
}

XMEM_API const struct xmem_metadata *xmem_buffer_metadata(struct xmem_buffer *buffer)
{
	return check(buffer, "metadata: no buffer") ? NULL
						    : xm_metadata(&buffer->pool->map, buffer->slot);
}

XMEM_API struct xmem_metadata *xmem_buffer_metadata_mut(struct xmem_buffer *buffer)
{
	if (check(buffer, "metadata: no buffer"))
		return NULL;
	if (buffer->mode != XL_WRITING) {
		xl_fail_fast(EPERM, "metadata: only a buffer from xmem_acquire is writable");
		return NULL;
	}
	return xm_metadata(&buffer->pool->map, buffer->slot);
}
