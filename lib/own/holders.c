// SPDX-License-Identifier: MIT
/*
 * Why acquire finds no buffer, in words. The message counts the buffers that clients hold, that are
 * set aside by claims, that other clients have forwarded, that are being written, and that are in
 * flight, and names the clients. It says whether the ring is full. Where buffers are made on
 * demand, it counts buffers of all sizes, because small ones take room for large ones, and says how
 * much room there is.
 */
#include <stdio.h>
#include <string.h>

#include "lib/base/calls.h"
#include "lib/host/pages.h"
#include "lib/host/quota.h"
#include "lib/host/taken.h"
#include "lib/own/holders.h"
#include "lib/own/owned.h"

/* The uses of the slots that are large enough. */
struct census {
	u32 slots, held, claimed, lent, writing, in_flight, free;
	struct xl_shares lent_by;	/* how many slots only the ring of each client keeps */
	struct xl_shares shares;	/* how many slots each client holds or has yet to receive */
};

/* Count the ring that keeps a slot which no client holds. Returns whether there is one. */
static bool count_lender(const struct xm_map *map, u32 slot, struct census *census)
{
	u64 bit = 1ULL << slot % XMEM_GROUP_SLOTS;
	u8 holder[XMEM_GROUP_SLOTS];

	if (!xm_group_used(map, slot / XMEM_GROUP_SLOTS, bit, 1, holder))
		return false;
	census->lent_by.by[holder[slot % XMEM_GROUP_SLOTS]]++;
	return true;
}

/* Slots in FREE and READY are free, although the state of READY ones is WRITING. */
static u32 count_free(const struct xl_chain *chain, u64 bytes)
{
	const struct xl_owned_slot *one;
	const struct xl_size *size;
	u32 count = 0;

	for (size = chain->sizes; size; size = size->larger) {
		if (size->bytes < bytes)
			continue;
		count += size->live - size->ready;
		for (one = size->free.first; one; one = one->next)
			count++;
	}
	return count;
}

static void count_slots(const struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
			struct census *ret)
{
	const struct xm_map *map = &pool->map;
	u32 s, state, unpublished = 0;

	memset(ret, 0, sizeof(*ret));
	for (s = 0; s < map->slots; s++) {
		u64 has = xl_slot_bytes(pool, s);	/* 0: the slot is not this client's */

		if (!has || has < bytes || pool->owned.slot[s].size->chain != chain)
			continue;
		ret->slots++;
		state = xm_state(xm_load(&xm_slot(map, s)->state));
		if (state == XMEM_SLOT_FREE || state == XMEM_SLOT_WRITING)
			unpublished++;
		else if (xl_count_holders(map, s, &ret->shares))
			ret->held++;
		else if (xm_claims_of(map, s))
			ret->claimed++;
		else if (count_lender(map, s, ret))
			ret->lent++;
		else
			ret->in_flight++;
	}
	ret->free = count_free(chain, bytes);
	ret->writing = unpublished - ret->free;
}

/* Name the waited-for subscribers that have not received everything, the slowest first. */
static void name_laggards(struct xmem_pool *pool, struct census *census, struct xl_text *to)
{
	const struct xmem_client_row *row = pool->owned.words.row;
	const struct xm_map *map = &pool->map;
	u32 c;

	memset(census->shares.by, 0, sizeof(census->shares.by));
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c) && xm_bit(row->waits, c) &&
		    !xm_is_demoted(map, pool->me, c, xm_load(xm_cursor(map, c, pool->me))))
			census->shares.by[c] = xl_behind(map, c, pool->me);
	xl_name_clients(pool, &census->shares, " has yet to receive", to);
}

/*
 * Buffers are free, but one more publication might overwrite an entry that a waited-for subscriber
 * has yet to receive.
 */
static void describe_ring(struct xmem_pool *pool, struct census *census, struct xl_text *to)
{
	struct xm_waited waited;

	xm_read_waited(&pool->map, pool->me, &waited);
	if (waited.lagging) {
		xl_print(to, "the ring of %u entries has no room: %u acquired and unpublished, "
			     "%llu published and yet to be received", pool->map.ring_mask + 1,
			 xl_in_hand(pool), (unsigned long long)(waited.tail - waited.evictable));
		name_laggards(pool, census, to);
	} else {
		xl_print(to, "while a subscriber is waited for, at most %u buffers (ring_entries) "
			     "may be acquired and unpublished, and %u are", pool->map.ring_mask + 1,
			 xl_in_hand(pool));
	}
}

/* Do buffers of all sizes take room from one of @bytes, because they have a limit in common? */
static bool is_limited(const struct xl_chain *chain, u64 bytes)
{
	return chain->demand.on && bytes && chain->demand.limit != ~0ULL;
}

/* Say what the host or the system refused when the last buffer was to be made. */
static void describe_failure(struct xmem_pool *pool, bool gpu, u64 bytes, int err,
			     struct xl_text *to)
{
	char limit[XL_LIMIT_BYTES];

