// SPDX-License-Identifier: MIT
/*
 * Handles of buffers. The library detects a dropped handle in every call, and never takes it for
 * another buffer. A handle can be taken in one thread and dropped in another. The last handle ends
 * a pool that was closed before, once.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "harness.h"

#define BYTES	4096
#define THREADS	8

#define STALE(call) do { xmem_clear_last_error(); call; SAME(xmem_peek_last_error(NULL), -EBADF); \
		} while (0)

/* Use @b in every way. Returns how many ways worked. */
static unsigned int use_stale(struct xmem_buffer *b)
{
	struct xmem_buffer_info info = XMEM_INIT(info);

	STALE(xmem_release(b));
	REFUSED(xmem_clone(b), EBADF);
	REFUSED(xmem_data(b), EBADF);
	REFUSED(xmem_data_mut(b), EBADF);
	REFUSED(xmem_metadata_ptr(b), EBADF);
	REFUSED(xmem_metadata_mut(b), EBADF);
	SAME(xmem_publish(b, NULL, NULL), -EBADF);
	STALE(SAME(xmem_size(b), 0));
	STALE(SAME(xmem_capacity(b), 0));
	STALE(SAME(xmem_token(b), 0));
	SAME(xmem_buffer_stat(b, &info), -EBADF);
	return 11;
}

TEST(API_a_stale_handle_is_EBADF_in_every_function)
{
	const char *name = new_name(), *why;
	struct xmem_pool *writer = open_writer(name, 4, BYTES), *reader = open_reader(name);
	struct xmem_buffer *old, *kept, *next[3];
	uint64_t token = publish_kept(writer, 0x51, &kept);
	unsigned int uses, i;

	old = xmem_get(reader, token);
	CHECK(old);
	xmem_release(old);
	uses = use_stale(old);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -EBADF);
	CHECK(strstr(why, "dropped"));
	SAME(stat_of(reader).stale_handles, uses);
	/* This holds even if other buffers have got that memory by now. */
	for (i = 0; i < 3; i++) {
		next[i] = i ? xmem_clone(next[0]) : xmem_get(reader, token);
		CHECK(next[i] && next[i] != old);
	}
	uses += use_stale(old);
	for (i = 0; i < 3; i++) {
		SAME(stamp_of(next[i]), 0x51);
		SAME(xmem_token(next[i]), token);
	}
	SAME(stat_of(writer).holds, 4);
	SAME(stat_of(reader).stale_handles, uses);
	for (i = 0; i < 3; i++)
		xmem_release(next[i]);
	xmem_release(kept);
	check_quiet(writer, 2);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* This was L25: the second release gave up the buffer that was acquired in between. */
TEST(P1_a_double_release_leaves_the_next_buffer_alone)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);
	struct xmem_buffer *first, *second;

	first = xmem_acquire(writer, BYTES, 0);
	CHECK(first);
	xmem_release(first);
	second = xmem_acquire(writer, BYTES, 0);
	CHECK(second);
	STALE(xmem_release(first));
	SAME(stat_of(writer).writing, 1);
	fill(second, 7);
	WORKED(xmem_publish(second, NULL, NULL));
	SAME(xmem_publish(second, NULL, NULL), -EBADF);
	STALE(xmem_release(second));
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST_WITHIN(API_a_handle_can_be_used_as_often_as_one_likes, 60)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *kept, *b;
	uint64_t token = publish_kept(writer, 9, &kept);
	unsigned int i;

	/* More than the 2^23 generations of one handle. */
	for (i = 0; i < (1u << 23) + 100; i++) {
		b = xmem_get(writer, token);
		if (!b)
			FAIL("get %u: %d", i, xmem_peek_last_error(NULL));
		xmem_release(b);
	}
	SAME(stat_of(writer).holds, 1);
	SAME(stat_of(writer).stale_handles, 0);
	xmem_release(kept);
	xmem_pool_close(writer);
}

#define MANY	(1u << 16)

