// SPDX-License-Identifier: MIT
/*
 * Copies into buffers, and their cost for the reader: side 0 copies and publishes; side 1, on the
 * other core, reads everything. The copy alone is timed, and the time from its beginning to the end
 * of the reading, with xmem_copy and with memcpy in turn.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>

#define SOURCES	4	/* used in turn, so that none is in the cache at its next turn */
#define TARGETS	4

struct copying {
	struct bench *bench;
	struct end end;
	struct xmem_buffer *source[SOURCES];
	int side;
	bool alone;			/* the copy alone is timed */
	unsigned int turn;
};

/* The bytes that a processor reads at once: only memory shall slow the reader. */
typedef uint64_t wide __attribute__((vector_size(32)));

static void read_all(struct copying *copying)
{
	struct xmem_buffer *buffer = xmem_receive(copying->end.from, XMEM_FOREVER);
	const wide *word = buffer ? xmem_data(buffer) : NULL;
	wide sum = { 0 };
	size_t i;

	if (!word)
		die("xmem_receive");
	for (i = 0; i < xmem_size(buffer) / sizeof(*word); i++)
		sum += word[i];
	__asm__ volatile("" : : "m"(sum));
	xmem_release(buffer);
}

static void plain_copy(struct xmem_buffer *to, struct xmem_buffer *from)
{
	memcpy(xmem_data_mut(to), xmem_data(from), xmem_size(from));
	memcpy(xmem_metadata_mut(to), xmem_metadata_ptr(from), sizeof(struct xmem_metadata));
}

static double copy_and_read(struct copying *copying, bool plain)
{
	struct xmem_buffer *to, *from = copying->source[copying->turn++ % SOURCES];
	double start, copied = 0;

	meet(copying->bench, copying->side);
	start = now_ns();
	if (copying->side) {
		read_all(copying);
	} else {
		to = xmem_acquire(copying->end.pool, 0, XMEM_FOREVER);
		if (!to)
			die("xmem_acquire");
		if (plain)
			plain_copy(to, from);
		else if (xmem_copy(to, from, NULL))
			die("xmem_copy");
		copied = now_ns();
		if (xmem_publish(to, NULL, NULL))
			die("xmem_publish");
	}
	meet(copying->bench, copying->side);
	return (copying->alone ? copied : now_ns()) - start;
}

static double with_memcpy(void *arg)
{
	return copy_and_read(arg, true);
}

static double with_xmem_copy(void *arg)
{
	return copy_and_read(arg, false);
}

static void open_side(struct copying *copying, size_t bytes)
{
	struct bench *bench = copying->bench;
	unsigned int n;

	end_open(&copying->end, bench, copying->side ? 0 : SOURCES + TARGETS, bytes);
	bench->note[copying->side][0] = xmem_pool_client(copying->end.pool);
	meet(bench, copying->side);
	if (copying->side)
		end_follow(&copying->end, bench->note[0][0]);
	for (n = 0; n < SOURCES && !copying->side; n++) {
		copying->source[n] = xmem_acquire(copying->end.pool, 0, 0);
		if (!copying->source[n])
			die("xmem_acquire");
		memset(xmem_data_mut(copying->source[n]), n, bytes);
	}
	meet(bench, copying->side);
}

static void close_side(struct copying *copying)
{
	unsigned int n;

	meet(copying->bench, copying->side);
	for (n = 0; n < SOURCES; n++)
		xmem_release(copying->source[n]);
	end_close(&copying->end);
	meet(copying->bench, copying->side);
}

static void copies_of(struct bench *bench, int side, size_t bytes, unsigned int reps,
		      const char *size, enum target_kind kind)
{
	static struct series series;
	struct copying copying = { .bench = bench, .side = side };
	char what[48];
	int alone;

	open_side(&copying, bytes);
	for (alone = 1; alone >= 0; alone--) {
		copying.alone = alone;
		series_run(&series, reps, with_memcpy, with_xmem_copy, &copying);
		snprintf(what, sizeof(what), alone ? "copy of %s" : "copy of %s, and its reading",
			 size);
		if (!side)
			row_series(bench, what, "with memcpy", alone ? kind : TARGET_NONE, 1,
				   &series);
	}
	close_side(&copying);
}

void case_copy(struct bench *bench, int side)
{
	copies_of(bench, side, 16 << 20, bench->reps / 20 + 11, "16 MiB", TARGET_MOST);
	copies_of(bench, side, 4 << 20, bench->reps / 10 + 11, "4 MiB", TARGET_MOST);
	copies_of(bench, side, 64 << 10, bench->reps / 4 + 11, "64 KiB", TARGET_NONE);
}
