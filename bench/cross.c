// SPDX-License-Identifier: MIT
/*
 * Cases of two processes on two cores: hand-over by busy polling, of small and
 * of large buffers, and the wake-up of a sleeping receiver.
 *
 * Both sides run equal batches in one order; the times of side 0 count. Half a round trip is one
 * way. The two CPUs of a virtual machine do not always run at once; batches are short, so that this
 * spoils few of them.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS	200
#define CYCLES	1000

struct cross {
	struct bench *bench;
	struct end end;
	int side;
	unsigned int lines;	/* of the raw ping-pong */
	int pause;
	void *copy[2];
};

static void cross_open(struct cross *cross, struct bench *bench, int side, unsigned int buffers,
		       size_t bytes)
{
	*cross = (struct cross){ .bench = bench, .side = side };
	ns_per_tick();
	end_pair(bench, side, &cross->end, buffers, bytes);
}

static void cross_close(struct cross *cross)
{
	meet(cross->bench, cross->side);	/* neither side leaves while the other polls */
	end_close(&cross->end);
}

static double floor_raw(void *arg)
{
	struct cross *cross = arg;

	meet(cross->bench, cross->side);
	return floor_ping_pong(&cross->bench->raw, cross->side, 0, 0, ROUNDS);
}

static double value_raw(void *arg)
{
	struct cross *cross = arg;

	meet(cross->bench, cross->side);
	return floor_ping_pong(&cross->bench->raw, cross->side, cross->lines, cross->pause, ROUNDS);
}

static double value_ping_pong(void *arg)
{
	struct cross *cross = arg;
	double start;

	meet(cross->bench, cross->side);
	start = now_ns();
	loop_ping_pong(&cross->end, cross->side, ROUNDS);
	return (now_ns() - start) / ROUNDS / 2;
}

/* Median over a batch, from the sender's tick to the end of reading the description. */
static double value_one_way(void *arg)
{
	struct cross *cross = arg;
	double way[ROUNDS];
	unsigned int r;

	meet(cross->bench, cross->side);
	if (!cross->side)
		end_send(&cross->end);
	for (r = 0; r < ROUNDS; r++) {
		struct xmem_buffer *buffer = end_receive(&cross->end);

		way[r] = (int64_t)(ticks() - xmem_metadata_ptr(buffer)->user[0]) * ns_per_tick();
		xmem_release(buffer);
		if (cross->side || r + 1 < ROUNDS)
			end_send(&cross->end);
	}
	return figure_of(way, ROUNDS).median;
}

/* Side 0 does this alone; side 1 waits in the next meet. */
static double value_cycle(struct end *local)
{
	double start = now_ns();

	loop_cycle(local, CYCLES);
	return (now_ns() - start) / CYCLES;
}

/*
 * The cost of a hand-over beyond the cache line that carries it, against a whole cycle in one
 * process.
 */
static void hand_over_row(struct cross *cross)
{
	static struct series series;
	struct bench *bench = cross->bench;
	struct end local;
	unsigned int r;

	if (!cross->side) {
		end_open(&local, bench, 32, 4096);
		end_follow(&local, xmem_pool_client(local.pool));
		loop_cycle(&local, CYCLES);
	}
	series.reps = bench->reps;
	for (r = 0; r < series.reps; r++) {
		double raw = floor_raw(cross), way = value_ping_pong(cross);

		if (cross->side)
			continue;
		series.value[r] = way - raw;
		series.floor[r] = value_cycle(&local);
	}
	if (cross->side)
		return;
	row_series(bench, "hand-over less the raw line", "cycle in one process", TARGET_MOST, 1,
		   &series);
	local.next = NULL;
	end_close(&local);
}

