// SPDX-License-Identifier: MIT
/*
 * Why acquire finds no buffer, in words: how many are held and by whom, how many are set aside for
 * whoever comes, how many others have forwarded to who has yet to receive them, how many are being
 * written, how many are in flight and for whom, and whether the ring is full. On demand, how much
 * room there is, and these are the numbers of all buffers, for small ones take room for large ones.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "holders.h"
#include "limits.h"
#include "owned.h"
#include "pages.h"

#define MAX_NAMED	3	/* holders whose names fit into a message */
#define QUICK_LOOKS	4096	/* holds that are looked at for an acquire that does not wait */

/* What the slots that are large enough are used for. */
struct census {
	u32 slots, held, claimed, lent, writing, in_flight, free;
	u32 lent_by[XMEM_MAX_CLIENTS];
	u32 by[XMEM_MAX_CLIENTS];	/* how many of them each client holds, or has yet to get */
};

struct text {
	char bytes[XL_ERROR_BYTES];
	size_t used;
};

/* What does not fit is left out. */
__attribute__((format(printf, 2, 3))) static void add(struct text *to, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(to->bytes + to->used, sizeof(to->bytes) - to->used, format, args);
	va_end(args);
	if (length > 0)
		to->used += length;
	if (to->used >= sizeof(to->bytes))
		to->used = sizeof(to->bytes) - 1;
}

static bool count_holders(const struct xm_map *map, u32 slot, struct census *census)
{
	bool held = false;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		if (!xl_holds(map, c, slot))
			continue;
		census->by[c]++;
		held = true;
	}
	return held;
}

/* Nobody holds it: is it in the ring of a client that has forwarded it? */
static bool count_lender(const struct xm_map *map, u32 slot, struct census *census)
{
	u64 bit = 1ULL << slot % XMEM_GROUP_SLOTS;
	u8 holder[XMEM_GROUP_SLOTS];

	if (!xm_group_used(map, slot / XMEM_GROUP_SLOTS, bit, 1, holder))
		return false;
	census->lent_by[holder[slot % XMEM_GROUP_SLOTS]]++;
	return true;
}

/* Those in the lists FREE and READY could be had; the latter are WRITING too. */
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
		u64 has = xl_slot_bytes(pool, s);	/* 0: the slot is not ours */

		if (!has || has < bytes || pool->owned.slot[s].size->chain != chain)
			continue;
		ret->slots++;
		state = xm_state(xm_load(&xm_slot(map, s)->state));
		if (state == XMEM_SLOT_FREE || state == XMEM_SLOT_WRITING)
			unpublished++;
		else if (count_holders(map, s, ret))
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

/* The client with the largest number; it is taken out of the census. */
static u32 next_client(const struct xm_map *map, struct census *census, u32 *ret_number)
{
	u32 c, most = 0;

	for (c = 1; c < map->clients; c++)
		if (census->by[c] > census->by[most])
			most = c;
	*ret_number = census->by[most];
	census->by[most] = 0;
	return most;
}

/* " (client 3 viewer pid 412: 5, client 7 logger pid 415: 3, and others)"; @first: after a pid. */
static void name_clients(struct xmem_pool *pool, struct census *census, const char *first,
			 struct text *to)
{
	const struct xm_map *map = &pool->map;
	u32 named, number, client;
	struct xl_who who;

	for (named = 0; (client = next_client(map, census, &number)), number; named++) {
		const struct xmem_client_row *row = xm_client_row(map, client);

		if (named == MAX_NAMED) {
			add(to, ", and others");
			break;
		}
		xl_client_who(pool, client, xm_load(&row->incarnation), &who);
		add(to, "%sclient %u %.*s pid %u%s %u", named ? ", " : " (", client,
		    XMEM_LABEL_BYTES, (const char *)row->label, who.pid, named ? ":" : first,
		    number);
	}
	if (named)
		add(to, ")");
}

