// SPDX-License-Identifier: MIT
/*
 * Contests on one CPU: get and put, and the whole cycle, in a process with one thread, in one with
 * a second thread that sleeps, and in a pool with idle clients. The processor's own atomic
 * additions are measured for information.
 */
#include "bench.h"

#include <pthread.h>
#include <unistd.h>

#define BATCH	5000	/* operations; short, so that a preemption spoils one turn only */

/* The state of one contestant, which is a process of its own. */
static struct end end;
static uint64_t token;

/* ---- what is there beside the one that works ---- */

static void *asleep(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void one_thread_sleeps(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, asleep, NULL))
		die("pthread_create");
}

static void clients_idle(struct bench *bench, unsigned int count)
{
	static struct end idle[64];

	while (count--)
		end_open(&idle[count], bench, 0, 0);
}

/* ---- get and put ---- */

static void open_adds(struct bench *bench)
{
}

static double two_adds(struct bench *bench)
{
	return floor_locked_adds(2, BATCH);
}

static void open_inline(struct bench *bench)
{
	inline_setup();
}

static double inlined(struct bench *bench)
{
	return inline_get_put(BATCH);
}

static void open_get(struct bench *bench)
{
	struct xmem_buffer *buffer;

	end_open(&end, bench, 32, 4096);
	end_follow(&end, xmem_pool_client(end.pool));
	buffer = xmem_acquire(end.pool, end.bytes, 0);
	if (!buffer || xmem_publish(buffer, NULL, &token))
		die("the first publication");
}

static void open_get_thread(struct bench *bench)
{
	one_thread_sleeps();
	open_get(bench);
}

static double get_put(struct bench *bench)
{
	double start = now_ns();

	loop_get(&end, token, BATCH);
	return (now_ns() - start) / BATCH;
}

void case_get(struct bench *bench)
{
	static const struct contestant all[] = {
		{ open_adds, two_adds }, { open_inline, inlined }, { open_get, get_put },
		{ open_get_thread, get_put },
	};

	if (!contest_run(bench, all, 4, bench->reps))
		return;
	row_contest(bench, "get+put, a second thread sleeps", 3, "without it", 2, TARGET_MOST, 1.4);
	row_contest(bench, "get+put, the library's handles", 2, "two atomic adds", 0, TARGET_NONE,
		    0);
	row_contest(bench, "get+put, the protocol inlined", 1, "two atomic adds", 0, TARGET_NONE,
		    0);
}

/* ---- the cycle ---- */

static double five_adds(struct bench *bench)
{
	return floor_locked_adds(5, BATCH);
}

static void open_cycle(struct bench *bench)
{
	open_get(bench);
	xmem_release(xmem_receive(end.from, 0));
}

static void open_cycle_thread(struct bench *bench)
{
	one_thread_sleeps();
	open_cycle(bench);
}

/*
 * Pools with more clients have longer tables, so all pools of a contest have room for as many
 * clients.
 */
static void open_cycle_room(struct bench *bench)
{
	bench->clients = 128;
	open_cycle(bench);
}

static void open_cycle_16(struct bench *bench)
{
	open_cycle_room(bench);
	clients_idle(bench, 16);
}

static void open_cycle_64(struct bench *bench)
{
	open_cycle_room(bench);
	clients_idle(bench, 64);
}

static double cycle(struct bench *bench)
{
	double start = now_ns();

	loop_cycle(&end, BATCH);
	return (now_ns() - start) / BATCH;
}

void case_cycle(struct bench *bench)
{
	static const struct contestant all[] = {
		{ open_adds, five_adds }, { open_cycle, cycle }, { open_cycle_thread, cycle },
	};

	if (!contest_run(bench, all, 3, bench->reps))
		return;
	row_contest(bench, "cycle, a second thread sleeps", 2, "without it", 1, TARGET_MOST, 1.4);
	row_contest(bench, "cycle", 1, "five atomic adds", 0, TARGET_NONE, 0);
}

void case_cycle_clients(struct bench *bench)
{
	static const struct contestant all[] = {
		{ open_cycle_room, cycle }, { open_cycle_16, cycle }, { open_cycle_64, cycle },
	};

	if (!contest_run(bench, all, 3, bench->reps / 2))
		return;
	row_contest(bench, "cycle, 64 idle clients", 2, "without them", 0, TARGET_MOST, 1.3);
	row_contest(bench, "cycle, 16 idle clients", 1, "without them", 0, TARGET_NONE, 0);
}
