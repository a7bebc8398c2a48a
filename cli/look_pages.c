// SPDX-License-Identifier: MIT
/*
 * Reading a copy of the pages of a pool of xmemd (look_daemon.c): its slots, clients and GPUs.
 */
#include <string.h>

#include "cli/look.h"
#include "core/limbo.h"

/* ---- slots ---- */

static const char *state_of(const struct xm_map *map, u32 slot, bool held)
{
	static const u32 use[] = {
		[XMEM_SLOT_FREE] = XMEM_USE_FREE, [XMEM_SLOT_WRITING] = XMEM_USE_WRITING,
		[XMEM_SLOT_LIVE] = XMEM_USE_LIVE, [XMEM_SLOT_SCANNING] = XMEM_USE_LIVE,
		[XMEM_SLOT_UPGRADED] = XMEM_USE_WRITING,
	};
	u32 state = xm_state(xm_load_acquire(&xm_slot(map, slot)->state));

	if (xm_load(&xm_slot_row(map, slot)->owner) == XMEM_OWNER_HOST)
		return cli_state_name(XMEM_USE_LIMBO);
	if (held && xm_is_overdue(map, slot))
		return "overdue";
	return cli_state_name(state <= XMEM_SLOT_UPGRADED ? use[state] : XMEM_USE_NONE);
}

static u32 holds_of(const struct xm_map *map, u32 client, u32 slot)
{
	return !xm_holds_count(map, client, slot) ? 0 :
	       xm_holds_of(map, client, slot, xm_hold(map, client, slot));
}

/* Add a row for the slot, and what it means for each client to @tally. */
static void add_slot(const struct xm_map *map, u32 slot, struct look_tally *tally, json_t *rows)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u32 owner = xm_load(&row->owner), count, c;
	json_t *holders = cli_array();
	u64 holds = 0, bytes = xm_load(&row->length);
	const char *state;

	for (c = 0; c < map->clients; c++)
		holds += holds_of(map, c, slot);
	state = state_of(map, slot, holds);
	for (c = 0; holds && c < map->clients; c++) {
		count = holds_of(map, c, slot);
		if (!count)
			continue;
		cli_append(holders, json_integer(c));
		tally[c].holds += count;
		if (c == owner || (strcmp(state, "limbo") && strcmp(state, "overdue")))
			continue;
		tally[c].limbo++;
		tally[c].bytes_limbo += bytes;
	}
	if (owner < map->clients)
		tally[owner].slots++;
	cli_append(rows, json_pack(
		"{si ss sI si so sI sI si so}", "slot", slot, "state", state, "bytes", bytes,
		"device", xm_device(xm_load(&row->traits)),
		"owner", look_known(owner < map->clients, owner),
		"generation", xm_generation(xm_load(&xm_slot(map, slot)->state)), "holds", holds,
		"claims", xm_claims(xm_load(&row->generation_first)), "holders", holders));
}

/* ---- clients ---- */

/*
 * The bytes of the publications from place @from to @to. Of those that are overwritten already,
 * each counts as much as the mean of the others.
 */
static u64 bytes_between(const struct xm_map *map, u32 publisher, u64 from, u64 to)
{
	u64 first = to > from + map->ring_mask ? to - map->ring_mask : from, place, bytes = 0;

	for (place = first; place < to; place++)
		bytes += xm_load(&xm_entry(map, publisher, place)->length);
	return to > first ? (u64)((double)bytes * (to - from) / (to - first)) : 0;
}

/* The publications from @cursor to @tail that the subscriber cannot receive any more. */
static u64 lost_between(const struct xm_map *map, u32 publisher, u64 cursor, u64 tail)
{
	u64 oldest = xm_oldest(map, tail), place = cursor > oldest ? cursor : oldest;
	u64 lost = place - cursor;

	for (; place < tail; place++) {
		const struct xmem_entry *entry = xm_entry(map, publisher, place);

		lost += xm_load(&entry->position) & XMEM_ENTRY_VOID &&
			xm_load(&entry->addressee) != XMEM_ADDRESSEE_NOBODY;
	}
	return lost;
}

static void add(json_t *one, const char *key, u64 more)
{
	cli_set_number(one, key, look_number(one, key) + more);
}

/* Add one publisher that the client follows. */
static void add_subscription(const struct xm_map *map, u32 client, u32 publisher, json_t *one,
			     const json_t *before)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);
	u64 incarnation = xm_load(&row->incarnation), position, tail, from, behind, lost;
	const json_t *old = look_find(json_object_get(before, "subscriptions"), "incarnation",
				      incarnation);

	position = xm_load_acquire(xm_cursor(map, client, publisher));
	tail = xm_load_acquire(&xm_ring(map, publisher)->tail);
	position = position < tail ? position : tail;
	behind = tail - position <= map->ring_mask ? tail - position : (u64)map->ring_mask + 1;
	lost = lost_between(map, publisher, position, tail);
	cli_append(json_object_get(one, "subscriptions"), json_pack(
		"{si sI sI sI sI sb}", "publisher", publisher, "incarnation", incarnation,
		"position", position, "behind", behind, "lost", lost,
		"waited_for", xm_bit(row->waits, client)));
	add(one, "behind", behind);
	add(one, "lost", lost);
	from = look_number(old, "position");
	if (!old || from > position)
		return;
	add(one, "frames_received", position - from);
	add(one, "bytes_received", bytes_between(map, publisher, from, position));
}