TEST_WITHIN(API_very_many_handles_at_once, 60)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer **b = calloc(MANY, sizeof(*b)), *kept;
	uint64_t token = publish_kept(writer, 9, &kept), state = seed();
	unsigned int again, i, j;

	CHECK(b);
	for (again = 0; again < 2; again++) {
		for (i = 0; i < MANY; i++) {
			b[i] = i % 2 ? xmem_clone(kept) : xmem_get(writer, token);
			CHECK(b[i]);
		}
		SAME(stat_of(writer).holds, MANY + 1);
		for (i = MANY; i; i--) {	/* in any order */
			struct xmem_buffer *one;

			j = random_next(&state) % i;
			one = b[j];
			b[j] = b[i - 1];
			SAME(xmem_token(one), token);
			xmem_release(one);
		}
		SAME(stat_of(writer).holds, 1);
	}
	SAME(stat_of(writer).stale_handles, 0);
	free(b);
	xmem_release(kept);
	xmem_pool_close(writer);
}

/* ---- threads ---- */

static struct {
	struct xmem_pool *pool;
	uint64_t token;
	unsigned int rounds;
	pthread_barrier_t start;
	struct xmem_buffer *given[THREADS];
	struct xmem_buffer *passed[1024];	/* atomic */
} team;

static void run_team(void *(*body)(void *argument), unsigned int count)
{
	pthread_t thread[THREADS];
	unsigned int i;

	for (i = 0; i < count; i++)
		CHECK(!pthread_create(&thread[i], NULL, body, (void *)(uintptr_t)i));
	for (i = 0; i < count; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

static long resident_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long all, resident = 0;

	CHECK(file && fscanf(file, "%ld %ld", &all, &resident) == 2);
	fclose(file);
	return resident;
}

/* Less than 2,000 pages? A sanitizer's own memory grows with each thread, so it does not count. */
static bool grown_little(long before)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return resident_pages() - before < 2000;
#endif
}

static void *get_or_drop(void *argument)
{
	unsigned int i, at;

	for (i = 0; i < team.rounds; i++) {
		struct xmem_buffer *b = argument ? NULL : xmem_get(team.pool, team.token), *old;

		CHECK(argument || b);
		at = i % 1024;
		/* One thread waits for an empty place, the other for a full one. */
		while (!!(old = __atomic_load_n(&team.passed[at], __ATOMIC_ACQUIRE)) == !argument)
			sched_yield();
		__atomic_store_n(&team.passed[at], b, __ATOMIC_RELEASE);
		if (argument)
			xmem_release(old);
	}
	return NULL;
}

TEST_WITHIN(API_handles_taken_in_one_thread_are_dropped_in_another, 60)
{
	struct xmem_buffer *kept;
	long before;

	memset(&team, 0, sizeof(team));
	team.pool = open_writer(new_name(), 1, BYTES);
	team.token = publish_kept(team.pool, 1, &kept);
	team.rounds = scaled(20000);
	run_team(get_or_drop, 2);
	before = resident_pages();
	team.rounds = scaled(200000);
	run_team(get_or_drop, 2);
	SAME(stat_of(team.pool).holds, 1);
	SAME(stat_of(team.pool).stale_handles, 0);
	/* 200,000 handles that did not return would be 6,250 pages. */
	CHECK(grown_little(before));
	xmem_release(kept);
	xmem_pool_close(team.pool);
}

static void *take_some_and_end(void *argument)
{
	struct xmem_buffer *b[40];
	unsigned int i;

	for (i = 0; i < 40; i++)
		CHECK((b[i] = xmem_get(team.pool, team.token)));
	for (i = 0; i < 40; i++)
		xmem_release(b[i]);
	return NULL;
}

TEST_WITHIN(API_a_threads_handles_come_back_at_its_end, 60)
{
	unsigned int i, rounds = scaled(3000);
	struct xmem_buffer *kept;
	long before;

	memset(&team, 0, sizeof(team));
	team.pool = open_writer(new_name(), 1, BYTES);
	team.token = publish_kept(team.pool, 1, &kept);
	for (i = 0; i < 10; i++)
		run_team(take_some_and_end, 2);
	before = resident_pages();
	for (i = 0; i < rounds; i++)
		run_team(take_some_and_end, 2);
	/* 6,000 threads with 40 handles each would be 7,500 pages. */
	CHECK(grown_little(before));
	SAME(stat_of(team.pool).holds, 1);
	xmem_release(kept);
	xmem_pool_close(team.pool);
}