/* Name those that are waited for and have not received everything, the slowest first. */
static void name_laggards(struct xmem_pool *pool, struct census *census, struct text *to)
{
	const struct xmem_client_row *row = pool->owned.words.row;
	const struct xm_map *map = &pool->map;
	u32 c;

	memset(census->by, 0, sizeof(census->by));
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c) && xm_bit(row->waits, c) &&
		    !xm_is_demoted(map, pool->me, c, xm_load(xm_cursor(map, c, pool->me))))
			census->by[c] = xl_behind(map, c, pool->me);
	name_clients(pool, census, " has yet to receive", to);
}

/* Buffers are free, but one more publication might overwrite what is waited for. */
static void describe_ring(struct xmem_pool *pool, struct census *census, struct text *to)
{
	struct xm_waited waited;

	xm_look_at_waited(&pool->map, pool->me, &waited);
	if (waited.lagging) {
		add(to, "the ring of %u entries has no room: %u acquired and unpublished, %llu "
			"published and yet to be received",
		    pool->map.ring_mask + 1, xl_in_hand(pool),
		    (unsigned long long)(waited.tail - waited.evictable));
		name_laggards(pool, census, to);
	} else {
		add(to, "while a subscriber is waited for, at most %u buffers (ring_entries) may "
			"be acquired and unpublished, and %u are",
		    pool->map.ring_mask + 1, xl_in_hand(pool));
	}
}

/* Are buffers of any size in the way of one of @bytes, because they take room within a limit? */
static bool is_limited(const struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes)
{
	const struct xl_demand *demand = &pool->owned.demand;

	return chain == &pool->owned.cpu && demand->on && bytes && demand->limit != ~0ULL;
}

/* How many groups of slots have others? By whom: census->by; and *ret_dead by the ended. */
static u32 count_groups(const struct xmem_pool *pool, struct census *census, u32 *ret_dead)
{
	u32 g, others = 0;

	*ret_dead = 0;
	memset(census->by, 0, sizeof(census->by));
	for (g = 0; g < pool->map.groups; g++) {
		u64 slot = g * XMEM_GROUP_SLOTS;
		u32 whose = xm_load(&xm_slot_row(&pool->map, slot)->group_owner);

		if (!whose || whose == pool->me + 1)
			continue;
		others++;
		if (whose - 1 < pool->map.clients)
			census->by[whose - 1]++;
		else
			++*ret_dead;	/* the host has it, until nobody holds its slots */
	}
	return others;
}

/* Say how many slots of ended writers are still used, and which clients keep them from others. */
static void describe_left(struct xmem_pool *pool, struct census *census, u64 most_looks,
			  struct text *to)
{
	const struct xm_map *map = &pool->map;
	u32 left = 0, s, c;

	memset(census->by, 0, sizeof(census->by));
	for (s = 0; s < map->slots; s++)
		left += xm_load(&xm_slot_row(map, s)->owner) == XMEM_OWNER_HOST;
	if (!left)
		return;
	add(to, ", %u slots of clients that have ended are still used", left);
	if ((u64)left * map->clients > most_looks)
		return;
	for (s = 0; s < map->slots; s++)
		for (c = 0; c < map->clients; c++)
			census->by[c] += xl_keeps(map, c, s);
	name_clients(pool, census, ":", to);
}

static void describe_slots(struct xmem_pool *pool, struct census *census, u64 most_looks,
			   struct text *to)
{
	u32 dead, others = count_groups(pool, census, &dead);

	add(to, "writers get slots in groups of %u, others have %u of the %u groups",
	    XMEM_GROUP_SLOTS, others, pool->map.groups);
	name_clients(pool, census, ":", to);
	if (dead)
		add(to, ", %u are left by clients that have ended", dead);
	describe_left(pool, census, most_looks, to);
	if (others < pool->map.groups)
		add(to, ", and too few slots of this writer's own groups are free");
}

