/* SPDX-License-Identifier: MIT */
/*
 * The slots that this client owns stand in lists by size and by what it knows of them:
 *
 *   FREE    its state is FREE
 *   READY   it is WRITING, taken before a buffer is needed
 *   LIVE    it is published; the oldest publication comes first
 *   BUSY    it is published and not in flight, and a scan has found a holder
 *
 *   FREE -> READY -> in hand -> LIVE -> READY ...        nobody held it when it was scanned
 *                               LIVE -> BUSY -> READY    a client held it then
 *
 * Others may write a slot of a shared payload in place (get_mut). It is LIVE or BUSY meanwhile, for
 * its holder, and if that gives it up or ends, a scan meets it FREE: it becomes READY.
 *
 * A slot that is in hand is in no list, because a handle has it. READY and LIVE are one circle
 * of places, in which the LIVE ones follow the READY ones. So to acquire is to move the place
 * where READY begins, to publish is to add at the end, and a scan after which many of the oldest
 * LIVE slots are READY moves the place between the two. LIVE slots stand in the
 * order of their places in the ring, so those that nobody can still receive come first, and
 * nothing that is known to be in flight is scanned. What may be taken when is decided in
 * core/policy.h; here is remembered what stays true:
 *
 *   passed     what is passed once is passed for ever; it grows only when the cursor of its
 *              culprit moves or the culprit leaves
 *   room_end   a subscriber that comes later begins at the tail or behind it, so there is
 *              room up to here at least; if demotions or the bound stand, or renewals are
 *              open, it is looked at each time. fast_end is the same, or 0 if the program
 *              polls or has forwarded, or has closed the pool's handle: then no acquire and
 *              no publish goes the fast path, which tells nobody
 *   none       whoever changes what an owner waits for looks at its waiters word (I5); while
 *              the word stays armed, an acquire that found nothing would find nothing again.
 *              It implies `refused`, and as long as that is so, room_end is 0
 *
 * The lists change only under owned.lock.
 */
#ifndef XMEM_OWNED_H
#define XMEM_OWNED_H

#include "core/policy.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

#define XL_MAX_BATCH	64	/* slots in one scan */

static inline struct xl_owned_slot *xl_owned_slot(struct xm_own *own)
{
	return (struct xl_owned_slot *)own;	/* its first member */
}

/* The smallest size that is large enough. Its slots may be none. */
static inline struct xl_size *xl_size_in(const struct xl_chain *chain, u64 bytes)
{
	struct xl_size *size = chain->sizes;

	while (unlikely(size->bytes < bytes))
		size = size->larger;
	return size;
}

static inline struct xl_size *xl_size_for(const struct xl_owned *owned, u64 bytes)
{
	return xl_size_in(&owned->cpu, bytes);
}

/* All sizes, of all chains: the one that follows @size, or NULL. */
static inline struct xl_size *xl_next_size(const struct xl_size *size)
{
	if (size->larger)
		return size->larger;
	return size->chain->next ? size->chain->next->sizes : NULL;
}

#define xl_each_size(owned, size) \
	for ((size) = (owned)->cpu.sizes; (size); (size) = xl_next_size(size))

/* ---- READY and LIVE ---- */

static inline bool xl_has_ready(const struct xl_size *size)
{
	return likely(size->ready != size->live);
}

/* The READY slot that comes next. There is one. */
static inline struct xl_owned_slot *xl_ready(const struct xl_size *size)
{
	return xl_owned_slot(size->circle[size->ready & size->mask]);
}

static inline void xl_ready_add(struct xl_size *size, struct xl_owned_slot *one)
{
	size->circle[--size->ready & size->mask] = &one->own;
}

static inline void xl_live_add(struct xl_size *size, struct xl_owned_slot *one)
{
	size->circle[size->end++ & size->mask] = &one->own;
}

/* ---- FREE and BUSY ---- */

static inline void xl_queue_add(struct xl_queue *queue, struct xl_owned_slot *one)
{
	one->next = NULL;
	*queue->last = one;
	queue->last = &one->next;
}

/* Take out what *link points to. @link is &queue->first, or `next` of the slot before it. */
static inline struct xl_owned_slot *xl_queue_take(struct xl_queue *queue,
						  struct xl_owned_slot **link)
{
	struct xl_owned_slot *one = *link;

	*link = one->next;
	if (unlikely(!one->next))
		queue->last = link;
	return one;
}

/* ---- others ---- */

