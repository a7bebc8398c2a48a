// SPDX-License-Identifier: MIT
/*
 * Publish: check what the caller wants, make the contents readable, and put them into the
 * ring.
 */
#include "core/publish.h"
#include "died.h"
#include "handle.h"
#include "owned.h"
#include "request.h"
#include "structs.h"

/* What the caller wants a publication to be. */
struct wish {
	bool keep;
	u64 timestamp_ns, offset, length;
};

/* Check the options against the buffer and put what they mean into *ret. */
static int check_options(const struct xmem_buffer *buffer,
			 const struct xmem_publish_options *options, struct wish *ret)
{
	struct xmem_publish_options o = { 0 };
	u64 acquired = buffer->what.length, capacity;
	int err = xl_options_take("xmem_publish_options", options, &o, sizeof(o));

	if (unlikely(err))
		return err;
	if (unlikely(o.flags & ~XMEM_PUBLISH_KEEP))
		return xl_fail(EINVAL, "xmem_publish_options: flags has 0x%x, which has no meaning",
			       o.flags & ~XMEM_PUBLISH_KEEP);
	if (unlikely(o.reserved))
		return xl_fail_fast(EINVAL, "xmem_publish_options: reserved is not 0");
	capacity = xl_slot_bytes(buffer->pool, buffer->slot);
	if (unlikely(o.length ? o.offset > capacity || o.length > capacity - o.offset :
				o.offset > acquired))
		return xl_fail(ERANGE,
			       "publish: %llu bytes from %llu on; %llu of %llu were acquired",
			       (unsigned long long)o.length, (unsigned long long)o.offset,
			       (unsigned long long)acquired, (unsigned long long)capacity);
	*ret = (struct wish){
		.keep = o.flags & XMEM_PUBLISH_KEEP,
		.timestamp_ns = o.timestamp_ns,
		.offset = o.offset,
		.length = o.length ? o.length : acquired - o.offset,
	};
	return 0;
}

/*
 * Publish, and scan for the next buffers before they are needed. Returns whether subscribers
 * have to be woken. Under owned->lock.
 */
static inline bool publish_now(struct xmem_pool *pool, struct xmem_buffer *buffer,
			       struct xl_owned_slot *one)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size = one->size;
	bool waiters;

	if (unlikely(xl_tail(pool) >= owned->room_end))
		xl_make_room(pool);
	waiters = xm_publish_at(&pool->map, one->word, owned->ring, owned->row, pool->me,
				one->index, &buffer->what);
	owned->none = false;
	if (unlikely(!size->list[XL_LIST_READY].first && !size->list[XL_LIST_FREE].first))
		xl_collect_passed(pool, size);
	/* After the scan, which so does not look at it. */
	xl_queue_add(&size->list[XL_LIST_LIVE], one);
	return waiters;
}

/* Keep the handle for reading: take its hold before the contents are LIVE. */
static XL_COLD int keep(struct xmem_buffer *buffer, u64 offset)
{
	struct xmem_pool *pool = buffer->pool;
	int err = xm_hold_more(&pool->map, pool->me, buffer->slot);

	if (err)
		return xl_fail_fast(-err, "publish: too many handles of one buffer");
	buffer->what.offset = offset;
	buffer->publisher = pool->me;
	return 0;
}

/*
 * Say where the contents lie, for clients that get them by their token. Mostly the metadata
 * say so already; then the cache line, which readers have, is not written.
 */
static inline void note_place(struct xmem_metadata *metadata, const struct xm_publication *what)
{
	if (unlikely(metadata->size != what->length))
		metadata->size = what->length;
	if (unlikely(metadata->offset != what->offset))
		metadata->offset = what->offset;
}

/* Do as the options say, before the contents are LIVE. */
static XL_SLOW int apply_options(struct xmem_buffer *buffer,
				 const struct xmem_publish_options *options, bool *ret_kept)
{
	struct xm_publication *what = &buffer->what;
	struct wish wish = { 0 };
	int err = check_options(buffer, options, &wish);

	if (unlikely(err))
		return err;
	if (unlikely(wish.keep && keep(buffer, wish.offset)))
		return -EOVERFLOW;
	*ret_kept = wish.keep;
	what->timestamp_ns = wish.timestamp_ns;
	what->offset = wish.offset;
	what->length = wish.length;
	return 0;
}

XMEM_API int xmem_publish(struct xmem_buffer *handle, const struct xmem_publish_options *options,
			  uint64_t *ret_token)
{
	struct xmem_buffer *buffer = xl_buffer(handle);
	struct xl_owned_slot *one;
	struct xmem_pool *pool;
	bool kept = false, waiters;
	int err;

	if (unlikely(!buffer))
		return xl_no_buffer(handle, "publish");
	if (unlikely(xm_load(&buffer->mode) != XL_WRITING))
		return xl_fail_fast(EPERM,
				    "publish: only a buffer from xmem_acquire can be published");
	pool = buffer->pool;
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	if (options) {
		err = apply_options(buffer, options, &kept);
		if (unlikely(err))
			return err;
	}
	one = &pool->owned.slot[buffer->slot];
	note_place(one->metadata, &buffer->what);

	xl_lock(&pool->owned.lock);
	waiters = publish_now(pool, buffer, one);
	xl_unlock(&pool->owned.lock);
	xl_owned_wake(pool);
	if (unlikely(waiters))
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	if (unlikely(xm_load(&pool->polls.pool)))
		xl_note_waiting(pool);
	if (ret_token)
		*ret_token = buffer->what.token;
	if (unlikely(kept))
		xl_handle_use(buffer, XL_READING);
	else
		xl_handle_drop(pool, buffer);
	return 0;
}