/* What the host or the system has refused when the last one was to be made. */
static void describe_failure(struct xmem_pool *pool, u64 bytes, int err, struct text *to)
{
	char limit[XL_LIMIT_BYTES];

	add(to, "none of %llu bytes can be made, for ", (unsigned long long)bytes);
	if (err == -EDQUOT)
		add(to, "%s: ", xl_host_error(pool, err, limit));
	else if (err == -ENOMEM)
		add(to, "too little memory is left, of the machine or of a control group: ");
	else if (err == -EMFILE || err == -ENFILE)
		add(to, "there are too many open files (%s): ",
		    err == -EMFILE ? "ulimit -n" : "of the system");
	else
		add(to, "that has failed (%s): ", strerror(-err));
}

static void describe_limit(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
			   struct census *census, u64 most_looks, struct text *to)
{
	const struct xl_demand *demand = &pool->owned.demand;

	if (!is_limited(pool, chain, bytes) || xl_ring_is_full(pool))
		return;
	if (demand->no_slots) {
		add(to, "none of %llu bytes can be made, for the pool has no slot for "
			"this writer: ",
		    (unsigned long long)bytes);
		describe_slots(pool, census, most_looks, to);
		add(to, " (open it with more slots): ");
	} else if (demand->failed) {
		describe_failure(pool, bytes, demand->failed, to);
	} else {
		add(to, "%llu bytes are wanted, and %llu of the %llu that may be made on demand "
			"(demand_bytes) are in use: ", (unsigned long long)bytes,
		    (unsigned long long)demand->used, (unsigned long long)demand->limit);
	}
}

/* Free ones are in the way only where others of their files are used; or the ring has no room. */
static void describe_free(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
			  struct census *census, struct text *to)
{
	add(to, ", %u free, but ", census->free);
	if (is_limited(pool, chain, bytes) && !xl_ring_is_full(pool))
		add(to, "too small, and their files are not free as a whole");
	else
		describe_ring(pool, census, to);
}

static void describe(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
		     struct census *census, struct text *to)
{
	add(to, "%u of %u ", census->held, census->slots);
	if (census->slots < pool->owned.slots)
		add(to, "buffers of at least %llu bytes ", (unsigned long long)bytes);
	add(to, "held");
	name_clients(pool, census, ":", to);
	if (census->claimed)
		add(to, ", %u set aside", census->claimed);
	if (census->lent) {
		add(to, ", %u forwarded and not yet received", census->lent);
		memcpy(census->by, census->lent_by, sizeof(census->by));
		name_clients(pool, census, ":", to);
	}
	if (census->writing)
		add(to, ", %u being written by this writer itself", census->writing);
	if (census->in_flight) {
		add(to, ", %u in flight", census->in_flight);
		if (!census->free)
			name_laggards(pool, census, to);
	}
	if (census->free) {
		describe_free(pool, chain, bytes, census, to);
	} else if (is_limited(pool, chain, bytes) && xl_ring_is_full(pool)) {
		add(to, ", and ");
		describe_ring(pool, census, to);
	}
}

/* What takes no long look: no holds, and no slots one by one. */
static void describe_quickly(struct xmem_pool *pool, struct census *census, struct text *to)
{
	const struct xl_owned *owned = &pool->owned;

	if (xl_ring_is_full(pool))
		describe_ring(pool, census, to);
	else if (xl_in_hand(pool) == owned->slots)
		add(to, "all %u are being written by this writer itself", owned->slots);
	else
		add(to, "%u of %u being written by this writer itself, the others held, in flight "
			"or too small", xl_in_hand(pool), owned->slots);
}

