// SPDX-License-Identifier: MIT
/*
 * get and put by one and by two threads of a process, each on a core of its own and with a token of
 * its own. The tokens' slots are 16 apart, because the holds of 16 neighbours share a cache line,
 * and the cost of two cores that add to one line is not the library's.
 */
#include "bench.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BATCH	5000
#define SLOTS	32

static struct end end;
static uint64_t token[2];
static int cpu_of_second;
static uint32_t wanted, ready, done;	/* batches of the second thread */

static void second_batch(uint32_t number)
{
	__atomic_store_n(&ready, number, __ATOMIC_RELEASE);
	loop_get(&end, token[1], BATCH);
	__atomic_store_n(&done, number, __ATOMIC_RELEASE);
}

static void *second_thread(void *arg)
{
	uint32_t number;

	pin_to(cpu_of_second);
	for (number = 1;; number++) {
		while (__atomic_load_n(&wanted, __ATOMIC_ACQUIRE) != number)
			syscall(SYS_futex, &wanted, FUTEX_WAIT, number - 1, NULL, NULL, 0);
		second_batch(number);
	}
	return arg;
}

static void wait_until(const uint32_t *word, uint32_t value)
{
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		relax(1);
}

static double by_one(void *arg)
{
	double start = now_ns();

	loop_get(&end, token[0], BATCH);
	return (now_ns() - start) / BATCH;
}

/* Nanoseconds for one get and put of the two threads together: half the time of each. */
static double by_two(void *arg)
{
	uint32_t number = __atomic_add_fetch(&wanted, 1, __ATOMIC_SEQ_CST);
	double start;

	syscall(SYS_futex, &wanted, FUTEX_WAKE, 1, NULL, NULL, 0);
	wait_until(&ready, number);
	start = now_ns();
	loop_get(&end, token[0], BATCH);
	wait_until(&done, number);
	return (now_ns() - start) / (2 * BATCH);
}

/* Publish all buffers and keep them: token[0] and token[1] are of slots 16 apart. */
static void open_tokens(struct bench *bench)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	uint64_t one[SLOTS];
	unsigned int n, m;

	end_open(&end, bench, SLOTS, 4096);
	for (n = 0; n < SLOTS; n++) {
		struct xmem_buffer *buffer = xmem_acquire(end.pool, end.bytes, 0);

		if (!buffer || xmem_publish(buffer, &keep, &one[n]))
			die("publishing");
	}
	for (n = 0; n < SLOTS; n++)
		for (m = 0; m < SLOTS; m++)
			if ((one[m] & 0xffff) == (one[n] & 0xffff) + 16) {
				token[0] = one[n];
				token[1] = one[m];
				return;
			}
	die("no two slots are 16 apart");
}

void case_threads(struct bench *bench, int side)
{
	static struct series series;
	pthread_t thread;

	open_tokens(bench);
	cpu_of_second = bench->cpu[1];
	if (pthread_create(&thread, NULL, second_thread, NULL))
		die("pthread_create");
	series_run(&series, bench->reps, by_two, by_one, NULL);
	row_series(bench, "get+put, 2 threads against 1", "by 2 on 2 cores", TARGET_LEAST, 1.8,
		   &series);
	_exit(0);
}
