// SPDX-License-Identifier: MIT
/*
 * The owner: making slots, finding one that nobody uses any more, publishing.
 * Its own slots stand in lists by what it knows of them:
 *
 *   FREE -> OUT -> LIVE -> READY -> OUT ...      all goes well
 *                  LIVE -> BUSY -> READY         somebody still had it: limbo
 *
 * A walk costs cache lines that readers write, so it takes several slots at
 * once, and one is done right after publishing, ahead of need.
 */
#include <stdlib.h>
#include <string.h>

#include "private.h"

#define MAX_BATCH	16

/* ---- lists; all under owner->lock ---- */

static void list_remove(struct xm_owner *owner, u32 slot)
{
	struct xm_own *own = &owner->own[slot];

	if (own->prev != XM_NO_SLOT)
		owner->own[own->prev].next = own->next;
	else
		owner->head[own->list] = own->next;
	if (own->next != XM_NO_SLOT)
		owner->own[own->next].prev = own->prev;
	else
		owner->tail[own->list] = own->prev;
	owner->count[own->list]--;
}

static void list_append(struct xm_owner *owner, u32 slot, u32 list)
{
	struct xm_own *own = &owner->own[slot];

	own->list = list;
	own->next = XM_NO_SLOT;
	own->prev = owner->tail[list];
	if (own->prev != XM_NO_SLOT)
		owner->own[own->prev].next = slot;
	else
		owner->head[list] = slot;
	owner->tail[list] = slot;
	owner->count[list]++;
}

static void list_move(struct xm_owner *owner, u32 slot, u32 list)
{
	list_remove(owner, slot);
	list_append(owner, slot, list);
}

int xm_owner_init(struct xmem_pool *pool, u64 wait_bound_ns)
{
	struct xm_owner *owner = &pool->owner;
	u32 i;

	owner->own = calloc(pool->map.slots, sizeof(*owner->own));
	if (!owner->own)
		return -ENOMEM;
	for (i = 0; i < XM_LISTS; i++)
		owner->head[i] = owner->tail[i] = XM_NO_SLOT;
	owner->wait_bound_ns = wait_bound_ns;
	return 0;
}

/* ---- preallocate ---- */

static int check_writer(struct xmem_pool *pool, const char *what)
{
	if (!pool)
		return xm_fail(EINVAL, "%s: no pool", what);
	if (!xm_alive(pool))
		return xm_fail_forked();
	if (pool->role != XMEM_ROLE_WRITER)
		return xm_fail(EPERM, "%s: this client is a reader; open the pool with XMEM_OPEN_WRITER", what);
	return 0;
}

XMEM_API int xmem_preallocate(struct xmem_pool *pool, unsigned int count, size_t bytes)
{
	struct xm_owner *owner;
	u16 *slot;
	u32 i;
	int err = check_writer(pool, "preallocate");

	if (err)
		return err;
	if (!count || count > pool->map.slots || !bytes || bytes > (1ULL << 46) / count)
		return xm_fail(EINVAL, "preallocate %u buffers of %zu bytes: at least one of each, at most %u buffers",
			       count, bytes, pool->map.slots);
	slot = calloc(count, sizeof(*slot));
	if (!slot)
		return xm_fail(ENOMEM, "no memory for a list of %u slots", count);
	owner = &pool->owner;
	xm_lock(&owner->lock);
	err = xm_payload_make(pool, count, bytes, slot);
	if (!err) {
		for (i = 0; i < count; i++)
			list_append(owner, slot[i], XM_LIST_FREE);
		owner->slots += count;
		owner->batch = owner->slots / 4 < 1 ? 1 : owner->slots / 4 > MAX_BATCH ? MAX_BATCH : owner->slots / 4;
	}
	xm_unlock(&owner->lock);
	free(slot);
	return err;
}

/* ---- the collector ---- */

static bool large_enough(struct xmem_pool *pool, u32 slot, u64 bytes)
{
	return pool->map.row[slot].length >= bytes;
}

static u32 first_in(struct xmem_pool *pool, u32 list, u64 bytes)
{
	struct xm_owner *owner = &pool->owner;
	u32 slot;

	for (slot = owner->head[list]; slot != XM_NO_SLOT; slot = owner->own[slot].next)
		if (large_enough(pool, slot, bytes))
			return slot;
	return XM_NO_SLOT;
}

