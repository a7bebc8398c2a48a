// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The policy over the pages; policy.h says what it decides. */
#include "policy.h"

static struct xmem_cursor *xm_note(const struct xm_map *map, u32 owner, u32 client)
{
	return (struct xmem_cursor *)((char *)map->area[owner] +
				      (size_t)client * map->cursor_stride);
}

bool xm_is_demoted(const struct xm_map *map, u32 owner, u32 client, u64 cursor)
{
	const struct xmem_cursor *note = xm_note(map, owner, client);

	return xm_load(&note->demoted_incarnation) ==
		       xm_load(&xm_client_row(map, client)->incarnation) &&
	       xm_load(&note->demoted_at) == cursor;
}

/* ---- subscribers ---- */

/* The next subscriber in *words, which loses it; false: there is none left. */
static bool xm_next_client(const struct xm_map *map, u64 *words, u32 *ret)
{
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		while (words[i]) {
			u32 c = i * 64 + __builtin_ctzll(words[i]);

			words[i] &= words[i] - 1;
			if (c < map->clients && map->area[c]) {
				*ret = c;
				return true;
			}
		}
	}
	return false;
}

/* Those that follow @owner, or only those that asked to be waited for. */
static void xm_subscribers(const struct xm_map *map, u32 owner, bool waits, u64 *ret)
{
	const struct xmem_client_row *row = xm_client_row(map, owner);
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		ret[i] = xm_load_acquire(&row->subscribers[i]);
		if (waits && ret[i])
			ret[i] &= xm_load_acquire(&row->waits[i]);
	}
}

void xm_look_at_waited(const struct xm_map *map, u32 owner, struct xm_waited *ret)
{
	u64 words[XMEM_CLIENT_WORDS], cursor;
	u32 c;

	*ret = (struct xm_waited){ .tail = xm_load(&xm_ring(map, owner)->tail) };
	ret->evictable = ret->tail;
	xm_full_barrier();	/* pairs with subscribe: bit, full barrier, cursor = tail */
	xm_subscribers(map, owner, true, words);
	while (xm_next_client(map, words, &c)) {
		cursor = xm_load_acquire(xm_cursor(map, c, owner));
		if (cursor < ret->tail && xm_is_demoted(map, owner, c, cursor)) {
			ret->demoted++;
			continue;
		}
		ret->count++;
		ret->lagging += cursor < ret->tail;
		if (cursor < ret->evictable)
			ret->evictable = cursor;
	}
}

u64 xm_passed(const struct xm_map *map, u32 owner, u32 *ret_culprit)
{
	u64 passed = xm_load(&xm_ring(map, owner)->tail), words[XMEM_CLIENT_WORDS], cursor;
	u32 c;

	*ret_culprit = XMEM_OWNER_NONE;
	xm_full_barrier();	/* pairs with subscribe: bit, full barrier, cursor = tail */
	xm_subscribers(map, owner, false, words);
	while (xm_next_client(map, words, &c)) {
		cursor = xm_load_acquire(xm_cursor(map, c, owner));
		if (cursor < passed) {
			passed = cursor;
			*ret_culprit = c;
		}
	}
	return passed;
}

u32 xm_demote(const struct xm_map *map, u32 owner, u64 place)
{
	u64 words[XMEM_CLIENT_WORDS], cursor;
	u32 c, count = 0;

	xm_subscribers(map, owner, true, words);
	while (xm_next_client(map, words, &c)) {
		struct xmem_cursor *note = xm_note(map, owner, c);

		cursor = xm_load_acquire(xm_cursor(map, c, owner));
		if (cursor >= place || xm_is_demoted(map, owner, c, cursor))
			continue;
		xm_store(&note->demoted_at, cursor);
		xm_store_release(&note->demoted_incarnation,
				 xm_load(&xm_client_row(map, c)->incarnation));
		count++;
	}
	return count;
}

/* ---- would an acquire succeed? ---- */

/* What is to be had in one group of an owner. */
struct xm_stock {
	u64 free;			/* bitmap: FREE, or taken ahead */
	u64 live;			/* bitmap: to be had if nobody holds it */
	u32 in_hand;			/* acquired and not published */
};

static void xm_count_slot(const struct xm_map *map, const struct xm_waited *waited, u32 slot,
			  bool fits, struct xm_stock *ret)
{
	const struct xmem_slot_word *word = xm_slot(map, slot);
	u64 position, bit = fits ? 1ULL << slot % XMEM_GROUP_SLOTS : 0;

	switch (xm_state(xm_load_acquire(&word->state))) {
	case XMEM_SLOT_FREE:
		ret->free |= bit;
		break;
	case XMEM_SLOT_WRITING:
		if (xm_load(&word->position) == XMEM_POSITION_IN_HAND)
			ret->in_hand++;
		else
			ret->free |= bit;
		break;
	case XMEM_SLOT_LIVE:
	case XMEM_SLOT_SCANNING:
		position = xm_load(&word->position);
		if (!xm_in_flight(map, waited->tail, waited->evictable, position))
			ret->live |= bit;
		break;
	}
}

static void xm_count_group(const struct xm_map *map, u32 owner, const struct xm_waited *waited,
			   u64 wanted, u32 group, struct xm_stock *ret)
{
	u32 slot = group * XMEM_GROUP_SLOTS, end = slot + XMEM_GROUP_SLOTS;

	ret->free = ret->live = 0;
	for (; slot < end; slot++) {
		const struct xmem_slot_row *row = xm_slot_row(map, slot);

		if (xm_load_acquire(&row->owner) == owner)
			xm_count_slot(map, waited, slot, xm_load(&row->length) >= wanted, ret);
	}
}

/*
 * Buffers in hand count only where somebody is waited for; else the first buffer that is
 * to be had is the answer.
 */
static bool xm_could_acquire(const struct xm_map *map, u32 owner, const struct xm_waited *waited,
			     u64 wanted)
{
	struct xm_stock stock = { .in_hand = 0 };
	bool found = false;
	u32 group;

	for (group = 0; group < map->groups && xm_has_room(map, waited, stock.in_hand); group++) {
		xm_count_group(map, owner, waited, wanted, group, &stock);
		found = found || stock.free ||
			(stock.live & ~xm_group_held(map, group, stock.live, NULL));
		if (found && !waited->count)
			return true;
	}
	return found && xm_has_room(map, waited, stock.in_hand);
}

bool xm_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline)
{
	const struct xmem_ring *ring = xm_ring(map, owner);
	u64 wanted = xm_load(&ring->wanted), demote_at = xm_load(&ring->demote_at_ns);
	struct xm_waited waited;

	*ret_deadline = 0;
	xm_look_at_waited(map, owner, &waited);
	if (xm_could_acquire(map, owner, &waited, wanted))
		return true;
	if (!waited.lagging || !demote_at)
		return false;
	/* As if all that lag were demoted, which the owner does once the bound has passed. */
	waited.count -= waited.lagging;
	waited.evictable = waited.tail;
	if (!xm_could_acquire(map, owner, &waited, wanted))
		return false;
	if (now_ns >= demote_at)
		return true;
	*ret_deadline = demote_at;
	return false;
}
