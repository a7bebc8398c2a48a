// SPDX-License-Identifier: MIT
/*
 * The owner: making slots, finding one that nobody uses any more, publishing.
 * Its own slots stand in lists by what it knows of them:
 *
 *   FREE -> OUT -> LIVE -> READY -> OUT ...      all goes well
 *                  LIVE -> BUSY -> READY         somebody still had it: limbo
 *
 * A scan costs cache lines that readers write, so it takes several slots at
 * once, and one is done right after publishing, ahead of need.
 */
#include <stdlib.h>
#include <string.h>

#include "private.h"

#define MAX_BATCH	16

/* ---- lists; all under owner->lock, or where xl_handles_free says that nobody else is there ---- */

static inline void queue_add(struct xl_queue *queue, struct xl_own *own)
{
	own->next = NULL;
	*queue->last = own;
	queue->last = &own->next;
}

/* Take out what *link points to; @link is queue->first or the one before's next. */
static inline struct xl_own *queue_take(struct xl_queue *queue, struct xl_own **link)
{
	struct xl_own *own = *link;

	*link = own->next;
	if (unlikely(!own->next))
		queue->last = link;
	return own;
}

/* The link to the oldest that is large enough; it points to NULL if there is none. */
static inline struct xl_own **queue_find(struct xl_queue *queue, u64 bytes)
{
	struct xl_own **link;

	for (link = &queue->first; *link; link = &(*link)->next)
		if (likely((*link)->bytes >= bytes))
			break;
	return link;
}

int xl_owner_init(struct xmem_pool *pool, u64 wait_bound_ns)
{
	struct xl_owner *owner = &pool->owner;
	u32 i;

	owner->own = calloc(pool->map.slots, sizeof(*owner->own));
	if (!owner->own)
		return -ENOMEM;
	for (i = 0; i < pool->map.slots; i++)
		owner->own[i].slot = i;
	for (i = 0; i < XL_LISTS; i++)
		owner->list[i].last = &owner->list[i].first;
	owner->wait_bound_ns = wait_bound_ns;
	return 0;
}

/*
 * Something may be free now for another thread of ours. That armed its word and
 * looked in vain under owner->lock, which we have had since: so we see it (I5).
 */
static inline void wake_own(struct xmem_pool *pool)
{
	if (unlikely(xm_load(&xm_client_row(&pool->map, pool->me)->slots_waiters) & XMEM_WAITERS_ARMED))
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
}

/* ---- preallocate ---- */

static int check_writer(struct xmem_pool *pool, const char *what)
{
	if (!pool)
		return xl_fail(EINVAL, "%s: no pool", what);
	if (!xl_alive(pool))
		return xl_fail_forked();
	if (pool->role != XMEM_ROLE_WRITER)
		return xl_fail(EPERM, "%s: this client is a reader; open the pool with XMEM_OPEN_WRITER", what);
	return 0;
}

XMEM_API int xmem_preallocate(struct xmem_pool *pool, unsigned int count, size_t bytes)
{
	struct xl_owner *owner;
	u16 *slot;
	u32 i;
	int err = check_writer(pool, "preallocate");

	if (err)
		return err;
	if (!count || count > pool->map.slots || !bytes || bytes > (1ULL << 46) / count)
		return xl_fail(EINVAL, "preallocate %u buffers of %zu bytes: at least one of each, at most %u buffers",
			       count, bytes, pool->map.slots);
	slot = calloc(count, sizeof(*slot));
	if (!slot)
		return xl_fail(ENOMEM, "no memory for a list of %u slots", count);
	owner = &pool->owner;
	xl_lock(&pool->slow);		/* acquire and publish must not wait for files to be made */
	err = xl_payload_make(pool, count, bytes, slot);
	xl_unlock(&pool->slow);
	if (!err) {
		xl_lock(&owner->lock);
		for (i = 0; i < count; i++) {
			owner->own[slot[i]].bytes = bytes;
			queue_add(&owner->list[XL_LIST_FREE], &owner->own[slot[i]]);
		}
		owner->largest = bytes > owner->largest ? bytes : owner->largest;
		owner->slots += count;
		owner->batch = owner->slots / 4 < 1 ? 1 : owner->slots / 4 > MAX_BATCH ? MAX_BATCH : owner->slots / 4;
		xl_unlock(&owner->lock);
		wake_own(pool);
	}
	free(slot);
	return err;
}

/* ---- the collector ---- */

static u32 protected_entries(const struct xmem_pool *pool)
{
	u32 half = pool->owner.slots / 2;

	return half < pool->map.ring_mask + 1 ? half : pool->map.ring_mask + 1;
}