/*
 * Say where the contents lie, for clients that get them by their token. Mostly the metadata
 * say so already; then the cache line, which readers have, is not written.
 */
static inline void xl_note_place(struct xmem_metadata *metadata, u64 offset, u64 length)
{
	if (unlikely(metadata->size != length))
		metadata->size = length;
	if (unlikely(metadata->offset != offset))
		metadata->offset = offset;
}

/*
 * Does a thread of this process wait for a slot? It armed the word and then looked in vain
 * under owned.lock, which this thread has taken since: so the word is seen (I5).
 */
static inline bool xl_owned_is_waited_for(const struct xmem_pool *pool)
{
	return unlikely(xl_peek(&pool->owned.words.row->slots_waiters) & XMEM_WAITERS_ARMED);
}

static inline void xl_owned_wake(struct xmem_pool *pool)
{
	if (xl_owned_is_waited_for(pool))
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
}

/* Has the bound for slow subscribers begun, its own or another client's, and not ended? */
static inline bool xl_bound_stands(const struct xl_owned *owned)
{
	return xm_load(&owned->words.ring->demote_at_ns) || owned->recall_from;
}

static inline u64 xl_tail(const struct xmem_pool *pool)
{
	return xm_load(&pool->owned.words.ring->tail);
}

/* Buffers that handles have: acquired, and not published or given up. */
static inline u32 xl_in_hand(const struct xmem_pool *pool)
{
	return pool->owned.promised - xl_tail(pool);
}

static inline u64 xl_slot_bytes(const struct xmem_pool *pool, u32 slot)
{
	const struct xl_size *size = pool->owned.slot[slot].size;

	return size ? size->bytes : 0;
}

/*
 * Are the generations of its tenancy used up? They are numbered one by one, up to the next
 * multiple of 1 << XMEM_TENANCY_SHIFT. The slot is READY, and renewed before it is used.
 */
static inline bool xl_is_spent(const struct xl_owned_slot *one)
{
	return unlikely(!xm_test(&one->own.word->state,
				 xm_word((1ULL << XMEM_TENANCY_SHIFT) - 1, 0, 0)));
}

/*
 * What the next publication overwrites in the ring may be forwarded contents, whose slot may then
 * be free: the token, which xl_do_overwritten wants after the publication, or 0.
 */
static inline u64 xl_overwritten(const struct xmem_pool *pool)
{
	const struct xl_owned *owned = &pool->owned;

	return unlikely(owned->forwards) ?
		xm_overwritten(&pool->map, &owned->words, xl_tail(pool)) : 0;
}

static inline void xl_do_overwritten(struct xmem_pool *pool, u64 token)
{
	if (unlikely(token))
		xl_do(pool, xm_put_pending(&pool->map, xm_token_slot(token)));
}

/*
 * A place in the ring for what will be published, for those that do not take a slot of this
 * client. 0, or -EAGAIN, noted: the ring is full. @what: the call's name.
 */
int xl_promise(struct xmem_pool *pool, const char *what);
void xl_break_promise(struct xmem_pool *pool);

int xl_owned_init(struct xmem_pool *pool, const struct xmem_pool_options *options);
void xl_owned_destroy(struct xmem_pool *pool);
/* The pool's handle is closed: when this returns, no acquire goes on, and none will. */
void xl_owned_close(struct xmem_pool *pool);

/* Acquire and publish take the slow path until the ring is looked at again. Under owned.lock. */
static inline void xl_leave_fast_path(struct xl_owned *owned)
{
	owned->fast_end = 0;
}

/*
 * Something has changed that an acquire has looked at in vain, so the next one looks again. Under
 * owned.lock.
 */
static inline void xl_owned_changed(struct xl_owned *owned)
{
	owned->none = false;
}

/*
 * Buffers or room in the ring may be there now: wake the threads that wait for them, and tell the
 * programs that poll. Under no lock.
 */
static inline void xl_owned_notify(struct xmem_pool *pool)
{
	xl_owned_wake(pool);
	xl_poll_update(pool, POLLOUT);
}
/* The chain of a GPU, or NULL. The second makes it if need be; NULL: no memory, noted. */
struct xl_chain *xl_owned_find_chain(struct xmem_pool *pool, const struct xl_gpu *gpu);
struct xl_chain *xl_owned_chain(struct xmem_pool *pool, struct xl_gpu *gpu);

