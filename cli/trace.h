/* SPDX-License-Identifier: MIT */
/*
 * xmem trace: the life of each buffer of a pool, as a file for ui.perfetto.dev.
 *
 *   look_trace.c   compares xmemd's pages with those of the look before
 *   look_lines.c   compares what xmem.ko tells of each slot
 *   trace_life.c   the lives of buffers: both tell it what they see, and it makes events of that
 *   trace_file.c   writes events
 *
 * An event has happened between two looks, and the order of the events of one look is known. So
 * they share the time between the looks evenly.
 */
#ifndef TRACE_H
#define TRACE_H

#include "cli/look.h"

#define TRACE_CLIENTS	256		/* XMEM_MAX_CLIENTS */

enum trace_kind {
	TRACE_ACQUIRE, TRACE_PUBLISH, TRACE_RECEIVE, TRACE_HOLD, TRACE_RELEASE, TRACE_GONE,
	TRACE_LOST,
	TRACE_WAS_THERE, TRACE_WAS_HELD,	/* since before the first look */
};

/* A client. @track: its incarnation, or 0: it has ended before. */
struct trace_client {
	uint64_t track;
	uint32_t pid;
	uint64_t tail;				/* the publications that have been looked at */
	uint64_t followed[TRACE_CLIENTS];	/* the incarnation of each publisher, or 0 */
	uint64_t cursor[TRACE_CLIENTS];		/* in the ring of that publisher */
};

struct trace_slot {
	uint64_t generation;		/* of the contents whose life has begun; 0: none */
	uint64_t seen;			/* xmem.ko: the generation at the look before; 0: none */
	uint64_t track;			/* of the client that has acquired it */
	uint32_t pid;
	bool published;
	uint64_t held[TRACE_CLIENTS / 64];	/* by these clients */
};

struct trace_event {
	enum trace_kind kind;
	uint32_t slot, pid;
	uint64_t track, generation;
	uint64_t number;		/* bytes, or lost publications */
};

/* Where the last publication of a slot is in the file, for arrows that begin there. */
struct trace_origin {
	uint64_t generation, ns, track;
	uint32_t pid;
};

#define TRACE_EVENTS	8192		/* more are written before the look ends */

struct trace {
	struct trace_client client[TRACE_CLIENTS];
	uint32_t slots;
	struct trace_slot *slot;
	struct trace_origin *origin;	/* of each slot */
	bool first;			/* this is the first look */
	uint64_t before_ns, now_ns;	/* the look before, and this one */
	uint64_t lost;			/* publications that were overwritten before a look */
	uint64_t arrows, lives;
	uint32_t count;			/* events that are not yet written */
	struct trace_event event[TRACE_EVENTS];

	const char *pool;		/* its name, for the file */
	int file;
	bool seeks;			/* the end is written after each look, and overwritten */
	uint64_t offset;		/* of the end */
	bool comma;			/* there is an event before */
};

/* ---- the file; each call returns 0, or -errno ---- */

int trace_begin(struct trace *trace, const char *path);

/* Write the events that are there, up to the time @until_ns. */
void trace_drain(struct trace *trace, uint64_t until_ns);

/* Write what a look has seen. A file is complete then, and can be read. */
int trace_flush(struct trace *trace);
int trace_end(struct trace *trace);

/* Name the track of a client. */
void trace_name(struct trace *trace, uint32_t client, const char *label, size_t most);

/* ---- lives ---- */

/* 0, or -ENOMEM. */
int trace_slots(struct trace *trace, uint32_t slots);

/* This client is there. @label: at most @most bytes. */
void trace_client(struct trace *trace, uint32_t client, uint64_t incarnation, uint32_t pid,
		  const char *label, size_t most);

/* That one has ended, or none has had this id. It releases all. */
void trace_client_gone(struct trace *trace, uint32_t client);

/* The slot has contents of that generation, by @client; TRACE_CLIENTS: it has ended. */
void trace_content(struct trace *trace, uint32_t slot, uint64_t generation, uint32_t client);
void trace_publish(struct trace *trace, uint32_t slot, uint32_t client, uint64_t bytes);

/* A subscriber has passed a publication. @held: it still holds it. */
void trace_receive(struct trace *trace, uint32_t slot, uint64_t generation, uint32_t client,
		   bool held);

/* Does the client hold the slot now? */
void trace_held(struct trace *trace, uint32_t slot, uint32_t client, bool held);

/* The slot has no contents. */
void trace_gone(struct trace *trace, uint32_t slot);
void trace_lost(struct trace *trace, uint32_t client, uint64_t count);

/* ---- looks ---- */

/* Compare with the look before. false: the pool has ended. */
bool look_trace(struct trace *trace, const struct xm_map *map);
bool trace_lines(struct trace *trace, const json_t *pool);

/* The capacity of a pool whose pages are mapped. */
uint32_t look_trace_slots(const struct xm_map *map);

#endif