void case_ping_pong(struct bench *bench, int side)
{
	static struct series series;
	struct cross cross;

	cross_open(&cross, bench, side, 32, 4096);
	hand_over_row(&cross);
	series_run(&series, bench->reps, floor_raw, value_ping_pong, &cross);
	if (!side)
		row_series(bench, "publish to receive, two cores", "raw line, one way",
			   TARGET_NONE, 0, &series);

	cross.end.stamps = true;
	series_run(&series, bench->reps / 2, floor_raw, value_one_way, &cross);
	if (!side)
		row_series(bench, "publish to receive, by TSC", "raw line, one way", TARGET_NONE, 0,
			   &series);

	cross.lines = 2;
	series_run(&series, bench->reps / 2, floor_raw, value_raw, &cross);
	if (!side)
		row_series(bench, "raw line with 2 lines of data", "raw line, one way", TARGET_NONE,
			   0, &series);
	cross.lines = 0;
	cross.pause = 1;
	series_run(&series, bench->reps / 2, floor_raw, value_raw, &cross);
	if (!side)
		row_series(bench, "raw line, PAUSE in the poll", "raw line, one way", TARGET_NONE,
			   0, &series);
	cross_close(&cross);
}

/* ---- large buffers ---- */

#define LARGE	(6 << 20)

static double floor_memcpy(void *arg)
{
	struct cross *cross = arg;

	if (cross->side)
		return 1;	/* one process copies; two would share the memory's bandwidth */
	return floor_copy(cross->copy[0], cross->copy[1], LARGE, 1);
}

void case_large(struct bench *bench, int side)
{
	static struct series series;
	struct cross cross;
	int n;

	cross_open(&cross, bench, side, 8, LARGE);
	for (n = 0; n < 2; n++) {
		cross.copy[n] = mmap(NULL, LARGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (cross.copy[n] == MAP_FAILED)
			die("mmap");
		memset(cross.copy[n], n, LARGE);
	}
	series_run(&series, bench->reps / 20 + 11, floor_memcpy, value_ping_pong, &cross);
	if (!side)
		row_series(bench, "publish to receive of 6 MiB", "memcpy of 6 MiB", TARGET_NONE, 0,
			   &series);
	cross_close(&cross);
}

/* ---- sleeping ---- */

#define ASLEEP_NS	100e3	/* time after which a receiver that has announced it sleeps */
#define WAKES		5	/* a batch */

/* Side 1 sleeps and side 0 wakes it; the least time of a batch, as side 1 sees it. */
static double floor_futex(void *arg)
{
	struct cross *cross = arg;
	struct raw_shared *raw = &cross->bench->raw;
	double least = 1e12;
	unsigned int n;

	for (n = 0; n < WAKES; n++) {
		uint32_t value = raw->futex;

		meet(cross->bench, cross->side);
		if (cross->side) {
			double way = (int64_t)(floor_futex_sleep(raw, value) - raw->sent_tick) *
				     ns_per_tick();

			least = way < least ? way : least;
		} else {
			spin_ns(ASLEEP_NS);
			floor_futex_wake(raw);
		}
		meet(cross->bench, cross->side);
	}
	return least;
}

static double value_wake(void *arg)
{
	struct cross *cross = arg;
	double least = 1e12;
	unsigned int n;

	for (n = 0; n < WAKES; n++) {
		meet(cross->bench, cross->side);
		if (cross->side) {
			struct xmem_buffer *buffer = xmem_receive(cross->end.from, XMEM_FOREVER);
			uint64_t then = ticks();
			double way;

			if (!buffer)
				die("xmem_receive");
			way = (int64_t)(then - xmem_metadata_ptr(buffer)->user[0]) * ns_per_tick();
			least = way < least ? way : least;
			xmem_release(buffer);
		} else {
			spin_ns(ASLEEP_NS);
			end_send(&cross->end);
		}
		meet(cross->bench, cross->side);
	}
	return least;
}

void case_wake(struct bench *bench, int side)
{
	static struct series series;
	struct cross cross;

	cross_open(&cross, bench, side, 32, 4096);
	cross.end.stamps = true;
	series_run(&series, bench->reps / 20 + 11, floor_futex, value_wake, &cross);
	if (side)
		row_series(bench, "blocking receive", "raw futex wake-up", TARGET_MOST, 1.15,
			   &series);
	cross_close(&cross);
}