/*
 * Scan a batch of a list, from *link on; what nobody has becomes READY, the rest
 * BUSY. Leaves *link where the next batch begins.
 */
static u64 scan_batch(struct xmem_pool *pool, u32 list, struct xl_own ***link, u64 bytes, bool evict)
{
	struct xl_owner *owner = &pool->owner;
	struct xl_queue *queue = &owner->list[list];
	struct xm_scan_rules how = {
		.owner = pool->me, .depth = protected_entries(pool), .evict = evict, .demoted = owner->demoted,
	};
	u32 slot[MAX_BATCH], count = 0, most = evict ? 1 : owner->batch, i = 0;
	struct xl_own *own;
	u64 mine;

	for (own = **link; own && count < most; own = own->next)
		if (own->bytes >= bytes)
			slot[count++] = own->slot;
	mine = count ? xm_scan(&pool->map, &how, slot, count) : 0;
	while (**link != own) {
		bool scanned = i < count && (**link)->slot == slot[i];

		if (scanned && mine >> i & 1)
			queue_add(&owner->list[XL_LIST_READY], queue_take(queue, *link));
		else if (scanned && list == XL_LIST_LIVE)
			queue_add(&owner->list[XL_LIST_BUSY], queue_take(queue, *link));
		else
			*link = &(**link)->next;
		i += scanned;
	}
	return mine;
}

static bool scan_list(struct xmem_pool *pool, u32 list, u64 bytes, bool evict)
{
	struct xl_own **link = &pool->owner.list[list].first;

	while (*link)
		if (scan_batch(pool, list, &link, bytes, evict))
			return true;
	return false;
}

/* What nobody uses; failing that, the oldest of what subscribers may lose. */
static bool collect(struct xmem_pool *pool, u64 bytes)
{
	return scan_list(pool, XL_LIST_LIVE, bytes, false) || scan_list(pool, XL_LIST_BUSY, bytes, false) ||
	       scan_list(pool, XL_LIST_BUSY, bytes, true);
}

/* ---- slow subscribers ---- */

/* A subscriber that has moved since we gave it up is waited for again. */
static void forgive_demoted(struct xmem_pool *pool)
{
	struct xl_owner *owner = &pool->owner;
	u32 c;

	for (c = 0; c < pool->map.clients; c++)
		if (owner->demoted[c / 64] >> c % 64 & 1 &&
		    xm_load_acquire(xm_cursor(&pool->map, c, pool->me)) != owner->demoted_at[c])
			owner->demoted[c / 64] &= ~(1ULL << c % 64);
}

/* The bound is over: from now on the laggards lose the oldest (P9). */
static void demote(struct xmem_pool *pool)
{
	struct xl_owner *owner = &pool->owner;
	u64 tail = xm_load(&xm_ring(&pool->map, pool->me)->tail);
	u32 c;

	for (c = 0; c < pool->map.clients; c++) {
		u64 cursor;

		if (!xm_bit(xm_client_row(&pool->map, pool->me)->waits, c))
			continue;
		cursor = xm_load_acquire(xm_cursor(&pool->map, c, pool->me));
		if (cursor >= tail)
			continue;
		owner->demoted[c / 64] |= 1ULL << c % 64;
		owner->demoted_at[c] = cursor;
	}
	owner->blocked_since_ns = 0;
}

/*
 * When slow subscribers demote: counted over all acquires since the first that found
 * nothing while somebody we wait for lagged. Publishing, or finding one, ends that.
 */
static u64 demote_at(struct xmem_pool *pool)
{
	struct xl_owner *owner = &pool->owner;

	if (!owner->wait_bound_ns ||
	    xm_least_waiting(&pool->map, pool->me, owner->demoted) >= xm_load(&xm_ring(&pool->map, pool->me)->tail)) {
		owner->blocked_since_ns = 0;
		return ~0ULL;
	}
	if (!owner->blocked_since_ns)
		owner->blocked_since_ns = xl_now_ns();
	return owner->blocked_since_ns + owner->wait_bound_ns;
}

static bool any_demoted(const struct xl_owner *owner)
{
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= owner->demoted[i];
	return any;
}

/* Each unseen entry keeps a slot: where there are no more slots than entries, those run out first. */
static inline bool ring_is_ample(const struct xmem_pool *pool)
{
	return pool->owner.slots <= pool->map.ring_mask + 1;
}

static bool anybody_waited_for(const struct xmem_pool *pool)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, pool->me);
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= xm_load(&row->waits[i]) & ~pool->owner.demoted[i];
	return any;
}