	xl_print(to, "none of %llu bytes can be made because ", (unsigned long long)bytes);
	if (err == -EDQUOT)
		xl_print(to, "%s: ", xl_host_error(pool, err, limit));
	else if (err == -ENOMEM)
		xl_print(to, "too little memory is left %s: ",
			 gpu ? "on the GPU" : "in the machine or in a control group");
	else if (err == -EMFILE || err == -ENFILE)
		xl_print(to, "there are too many open files (%s): ",
			 err == -EMFILE ? "ulimit -n" : "of the system");
	else
		xl_print(to, "the attempt has failed (%s): ", strerror(-err));
}

static void describe_limit(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
			   struct xl_text *to)
{
	const struct xl_demand *demand = &chain->demand;

	if (!is_limited(chain, bytes) || xl_ring_is_full(pool))
		return;
	if (demand->no_slots) {
		xl_print(to, "none of %llu bytes can be made because the pool has no slot for this "
			     "writer: ", (unsigned long long)bytes);
		xl_describe_slots(pool, to);
		xl_print(to, " (open it with more slots): ");
	} else if (demand->failed) {
		describe_failure(pool, chain->gpu, bytes, demand->failed, to);
	} else {
		xl_print(to, "%llu bytes are wanted, and %llu of the %llu that may be made on "
			     "demand (demand_bytes) are in use: ", (unsigned long long)bytes,
			 (unsigned long long)demand->used, (unsigned long long)demand->limit);
	}
}

/* Say why free buffers do not help: their files have used buffers too, or the ring has no room. */
static void describe_free(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
			  struct census *census, struct xl_text *to)
{
	xl_print(to, ", %u free, but ", census->free);
	if (is_limited(chain, bytes) && !xl_ring_is_full(pool))
		xl_print(to, "too small, and their files are not free as a whole");
	else
		describe_ring(pool, census, to);
}

static void describe(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
		     struct census *census, struct xl_text *to)
{
	xl_print(to, "%u of %u ", census->held, census->slots);
	if (census->slots < pool->owned.slots)
		xl_print(to, "buffers of at least %llu bytes ", (unsigned long long)bytes);
	xl_print(to, "held");
	xl_name_clients(pool, &census->shares, ":", to);
	if (census->claimed)
		xl_print(to, ", %u set aside", census->claimed);
	if (census->lent) {
		xl_print(to, ", %u forwarded and not yet received", census->lent);
		xl_name_clients(pool, &census->lent_by, ":", to);
	}
	if (census->writing)
		xl_print(to, ", %u being written by this writer itself", census->writing);
	if (census->in_flight) {
		xl_print(to, ", %u in flight", census->in_flight);
		if (!census->free)
			name_laggards(pool, census, to);
	}
	if (census->free) {
		describe_free(pool, chain, bytes, census, to);
	} else if (is_limited(chain, bytes) && xl_ring_is_full(pool)) {
		xl_print(to, ", and ");
		describe_ring(pool, census, to);
	}
}

int xl_fail_no_room(struct xmem_pool *pool, int error)
{
	char name[XL_NAME_BYTES];
	struct xl_text text = { .used = 0 };
	struct census census;

	xl_print(&text, "%s: ", xl_pool_name(pool, name, sizeof(name)));
	describe_ring(pool, &census, &text);
	return xl_fail(error, "%s", text.bytes);
}

/* Under owned.lock. */
static void describe_all(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
			 struct xl_text *to)
{
	char name[XL_NAME_BYTES];
	struct census census;

	xl_print(to, "%s: no free buffer: ", xl_pool_name(pool, name, sizeof(name)));
	describe_limit(pool, chain, bytes, to);
	count_slots(pool, chain, is_limited(chain, bytes) ? 1 : bytes, &census);
	describe(pool, chain, bytes, &census, to);
}

/*
 * The program reads the message. Its pool may be closed by now, and the struct another pool's.
 */
static bool describe_later(const struct xl_later *later, char *ret, size_t bytes)
{
	struct xmem_pool *pool = later->pool;
	struct xl_text text = { .used = 0 };
	XL_USE(pool);

	if (!pool || !xl_is_open(pool) || xm_load(&pool->calls.opened) != later->opened)
		return false;
	xl_lock(&pool->owned.lock);
	describe_all(pool, later->about, later->bytes, &text);
	xl_unlock(&pool->owned.lock);
	snprintf(ret, bytes, "%s", text.bytes);
	return true;
}

int xl_fail_no_buffer(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes, int error)
{
	struct xl_later later = {
		.make = describe_later, .pool = pool, .opened = pool->calls.opened,
		.about = chain, .bytes = bytes,
	};
	struct xl_text text = { .used = 0 };

	if (error == EAGAIN)
		return xl_fail_later(error, &later);
	describe_all(pool, chain, bytes, &text);
	return xl_fail(error, "%s", text.bytes);
}