/* ---- the end of a pool ---- */

/* Clone the last clone, and drop the one before it, so that one is always in use. */
static void *relay(void *argument)
{
	struct xmem_buffer *b = team.given[(uintptr_t)argument], *next;
	unsigned int i;

	pthread_barrier_wait(&team.start);
	for (i = 0; i < team.rounds; i++) {
		next = xmem_clone(b);
		CHECK(next);
		SAME(stamp_of(next), 0xc105e);
		xmem_release(b);
		b = next;
	}
	SAME(xmem_size(b), BYTES);
	xmem_release(b);
	return NULL;
}

static void *close_it(void *argument)
{
	pthread_barrier_wait(&team.start);
	xmem_pool_close(team.pool);
	return NULL;
}

static void *relay_or_close(void *argument)
{
	return (uintptr_t)argument ? relay(argument) : close_it(argument);
}

/* Threads clone and drop while another closes the pool; the last drop ends the client. */
static void close_under_threads(unsigned int again)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct xmem_buffer *kept;
	uint64_t token = publish_kept(writer, 0xc105e, &kept);
	unsigned int i;

	while (again--) {
		memset(&team, 0, sizeof(team));
		team.rounds = again % 40;
		team.pool = open_reader(name);
		for (i = 1; i < THREADS; i++)
			CHECK((team.given[i] = xmem_get(team.pool, token)));
		CHECK(!pthread_barrier_init(&team.start, NULL, THREADS));
		run_team(relay_or_close, THREADS);
		pthread_barrier_destroy(&team.start);
		EVENTUALLY(stat_of(writer).clients == 1);
		SAME(stat_of(writer).holds, 1);
	}
	xmem_release(kept);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST_WITHIN(P2_a_pool_is_closed_under_threads_that_have_handles, 60)
{
	close_under_threads(scaled(300));
}

/* From here on this process may not call membarrier. */
static void close_without_membarrier(void *argument)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	close_under_threads(scaled(100));
}

TEST_WITHIN(P2_a_pool_is_closed_under_threads_without_membarrier, 60)
{
	finish_child(spawn(close_without_membarrier, NULL));
}

TEST(P2_the_last_handle_ends_a_closed_pool)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *kept, *b, *clone;
	uint64_t token = publish_kept(writer, 3, &kept);

	b = xmem_get(reader, token);
	CHECK(b);
	xmem_pool_close(reader);
	SAME(stat_of(writer).clients, 2);
	clone = xmem_clone(b);
	CHECK(clone);
	xmem_release(b);
	SAME(stat_of(writer).clients, 2);
	SAME(stamp_of(clone), 3);
	xmem_release(clone);
	EVENTUALLY(stat_of(writer).clients == 1);
	STALE(xmem_release(clone));
	xmem_release(kept);
	xmem_pool_close(writer);
}

TEST(API_the_handle_of_a_pool_that_has_ended_is_EBADF)
{
	struct xmem_pool *pool = open_reader(new_name());
	const char *why;

	xmem_pool_close(pool);
	SAME(xmem_pool_client(pool), -EBADF);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -EBADF);
	CHECK(strstr(why, "closed"));
	REFUSED(xmem_subscribe(pool, NULL), EBADF);
	REFUSED(xmem_get(pool, 1), EBADF);
	SAME(xmem_cancel(pool), -EBADF);
	xmem_pool_close(pool);
}

/* A subscribe that fails uses a number, too. */
TEST(API_the_handle_of_a_subscription_does_not_come_back_soon)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscribe_options nobody = {
		.size = sizeof(nobody), .publisher = xmem_pool_client(reader),
		.flags = XMEM_SUBSCRIBE_PUBLISHER | XMEM_SUBSCRIBE_NOWAIT,
	};
	struct xmem_subscription *old = follow(reader, xmem_pool_client(writer), 0), *s;
	unsigned int i;

	xmem_unsubscribe(old);
	for (i = 0; i < 0xffff - 1; i++)
		REFUSED(xmem_subscribe(reader, &nobody), ENOENT);
	s = follow(reader, xmem_pool_client(writer), 0);
	CHECK(s != old);
	REFUSED(xmem_receive(old, 0), EBADF);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}