static u32 protected_entries(const struct xmem_pool *pool)
{
	u32 half = pool->owner.slots / 2;

	return half < pool->map.ring_mask + 1 ? half : pool->map.ring_mask + 1;
}

/* Walk a batch of @list, from *at on; what nobody has becomes READY, the rest BUSY. */
static u64 walk_batch(struct xmem_pool *pool, u32 *at, u64 bytes, bool take_back)
{
	struct xm_owner *owner = &pool->owner;
	struct xm_walk how = {
		.owner = pool->me, .depth = protected_entries(pool), .take_back = take_back, .lapsed = owner->lapsed,
	};
	u32 slot[MAX_BATCH], count = 0, most = take_back ? 1 : owner->batch, i;
	u64 mine;

	for (; *at != XM_NO_SLOT && count < most; *at = owner->own[*at].next)
		if (large_enough(pool, *at, bytes))
			slot[count++] = *at;
	mine = count ? xm_walk(&pool->map, &how, slot, count) : 0;
	for (i = 0; i < count; i++) {
		if (mine >> i & 1)
			list_move(owner, slot[i], XM_LIST_READY);
		else if (owner->own[slot[i]].list == XM_LIST_LIVE)
			list_move(owner, slot[i], XM_LIST_BUSY);
	}
	return mine;
}

static bool walk_list(struct xmem_pool *pool, u32 list, u64 bytes, bool take_back)
{
	u32 at = pool->owner.head[list];

	while (at != XM_NO_SLOT)
		if (walk_batch(pool, &at, bytes, take_back))
			return true;
	return false;
}

/* What nobody uses; failing that, the oldest of what subscribers may lose. */
static bool collect(struct xmem_pool *pool, u64 bytes)
{
	return walk_list(pool, XM_LIST_LIVE, bytes, false) || walk_list(pool, XM_LIST_BUSY, bytes, false) ||
	       walk_list(pool, XM_LIST_BUSY, bytes, true);
}

/* ---- slow subscribers ---- */

/* A subscriber that has moved since we gave it up is waited for again. */
static void forgive_lapsed(struct xmem_pool *pool)
{
	struct xm_owner *owner = &pool->owner;
	u32 c;

	for (c = 0; c < pool->map.clients; c++)
		if (owner->lapsed[c / 64] >> c % 64 & 1 &&
		    xm_load_acquire(xm_cursor(&pool->map, c, pool->me)) != owner->lapsed_at[c])
			owner->lapsed[c / 64] &= ~(1ULL << c % 64);
}

/* The bound is over: from now on the laggards lose the oldest (P9). */
static void lapse(struct xmem_pool *pool)
{
	struct xm_owner *owner = &pool->owner;
	u64 tail = xm_load(&xm_ring(&pool->map, pool->me)->tail);
	u32 c;

	for (c = 0; c < pool->map.clients; c++) {
		u64 cursor;

		if (!xm_bit(pool->map.client[pool->me].waits, c))
			continue;
		cursor = xm_load_acquire(xm_cursor(&pool->map, c, pool->me));
		if (cursor >= tail)
			continue;
		owner->lapsed[c / 64] |= 1ULL << c % 64;
		owner->lapsed_at[c] = cursor;
	}
	owner->blocked_since_ns = 0;
}

/* When slow subscribers lapse, counted over all acquires since the first that found nothing. */
static u64 lapse_at(struct xm_owner *owner)
{
	if (!owner->wait_bound_ns)
		return ~0ULL;
	if (!owner->blocked_since_ns)
		owner->blocked_since_ns = xm_now_ns();
	return owner->blocked_since_ns + owner->wait_bound_ns;
}

static bool any_lapsed(const struct xm_owner *owner)
{
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= owner->lapsed[i];
	return any;
}

/* Would one more publication overwrite what a subscriber that we wait for has not seen? */
static bool ring_is_full(struct xmem_pool *pool)
{
	struct xm_owner *owner = &pool->owner;
	u64 entries = pool->map.ring_mask + 1;

	if (owner->slots <= entries)
		return false;		/* each unseen entry keeps a slot: those run out first */
	return xm_load(&xm_ring(&pool->map, pool->me)->tail) + owner->count[XM_LIST_OUT] + 1 -
	       xm_least_waiting(&pool->map, pool->me, owner->lapsed) > entries;
}

/* ---- acquire ---- */

