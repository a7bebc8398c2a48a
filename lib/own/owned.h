/* SPDX-License-Identifier: MIT */
/*
 * The slots that this client owns are in lists, by size and by what the client knows of them:
 *
 *   FREE    its state is FREE
 *   READY   it is WRITING, taken before a buffer is needed
 *   LIVE    it is published; the oldest publication comes first
 *   BUSY    it is published and not in flight, and a scan has found a holder
 *
 *   FREE -> READY -> in hand -> LIVE -> READY ...        no client held it when it was scanned
 *                               LIVE -> BUSY -> READY    a client held it then
 *
 * Other clients may write a slot of a shared payload in place (get_mut). The slot stays LIVE or
 * BUSY meanwhile, held by its writer. If that writer gives it up or ends, a scan finds the state
 * FREE, and the slot becomes READY.
 *
 * A slot that is in hand is in no list, because a handle has it. READY and LIVE are one circle of
 * places, in which the LIVE slots follow the READY ones. So acquire moves the place where READY
 * begins, publish adds at the end, and a scan that finds many of the oldest LIVE slots unused moves
 * the place between the two. LIVE slots have the order of their places in the ring, so those that
 * no subscriber can still receive come first, and no slot that is known to be in flight is scanned.
 * core/policy.h decides which slots may be taken when. This struct remembers results that stay
 * true:
 *
 *   passed     no subscriber can still receive a publication below this place. It grows only
 *              when the cursor of its culprit, the slowest subscriber, moves or the culprit
 *              leaves
 *   room_end   a later subscriber begins at the tail or behind it, so the ring has room up to
 *              this place at least. While a demotion or the bound stands, or a renewal is open,
 *              room_end is 0, and each acquire looks at the ring.
 *   fast_end   equal to room_end, or 0 if this client has forwarded, or the program has closed the
 *              pool's handle: then no acquire and no publish takes the fast path, which
 *              notifies nobody
 *   ring.vain  an acquire has found nothing, and would find nothing again while the waiters word
 *              stays armed with this value: a client that changes what an owner waits for disarms
 *              that word (I5). While it is noted, room_end is 0. Hosts read it for programs that
 *              poll (core/poll.h)
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

/* The smallest size that is large enough. It may have no slots. */
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

/* The size that follows @size, over the sizes of all chains; or NULL. */
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

/* The next READY slot. pre: xl_has_ready. */
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

/*
 * Take the slot that *link points to out of the queue. @link is &queue->first, or `next` of the
 * slot before.
 */
static inline struct xl_owned_slot *xl_queue_take(struct xl_queue *queue,
						  struct xl_owned_slot **link)
{
	struct xl_owned_slot *one = *link;

	*link = one->next;
	if (unlikely(!one->next))
		queue->last = link;
	return one;
}

/* ---- helpers ---- */

/*
 * Record where the contents are, for clients that get them by their token. Mostly the metadata have
 * these values already; then the cache line, which readers have, is not written.
 */
static inline void xl_record_place(struct xmem_metadata *metadata, u64 offset, u64 length)
{
	if (unlikely(metadata->size != length))
		metadata->size = length;
	if (unlikely(metadata->offset != offset))
		metadata->offset = offset;
}

/*
 * Does a thread of this process wait for a slot? That thread armed the word and then looked in vain
 * under owned.lock. This thread has taken the lock since, so it sees the word (I5).
 */
static inline bool xl_owned_is_waited_for(const struct xmem_pool *pool)
{
	return unlikely(xl_peek(&pool->owned.words.row->slots_waiters) & XMEM_WAITERS_ARMED);
}

/*
 * Buffers or room in the ring may be free now: wake the threads that wait for them, and the
 * programs that poll (core/poll.h).
 */
static inline void xl_owned_wake(struct xmem_pool *pool)
{
	if (xl_owned_is_waited_for(pool))
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pool->me);
}