static void add_once(json_t *ids, json_t *id)
{
	json_t *known;
	size_t i;

	json_array_foreach(ids, i, known)
		if (json_equal(known, id))
			return;
	cli_append(ids, json_incref(id));
}

/*
 * A publisher waits if its last acquire has found nothing: for the subscribers that lag, if it
 * waits for such, otherwise for the holders of its slots. A subscriber waits for publishers of
 * which it has received everything, if a client sleeps until they publish.
 */
static json_t *waits_for(const struct xm_map *map, u32 client, const json_t *subscriptions,
			 const json_t *slots)
{
	const struct xmem_client_row *row = xm_client_row(map, client);
	const struct xmem_ring *ring = xm_ring(map, client);
	json_t *whom = cli_array(), *one, *id;
	size_t i, h;
	u32 c;

	json_array_foreach(subscriptions, i, one)
		if (!look_number(one, "behind") &&
		    xm_load(&xm_client_row(map, look_number(one, "publisher"))->ring_waiters) &
		    XMEM_WAITERS_ARMED)
			cli_append(whom, json_incref(json_object_get(one, "publisher")));
	if (!xm_load(&ring->demote_at_ns) && !xm_load(&ring->vain))
		return whom;
	json_array_clear(whom);
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->waits, c) && xm_is_subscriber(map, client, c) &&
		    xm_load(xm_cursor(map, c, client)) < xm_load(&ring->tail) &&
		    !xm_is_demoted(map, client, c, xm_load(xm_cursor(map, c, client))))
			cli_append(whom, json_integer(c));
	if (json_array_size(whom))
		return whom;
	json_array_foreach(slots, i, one) {
		if (!json_is_integer(json_object_get(one, "owner")) ||
		    look_number(one, "owner") != client)
			continue;
		json_array_foreach(json_object_get(one, "holders"), h, id)
			add_once(whom, id);
	}
	return whom;
}

static json_t *client_of(const struct xm_map *map, u32 c, const struct look_tally *tally,
			 const json_t *slots, const json_t *before)
{
	const struct xmem_client_row *row = xm_client_row(map, c);
	u64 incarnation = xm_load(&row->incarnation), tail, from;
	bool alive = xm_load(&row->state) == XMEM_CLIENT_ALIVE;
	bool writes = xm_load(&row->role) == XMEM_ROLE_WRITER;
	const json_t *old = look_find(json_object_get(before, "clients"), "incarnation",
				      incarnation);
	bool known = old && writes;
	json_t *one;
	u32 p;

	tail = xm_load_acquire(&xm_ring(map, c)->tail);
	from = look_number(old, "published");
	one = json_pack("{si sI so sI sI ss ss sI sI sI sI sI so so so so so si si s[] so}",
		"client", c, "incarnation", incarnation,
		"label", cli_text((const char *)row->label, sizeof(row->label)),
		"pid", (u64)xm_load(&row->pid), "uid", (u64)xm_load(&row->uid),
		"role", writes ? "writer" : "reader", "state", alive ? "alive" : "zombie",
		"slots", tally->slots, "holds", tally->holds, "limbo", tally->limbo,
		"bytes_limbo", tally->bytes_limbo,
		"bytes_mapped", alive ? (u64)xm_load(&xm_ring(map, c)->mapped_bytes) : 0,
		"published", look_known(writes, tail),
		"frames_published", look_known(known, tail - from), "bytes_published",
		look_known(known, known ? bytes_between(map, c, from, tail) : 0),
		"frames_received", look_known(old, 0), "bytes_received", look_known(old, 0),
		"behind", 0, "lost", 0, "subscriptions", "awaits",
		alive && xm_load(&xm_ring(map, c)->awaits_writer) ? json_string("writer") :
								    json_null());
	for (p = 0; alive && p < map->clients; p++)
		if (xm_load_acquire(&xm_client_row(map, p)->state) != XMEM_CLIENT_NONE &&
		    xm_is_subscriber(map, p, c))
			add_subscription(map, c, p, one, old);
	cli_set(one, "waits_for", !alive ? cli_array() :
		waits_for(map, c, json_object_get(one, "subscriptions"), slots));
	return one;
}

/* ---- the pool ---- */

static void add_devices(const struct xm_map *map, json_t *devices)
{
	u32 d;

	for (d = 1; d <= XMEM_MAX_DEVICES; d++) {
		const struct xmem_device_row *row = xm_device_row(map, d);
		static const u8 none[XMEM_UUID_BYTES];

		if (!memcmp(row->uuid, none, sizeof(none)))
			break;
		cli_append(devices, json_pack("{si so sI sI}", "device", d, "uuid",
					      cli_uuid(row->uuid), "bytes", xm_load(&row->bytes),
					      "bytes_closing", xm_load(&row->closing_bytes)));
	}
}

void look_pages(const struct xm_map *map, json_t *pool, const json_t *before)
{
	json_t *clients = cli_array(), *slots = cli_array(), *devices = cli_array();
	struct look_tally tally[XMEM_MAX_CLIENTS] = { 0 };
	u32 i;

	for (i = 0; i < map->slots; i++)
		if (xm_load(&xm_slot_row(map, i)->owner) != XMEM_OWNER_NONE)
			add_slot(map, i, tally, slots);
	for (i = 0; i < map->clients; i++)
		if (xm_load_acquire(&xm_client_row(map, i)->state) != XMEM_CLIENT_NONE)
			cli_append(clients, client_of(map, i, &tally[i], slots, before));
	add_devices(map, devices);
	cli_set(pool, "clients", clients);
	cli_set(pool, "slots", slots);
	cli_set(pool, "devices", devices);
}
