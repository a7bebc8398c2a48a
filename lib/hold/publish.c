// SPDX-License-Identifier: MIT
/*
 * xmem_publish: check the options, make the contents readable, and put them into the ring. Contents
 * that are held for reading are forwarded by forward.c, and those that were written in place are
 * published by inplace.c.
 */
#include "lib/base/handle.h"
#include "lib/base/structs.h"
#include "lib/gpu/order.h"
#include "lib/hold/attach.h"
#include "lib/hold/inplace.h"
#include "lib/hold/publish.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/payload/view.h"

/* ---- options ---- */

static int check_stream(const struct xmem_buffer *buffer)
{
	if (!xl_is_on_gpu(buffer))
		return xl_fail_fast(EMEDIUMTYPE, "the buffer is in memory of the CPU; "
				    "wait for the stream, then publish it without a stream");
	if (!(xm_load(&buffer->mode) & XL_WRITING))
		return xl_fail_fast(EPERM, "no stream writes a buffer that is held for "
				    "reading; publish it without a stream");
	return 0;
}

/* Copy the options into *o, which is zero, and check all that needs no look at the contents. */
static int take_options(const struct xmem_buffer *buffer,
			const struct xmem_publish_options *options,
			struct xmem_publish_options *o)
{
	int err = xl_options_take("xmem_publish_options", options, o, sizeof(*o));
	u32 unknown = o->flags & ~(XMEM_PUBLISH_KEEP | XMEM_PUBLISH_CLIENT);

	if (unlikely(err))
		return err;
	if (unlikely(unknown))
		return xl_fail(EINVAL, "xmem_publish_options: flags has 0x%x, which has no meaning",
			       unknown);
	if (unlikely(o->client && !(o->flags & XMEM_PUBLISH_CLIENT)))
		return xl_fail(EINVAL, "xmem_publish_options: client is %u, but flags lack "
			       "XMEM_PUBLISH_CLIENT", o->client);
	if (unlikely(o->timeout_ns < 0))
		return xl_fail_fast(EINVAL, "a negative timeout");
	return o->stream ? check_stream(buffer) : 0;
}

/* Find the incarnation of a subscriber of this client. 0, or -errno, noted: it is no subscriber. */
static int find_subscriber(const struct xmem_pool *pool, u32 client, u64 *ret)
{
	const struct xmem_client_row *row;

	if (client >= pool->map.clients)
		return xl_fail(EINVAL, "client is %u, but ids of the pool end at %u",
			       client, pool->map.clients - 1);
	row = xm_client_row(&pool->map, client);
	/*
	 * The incarnation is read before the bit: a client that has ended since has lost its bit
	 * before its id.
	 */
	*ret = xm_load_acquire(&row->incarnation);
	if (xm_load_acquire(&row->state) == XMEM_CLIENT_ALIVE && *ret &&
	    xm_bit(xm_client_row(&pool->map, pool->me)->subscribers, client))
		return 0;
	return xl_fail(ENOENT, "client %u is not there, or does not follow this one",
		       client);
}

/*
 * Find the part of a buffer that is being written. Its writer counts from the first byte that it
 * was given (xl_capacity).
 */
static int place_written(const struct xmem_buffer *buffer, const struct xmem_publish_options *o,
			 struct xm_publication *what)
{
	u64 acquired = buffer->what.length, capacity = xl_capacity(buffer);

	if (unlikely(o->length ? o->offset > capacity || o->length > capacity - o->offset :
				 o->offset > acquired))
		return xl_fail(ERANGE,
			       "%llu bytes from %llu on; %llu of %llu were acquired",
			       (unsigned long long)o->length, (unsigned long long)o->offset,
			       (unsigned long long)acquired, (unsigned long long)capacity);
	*what = (struct xm_publication){
		.timestamp_ns = o->timestamp_ns,
		.offset = buffer->what.offset + o->offset,
		.length = o->length ? o->length : acquired - o->offset,
	};
	return 0;
}

/* Find the part of contents that are held for reading. */
static int place_held(struct xmem_buffer *buffer, const struct xmem_publish_options *o,
		      struct xm_publication *what)
{
	u64 skipped;

	xl_place_contents(buffer);
	*what = buffer->what;
	if (o->timestamp_ns)
		what->timestamp_ns = o->timestamp_ns;
	if (!o->offset && !o->length)
		return 0;
	skipped = o->offset - what->offset;
	if (o->offset < what->offset || skipped > what->length ||
	    o->length > what->length - skipped)
		return xl_fail(ERANGE, "%llu bytes from %llu on; the contents are %llu "
				       "bytes from %llu on",
			       (unsigned long long)o->length, (unsigned long long)o->offset,
			       (unsigned long long)what->length, (unsigned long long)what->offset);
	what->offset = o->offset;
	what->length = o->length ? o->length : what->length - skipped;
	return 0;
}

/* ---- into the ring ---- */

