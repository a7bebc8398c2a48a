// SPDX-License-Identifier: MIT
/*
 * Why acquire finds no buffer, in words: how many are held and by whom, how many are being
 * written, how many are in flight.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "holders.h"
#include "pages.h"

#define MAX_NAMED	3	/* holders whose names fit into a message */
#define QUICK_LOOKS	4096	/* holds that are looked at for an acquire that does not wait */

/* What the slots that are large enough are used for. */
struct census {
	u32 slots, held, writing, in_flight, free;
	u32 by[XMEM_MAX_CLIENTS];	/* how many of them each client holds */
};

struct text {
	char bytes[240];
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

static void count_slots(const struct xmem_pool *pool, u64 bytes, struct census *ret)
{
	const struct xm_map *map = &pool->map;
	u32 s, state;

	memset(ret, 0, sizeof(*ret));
	for (s = 0; s < map->slots; s++) {
		u64 has = pool->owned.slot[s].bytes;	/* 0: the slot is not ours */

		if (!has || has < bytes)
			continue;
		ret->slots++;
		state = xm_state(xm_load(&xm_slot(map, s)->state));
		if (state == XMEM_SLOT_FREE)
			ret->free++;
		else if (state == XMEM_SLOT_WRITING)
			ret->writing++;
		else if (count_holders(map, s, ret))
			ret->held++;
		else
			ret->in_flight++;
	}
}

/* The client that holds most; it is taken out of the census. */
static u32 next_holder(const struct xm_map *map, struct census *census, u32 *ret_slots)
{
	u32 c, most = 0;

	for (c = 1; c < map->clients; c++)
		if (census->by[c] > census->by[most])
			most = c;
	*ret_slots = census->by[most];
	census->by[most] = 0;
	return most;
}

/* " (viewer pid 412: 5, logger pid 415: 3, and others)" */
static void name_holders(const struct xm_map *map, struct census *census, struct text *to)
{
	u32 named, slots, holder;

	for (named = 0; (holder = next_holder(map, census, &slots)), slots; named++) {
		const struct xmem_client_row *row = xm_client_row(map, holder);

		if (named == MAX_NAMED) {
			add(to, ", and others");
			break;
		}
		add(to, "%s%.*s pid %u: %u", named ? ", " : " (", XMEM_LABEL_BYTES,
			(const char *)row->label, xm_load(&row->pid), slots);
	}
	if (named)
		add(to, ")");
}

static void describe(const struct xmem_pool *pool, struct census *census, struct text *to)
{
	char name[XL_NAME_BYTES];

	add(to, "%s: no free buffer: ", xl_pool_name(pool, name, sizeof(name)));
	add(to, "%u of %u held", census->held, census->slots);
	name_holders(&pool->map, census, to);
	if (census->writing)
		add(to, ", %u being written", census->writing);
	if (census->in_flight)
		add(to, ", %u in flight", census->in_flight);
	if (census->free)
		add(to, ", %u free, but a subscriber that is waited for has yet to receive a "
			"whole ring", census->free);
}

int xl_fail_no_buffer(struct xmem_pool *pool, u64 bytes, int error)
{
	struct text text = { .used = 0 };
	struct census census;

	if (error == EAGAIN && (u64)pool->map.clients * pool->owned.slots > QUICK_LOOKS)
		return xl_fail_fast(EAGAIN, "no free buffer: all are held or in flight");
	count_slots(pool, bytes, &census);
	describe(pool, &census, &text);
	return xl_fail(error, "%s", text.bytes);
}
