// SPDX-License-Identifier: MIT
/*
 * Waiting for slow subscribers. A writer waits for the subscribers that ask for it, but no longer
 * than its bound. Then it *demotes* them: until they receive again they lose the oldest
 * publications, as subscribers do that ask for no wait. An entry that a waited-for subscriber has
 * yet to receive must not be overwritten, so the ring may have no room although buffers are free.
 * core/policy.c computes which entries that are; find.c evicts.
 */
#include <poll.h>

#include "core/policy.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/owned.h"

/*
 * No subscriber needs a publication below @place, so the ring has room for a whole round from there
 * on. After a refusal the next success has to be recorded, and while a renewal is open each slot
 * needs a look before it is handed out: then room_end is 0, so that each call looks. Acquire and
 * publish leave the fast path as well if the entry that publish overwrites may be another client's,
 * or if the pool's handle is closed.
 */
static void set_room(struct xl_owned *owned, const struct xmem_pool *pool, u64 place)
{
	bool look = owned->refused || owned->renewals || xl_bound_stands(owned) ||
		    xl_is_vain(owned);

	owned->room_end = look ? 0 : place + pool->map.ring_mask + 1;
	owned->fast_end = owned->forwards || owned->closed ? 0 : owned->room_end;
}

/*
 * Subscribers were demoted, so the entries that they have yet to receive may be evicted. Some of
 * these entries may name other clients' slots, and those owners may sleep until the slots come
 * free. Wake them: otherwise they would look again only after this client's bound (xl_recall_at).
 */
static void wake_owners(struct xmem_pool *pool)
{
	const struct xm_map *map = &pool->map;
	u32 c;

	xm_full_barrier();
	for (c = 0; pool->owned.forwards && c < map->clients; c++)
		if (xm_load(&xm_client_row(map, c)->slots_waiters) & XMEM_WAITERS_ARMED)
			xl_waiters_wake(pool, XMEM_WAIT_SLOTS, c);
}

void xl_reset_room(struct xl_owned *owned)
{
	owned->room_end = owned->fast_end = 0;
}

void xl_update_room(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	if (owned->passed + pool->map.ring_mask + 1 > owned->room_end)
		set_room(owned, pool, owned->passed);
}

/* Read the ring, and record up to which place it has room. */
static void read_room(struct xmem_pool *pool, struct xm_waited *ret)
{
	xm_read_waited(&pool->map, pool->me, ret);
	if (ret->demoted)	/* a demotion may end at any time, and then there is less room */
		xl_reset_room(&pool->owned);
	else
		set_room(&pool->owned, pool, ret->evictable);
}

/* Would one more publication overwrite an entry that a waited-for subscriber has yet to receive? */
bool xl_ring_is_full(struct xmem_pool *pool)
{
	struct xm_waited waited;

	if (likely(pool->owned.promised < pool->owned.room_end))
		return false;
	read_room(pool, &waited);
	return !xm_has_room(&pool->map, &waited, xl_in_hand(pool));
}

/*
 * A publication does not wait. The ring may have no room for it, because a buffer was acquired
 * before the subscriber came. Then the subscribers whose entry is overwritten are demoted.
 */
void xl_make_room(struct xmem_pool *pool)
{
	u64 tail = xl_tail(pool), entries = (u64)pool->map.ring_mask + 1;
	struct xm_waited waited;

	read_room(pool, &waited);
	if (!waited.count || tail - waited.evictable < entries)
		return;
	xm_demote(&pool->map, pool->me, tail - entries + 1);
	xl_reset_room(&pool->owned);
	wake_owners(pool);
}

/* ---- the bound ---- */

static void end_bound(struct xl_owned *owned)
{
	xm_store(&owned->words.ring->demote_at_ns, 0);
	owned->bound_bytes = 0;
}

/*
 * Other clients' rings keep forwarded publications for the subscribers that those clients wait for,
 * but no longer than the forwarding client's bound. The owner of the slot counts that time, from
 * the first acquire that finds no other slot.
 */
u64 xl_recall_at(const struct xmem_pool *pool)
{
	u64 at = xm_load(&pool->owned.words.ring->recall_at_ns);

	return at ? at : ~0ULL;
}

u64 xl_evicts(const struct xmem_pool *pool)
{
	u64 from = pool->owned.recall_from;

	return 1 + (from ? xl_now_ns() - from : 0);
}

static void end_recall(struct xl_owned *owned)
{
	xm_store(&owned->words.ring->recall_at_ns, 0);
	owned->recall_from = owned->recall_bytes = 0;
	owned->lent_bound = ~0ULL;
}

/* An acquire has found nothing. Returns whether the writer looks again at another time now. */
static bool begin_recall(struct xl_owned *owned, u64 bytes)
{
	u64 at, before = xm_load(&owned->words.ring->recall_at_ns);

	if (owned->lent_bound == ~0ULL) {
		end_recall(owned);
		return false;
	}
	if (!owned->recall_from)
		owned->recall_from = xl_now_ns();
	if (bytes > owned->recall_bytes)
		owned->recall_bytes = bytes;
	at = owned->recall_from + owned->lent_bound;
	at = at < owned->lent_bound ? ~0ULL : at;
	xm_store(&owned->words.ring->recall_at_ns, at);
	return at != before;
}

u64 xl_demote_at(const struct xmem_pool *pool)
{
	u64 at = xm_load(&pool->owned.words.ring->demote_at_ns);

	return at ? at : ~0ULL;
}

/* The bound has passed: demote the subscribers that have not received everything (P9). */
void xl_demote(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xm_demote(&pool->map, pool->me, xl_tail(pool));
	end_bound(owned);
	xl_reset_room(owned);
	xl_owned_changed(owned);
	wake_owners(pool);
}