/*
 * Does @size have a buffer for the next acquire, and the ring an entry at @tail that no subscriber
 * needs?
 */
static XL_INLINE bool is_fast(const struct xl_owned *owned, const struct xl_size *size, u64 tail)
{
	return likely(tail < owned->fast_end) &&
	       (xl_has_ready(size) || likely(size->free.first));
}

/*
 * Put the buffer into the ring, and collect if the next acquire would find no buffer. @addressee:
 * the only subscriber that may receive it, or 0. Under owned->lock.
 */
static void publish_and_collect(struct xmem_pool *pool, struct xl_owned_slot *one,
				struct xm_publication *what, u64 addressee)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size = one->size;
	u64 overwritten = xl_overwritten_token(pool);

	if (xl_tail(pool) >= owned->room_end)
		xl_make_room(pool);
	xl_owned_changed(owned);
	xm_publish_as(&pool->map, &one->own, &owned->words, xl_tail(pool), what,
		      addressee ? XMEM_ENTRY_MARKED : 0, addressee);
	xl_put_overwritten(pool, overwritten);
	if (!xl_has_ready(size) && !size->free.first)
		xl_collect_passed(pool, size);
	/* Only after the scan, so that the scan does not read this slot. */
	xl_live_add(size, one);
}

/* Keep the handle for reading: take its hold before the contents are LIVE. */
static XL_COLD int keep(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	int err = xm_hold_more(&pool->map, pool->me, buffer->slot);

	if (err)
		return xl_fail_fast(-err, "too many handles of one buffer");
	buffer->origin = xl_origin(pool->me, pool->link.join.incarnation);
	return 0;
}

static void publish_wake(struct xmem_pool *pool)
{
	xl_attached_sweep(pool);
	xl_owned_wake(pool);
	if (xm_load(&pool->owned.words.row->ring_waiters) & XMEM_WAITERS_ARMED)
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
}

/*
 * The end of a publication after which other threads may have to be woken. The caller has
 * owned->lock, and this function leaves it.
 */
static XL_SLOW int publish_end(struct xmem_pool *pool, struct xmem_buffer *buffer,
			       uint64_t *ret_token, u64 token)
{
	xl_unlock(&pool->owned.lock);
	publish_wake(pool);
	xl_cache_expire(pool);
	if (ret_token)
		*ret_token = token;
	return xl_handle_drop(pool, buffer);
}

/* The lock is released, and its bias is revoked, so a waiting thread has to be woken. */
static XL_COLD int publish_revoked(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	xl_unlock_revoked(&pool->owned.lock, NULL);
	return xl_handle_drop(pool, buffer);
}

/* The rare cases. The caller has owned->lock, and this function leaves it. */
static XL_SLOW int publish_locked(struct xmem_pool *pool, struct xmem_buffer *buffer,
				  uint64_t *ret_token)
{
	publish_and_collect(pool, buffer->own, &buffer->what, 0);
	return publish_end(pool, buffer, ret_token, buffer->what.token);
}

static XL_SLOW int publish_with_mutex(struct xmem_pool *pool, struct xmem_buffer *buffer,
				      uint64_t *ret_token)
{
	xl_lock(&pool->owned.lock);
	return publish_locked(pool, buffer, ret_token);
}

static int publish_upgraded(struct xmem_buffer *buffer, struct xl_wish *wish, uint64_t *ret_token)
{
	struct xmem_pool *pool = buffer->pool;
	/*
	 * Without an addressee, for which the timeout is, this waits for the contents without a
	 * limit.
	 */
	int err = wish->addressee ? xl_order_wait_until(buffer, wish->options.timeout_ns) : 0;

	if (!err)
		err = xl_upgrade_publish(buffer, &wish->what, wish->addressee);
	if (err)
		return err;
	if (ret_token)
		*ret_token = wish->what.token;
	if (wish->options.flags & XMEM_PUBLISH_KEEP)
		return 0;
	xl_do(pool, xm_put(&pool->map, pool->me, buffer->slot));
	return xl_handle_drop(pool, buffer);
}

static int publish_written(struct xmem_buffer *buffer, const struct xl_wish *wish,
			   uint64_t *ret_token)
{
	struct xmem_pool *pool = buffer->pool;
	bool kept = wish->options.flags & XMEM_PUBLISH_KEEP;

	if (unlikely(kept && keep(buffer)))
		return -EOVERFLOW;
	buffer->what = wish->what;
	xl_record_place(buffer->own->metadata, buffer->what.offset, buffer->what.length);
	xl_fill_storage(buffer, buffer->own->metadata);
	xl_lock(&pool->owned.lock);
	if (wish->addressee)
		xl_keep_add_gap(&pool->owned, xl_tail(pool) + 1);
	publish_and_collect(pool, buffer->own, &buffer->what, wish->addressee);
	if (!kept)
		return publish_end(pool, buffer, ret_token, buffer->what.token);
	xl_unlock(&pool->owned.lock);
	publish_wake(pool);
	if (ret_token)
		*ret_token = buffer->what.token;
	xl_handle_use(buffer, XL_READING);
	return 0;
}

