// SPDX-License-Identifier: MIT
/*
 * Cases in one process on one CPU. They time get and put, and the whole cycle:
 * alone, in a process of several threads, and in a pool with many clients.
 */
#include "bench.h"

#include <pthread.h>
#include <unistd.h>

#define BATCH	5000	/* operations; short, so that a preemption spoils one batch only */

struct local {
	struct end end;
	uint64_t token;
	unsigned int adds;	/* of the floor */
};

static double floor_adds(void *arg)
{
	const struct local *local = arg;

	return floor_locked_adds(local->adds, BATCH);
}

static double floor_calls(void *arg)
{
	return floor_called_adds(BATCH);
}

static double value_get(void *arg)
{
	struct local *local = arg;
	double start = now_ns();

	loop_get(&local->end, local->token, BATCH);
	return (now_ns() - start) / BATCH;
}

static double value_cycle(void *arg)
{
	struct local *local = arg;
	double start = now_ns();

	loop_cycle(&local->end, BATCH);
	return (now_ns() - start) / BATCH;
}

static void local_open(struct bench *bench, struct local *local)
{
	struct xmem_buffer *buffer;

	end_open(&local->end, bench, 32, 4096);
	end_follow(&local->end, xmem_pool_client(local->end.pool));
	buffer = xmem_acquire(local->end.pool, local->end.bytes, 0);
	if (!buffer || xmem_publish(buffer, NULL, &local->token))
		die("the first publication");
}

/* A thread that does nothing: what the library may spare a single thread, it may no more. */
static void *idle_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, idle_thread, NULL))
		die("pthread_create");
}

static double value_inline(void *arg)
{
	return inline_get_put(BATCH);
}

/*
 * Counting itself against two additions; and the library, whose functions are
 * called, against two additions that are called for: a call stores its way back,
 * and the next locked addition waits for that store.
 */
void case_get(struct bench *bench, int side)
{
	static struct series series;
	struct local local = { .adds = 2 };

	inline_setup();
	series_run(&series, bench->reps, floor_adds, value_inline, &local);
	row_series(bench, "get+put, the protocol inlined", "two atomic adds", TARGET_RATIO, 1.3,
		   &series);
	local_open(bench, &local);
	series_run(&series, bench->reps, floor_calls, value_get, &local);
	row_series(bench, "get+put, the library's handles", "two adds, a call each", TARGET_RATIO,
		   1.3, &series);
	series_run(&series, bench->reps, floor_adds, value_get, &local);
	row_series(bench, "get+put, the library's handles", "two atomic adds", TARGET_NONE, 0,
		   &series);
	end_close(&local.end);
}

void case_get_threads(struct bench *bench, int side)
{
	static struct series series;
	struct local local = { .adds = 2 };

	start_thread();
	local_open(bench, &local);
	series_run(&series, bench->reps, floor_adds, value_get, &local);
	row_series(bench, "get+put, 2 threads in the process", "two atomic adds", TARGET_NONE, 0,
		   &series);
	end_close(&local.end);
}

static void measure_cycle(struct bench *bench, const char *what, enum target_kind kind,
			  double target)
{
	static struct series series;
	struct local local = { .adds = 5 };

	local_open(bench, &local);
	xmem_release(xmem_receive(local.end.from, 0));
	series_run(&series, bench->reps, floor_adds, value_cycle, &local);
	row_series(bench, what, "five atomic adds", kind, target, &series);
	end_close(&local.end);
}

void case_cycle(struct bench *bench, int side)
{
	measure_cycle(bench, "acquire+publish+receive+put", TARGET_VALUE, 60);
}

void case_cycle_threads(struct bench *bench, int side)
{
	start_thread();
	measure_cycle(bench, "cycle, 2 threads in the process", TARGET_NONE, 0);
}

void case_cycle_clients(struct bench *bench, int side)
{
	struct end idle[16];
	unsigned int n;

	for (n = 0; n < 16; n++)
		end_open(&idle[n], bench, 0, 0);
	measure_cycle(bench, "cycle, 16 idle clients in the pool", TARGET_NONE, 0);
	for (n = 0; n < 16; n++)
		end_close(&idle[n]);
}