/* Has the bound for slow subscribers, this client's or another's, begun and not ended? */
static inline bool xl_bound_stands(const struct xl_owned *owned)
{
	return xm_load(&owned->words.ring->demote_at_ns) || owned->recall_from;
}

/* Has an acquire or a forward found nothing, and has nothing changed since? */
static inline bool xl_is_vain(const struct xl_owned *owned)
{
	return xm_load(&owned->words.ring->vain);
}

static inline u64 xl_tail(const struct xmem_pool *pool)
{
	return xm_load(&pool->owned.words.ring->tail);
}

/* The number of buffers in hand: acquired, and not published or given up. */
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
 * Are the generations of the slot's tenancy used up? They are numbered one by one, up to the next
 * multiple of 1 << XMEM_TENANCY_SHIFT. Such a slot is READY, and is renewed before it is used.
 */
static inline bool xl_is_spent(const struct xl_owned_slot *one)
{
	return unlikely(!xm_test(&one->own.word->state,
				 xm_word((1ULL << XMEM_TENANCY_SHIFT) - 1, 0, 0)));
}

/*
 * The entry that the next publication overwrites may be of forwarded contents, whose slot may then
 * come free. Returns the token for xl_put_overwritten, which is called after the publication, or 0.
 */
static inline u64 xl_overwritten_token(const struct xmem_pool *pool)
{
	const struct xl_owned *owned = &pool->owned;

	return unlikely(owned->forwards) ?
		xm_overwritten(&pool->map, &owned->words, xl_tail(pool)) : 0;
}

static inline void xl_put_overwritten(struct xmem_pool *pool, u64 token)
{
	if (unlikely(token))
		xl_do(pool, xm_put_pending(&pool->map, xm_token_slot(token)));
}

/*
 * Reserve an entry of the ring, for a publication that takes no slot of this client. 0, or -EAGAIN,
 * noted: the ring is full. @what: the call's name.
 */
int xl_reserve_entry(struct xmem_pool *pool, const char *what);
void xl_unreserve_entry(struct xmem_pool *pool);

int xl_owned_init(struct xmem_pool *pool, const struct xmem_pool_options *options);
void xl_owned_destroy(struct xmem_pool *pool);
/* The pool's handle is closed. When this returns, no acquire is running, and none will succeed. */
void xl_owned_close(struct xmem_pool *pool);

/* Acquire and publish take the slow path until the ring is read again. Under owned.lock. */
static inline void xl_leave_fast_path(struct xl_owned *owned)
{
	owned->fast_end = 0;
}

/*
 * A condition has changed for which an acquire has failed, so the next one looks again. If it may
 * succeed, the caller calls xl_owned_wake later. Under owned.lock.
 */
static inline void xl_owned_changed(struct xl_owned *owned)
{
	xm_store(&owned->words.ring->vain, 0);
}

/* The chain of a GPU, or NULL. xl_owned_chain makes a missing one; NULL: no memory, noted. */
struct xl_chain *xl_owned_find_chain(struct xmem_pool *pool, const struct xl_gpu *gpu);
struct xl_chain *xl_owned_chain(struct xmem_pool *pool, struct xl_gpu *gpu);

/* acquire.c: xmem_acquire in one chain. The caller is counted (base/calls.h). */
struct xmem_buffer *xl_acquire_in(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes,
				  int64_t timeout_ns);
/* acquire.c: xmem_acquire_cuda without its fast path. */
struct xmem_buffer *xl_acquire_cuda_slow(struct xmem_pool *pool, u64 bytes, int device,
					 int64_t timeout_ns);
/*
 * Make room for @count slots of a size before they exist, so that adding them cannot fail. If they
 * cannot be made, xl_owned_unprepare takes the room back. pool->slow is held from the first call to
 * the second, or to xl_owned_add.
 */
int xl_owned_prepare(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes, bool shared,
		     u32 count);
void xl_owned_unprepare(struct xmem_pool *pool);
/* Remove the sizes that have no slots and are no fences. Under pool->slow and owned.lock. */
void xl_owned_tidy(struct xl_owned *owned);
void xl_owned_add(struct xmem_pool *pool, struct xl_chain *chain, const u16 *slot, u32 count,
		  u64 bytes, bool shared);