/* Generations of this tenancy used up (2^35 publications of one slot): a new range. */
static int renew(struct xmem_pool *pool, u32 slot)
{
	struct xmem_slot request = { .size = sizeof(request), .slot = slot };

	if (likely(xm_in_tenancy(xm_generation(xm_load(&xm_slot(&pool->map, slot)->state)),
				 xm_load(&pool->map.row[slot].generation_first))))
		return 0;
	return xm_request(pool, XMEM_IOC_RENEW, &request);
}

/* A slot to write into, OUT; -EAGAIN; under owner->lock. */
static int take_slot(struct xmem_pool *pool, u64 bytes, u32 *ret_slot)
{
	struct xm_owner *owner = &pool->owner;
	u32 slot;
	int err;

	if (unlikely(ring_is_full(pool)))
		return -EAGAIN;
	slot = first_in(pool, XM_LIST_READY, bytes);
	if (slot == XM_NO_SLOT) {
		slot = first_in(pool, XM_LIST_FREE, bytes);
		if (slot != XM_NO_SLOT)
			xm_take(&pool->map, slot);
	}
	if (slot == XM_NO_SLOT) {
		if (any_lapsed(owner))
			forgive_lapsed(pool);
		if (!collect(pool, bytes))
			return -EAGAIN;
		slot = first_in(pool, XM_LIST_READY, bytes);
	}
	list_move(owner, slot, XM_LIST_OUT);
	err = renew(pool, slot);
	if (err) {
		list_move(owner, slot, XM_LIST_READY);
		return err;
	}
	owner->blocked_since_ns = 0;
	*ret_slot = slot;
	return 0;
}

static bool has_such(struct xmem_pool *pool, u64 bytes)
{
	u32 list;

	for (list = XM_LIST_FREE; list < XM_LISTS; list++)
		if (first_in(pool, list, bytes) != XM_NO_SLOT)
			return true;
	return false;
}

/*
 * Wait for a slot: arm, look again, sleep (I5). Slow subscribers are waited for
 * no longer than our bound; then they lapse and we look once more.
 */
static int wait_for_slot(struct xmem_pool *pool, u64 bytes, int64_t timeout_ns, u32 *ret_slot)
{
	struct xm_owner *owner = &pool->owner;
	u64 deadline = xm_deadline(timeout_ns), bound;
	u32 value;
	int err;

	for (;;) {
		err = xm_sleep_arm(pool, XMEM_SLEEP_SLOTS, pool->me, &value);
		if (err)
			return xm_fail(-err, "wait for a free buffer: %s", strerror(-err));
		err = take_slot(pool, bytes, ret_slot);
		if (err != -EAGAIN)
			return err;
		bound = lapse_at(owner);
		xm_unlock(&owner->lock);
		err = xm_sleep_wait(pool, XMEM_SLEEP_SLOTS, pool->me, value, bound < deadline ? bound : deadline);
		xm_lock(&owner->lock);
		if (err == -ETIMEDOUT && bound < deadline) {
			lapse(pool);
		} else if (err == -ETIMEDOUT) {
			return xm_fail_fast(ETIMEDOUT, "no buffer came free in time: all are held or in flight");
		} else if (err) {
			return xm_fail(-err, "wait for a free buffer: %s", strerror(-err));
		}
	}
}

XMEM_API struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns)
{
	struct xm_owner *owner;
	struct xmem_buffer *buffer;
	u32 slot;
	int err;

	if (unlikely(!pool || !xm_alive(pool) || pool->role != XMEM_ROLE_WRITER || timeout_ns < 0)) {
		if (!check_writer(pool, "acquire"))
			xm_fail_fast(EINVAL, "acquire: a negative timeout");
		return NULL;
	}
	buffer = xm_handle_new(pool);
	if (unlikely(!buffer))
		return NULL;
	owner = &pool->owner;
	xm_lock(&owner->lock);
	err = take_slot(pool, bytes, &slot);
	if (unlikely(err == -EAGAIN && lapse_at(owner) <= xm_now_ns())) {
		lapse(pool);
		err = take_slot(pool, bytes, &slot);
	}
	if (unlikely(err == -EAGAIN)) {
		if (!has_such(pool, bytes))
			err = xm_fail(ENOSPC, "acquire: no buffer of %zu bytes in this pool: see xmem_preallocate", bytes);
		else if (!timeout_ns)
			err = xm_fail_fast(EAGAIN, "acquire: all buffers are held or in flight");
		else
			err = wait_for_slot(pool, bytes, timeout_ns, &slot);
	} else if (unlikely(err)) {
		xm_fail(-err, "acquire: %s", strerror(-err));
	}
	xm_unlock(&owner->lock);
	if (unlikely(err)) {
		xm_handle_free(buffer);
		return NULL;
	}
	buffer->slot = slot;
	buffer->mode = XM_WRITING;
	buffer->token = buffer->sequence = buffer->timestamp_ns = buffer->offset = 0;
	buffer->length = pool->map.row[slot].length;
	return buffer;
}