/* acquire.c: xmem_acquire in this place; the call is counted (wait.h). */
struct xmem_buffer *xl_acquire_in(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes,
				  int64_t timeout_ns);
/* own/make_cuda.c: xmem_acquire_cuda where its fast path ends. */
struct xmem_buffer *xl_acquire_cuda_slow(struct xmem_pool *pool, u64 bytes, int device,
					 int64_t timeout_ns);
/*
 * Make room for slots of that size: before they exist, so that adding them cannot fail. If they
 * cannot be made, the second takes it back. From the one to the other under pool->slow.
 */
int xl_owned_prepare(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes, bool shared,
		     u32 count);
void xl_owned_unprepare(struct xmem_pool *pool);
/* Remove sizes without slots that are no fences of others. Under pool->slow and owned.lock. */
void xl_owned_tidy(struct xl_owned *owned);
void xl_owned_add(struct xmem_pool *pool, struct xl_chain *chain, const u16 *slot, u32 count,
		  u64 bytes, bool shared);
void xl_owned_give_up(struct xmem_pool *pool, u32 slot);

/*
 * A FREE slot for one content becomes WRITING and the caller's: 0 or -ENOMEM, not noted. The
 * second forgets one that is in no list; under owned.lock.
 */
int xl_once_add(struct xmem_pool *pool, u32 slot);
void xl_once_remove(struct xmem_pool *pool, struct xl_owned_slot *one);

/* All below is called under owned.lock. */

/* collect.c: make slots READY. They return whether there is one of the size now. */
bool xl_collect_passed(struct xmem_pool *pool, struct xl_size *size);
bool xl_collect_busy(struct xmem_pool *pool, struct xl_size *size);
/* All of them, of all sizes. Returns how many. */
u32 xl_collect_all(struct xmem_pool *pool);
bool xl_evict(struct xmem_pool *pool, struct xl_size *size, const struct xm_waited *waited);
/*
 * Count for each file, and so evict of one file, all that could be evicted now, however young:
 * what nobody holds, and what only rings keep that may lose it.
 */
void xl_count_evictable(struct xmem_pool *pool, const struct xm_waited *waited);
void xl_evict_file(struct xmem_pool *pool, const struct xm_waited *waited,
		   const struct xl_mapping *file);
void xl_collect_retracted(struct xl_owned_slot *one);

/*
 * keep.c: where does what is kept begin? Below @least nobody wants to know it exactly. Could a
 * later subscriber receive what is at @place, in the ring and before the tail? And: all places
 * whose publications are not for later subscribers are before @end.
 */
u64 xl_keeps_from(const struct xmem_pool *pool, u64 tail, u64 least);
bool xl_is_kept(const struct xmem_pool *pool, u64 place);
void xl_keep_note_gap(struct xl_owned *owned, u64 end);

/* demote.c: the bound, and room in the ring. */
bool xl_ring_is_full(struct xmem_pool *pool);
/* Acquire and publish have to look at the ring before they go on. */
void xl_room_is_over(struct xl_owned *owned);
/* owned->passed has grown, and so there may be more room. */
void xl_note_passed(struct xmem_pool *pool);
void xl_make_room(struct xmem_pool *pool);
void xl_demote(struct xmem_pool *pool);
/* An acquire looks in this place, and so do hosts from now on for those who poll. */
void xl_note_asked(struct xmem_pool *pool, const struct xl_chain *chain);
/* An acquire of so many bytes has found nothing in this place. */
void xl_note_refused(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes);
/*
 * A publication of a program that polls is between these two, for hosts that look meanwhile would
 * tell the program to ask. The second is called when it begins to poll, too.
 */
void xl_note_publishing(struct xmem_pool *pool);
void xl_note_waiting(struct xmem_pool *pool);
/* One has found a buffer of that size. To be called if one was refused, or the bound stands. */
void xl_note_success(struct xmem_pool *pool, const struct xl_size *size);
/* A forward has found no room in the ring; and one has been made. */
void xl_note_full(struct xmem_pool *pool);
void xl_note_forwarded(struct xmem_pool *pool);
/* When are slow subscribers to be demoted? ~0: never yet. */
u64 xl_demote_at(const struct xmem_pool *pool);
/* When is what others have forwarded to be looked at again? ~0: never yet. */
u64 xl_recall_at(const struct xmem_pool *pool);
/* For a scan that evicts: see struct xm_scan_rules. */
u64 xl_evicts(const struct xmem_pool *pool);

#endif