/* Record the largest size that was asked for in vain. It starts again with another chain. */
static void note_asked(struct xl_owned *owned, const struct xl_chain *chain, u64 bytes)
{
	if (bytes <= owned->bound_bytes && chain == owned->bound_chain)
		return;
	owned->bound_bytes = bytes;
	owned->bound_chain = chain;
}

/*
 * The bound begins with the first acquire that finds nothing while a waited-for subscriber lags. It
 * ends in two cases. First, when all publications from before its begin are received, because a
 * subscriber that lags then lags anew. Second, when an acquire finds a buffer as large as the
 * largest that was asked for in vain, so smaller ones in between do not prolong the wait for a
 * large one. Returns whether the bound begins now.
 */
static bool begin_bound(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes)
{
	struct xl_owned *owned = &pool->owned;
	struct xmem_ring *ring = owned->words.ring;
	u64 bound = owned->wait_bound_ns, at = xl_now_ns() + bound;
	struct xm_waited waited;

	xm_read_waited(&pool->map, pool->me, &waited);
	note_asked(owned, chain, bytes);
	if (xm_load(&ring->demote_at_ns) && owned->bound_place > waited.evictable)
		return false;
	end_bound(owned);
	if (!bound || !waited.lagging)
		return false;
	note_asked(owned, chain, bytes);
	owned->bound_place = waited.tail;
	xm_store(&ring->demote_at_ns, at < bound ? ~0ULL : at);	/* limited to the largest time */
	return true;
}

void xl_record_refusal(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes)
{
	struct xl_owned *owned = &pool->owned;
	bool begins;

	if (chain != owned->bound_chain)
		owned->recall_bytes = 0;
	begins = begin_bound(pool, chain, bytes);
	begins = begin_recall(owned, bytes) || begins;
	owned->refused = true;
	xl_reset_room(owned);
	if (begins)
		xl_owned_wake(pool);	/* the time in ring.look_at_ns is not this one */
}

/* A forward has found no room. */
static void record_full_ring(struct xmem_pool *pool)
{
	if (begin_bound(pool, pool->owned.asked, 0))
		xl_owned_wake(pool);
	xl_reset_room(&pool->owned);
}

/* The bound stays for a refused acquire, unless everything from before its begin is received. */
void xl_record_forward(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;

	if (!xl_bound_stands(owned))
		return;
	xm_read_waited(&pool->map, pool->me, &waited);
	if (!owned->refused || owned->bound_place <= waited.evictable)
		end_bound(owned);
}

void xl_record_success(struct xmem_pool *pool, const struct xl_size *size)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;

	if (xl_bound_stands(owned)) {
		xm_read_waited(&pool->map, pool->me, &waited);
		if ((size->bytes >= owned->bound_bytes && size->chain == owned->bound_chain) ||
		    owned->bound_place <= waited.evictable)
			end_bound(owned);
		if (size->bytes >= owned->recall_bytes && size->chain == owned->bound_chain)
			end_recall(owned);
	}
	xl_owned_changed(owned);
	if (!owned->refused)
		return;
	xm_store(&owned->words.ring->limbo_ns, 0);	/* it wants no slot back now */
	owned->refused = false;
	xl_owned_wake(pool);	/* threads that poll may want smaller ones, which may be free */
}

bool xl_has_room(struct xmem_pool *pool)
{
	if (!xl_ring_is_full(pool))
		return true;
	record_full_ring(pool);
	if (xl_demote_at(pool) > xl_now_ns())
		return false;
	xl_demote(pool);
	if (!xl_ring_is_full(pool))
		return true;
	record_full_ring(pool);
	return false;
}

bool xl_record_time(struct xmem_pool *pool)
{
	u64 *at = &pool->owned.words.ring->look_at_ns, now = xl_now_ns(), before = xm_load(at);
	u64 demote = xl_demote_at(pool), recall = xl_recall_at(pool), next;

	/* A look after such a time has helped nothing; a wake-up comes. */
	demote = demote > now ? demote : ~0ULL;
	recall = recall > now ? recall : ~0ULL;
	next = demote < recall ? demote : recall;
	xm_store(at, next != ~0ULL ? next : 0);
	return before && before <= now;
}

void xl_record_vain(struct xl_owned *owned, u32 armed)
{
	xm_store_release(&owned->words.ring->vain, armed);
	owned->none_chain = NULL;
	xl_reset_room(owned);
}

int xl_poll_for_room(struct xmem_pool *pool)
{
	struct xl_armed armed;
	int err;

	if (!xm_load(&pool->polls.pool))
		return -EAGAIN;
	xl_record_time(pool);
	err = xl_waiters_arm(pool, XMEM_WAIT_SLOTS, pool->me, &armed);
	if (err || xl_has_room(pool))
		return err;
	xl_record_vain(&pool->owned, armed.value);
	return -EAGAIN;
}

int xl_reserve_entry(struct xmem_pool *pool, const char *what)
{
	struct xl_owned *owned = &pool->owned;
	int err = 0;

	xl_lock(&owned->lock);
	while (!err && !xl_has_room(pool))
		err = xl_poll_for_room(pool);
	owned->promised += !err;
	xl_unlock(&owned->lock);
	if (!err)
		return 0;
	xl_poll_update(pool, POLLOUT);
	return xl_fail(-err, "%s: the ring is full of entries that waited-for subscribers have "
		       "yet to receive", what);
}

void xl_unreserve_entry(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	owned->promised--;
	xl_owned_changed(owned);
	xl_unlock(&owned->lock);
	xl_owned_wake(pool);
}