void xl_owned_give_up(struct xmem_pool *pool, u32 slot);

/*
 * xl_once_add makes a FREE slot for one content WRITING, and the caller's: 0 or -ENOMEM, not noted.
 * xl_once_remove forgets such a slot, which is in no list; under owned.lock.
 */
int xl_once_add(struct xmem_pool *pool, u32 slot);
void xl_once_remove(struct xmem_pool *pool, struct xl_owned_slot *one);

/* All functions below are called under owned.lock. */

/* collect.c: make slots READY. Each returns whether the size has a READY slot now. */
bool xl_collect_passed(struct xmem_pool *pool, struct xl_size *size);
bool xl_collect_busy(struct xmem_pool *pool, struct xl_size *size);
/* Collect all unused slots of all sizes. Returns how many. */
u32 xl_collect_all(struct xmem_pool *pool);
bool xl_evict(struct xmem_pool *pool, struct xl_size *size, const struct xm_waited *waited);
/*
 * xl_count_evictable counts for each file the slots that could be evicted now, however young: those
 * that no client holds, and those that only rings keep which may lose them. xl_evict_file evicts
 * these slots of one file.
 */
void xl_count_evictable(struct xmem_pool *pool, const struct xm_waited *waited);
void xl_evict_file(struct xmem_pool *pool, const struct xm_waited *waited,
		   const struct xl_mapping *file);
void xl_collect_retracted(struct xl_owned_slot *one);

/*
 * keep.c: the place where the kept publications begin; below @least the exact place does not
 * matter.
 */
u64 xl_keeps_from(const struct xmem_pool *pool, u64 tail, u64 least);
bool xl_is_kept(const struct xmem_pool *pool, u64 place);
void xl_keep_add_gap(struct xl_owned *owned, u64 end);

/*
 * demote.c: the bound, and room in the ring. Would one more publication overwrite an entry that a
 * waited-for subscriber has yet to receive?
 */
bool xl_ring_is_full(struct xmem_pool *pool);
/* Acquire and publish read the ring before they go on. */
void xl_reset_room(struct xl_owned *owned);
/* owned->passed has grown, so there may be more room. */
void xl_update_room(struct xmem_pool *pool);
void xl_make_room(struct xmem_pool *pool);
void xl_demote(struct xmem_pool *pool);
/* An acquire of @bytes has found nothing in this chain. */
void xl_record_refusal(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes);
/*
 * An acquire has found a buffer of that size. To be called if one was refused, or the bound stands.
 */
void xl_record_success(struct xmem_pool *pool, const struct xl_size *size);
/*
 * Does the ring have room for one more entry, if necessary by demoting subscribers whose bound has
 * passed?
 */
bool xl_has_room(struct xmem_pool *pool);
/*
 * A forward that does not wait has found no room. If the program polls, this arms the waiters word,
 * looks again, and notes what it armed. 0: look again; or -errno, also -EAGAIN.
 */
int xl_poll_for_room(struct xmem_pool *pool);
/* A forward has succeeded. */
void xl_record_forward(struct xmem_pool *pool);
/*
 * core/poll.h: note when time alone may let an acquire succeed, which returns whether the time that
 * was noted before has come; note the word that was armed before a look in vain.
 */
bool xl_record_time(struct xmem_pool *pool);
void xl_record_vain(struct xl_owned *owned, u32 armed);
/* The time at which slow subscribers are to be demoted; ~0: not set. */
u64 xl_demote_at(const struct xmem_pool *pool);
/*
 * The time at which entries that other clients have forwarded are to be looked at again; ~0: not
 * set.
 */
u64 xl_recall_at(const struct xmem_pool *pool);
/* For a scan that evicts: see struct xm_scan_rules. */
u64 xl_evicts(const struct xmem_pool *pool);

#endif
