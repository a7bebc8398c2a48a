// SPDX-License-Identifier: MIT
/*
 * Threads that share one pool handle do everything at once (P1 and P5 inside one client). Built
 * with TSan, these tests also check the library's own memory.
 */
#include <pthread.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	1024
#define THREADS	4

static struct {
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
	unsigned int rounds;
	uint64_t token;			/* atomic; of the newest publication */
	uint64_t received;		/* atomic */
	bool over;			/* atomic */
	struct xmem_buffer *shared;
} crew;

static void crew_start(unsigned int buffers, int64_t wait_bound_ns)
{
	const char *name = new_name();

	memset(&crew, 0, sizeof(crew));
	crew.writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = wait_bound_ns);
	WORKED(xmem_preallocate(crew.writer, BYTES, buffers, NULL));
	crew.reader = open_reader(name);
}

static void crew_end(void)
{
	xmem_unsubscribe(crew.s);
	check_quiet(crew.writer, 2);
	xmem_pool_close(crew.reader);
	xmem_pool_close(crew.writer);
}

static void run_threads(unsigned int count, void *(*body)(void *argument))
{
	pthread_t thread[THREADS];
	unsigned int i;

	for (i = 0; i < count; i++)
		CHECK(!pthread_create(&thread[i], NULL, body, (void *)(uintptr_t)i));
	for (i = 0; i < count; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

static void *publish_many(void *argument)
{
	unsigned int i;

	for (i = 0; i < crew.rounds; i++) {
		struct xmem_buffer *kept;

		__atomic_store_n(&crew.token, publish_kept(crew.writer, random(), &kept),
				 __ATOMIC_RELEASE);
		xmem_release(kept);
	}
	return NULL;
}

static void *get_the_newest(void *argument)
{
	unsigned int got = 0, i;

	while (!__atomic_load_n(&crew.over, __ATOMIC_ACQUIRE)) {
		struct xmem_buffer *b = xmem_get(crew.reader,
						 __atomic_load_n(&crew.token, __ATOMIC_ACQUIRE));
		struct xmem_buffer *clone;
		uint64_t stamp;

		if (!b) {
			SAME(xmem_peek_last_error(NULL), -ESTALE);
			continue;
		}
		stamp = stamp_of(b);
		clone = xmem_clone(b);
		CHECK(clone);
		xmem_release(b);
		for (i = 0; i < 3; i++)
			SAME(stamp_of(clone), stamp);
		xmem_release(clone);
		got++;
	}
	__atomic_add_fetch(&crew.received, got, __ATOMIC_RELAXED);
	return NULL;
}

static void *everything(void *argument)
{
	if ((uintptr_t)argument < 2) {
		publish_many(argument);
		__atomic_store_n(&crew.over, true, __ATOMIC_RELEASE);
	} else {
		get_the_newest(argument);
	}
	return NULL;
}

TEST_WITHIN(P1_threads_get_while_threads_publish, 60)
{
	crew_start(8, 0);
	crew.rounds = scaled(3000);
	crew.token = publish_stamp(crew.writer, 1);
	run_threads(4, everything);
	crew_end();
}

/* Several threads publish by one handle, and several receive by one subscription. */
static void *publish_or_receive(void *argument)
{
	unsigned int i;

	if ((uintptr_t)argument < 2) {
		for (i = 0; i < crew.rounds; i++)
			publish_stamp(crew.writer, i);
		return NULL;
	}
	while (__atomic_add_fetch(&crew.received, 1, __ATOMIC_RELAXED) <= 2 * crew.rounds) {
		struct xmem_buffer *b = xmem_receive(crew.s, patience_ns());

		if (!b)
			FAIL("receive: %d", xmem_peek_last_error(NULL));
		stamp_of(b);
		xmem_release(b);
	}
	return NULL;
}

TEST_WITHIN(P3_threads_share_a_subscription_and_lose_nothing, 60)
{
	crew_start(4, 3600 * SECOND);
	crew.rounds = scaled(1000);
	crew.s = follow(crew.reader, xmem_pool_client(crew.writer), XMEM_SUBSCRIBE_WAITS);
	run_threads(4, publish_or_receive);
	REFUSED(xmem_receive(crew.s, 0), EAGAIN);
	SAME(sub_info(crew.s).lost, 0);
	crew_end();
}

static void *use_shared(void *argument)
{
	unsigned int i;

	for (i = 0; i < crew.rounds; i++) {
		struct xmem_buffer *clone = xmem_clone(crew.shared);

		CHECK(clone);
		/* All of them ask for the mapping at once, the first time. */
		SAME(stamp_of(crew.shared), 0x5a);
		SAME(stamp_of(clone), 0x5a);
		xmem_release(clone);
	}
	return NULL;
}

TEST(P1_threads_share_a_buffer)
{
	crew_start(2, 0);
	crew.rounds = scaled(500);
	{
		struct xmem_buffer *kept;
		uint64_t token = publish_kept(crew.writer, 0x5a, &kept);

		crew.shared = xmem_get(crew.reader, token);
		CHECK(crew.shared);
		xmem_release(kept);
	}
	run_threads(4, use_shared);
	SAME(stat_of(crew.writer).holds, 1);
	xmem_release(crew.shared);
	crew_end();
}

static void *open_and_close(void *argument)
{
	const char *name = argument ? "conform.of.threads" : NULL;
	unsigned int i;

	for (i = 0; i < crew.rounds; i++) {
		struct xmem_pool *pool = xmem_pool_open(name, NULL);

		CHECK(pool);
		CHECK(stat_of(pool).clients >= 1);
		xmem_pool_close(pool);
	}
	return NULL;
}

TEST(API_threads_open_and_close_pools)
{
	crew.rounds = scaled(50);
	run_threads(4, open_and_close);
}

static void *drop_elsewhere(void *argument)
{
	xmem_release(argument);
	return NULL;
}

TEST(API_any_thread_may_drop_the_last_handle)
{
	struct xmem_buffer *b;
	pthread_t thread;

	crew_start(2, 0);
	b = publish_and_get(crew.writer, crew.reader, 3);
	xmem_pool_close(crew.reader);
	SAME(stat_of(crew.writer).clients, 2);
	CHECK(!pthread_create(&thread, NULL, drop_elsewhere, b));
	CHECK(!pthread_join(thread, NULL));
	check_quiet(crew.writer, 1);
	xmem_pool_close(crew.writer);
}

static void *last_error_here(void *argument)
{
	SAME(xmem_peek_last_error(NULL), 0);
	REFUSED(xmem_get(crew.reader, 1), ESTALE);
	return NULL;
}

TEST(API_each_thread_has_its_own_error)
{
	crew_start(1, 0);
	REFUSED(xmem_acquire(crew.reader, 1, 0), EPERM);
	run_threads(2, last_error_here);
	SAME(xmem_peek_last_error(NULL), -EPERM);
	crew_end();
}

/* A thread sleeps until another thread of its client releases a buffer. */
static void *wait_or_release(void *argument)
{
	if (!argument) {
		struct xmem_buffer *b = xmem_acquire(crew.writer, BYTES, patience_ns());

		CHECK(b);
		xmem_release(b);
		return NULL;
	}
	EVENTUALLY(__atomic_load_n(&crew.over, __ATOMIC_ACQUIRE));
	xmem_release(crew.shared);
	return NULL;
}

TEST(P9_a_thread_sleeps_for_what_another_of_its_client_holds)
{
	unsigned int i;

	crew_start(1, 0);
	for (i = 0; i < 3; i++) {
		publish_kept(crew.writer, i, &crew.shared);
		__atomic_store_n(&crew.over, true, __ATOMIC_RELEASE);
		run_threads(2, wait_or_release);
	}
	/* This one is given up, not put: */
	crew.shared = xmem_acquire(crew.writer, BYTES, 0);
	CHECK(crew.shared);
	run_threads(2, wait_or_release);
	crew_end();
}

/* ---- killed with threads inside the protocol ---- */

static void die_with_threads(void *argument)
{
	crew_start(8, 0);
	crew.rounds = ~0u;
	crew.token = publish_stamp(crew.writer, 1);
	at_step(ANY_STEP, *(unsigned int *)argument, STEP_KILL, NULL);
	run_threads(4, everything);
}

static const char *watched;

static void die_in_the_pool(void *argument)
{
	memset(&crew, 0, sizeof(crew));
	crew.writer = open_writer(watched, 8, BYTES);
	crew.reader = open_reader(watched);
	crew.rounds = ~0u;
	crew.token = publish_stamp(crew.writer, 1);
	at_step(ANY_STEP, *(unsigned int *)argument, STEP_KILL, NULL);
	run_threads(4, everything);
}

TEST_WITHIN(P2_killed_at_random_with_four_threads_at_work, 60)
{
	uint64_t random = seed();
	struct xmem_pool *watcher;
	unsigned int i, after;

	steps_only();
	watched = new_name();
	watcher = open_reader(watched);
	for (i = 0; i < scaled(40); i++) {
		after = random_next(&random) % 2000;
		died_of_kill(spawn(i & 1 ? die_in_the_pool : die_with_threads, &after));
		check_quiet(watcher, 1);
		EVENTUALLY(stat_of(watcher).attached == 0);
	}
	xmem_pool_close(watcher);
}
