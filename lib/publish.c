// SPDX-License-Identifier: MIT
/*
 * Publish: the contents become readable for ever and go into the ring.
 */
#include "handle.h"
#include "owned.h"
#include "request.h"

static int check_publish(const struct xmem_buffer *buffer,
			 const struct xmem_publish_options *options)
{
	u64 length;

	if (!buffer)
		return xl_fail_fast(EINVAL, "publish: no buffer");
	if (!xl_alive(buffer->pool))
		return xl_fail_forked();
	if (buffer->mode != XL_WRITING)
		return xl_fail_fast(EPERM,
				    "publish: only a buffer from xmem_acquire can be published");
	if (!options)
		return 0;
	if (options->size != sizeof(*options) || options->flags & ~XMEM_PUBLISH_KEEP ||
	    options->reserved)
		return xl_fail_fast(
			EINVAL,
			"xmem_publish_options: wrong size, unknown flags, or reserved not 0");
	length = buffer->what.length;
	if (options->offset > length || options->length > length - options->offset)
		return xl_fail(ERANGE, "publish: %llu bytes from %llu on, of a buffer of %llu",
			       (unsigned long long)options->length,
			       (unsigned long long)options->offset, (unsigned long long)length);
	return 0;
}

/* Publish and, ahead of need, scan for the next buffer; under owned->lock. true: a wake is owed. */
static inline bool publish_now(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	struct xl_owned *owned = &pool->owned;
	bool waiters;

	waiters = xm_publish(&pool->map, pool->me, buffer->slot, &buffer->what);
	owned->out--;
	if (unlikely(owned->blocked_since_ns))
		owned->blocked_since_ns = 0;
	if (unlikely(!owned->list[XL_LIST_READY].first && !owned->list[XL_LIST_FREE].first)) {
		struct xl_owned_slot **link = &owned->list[XL_LIST_LIVE].first;

		xl_scan_batch(pool, XL_LIST_LIVE, &link, 0, false);
	}
	xl_queue_add(&owned->list[XL_LIST_LIVE],
		     &owned->slot[buffer->slot]); /* last: it is not scanned at once */
	return waiters;
}

/* The handle stays, for reading: its hold is taken before the contents are LIVE. */
static XL_COLD int keep(struct xmem_buffer *buffer, u64 offset)
{
	struct xmem_pool *pool = buffer->pool;
	int err = xm_hold_more(&pool->map, pool->me, buffer->slot);

	if (err)
		return xl_fail_fast(-err, "publish: too many handles of one buffer");
	xl_lock(&pool->lock);		/* another thread may just be mapping it */
	buffer->what.offset = offset;
	if (buffer->mapping)
		__atomic_store_n(&buffer->data, buffer->data + offset, __ATOMIC_RELEASE);
	xl_unlock(&pool->lock);
	return 0;
}

XMEM_API int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
			  uint64_t *ret_token)
{
	struct xm_publication *what;
	struct xmem_metadata *metadata;
	struct xmem_pool *pool;
	bool kept = false, waiters;
	int err = check_publish(buffer, options);

	if (unlikely(err))
		return err;
	pool = buffer->pool;
	what = &buffer->what;
	if (options) {
		kept = options->flags & XMEM_PUBLISH_KEEP;
		if (unlikely(kept && keep(buffer, options->offset)))
			return -EOVERFLOW;
		what->timestamp_ns = options->timestamp_ns;
		what->offset = options->offset;
		what->length = options->length ? options->length : what->length - options->offset;
	}
	/* For those who get it by its token. Mostly that is there already: spare the readers' line.
	 */
	metadata = xm_metadata(&pool->map, buffer->slot);
	if (unlikely(metadata->size != what->length))
		metadata->size = what->length;
	if (unlikely(metadata->offset != what->offset))
		metadata->offset = what->offset;

	xl_lock(&pool->owned.lock);
	waiters = publish_now(pool, buffer);
	xl_unlock(&pool->owned.lock);
	xl_owned_wake(pool);
	if (unlikely(waiters))
		xl_waiters_wake(pool, XMEM_WAIT_RING, pool->me);
	if (ret_token)
		*ret_token = what->token;
	if (unlikely(kept))
		buffer->mode = XL_READING;
	else
		xl_handle_free(buffer);
	return 0;
}
