// SPDX-License-Identifier: MIT
/*
 * Comparing the pages of a pool of xmemd with those of the look before, for xmem trace. Each word
 * is read after the words that change before it: the tails of rings, then cursors, entries, the
 * states of slots, holds. So what a cursor has passed was held, or is held.
 */
#include <string.h>

#include "cli/trace.h"
#include "core/limbo.h"

_Static_assert(TRACE_CLIENTS == XMEM_MAX_CLIENTS, "each client has a track");

uint32_t look_trace_slots(const struct xm_map *map)
{
	return map->slots;
}

/* ---- rings ---- */

/* The cursors of all clients in one ring, at one moment. NOT_THERE: the client does not follow. */
#define NOT_THERE	(~0ULL)

struct passed {
	u64 from[XMEM_MAX_CLIENTS], to[XMEM_MAX_CLIENTS];
};

/*
 * How far has each subscriber come since the look before? A subscription that is new begins where
 * it is now.
 */
static void look_cursors(struct trace *trace, const struct xm_map *map, u32 publisher, u64 tail,
			 struct passed *ret)
{
	u64 incarnation = trace->client[publisher].track, position;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		struct trace_client *one = &trace->client[c];

		ret->from[c] = NOT_THERE;
		if (!one->track || !xm_is_subscriber(map, publisher, c))
			continue;
		position = xm_load_acquire(xm_cursor(map, c, publisher));
		if (position > XMEM_CURSOR_DROPPED)
			continue;
		position = position < tail ? position : tail;
		ret->from[c] = one->followed[publisher] == incarnation ? one->cursor[publisher] :
									 position;
		ret->to[c] = position;
		one->followed[publisher] = incarnation;
		one->cursor[publisher] = position;
	}
}

/* Copy an entry. false: it has been overwritten, or is about to be. */
static bool read_entry(const struct xm_map *map, u32 publisher, u64 place, struct xmem_entry *ret)
{
	const struct xmem_entry *entry = xm_entry(map, publisher, place);

	ret->position = xm_load_acquire(&entry->position);
	ret->token = xm_load(&entry->token);
	ret->length = xm_load(&entry->length);
	ret->addressee = xm_load(&entry->addressee);
	xm_load_barrier();
	return xm_position(ret->position) == place + 1 &&
	       xm_position(xm_load(&entry->position)) == place + 1 &&
	       xm_token_slot(ret->token) < map->slots;
}

static bool holds_now(const struct xm_map *map, u32 client, u32 slot, u64 generation)
{
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);

	return xm_generation(word) == generation && xm_state(word) != XMEM_SLOT_FREE &&
	       xm_holds_count(map, client, slot) &&
	       xm_holds_of(map, client, slot, xm_hold(map, client, slot));
}

/* Tell which subscribers have passed that place. A void entry is received by nobody. */
static void look_receivers(struct trace *trace, const struct xm_map *map,
			   const struct passed *passed, u64 place, const struct xmem_entry *entry)
{
	u64 generation = xm_generation(entry->token);
	u32 slot = xm_token_slot(entry->token), c;

	if (entry->position & XMEM_ENTRY_VOID)
		return;
	for (c = 0; c < map->clients; c++)
		if (passed->from[c] <= place && passed->from[c] != NOT_THERE &&
		    place < passed->to[c] &&
		    (!(entry->position & XMEM_ENTRY_MARKED) || !entry->addressee ||
		     entry->addressee == trace->client[c].track))
			trace_receive(trace, slot, generation, c,
				      holds_now(map, c, slot, generation));
}

static void look_ring(struct trace *trace, const struct xm_map *map, u32 publisher)
{
	struct trace_client *one = &trace->client[publisher];
	u64 tail = xm_load_acquire(&xm_ring(map, publisher)->tail), oldest = xm_oldest(map, tail);
	u64 known = trace->first ? tail : one->tail, lost = 0, place;
	struct passed passed;
	struct xmem_entry entry;
	u32 slot;

	if (tail < known)
		return;			/* the host has cleared the ring of an ended client */
	look_cursors(trace, map, publisher, tail, &passed);
	for (place = oldest; place < tail; place++) {
		if (!read_entry(map, publisher, place, &entry)) {
			lost += place >= known;
			continue;
		}
		slot = xm_token_slot(entry.token);
		if (place >= known) {
			trace_content(trace, slot, xm_generation(entry.token), publisher);
			trace_publish(trace, slot, publisher, entry.length);
		}
		look_receivers(trace, map, &passed, place, &entry);
	}
	trace_lost(trace, publisher, lost + (oldest > known ? oldest - known : 0));
	one->tail = tail;
}

/* ---- clients ---- */

/* The ring of a client that has ended stays as it was until another client gets its id. */
static bool look_clients(struct trace *trace, const struct xm_map *map)
{
	bool alive = false;
	u32 c, state;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		state = xm_load_acquire(&row->state);
		alive |= state == XMEM_CLIENT_ALIVE;
		if (state != XMEM_CLIENT_NONE) {
			trace_client(trace, c, xm_load(&row->incarnation), xm_load(&row->pid),
				     (const char *)row->label, sizeof(row->label));
			continue;
		}
		if (trace->client[c].track && trace->client[c].track == xm_load(&row->incarnation))
			look_ring(trace, map, c);
		trace_client_gone(trace, c);
	}
	return alive && xm_load(&map->pool->host) & XMEM_HOST_ALIVE;
}

/* ---- slots ---- */

static void look_slot(struct trace *trace, const struct xm_map *map, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u32 owner = xm_load(&row->owner), state, c;
	u64 word;

	if (owner == XMEM_OWNER_NONE) {
		trace_gone(trace, slot);
		return;
	}
	word = xm_load_acquire(&xm_slot(map, slot)->state);
	state = xm_state(word);
	if (state == XMEM_SLOT_FREE || (state == XMEM_SLOT_WRITING &&
					xm_load(&xm_slot(map, slot)->position) !=
					XMEM_POSITION_IN_HAND)) {
		trace_gone(trace, slot);
		return;
	}
	if (state == XMEM_SLOT_UPGRADED)
		owner = xm_load(&row->upgrader) - 1;
	trace_content(trace, slot, xm_generation(word), owner);
	if (state == XMEM_SLOT_WRITING)
		return;
	for (c = 0; c < map->clients; c++)
		if (trace->client[c].track)
			trace_held(trace, slot, c, holds_now(map, c, slot, xm_generation(word)));
}

bool look_trace(struct trace *trace, const struct xm_map *map)
{
	bool alive = look_clients(trace, map);
	u32 i;

	for (i = 0; i < map->clients; i++)
		if (trace->client[i].track)
			look_ring(trace, map, i);
	for (i = 0; i < map->slots; i++)
		look_slot(trace, map, i);
	return alive;
}