/* Would one more publication overwrite what a subscriber that we wait for has not seen? */
static bool ring_is_full(struct xmem_pool *pool)
{
	struct xl_owner *owner = &pool->owner;

	if (ring_is_ample(pool) || !anybody_waited_for(pool))
		return false;
	return xm_load(&xm_ring(&pool->map, pool->me)->tail) + owner->out + 1 -
	       xm_least_waiting(&pool->map, pool->me, owner->demoted) > pool->map.ring_mask + 1;
}

/* ---- acquire ---- */

/* Generations of this tenancy used up (8 M publications of one slot, or more): a new range. */
static XL_COLD int renew(struct xmem_pool *pool, u32 slot)
{
	struct xmem_slot_request request = { .size = sizeof(request), .slot = slot };

	return xl_request(pool, XMEM_IOC_RENEW, &request);
}

static inline bool generations_left(const struct xmem_pool *pool, u32 slot)
{
	return likely(xm_in_tenancy(xm_generation(xm_load(&xm_slot(&pool->map, slot)->state)),
				    xm_load(&xm_slot_row(&pool->map, slot)->generation_first)));
}

/* *link, READY and so WRITING, goes out. */
static inline u32 take_out(struct xl_owner *owner, struct xl_own **link)
{
	owner->out++;
	if (unlikely(owner->blocked_since_ns))
		owner->blocked_since_ns = 0;
	return queue_take(&owner->list[XL_LIST_READY], link)->slot;
}

/* A slot to write into; -EAGAIN, or another error that has been noted. Under owner->lock. */
static int take_slot(struct xmem_pool *pool, u64 bytes, u32 *ret_slot)
{
	struct xl_queue *ready = &pool->owner.list[XL_LIST_READY], *unused = &pool->owner.list[XL_LIST_FREE];
	struct xl_own **link = queue_find(ready, bytes);

	if (unlikely(ring_is_full(pool)))
		return -EAGAIN;
	if (!*link) {
		link = queue_find(unused, bytes);
		if (*link) {
			xm_take(&pool->map, (*link)->slot);
			queue_add(ready, queue_take(unused, link));
		} else {
			if (any_demoted(&pool->owner))
				forgive_demoted(pool);
			if (!collect(pool, bytes))
				return -EAGAIN;
		}
		link = queue_find(ready, bytes);
	}
	if (!generations_left(pool, (*link)->slot)) {
		int err = renew(pool, (*link)->slot);

		if (err)
			return xl_fail(-err, "acquire: new generations for slot %u: %s", (*link)->slot, strerror(-err));
	}
	*ret_slot = take_out(&pool->owner, link);
	return 0;
}

/*
 * Wait for a slot: arm, look again, sleep (I5). Slow subscribers are waited for
 * no longer than our bound; then they demote and we look once more.
 */
static int wait_for_slot(struct xmem_pool *pool, u64 bytes, int64_t timeout_ns, u32 *ret_slot)
{
	struct xl_owner *owner = &pool->owner;
	u64 deadline = xl_deadline(timeout_ns), bound;
	u32 value;
	int err;

	for (;;) {
		err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &value);
		if (err)
			return xl_fail(-err, "wait for a free buffer: %s", strerror(-err));
		err = take_slot(pool, bytes, ret_slot);
		if (err != -EAGAIN)
			return err;
		bound = demote_at(pool);
		xl_unlock(&owner->lock);
		err = xl_waiters_wait(pool, XMEM_WAIT_SLOTS, pool->me, value, bound < deadline ? bound : deadline);
		xl_lock(&owner->lock);
		if (err == -ETIMEDOUT && bound < deadline) {
			demote(pool);
		} else if (err == -ETIMEDOUT) {
			return xl_fail_fast(ETIMEDOUT, "no buffer came free in time: all are held or in flight");
		} else if (err) {
			return xl_fail(-err, "wait for a free buffer: %s", strerror(-err));
		}
	}
}

static XL_COLD struct xmem_buffer *acquire_refused(struct xmem_pool *pool)
{
	if (!check_writer(pool, "acquire"))
		xl_fail_fast(EINVAL, "acquire: a negative timeout");
	return NULL;
}

static inline struct xmem_buffer *fill_acquired(struct xmem_buffer *buffer, u32 slot)
{
	buffer->slot = slot;
	buffer->mode = XL_WRITING;
	buffer->what = (struct xm_publication){ .length = buffer->pool->owner.own[slot].bytes };
	return buffer;
}

