// SPDX-License-Identifier: MIT
/*
 * Waiting for slow subscribers. A writer waits for subscribers that ask for it, but no longer
 * than its bound. Then it demotes them: like all others they lose the oldest publication,
 * until they receive again. What they have yet to receive must not be overwritten, so the
 * ring may have no room although buffers are free.
 *
 * Each size of buffers has a bound of its own: to acquire small ones in between does not make the
 * wait for a large one longer. The ring has that of the last acquire, for hosts and who polls.
 */
#include "owned.h"
#include "request.h"

/*
 * Nobody needs what is below @place, so there is room for a ring from there on. After a refusal
 * the next success is to be noted, and while a renewal is open no slot may be handed out without
 * a look, so acquire shall not take the short way. Nor shall it, and publish, if a program polls.
 */
static void set_room(struct xl_owned *owned, const struct xmem_pool *pool, u64 place)
{
	bool look = owned->refused || owned->bounds || owned->renewals;

	owned->room_end = look ? 0 : place + pool->map.ring_mask + 1;
	owned->short_end = xm_load(&pool->polls.pool) ? 0 : owned->room_end;
}

void xl_room_is_over(struct xl_owned *owned)
{
	owned->room_end = owned->short_end = 0;
}

void xl_note_passed(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	if (owned->passed + pool->map.ring_mask + 1 > owned->room_end)
		set_room(owned, pool, owned->passed);
}

/* Look at the ring, and remember until when there is room in it. */
static void look_at_room(struct xmem_pool *pool, struct xm_waited *ret)
{
	xm_look_at_waited(&pool->map, pool->me, ret);
	if (ret->demoted)	/* that may end at any time, and then less has room */
		xl_room_is_over(&pool->owned);
	else
		set_room(&pool->owned, pool, ret->evictable);
}

/* Would one more publication overwrite what a subscriber that is waited for must receive? */
bool xl_ring_is_full(struct xmem_pool *pool)
{
	struct xm_waited waited;

	if (likely(pool->owned.promised < pool->owned.room_end))
		return false;
	look_at_room(pool, &waited);
	return !xm_has_room(&pool->map, &waited, xl_in_hand(pool));
}

/*
 * A publication does not wait. If the ring has no room for it, because buffers were acquired
 * before the subscriber came, it demotes those that lose by it.
 */
void xl_make_room(struct xmem_pool *pool)
{
	u64 tail = xl_tail(pool), entries = (u64)pool->map.ring_mask + 1;
	struct xm_waited waited;

	look_at_room(pool, &waited);
	if (!waited.count || tail - waited.evictable < entries)
		return;
	xm_demote(&pool->map, pool->me, tail - entries + 1);
	xl_room_is_over(&pool->owned);
}

/* ---- the bounds ---- */

/*
 * The bounds of the sizes up to @most end; and those for which all that was published before they
 * began has been received, as everything below @received has.
 */
static void end_bounds(struct xl_owned *owned, u64 most, u64 received)
{
	struct xl_size *size;

	owned->bounds = false;
	for (size = owned->sizes; size; size = size->larger) {
		if (size->bytes <= most || size->bound_place <= received)
			size->demote_at_ns = 0;
		owned->bounds |= size->demote_at_ns != 0;
	}
}

u64 xl_demote_at(const struct xmem_pool *pool, u64 bytes)
{
	u64 at = xl_size_for(&pool->owned, bytes)->demote_at_ns;

	return at ? at : ~0ULL;
}

/* A bound has passed: demote the subscribers that have not received everything (P9). */
void xl_demote(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xm_demote(&pool->map, pool->me, xl_tail(pool));
	xm_store(&pool->owned.words.ring->demote_at_ns, 0);
	end_bounds(owned, ~0ULL, 0);
	xl_room_is_over(owned);
	owned->none = false;
}

/* What the ring says to hosts has changed, and so may what those who poll are told (I5). */
static void wake_pollers(struct xmem_pool *pool)
{
	xm_full_barrier();
	xl_owned_wake(pool);
}

/* The bound of @size begins now, unless it has begun or nobody lags. */
static void begin_bound(struct xmem_pool *pool, struct xl_size *size)
{
	u64 bound = pool->owned.wait_bound_ns, at = xl_now_ns() + bound;
	struct xm_waited waited;

	xm_look_at_waited(&pool->map, pool->me, &waited);
	if (size->demote_at_ns && size->bound_place > waited.evictable)
		return;
	size->demote_at_ns = 0;
	if (!bound || !waited.lagging)
		return;
	size->bound_place = waited.tail;
	size->demote_at_ns = at < bound ? ~0ULL : at;	/* longer than the clock can tell */
	pool->owned.bounds = true;
}

/*
 * The bound begins with the first acquire that finds nothing while a subscriber that is waited
 * for lags. It ends when one finds a buffer of that size or a larger one, and when all has been
 * received that had been published before: who lags then lags anew.
 */
void xl_note_refused(struct xmem_pool *pool, u64 bytes)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size = xl_size_for(owned, bytes);
	struct xmem_ring *ring = owned->words.ring;
	u64 before = xm_load(&ring->demote_at_ns);

	begin_bound(pool, size);
	xm_store(&ring->demote_at_ns, size->demote_at_ns);
	xm_store(&ring->wanted, bytes);
	owned->refused = true;
	xl_room_is_over(owned);
	if (size->demote_at_ns && (!before || size->demote_at_ns < before))
		wake_pollers(pool);	/* it is sooner than hosts know: they set a timer */
}

/*
 * A program that polls does not ask in vain before it waits. So it waits from the publication on
 * that leaves it nothing; or if it has asked, from the first one on after which somebody lags.
 */
void xl_note_waiting(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xmem_ring *ring = owned->words.ring;
	u64 deadline;

	xl_lock(&owned->lock);
	if ((owned->refused || !xl_in_hand(pool)) &&
	    !xm_writable(&pool->map, pool->me, xl_now_ns(), &deadline))
		xl_note_refused(pool, xm_load(&ring->wanted));
	xl_unlock(&owned->lock);
}

void xl_note_success(struct xmem_pool *pool, const struct xl_size *size)
{
	struct xl_owned *owned = &pool->owned;
	struct xmem_ring *ring = owned->words.ring;
	struct xm_waited waited;

	if (owned->bounds) {
		xm_look_at_waited(&pool->map, pool->me, &waited);
		end_bounds(owned, size->bytes, waited.evictable);
	}
	owned->none = false;
	if (!owned->refused)
		return;
	xm_store(&ring->demote_at_ns, 0);
	xm_store(&ring->wanted, 0);
	owned->refused = false;
	wake_pollers(pool);	/* any buffer will do now, and there may be smaller ones */
}