int xl_fail_no_slots(struct xmem_pool *pool)
{
	char name[XL_NAME_BYTES];
	struct text text = { .used = 0 };
	struct census census;
	u32 dead, others;

	others = count_groups(pool, &census, &dead) - dead;
	add(&text, "%s: this writer has no slots: writers get them in groups of %u, and ",
	    xl_pool_name(pool, name, sizeof(name)), XMEM_GROUP_SLOTS);
	if (dead)
		add(&text, "%u of the %u groups are left by clients that have ended, and stay "
			   "until this client itself releases or receives their buffers%s", dead,
		    pool->map.groups, others ? "; " : "");
	if (others)
		add(&text, "others have all of the %u%s groups until they end", others,
		    dead ? " other" : "");
	name_clients(pool, &census, ":", &text);
	describe_left(pool, &census, ~0ULL, &text);
	add(&text, "; open the pool with more slots");
	return xl_fail(ENOSPC, "%s", text.bytes);
}

int xl_fail_too_few_slots(struct xmem_pool *pool, u32 count)
{
	char name[XL_NAME_BYTES];
	struct text text = { .used = 0 };
	struct census census;

	add(&text, "%s: too few slots for %u buffer%s: ", xl_pool_name(pool, name, sizeof(name)),
	    count, count == 1 ? "" : "s");
	describe_slots(pool, &census, ~0ULL, &text);
	add(&text, "; open the pool with more slots");
	return xl_fail(ENOSPC, "%s", text.bytes);
}

int xl_fail_no_room(struct xmem_pool *pool, int error)
{
	char name[XL_NAME_BYTES];
	struct text text = { .used = 0 };
	struct census census;

	add(&text, "%s: publish: ", xl_pool_name(pool, name, sizeof(name)));
	describe_ring(pool, &census, &text);
	return xl_fail(error, "%s", text.bytes);
}

int xl_fail_no_buffer(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes, int error)
{
	const u64 most_looks = error == EAGAIN ? QUICK_LOOKS : ~0ULL;
	char name[XL_NAME_BYTES];
	struct text text = { .used = 0 };
	struct census census;

	add(&text, "%s: no free buffer: ", xl_pool_name(pool, name, sizeof(name)));
	describe_limit(pool, chain, bytes, &census, most_looks, &text);
	if ((u64)pool->map.clients * pool->owned.slots > most_looks) {
		describe_quickly(pool, &census, &text);
	} else {
		count_slots(pool, chain, is_limited(pool, chain, bytes) ? 1 : bytes, &census);
		describe(pool, chain, bytes, &census, &text);
	}
	return xl_fail(error, "%s", text.bytes);
}

/* All slots on a GPU, whose they may be. */
static void count_on_gpu(const struct xm_map *map, u32 device, struct census *ret)
{
	u32 s;

	memset(ret, 0, sizeof(*ret));
	for (s = 0; s < map->slots; s++) {
		if (xm_device(xm_load(&xm_slot_row(map, s)->traits)) != device)
			continue;
		ret->slots++;
		ret->held += count_holders(map, s, ret);
	}
}

int xl_fail_gpu_full(struct xmem_pool *pool, u32 device, int ordinal, u64 bytes)
{
	const struct xmem_device_row *row;
	char name[XL_NAME_BYTES];
	struct text text = { .used = 0 };
	struct census census;

	add(&text, "%s: GPU %d has too little memory left for buffers of %llu bytes in all",
	    xl_pool_name(pool, name, sizeof(name)), ordinal, (unsigned long long)bytes);
	if (device) {
		row = xm_device_row(&pool->map, device);
		add(&text, "; this pool has %llu there",
		    (unsigned long long)xm_load(&row->bytes));
		if (xm_load(&row->closing_bytes))
			add(&text, ", of which %llu go when those have closed it who have it open",
			    (unsigned long long)xm_load(&row->closing_bytes));
		count_on_gpu(&pool->map, device, &census);
		add(&text, ", and %u of %u buffers held", census.held, census.slots);
		name_clients(pool, &census, ":", &text);
	}
	return xl_fail(ENOMEM, "%s", text.bytes);
}
