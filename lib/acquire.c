// SPDX-License-Identifier: MIT
/*
 * Acquire: find a slot to write into, at once, by collecting, or by waiting.
 */
#include <string.h>

#include "died.h"
#include "handle.h"
#include "holders.h"
#include "owned.h"
#include "pages.h"
#include "request.h"

/* Get a new range of generations: this tenancy's are used up after 2^23 publications. */
static XL_COLD int renew(struct xmem_pool *pool, u32 slot)
{
	struct xmem_slot_request request = { .size = sizeof(request), .slot = slot };

	return xl_request(pool, XMEM_IOC_RENEW, &request);
}

/* Take *link, which is READY, out of its list. */
static inline u32 take_out(struct xl_owned *owned, struct xl_owned_slot **link)
{
	owned->out++;
	if (unlikely(owned->blocked_since_ns))
		owned->blocked_since_ns = 0;
	return xl_queue_take(&owned->list[XL_LIST_READY], link)->index;
}

/*
 * Find a slot to write into. Returns 0, -EAGAIN if there is none, or another error, which
 * is noted. Under owned->lock.
 */
static int take_slot(struct xmem_pool *pool, u64 bytes, u32 *ret_slot)
{
	struct xl_queue *ready = &pool->owned.list[XL_LIST_READY],
			*unused = &pool->owned.list[XL_LIST_FREE];
	struct xl_owned_slot **link = xl_queue_find(ready, bytes);

	if (unlikely(xl_ring_is_full(pool)))
		return -EAGAIN;
	if (!*link) {
		link = xl_queue_find(unused, bytes);
		if (*link) {
			xm_take(&pool->map, (*link)->index);
			xl_queue_add(ready, xl_queue_take(unused, link));
		} else {
			if (!xl_collect(pool, bytes))
				return -EAGAIN;
		}
		link = xl_queue_find(ready, bytes);
	}
	if (!xl_generations_left(pool, (*link)->index)) {
		int err = renew(pool, (*link)->index);

		if (err)
			return xl_fail(-err, "acquire: new generations for slot %u: %s",
				       (*link)->index, strerror(-err));
	}
	*ret_slot = take_out(&pool->owned, link);
	return 0;
}

static XL_COLD int wait_failed(int err)
{
	if (err == -EINTR)
		return xl_fail_fast(EINTR, "wait for a free buffer: a signal handler ran");
	if (err == -ENOTCONN)
		return xl_fail_fast(ENOTCONN, "wait for a free buffer: the host has gone");
	return xl_fail(-err, "wait for a free buffer: %s", strerror(-err));
}

/*
 * Wait for a slot: arm, look again, sleep (I5). Slow subscribers are waited for no longer
 * than the writer's bound; then they are demoted, and there is one more look.
 */
static int wait_for_slot(struct xmem_pool *pool, u64 bytes, int64_t timeout_ns, u32 *ret_slot)
{
	struct xl_owned *owned = &pool->owned;
	u64 deadline = xl_deadline(timeout_ns), bound;
	u32 value;
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &value);
		if (err)
			return wait_failed(err);
		err = take_slot(pool, bytes, ret_slot);
		if (err != -EAGAIN)
			return err;
		bound = xl_demote_at(pool);
		xl_unlock(&owned->lock);
		err = xl_waiters_wait(pool, XMEM_WAIT_SLOTS, pool->me, value,
				      bound < deadline ? bound : deadline);
		xl_lock(&owned->lock);
		if (err == -ETIMEDOUT && bound < deadline) {
			xl_demote(pool);
		} else if (err == -ETIMEDOUT) {
			return xl_fail_no_buffer(pool, bytes, ETIMEDOUT);
		} else if (err) {
			return wait_failed(err);
		}
	}
}

static XL_COLD struct xmem_buffer *acquire_refused(struct xmem_pool *pool)
{
	if (!xl_check_writer(pool, "acquire"))
		xl_fail_fast(EINVAL, "acquire: a negative timeout");
	return NULL;
}

/* Make the handle one of which @bytes are to be written; 0: the whole buffer. */
static inline struct xmem_buffer *fill_acquired(struct xmem_buffer *buffer, u32 slot, u64 bytes)
{
	buffer->slot = slot;
	buffer->mode = XL_WRITING;
	buffer->what = (struct xm_publication){
		.length = likely(bytes) ? bytes : buffer->pool->owned.slot[slot].bytes,
	};
	return buffer;
}

/* No slot was found at once: say why, or wait for one. Under owned->lock. */
static int no_slot_yet(struct xmem_pool *pool, u64 bytes, int64_t timeout_ns, u32 *ret_slot)
{
	char name[XL_NAME_BYTES];
	u64 largest = pool->owned.largest;

	if (!largest)
		return xl_fail(ENOSPC, "%s: this writer has no buffers; preallocate some",
			       xl_pool_name(pool, name, sizeof(name)));
	if (bytes > largest)
		return xl_fail(ENOSPC,
			       "%s: no buffer of %llu bytes, the largest has %llu; preallocate "
			       "larger ones",
			       xl_pool_name(pool, name, sizeof(name)), (unsigned long long)bytes,
			       (unsigned long long)largest);
	if (!timeout_ns)
		return xl_fail_no_buffer(pool, bytes, EAGAIN);
	return wait_for_slot(pool, bytes, timeout_ns, ret_slot);
}

/* The way with locks, which may collect and wait. */
static XL_SLOW struct xmem_buffer *acquire_slow(struct xmem_pool *pool, u64 bytes,
						int64_t timeout_ns)
{
	struct xmem_buffer *buffer = xl_handle_new(pool);
	struct xl_owned *owned = &pool->owned;
	u32 slot;
	int err;

	if (unlikely(!buffer))
		return NULL;
	xl_lock(&owned->lock);
	err = take_slot(pool, bytes, &slot);
	if (unlikely(err == -EAGAIN && xl_demote_at(pool) <= xl_now_ns())) {
		xl_demote(pool);
		err = take_slot(pool, bytes, &slot);
	}
	if (unlikely(err == -EAGAIN))
		err = no_slot_yet(pool, bytes, timeout_ns, &slot);
	xl_unlock(&owned->lock);
	if (likely(!err))
		return fill_acquired(buffer, slot, bytes);
	xl_handle_free(buffer);
	return NULL;
}

XMEM_API struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns)
{
	struct xl_owned_slot **link;

	if (unlikely(!pool || !xl_alive(pool) || pool->role != XMEM_ROLE_WRITER || timeout_ns < 0))
		return acquire_refused(pool);
	if (xl_host_died(pool))
		return xl_fail_died(pool), NULL;
	if (likely(xl_handles_ready(pool) && xl_ring_is_ample(pool))) {
		link = xl_queue_find(&pool->owned.list[XL_LIST_READY], bytes);
		if (likely(*link && xl_generations_left(pool, (*link)->index)))
			return fill_acquired(xl_handle_pop(pool), take_out(&pool->owned, link),
					     bytes);
	}
	return acquire_slow(pool, bytes, timeout_ns);
}