/* Not at once, or not without locks. */
static XL_SLOW struct xmem_buffer *acquire_slow(struct xmem_pool *pool, u64 bytes, int64_t timeout_ns)
{
	struct xmem_buffer *buffer = xl_handle_new(pool);
	struct xl_owner *owner = &pool->owner;
	u32 slot;
	int err;

	if (unlikely(!buffer))
		return NULL;
	xl_lock(&owner->lock);
	err = take_slot(pool, bytes, &slot);
	if (unlikely(err == -EAGAIN && demote_at(pool) <= xl_now_ns())) {
		demote(pool);
		err = take_slot(pool, bytes, &slot);
	}
	if (unlikely(err == -EAGAIN)) {
		if (bytes > owner->largest)
			err = xl_fail(ENOSPC, "acquire: no buffer of %zu bytes in this pool: see xmem_preallocate",
				      (size_t)bytes);
		else if (!timeout_ns)
			err = xl_fail_fast(EAGAIN, "acquire: all buffers are held or in flight");
		else
			err = wait_for_slot(pool, bytes, timeout_ns, &slot);
	}
	xl_unlock(&owner->lock);
	if (likely(!err))
		return fill_acquired(buffer, slot);
	xl_handle_free(buffer);
	return NULL;
}

XMEM_API struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns)
{
	struct xl_own **link;

	if (unlikely(!pool || !xl_alive(pool) || pool->role != XMEM_ROLE_WRITER || timeout_ns < 0))
		return acquire_refused(pool);
	if (likely(xl_handles_ready(pool) && ring_is_ample(pool))) {
		link = queue_find(&pool->owner.list[XL_LIST_READY], bytes);
		if (likely(*link && generations_left(pool, (*link)->slot)))
			return fill_acquired(xl_handle_pop(pool), take_out(&pool->owner, link));
	}
	return acquire_slow(pool, bytes, timeout_ns);
}

/* A buffer that was acquired and is not published after all. */
void xl_owner_give_up(struct xmem_pool *pool, u32 slot)
{
	struct xl_owner *owner = &pool->owner;

	xl_lock(&owner->lock);
	xm_give_up(&pool->map, slot);
	queue_add(&owner->list[XL_LIST_FREE], &owner->own[slot]);
	owner->out--;
	xl_unlock(&owner->lock);
	wake_own(pool);
}

/* ---- publish ---- */

static int check_publish(const struct xmem_buffer *buffer, const struct xmem_publish_options *options)
{
	u64 length;

	if (!buffer)
		return xl_fail_fast(EINVAL, "publish: no buffer");
	if (!xl_alive(buffer->pool))
		return xl_fail_forked();
	if (buffer->mode != XL_WRITING)
		return xl_fail_fast(EPERM, "publish: only a buffer from xmem_acquire can be published");
	if (!options)
		return 0;
	if (options->size != sizeof(*options) || options->flags & ~XMEM_PUBLISH_KEEP || options->reserved)
		return xl_fail_fast(EINVAL, "xmem_publish_options: wrong size, unknown flags, or reserved not 0");
	length = buffer->what.length;
	if (options->offset > length || options->length > length - options->offset)
		return xl_fail(ERANGE, "publish: %llu bytes from %llu on, of a buffer of %llu",
			       (unsigned long long)options->length, (unsigned long long)options->offset,
			       (unsigned long long)length);
	return 0;
}

/* Publish and, ahead of need, scan for the next buffer; under owner->lock. true: a wake is owed. */
static inline bool publish_now(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	struct xl_owner *owner = &pool->owner;
	bool waiters;

	waiters = xm_publish(&pool->map, pool->me, buffer->slot, &buffer->what);
	owner->out--;
	if (unlikely(owner->blocked_since_ns))
		owner->blocked_since_ns = 0;
	if (unlikely(!owner->list[XL_LIST_READY].first && !owner->list[XL_LIST_FREE].first)) {
		struct xl_own **link = &owner->list[XL_LIST_LIVE].first;

		scan_batch(pool, XL_LIST_LIVE, &link, 0, false);
	}
	queue_add(&owner->list[XL_LIST_LIVE], &owner->own[buffer->slot]);	/* last: it is not scanned at once */
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

XMEM_API int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options, uint64_t *ret_token)
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
	/* For those who get it by its token. Mostly that is there already: spare the readers' line. */
	metadata = xm_metadata(&pool->map, buffer->slot);
	if (unlikely(metadata->size != what->length))
		metadata->size = what->length;
	if (unlikely(metadata->offset != what->offset))
		metadata->offset = what->offset;

	xl_lock(&pool->owner.lock);
	waiters = publish_now(pool, buffer);
	xl_unlock(&pool->owner.lock);
	wake_own(pool);
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
