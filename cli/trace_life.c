// SPDX-License-Identifier: MIT
/* The lives of the buffers of a pool, which looks tell in parts: trace.h. */
#include <errno.h>
#include <stdlib.h>

#include "cli/trace.h"

static void add(struct trace *trace, struct trace_event event)
{
	if (trace->count == TRACE_EVENTS)	/* the first half of the time is for these */
		trace_drain(trace, trace->before_ns + (trace->now_ns - trace->before_ns) / 2);
	trace->event[trace->count++] = event;
}

static void add_of(struct trace *trace, enum trace_kind kind, uint32_t slot, uint32_t client,
		   uint64_t number)
{
	static const struct trace_client nobody;
	const struct trace_client *by = client < TRACE_CLIENTS ? &trace->client[client] :
								    &nobody;

	add(trace, (struct trace_event){
		.kind = kind, .slot = slot, .pid = by->pid, .track = by->track,
		.generation = trace->slot[slot].generation, .number = number,
	});
}

int trace_slots(struct trace *trace, uint32_t slots)
{
	trace->slots = slots;
	trace->slot = calloc(slots, sizeof(*trace->slot));
	trace->origin = calloc(slots, sizeof(*trace->origin));
	return trace->slot && trace->origin ? 0 : -ENOMEM;
}

/* ---- holds ---- */

static bool holds(const struct trace *trace, uint32_t slot, uint32_t client)
{
	return trace->slot[slot].held[client / 64] >> client % 64 & 1;
}

static void turn(struct trace *trace, uint32_t slot, uint32_t client)
{
	trace->slot[slot].held[client / 64] ^= 1ULL << client % 64;
}

void trace_held(struct trace *trace, uint32_t slot, uint32_t client, bool held)
{
	if (!trace->slot[slot].generation || holds(trace, slot, client) == held)
		return;
	add_of(trace, !held ? TRACE_RELEASE : trace->first ? TRACE_WAS_HELD : TRACE_HOLD, slot,
	       client, 0);
	turn(trace, slot, client);
}

void trace_receive(struct trace *trace, uint32_t slot, uint64_t generation, uint32_t client,
		   bool held)
{
	/* Contents that have gone have no holder: their life has been told, except this. */
	if (trace->slot[slot].generation != generation)
		return;
	if (!holds(trace, slot, client)) {
		add_of(trace, TRACE_RECEIVE, slot, client, 0);
		turn(trace, slot, client);
	}
	trace_held(trace, slot, client, held);
}

/* ---- contents ---- */

void trace_gone(struct trace *trace, uint32_t slot)
{
	struct trace_slot *one = &trace->slot[slot];
	uint32_t client;

	if (!one->generation)
		return;
	for (client = 0; client < TRACE_CLIENTS; client++)
		trace_held(trace, slot, client, false);
	add(trace, (struct trace_event){
		.kind = TRACE_GONE, .slot = slot, .pid = one->pid, .track = one->track,
		.generation = one->generation,
	});
	one->generation = 0;
}

void trace_content(struct trace *trace, uint32_t slot, uint64_t generation, uint32_t client)
{
	struct trace_slot *one = &trace->slot[slot];

	if (one->generation == generation)
		return;
	trace_gone(trace, slot);
	one->generation = generation;
	one->published = false;
	one->track = client < TRACE_CLIENTS ? trace->client[client].track : 0;
	one->pid = client < TRACE_CLIENTS ? trace->client[client].pid : 0;
	add_of(trace, trace->first ? TRACE_WAS_THERE : TRACE_ACQUIRE, slot, client, 0);
	trace->lives++;
}

void trace_publish(struct trace *trace, uint32_t slot, uint32_t client, uint64_t bytes)
{
	trace->slot[slot].published = true;
	if (!trace->first)
		add_of(trace, TRACE_PUBLISH, slot, client, bytes);
}

void trace_lost(struct trace *trace, uint32_t client, uint64_t count)
{
	if (!count)
		return;
	add_of(trace, TRACE_LOST, 0, client, count);
	trace->lost += count;
}

/* ---- clients ---- */

void trace_client_gone(struct trace *trace, uint32_t client)
{
	struct trace_client *one = &trace->client[client];
	uint32_t slot;

	if (!one->track)
		return;
	for (slot = 0; slot < trace->slots; slot++)
		if (holds(trace, slot, client))
			trace_held(trace, slot, client, false);
	*one = (struct trace_client){ 0 };
}

void trace_client(struct trace *trace, uint32_t client, uint64_t incarnation, uint32_t pid,
		  const char *label, size_t most)
{
	struct trace_client *one = &trace->client[client];

	if (one->track == incarnation)
		return;
	trace_client_gone(trace, client);
	one->track = incarnation;
	one->pid = pid;
	trace_name(trace, client, label, most);
}