/* A buffer that was acquired and is not published after all. */
void xm_owner_give_up(struct xmem_pool *pool, u32 slot)
{
	struct xm_owner *owner = &pool->owner;

	xm_lock(&owner->lock);
	xm_give_up(&pool->map, slot);
	list_move(owner, slot, XM_LIST_FREE);
	xm_unlock(&owner->lock);
	/* Another thread of ours may wait for just this one. */
	if (unlikely(xm_load(&pool->map.client[pool->me].slots_sleepers) & XMEM_SLEEPERS_ARMED))
		xm_sleep_wake(pool, XMEM_SLEEP_SLOTS, pool->me);
}

/* ---- publish ---- */

static int check_publish(const struct xmem_buffer *buffer, const struct xmem_publish_options *options)
{
	u64 length;

	if (!buffer)
		return xm_fail_fast(EINVAL, "publish: no buffer");
	if (!xm_alive(buffer->pool))
		return xm_fail_forked();
	if (buffer->mode != XM_WRITING)
		return xm_fail_fast(EPERM, "publish: only a buffer from xmem_acquire can be published");
	if (!options)
		return 0;
	if (options->size != sizeof(*options) || options->flags & ~XMEM_PUBLISH_KEEP || options->reserved)
		return xm_fail_fast(EINVAL, "xmem_publish_options: wrong size, unknown flags, or reserved not 0");
	length = buffer->length;
	if (options->offset > length || options->length > length - options->offset)
		return xm_fail(ERANGE, "publish: %llu bytes from %llu on, of a buffer of %llu",
			       (unsigned long long)options->length, (unsigned long long)options->offset,
			       (unsigned long long)length);
	return 0;
}

/* The handle stays for reading; its hold is taken before the contents are LIVE. */
static void keep(struct xmem_buffer *buffer, const struct xm_publication *what)
{
	if (buffer->mapping)
		__atomic_store_n(&buffer->data, buffer->data + what->offset, __ATOMIC_RELEASE);
	buffer->mode = XM_READING;
	buffer->token = what->token;
	buffer->sequence = what->sequence;
	buffer->timestamp_ns = what->timestamp_ns;
	buffer->offset = what->offset;
	buffer->length = what->length;
}

XMEM_API int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options, uint64_t *ret_token)
{
	struct xm_publication what = { 0 };
	struct xmem_metadata *record;
	struct xmem_pool *pool;
	struct xm_owner *owner;
	bool kept, sleepers;
	u32 at;
	int err = check_publish(buffer, options);

	if (unlikely(err))
		return err;
	pool = buffer->pool;
	owner = &pool->owner;
	kept = options && options->flags & XMEM_PUBLISH_KEEP;
	what.timestamp_ns = options ? options->timestamp_ns : 0;
	what.offset = options ? options->offset : 0;
	what.length = options && options->length ? options->length : buffer->length - what.offset;
	record = xm_record(&pool->map, buffer->slot);
	record->size = what.length;
	record->offset = what.offset;

	xm_lock(&owner->lock);
	if (kept)
		xm_hold_more(&pool->map, pool->me, buffer->slot);
	sleepers = xm_publish(&pool->map, pool->me, buffer->slot, &what);
	list_move(owner, buffer->slot, XM_LIST_LIVE);
	if (owner->head[XM_LIST_READY] == XM_NO_SLOT && owner->head[XM_LIST_FREE] == XM_NO_SLOT) {
		at = owner->head[XM_LIST_LIVE];
		walk_batch(pool, &at, 0, false);
	}
	xm_unlock(&owner->lock);
	if (unlikely(sleepers))
		xm_sleep_wake(pool, XMEM_SLEEP_RING, pool->me);
	if (ret_token)
		*ret_token = what.token;
	if (kept)
		keep(buffer, &what);
	else
		xm_handle_free(buffer);
	return 0;
}
