// SPDX-License-Identifier: MIT
/*
 * Comparing what xmem.ko tells of each slot with the look before, for xmem trace. There are no
 * rings, so a publication is a slot that has become live, and a hand-over a hold on it. Contents
 * that came and went between two looks show as generations.
 */
#include <string.h>

#include "cli/trace.h"
#include "xmem/uapi.h"

static uint32_t id_of(const json_t *value)
{
	return json_is_integer(value) ? (uint32_t)json_integer_value(value) : TRACE_CLIENTS;
}

/*
 * How many publications has no look seen? Each acquire raises the generation by one, and nearly
 * every acquire is published; an attach begins other generations. @there: the last one is there.
 */
static uint64_t missed(struct trace_slot *one, uint64_t generation, bool there)
{
	uint64_t more = generation - one->seen;
	bool counts = one->seen && more && !((generation ^ one->seen) >> XMEM_TENANCY_SHIFT);

	one->seen = generation;
	return counts ? more - there + (one->generation && !one->published) : 0;
}

static void take_slot(struct trace *trace, const json_t *row)
{
	const char *state = json_string_value(json_object_get(row, "state"));
	const json_t *holders = json_object_get(row, "holders"), *id;
	uint32_t slot = (uint32_t)look_number(row, "slot");
	uint32_t owner = id_of(json_object_get(row, "owner")), c;
	uint64_t generation = (uint64_t)look_number(row, "generation");
	bool held[TRACE_CLIENTS] = { false };
	bool there = strcmp(state, "free") && strcmp(state, "none");
	uint64_t lost = missed(&trace->slot[slot], generation, there);
	size_t i;

	if (owner < TRACE_CLIENTS)
		trace_lost(trace, owner, lost);
	if (!there) {
		trace_gone(trace, slot);
		return;
	}
	trace_content(trace, slot, generation, owner);
	if (!strcmp(state, "writing"))
		return;
	if (!trace->slot[slot].published)
		trace_publish(trace, slot, owner, (uint64_t)look_number(row, "bytes"));
	json_array_foreach(holders, i, id)
		held[id_of(id) % TRACE_CLIENTS] = true;
	for (c = 0; c < TRACE_CLIENTS; c++)
		trace_held(trace, slot, c, held[c]);
}

static void take_clients(struct trace *trace, const json_t *clients)
{
	const json_t *row;
	const char *label;
	uint32_t c;

	for (c = 0; c < TRACE_CLIENTS; c++) {
		row = look_find(clients, "client", c);
		if (!row) {
			trace_client_gone(trace, c);
			continue;
		}
		label = json_string_value(json_object_get(row, "label"));
		trace_client(trace, c, (uint64_t)look_number(row, "incarnation"),
			     (uint32_t)look_number(row, "pid"), label, strlen(label));
	}
}

bool trace_lines(struct trace *trace, const json_t *pool)
{
	const json_t *slots = json_object_get(pool, "slots"), *row;
	uint32_t next = 0;
	size_t i;

	if (!slots)
		return json_is_object(pool);		/* these lines could not be read */
	take_clients(trace, json_object_get(pool, "clients"));
	json_array_foreach(slots, i, row) {
		for (; next < (uint32_t)look_number(row, "slot"); next++)
			trace_gone(trace, next);
		take_slot(trace, row);
		next++;
	}
	for (; next < trace->slots; next++)
		trace_gone(trace, next);
	return json_array_size(json_object_get(pool, "clients"));
}