static void drop_held(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;

	xl_view_end(buffer);
	xl_do(pool, xm_put(&pool->map, pool->me, buffer->slot));
	xl_handle_drop(pool, buffer);
}

static XL_SLOW int publish_with_options(struct xmem_buffer *buffer,
					const struct xmem_publish_options *options,
					uint64_t *ret_token)
{
	XL_CALL_AS("publish");
	bool writing = xm_load(&buffer->mode) & XL_WRITING;
	struct xmem_pool *pool = buffer->pool;
	struct xl_wish wish = { .addressee = 0 };
	struct xmem_publish_options *o = &wish.options;
	int err = take_options(buffer, options, o);

	if (!err && !writing)
		err = xl_check_role(pool, o->timeout_ns);
	if (!err && o->flags & XMEM_PUBLISH_CLIENT)
		err = find_subscriber(pool, o->client, &wish.addressee);
	if (!err)
		err = writing ? place_written(buffer, o, &wish.what) :
				place_held(buffer, o, &wish.what);
	if (!err && o->stream)
		err = xl_order_publish(buffer, o->stream);
	if (unlikely(err))
		return err;
	if (!writing) {
		err = xl_forward(buffer, &wish, ret_token);
		if (!err && !(o->flags & XMEM_PUBLISH_KEEP))
			drop_held(buffer);
		return err;
	}
	return xm_load(&buffer->mode) & XL_UPGRADED ? publish_upgraded(buffer, &wish, ret_token) :
						      publish_written(buffer, &wish, ret_token);
}

/* ---- the fast path and the rare cases ---- */

/*
 * Publish all of @buffer, by the fast path if that is open. @buffer is being written, there are no
 * options, and its metadata are complete.
 */
static XL_INLINE int publish_fast(struct xmem_pool *pool, struct xmem_buffer *buffer,
				     uint64_t *ret_token)
{
	struct xl_owned_slot *one = buffer->own;
	struct xl_owned *owned = &pool->owned;
	struct xm_publication what = { 0 };
	u64 tail;

	if (unlikely(!xl_lock_biased(&owned->lock, xl_self.thread)))
		return publish_with_mutex(pool, buffer, ret_token);
	tail = xl_tail(pool);
	if (unlikely(!is_fast(owned, one->size, tail)))
		return publish_locked(pool, buffer, ret_token);
	xl_live_add(one->size, one);
	what.length = buffer->what.length;
	if (unlikely(xm_publish_at(&pool->map, &one->own, &owned->words, tail, &what) ||
		     xl_owned_is_waited_for(pool)))
		return publish_end(pool, buffer, ret_token, what.token);
	if (ret_token)
		*ret_token = what.token;
	if (unlikely(!xl_unlock_biased(&owned->lock, xl_self.thread)))
		return publish_revoked(pool, buffer);
	return xl_handle_drop(pool, buffer);
}

/* Publish a buffer in memory of a GPU. */
static XL_SLOW int publish_cuda(struct xmem_buffer *buffer, uint64_t *ret_token)
{
	struct xmem_metadata *metadata = buffer->own->metadata;

	xl_record_place(metadata, 0, buffer->what.length);
	xl_fill_storage(buffer, metadata);
	return publish_fast(buffer->pool, buffer, ret_token);
}

static XL_COLD int publish_died(struct xmem_pool *pool)
{
	XL_CALL_AS("publish");

	return xl_fail_died(pool);
}

static XL_SLOW int publish_rare(struct xmem_buffer *buffer,
				const struct xmem_publish_options *options, uint64_t *ret_token)
{
	struct xmem_pool *pool = buffer->pool;
	u32 mode = xm_load(&buffer->mode);

	if (xl_host_died(pool))
		return publish_died(pool);
	if (likely((mode & ~XL_ORDERED) == (XL_WRITING | XL_CUDA) && !options))
		return publish_cuda(buffer, ret_token);
	return publish_with_options(buffer, options, ret_token);
}

/*
 * The common case is here. All other cases are tail calls, so that few registers have to be saved.
 * This leaves ring.vain alone, because it is noted only while room_end is 0 (own/owned.h).
 */
XMEM_API int xmem_publish(struct xmem_buffer *handle, const struct xmem_publish_options *options,
			  uint64_t *ret_token)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xmem_pool *pool;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "publish");
	pool = buffer->pool;
	if (unlikely(xl_peek(&buffer->mode) != XL_WRITING || xl_host_died(pool)))
		return publish_rare(buffer, options, ret_token);
	if (unlikely(options))
		return publish_with_options(buffer, options, ret_token);
	xl_record_place(buffer->own->metadata, 0, buffer->what.length);
	return publish_fast(pool, buffer, ret_token);
}
