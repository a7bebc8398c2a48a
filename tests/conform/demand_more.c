// SPDX-License-Identifier: MIT
/*
 * Buffers that are made on demand in several sizes, in turn. The lack of one acquire says nothing
 * about the next one, and whatever keeps the room gives way in the end.
 */
#include <stdlib.h>

#include <pthread.h>
#include <sys/resource.h>

#include "harness.h"
#include "polling.h"

#define MB	(1ULL << 20)

#define WRITER(...)	OPEN(new_name(), .flags = XMEM_OPEN_WRITER, __VA_ARGS__)

static struct xmem_buffer *acquire(struct xmem_pool *pool, size_t bytes)
{
	struct xmem_buffer *b = xmem_acquire(pool, bytes, 0);
	const char *why = "";

	if (b)
		return b;
	why = last_message();
	FAIL("acquire %zu: %s", bytes, why);
}

/* ---- one size after another ---- */

TEST(API_a_refusal_is_for_its_own_size)
{
	struct xmem_pool *pool = WRITER(.demand_bytes = 10 * MB);
	struct xmem_buffer *b = acquire(pool, MB);
	int i;

	fd_of(pool);
	/* An acquire that has waited remembers that it found nothing. */
	for (i = 0; i < 3; i++) {
		REFUSED(xmem_acquire(pool, 10 * MB, MS), ETIMEDOUT);
		xmem_release(acquire(pool, 2 * MB));
		REFUSED(xmem_acquire(pool, 10 * MB, MS), ETIMEDOUT);
		SAME(by_poll(fd_of(pool), POLLOUT, 0), 0);
		REFUSED(xmem_acquire(pool, 99 * MB / 10, 0), EAGAIN);
		SAME(by_poll(fd_of(pool), POLLOUT, 0), 0);
	}
	xmem_release(b);
	SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
	xmem_release(acquire(pool, 10 * MB));
	xmem_pool_close(pool);
}

struct waiter {
	struct xmem_pool *pool;
	struct xmem_buffer *got;
	uint64_t bytes;
};

static void *wait_for_room(void *argument)
{
	struct waiter *waiter = argument;

	waiter->got = xmem_acquire(waiter->pool, waiter->bytes, patience_ns());
	return NULL;
}

TEST(P9_a_wait_for_a_large_buffer_leaves_the_small_ones)
{
	const char *name = new_name();
	struct waiter waiter = { .bytes = 4 * MB };
	struct xmem_client_row *row;
	struct xmem_buffer *b;
	pthread_t thread;
	struct raw raw;
	int i;

	waiter.pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 4 * MB);
	raw_start(&raw, name, XMEM_ROLE_READER);
	row = xm_client_row(&raw.map, xmem_pool_client(waiter.pool));
	b = acquire(waiter.pool, MB);
	CHECK(!pthread_create(&thread, NULL, wait_for_room, &waiter));
	until_asleep(&row->slots_waiters);
	for (i = 0; i < 100; i++)
		xmem_release(acquire(waiter.pool, (2 - i % 2) * MB));
	xmem_release(b);
	CHECK(!pthread_join(thread, NULL));
	CHECK(waiter.got);
	xmem_release(waiter.got);
	raw_close(&raw);
	xmem_pool_close(waiter.pool);
}

/* ---- what keeps the room ---- */

/*
 * A stopped client has forwarded small publications to a client that it waits for. They keep the
 * room from a large buffer only until that client's bound has passed.
 */
static void forwarded_ones_keep_it(bool polls)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = MB);
	struct xmem_pool *between = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 50 * MS);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(between, xmem_pool_client(pool), 0);
	struct xmem_subscription *t = follow(reader, xmem_pool_client(between),
					     XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *b;
	int i;

	for (i = 0; i < 16; i++) {
		WORKED(xmem_publish(acquire(pool, MB / 16), NULL, NULL));
		CHECK((b = xmem_receive(s, 0)));
		WORKED(xmem_publish(b, NULL, NULL));
	}
	if (polls) {
		for (i = 0; !(b = xmem_acquire(pool, MB * 9 / 10, 0)); i++) {
			CHECK(i < 10);
			SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
		}
	} else {
		CHECK((b = xmem_acquire(pool, MB * 9 / 10, patience_ns())));
	}
	xmem_release(b);
	xmem_unsubscribe(t);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(between);
	xmem_pool_close(pool);
}

TEST(P9_forwarded_small_ones_keep_no_room_for_ever)
{
	forwarded_ones_keep_it(false);
}

TEST(P9_forwarded_small_ones_keep_no_room_for_who_polls)
{
	forwarded_ones_keep_it(true);
}

/*
 * The entries of the ring are full of publications that a slow subscriber has not received, and the
 * next buffer is larger.
 */
TEST(P9_a_full_ring_is_polled_until_the_bound_has_passed)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = MB,
				      .ring = 8, .wait_bound_ns = 50 * MS);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), XMEM_SUBSCRIBE_WAITS);
	struct xmem_buffer *b;
	int64_t start;
	int i;

	for (i = 0; i < 8; i++)
		WORKED(xmem_publish(acquire(pool, 100 << 10), NULL, NULL));
	REFUSED(xmem_acquire(pool, 2 * MB, 0), ENOSPC);
	REFUSED(xmem_acquire(pool, ~0UL, 0), ENOSPC);
	start = now_ns();
	/* The failed acquire begins the bound. */
	while (!(b = xmem_acquire(pool, MB * 9 / 10, 0))) {
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
		SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
	}
	CHECK(now_ns() - start >= 50 * MS);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(pool);
}

/* ---- preallocation ---- */

TEST(API_a_preallocation_that_fails_ends_no_demand)
{
	struct xmem_pool *pool = WRITER(.slots = 64);
	struct rlimit limit, small;
	struct xmem_buffer *b;

	SAME(xmem_preallocate(pool, 1ULL << 45, 1, NULL), -ENOMEM);
	xmem_release(acquire(pool, 100 << 10));
	CHECK(!getrlimit(RLIMIT_FSIZE, &limit));
	small = (struct rlimit){ 64 << 10, limit.rlim_max };
	CHECK(!setrlimit(RLIMIT_FSIZE, &small));
	SAME(xmem_preallocate(pool, MB, 1, NULL), -EFBIG);
	CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
	xmem_release(acquire(pool, 300 << 10));
	SAME(xmem_preallocate(pool, 64, 64, NULL), -ENOSPC);
	xmem_release(acquire(pool, 600 << 10));
	/*
	 * The first preallocation that succeeds ends demand, and the sizes that acquires needed are
	 * forgotten.
	 */
	WORKED(xmem_preallocate(pool, 2 * MB, 1, NULL));
	REFUSED(xmem_acquire(pool, 3 * MB, 0), ENOSPC);
	CHECK(trim_pool(pool, 0) > 0);
	REFUSED(xmem_acquire(pool, 1, 0), ENOSPC);
	WORKED(xmem_preallocate(pool, MB, 1, NULL));
	b = acquire(pool, 1);
	SAME(xmem_capacity(b), MB);
	xmem_release(b);
	xmem_pool_close(pool);
}

/* ---- words ---- */

/* The message of the thread's last error has these words. */
static void says(const char *words)
{
	const char *why = last_message();

	if (!strstr(why, words))
		FAIL("no '%s' in: %s", words, why);
}

/* The message of a failed wait names the limit, and the clients that have what it allows. */
TEST(API_a_refusal_on_demand_names_the_limit_and_the_holders)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = 4 * MB);
	struct xmem_pool *reader = OPEN(name, .label = "holder");
	struct xmem_pool *odd = WRITER(.demand_bytes = 100000);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(pool), 0);
	struct xmem_buffer *b = acquire(pool, MB), *held;
	char takes[80];

	/* The next size, in whole pages. */
	snprintf(takes, sizeof(takes), "takes %zu, because sizes are rounded up",
		 (106496 + page_size() - 1) / page_size() * page_size());
	WORKED(xmem_publish(acquire(pool, MB), NULL, NULL));
	CHECK((held = xmem_receive(s, 0)));
	REFUSED(xmem_acquire(pool, 3 * MB, 0), EAGAIN);
	says("3145728 bytes are wanted, and 2097152 of the 4194304");
	says("(demand_bytes)");
	says("1 of 2 held (client 1 holder pid ");
	says("1 being written");
	REFUSED(xmem_acquire(pool, 3 * MB, MS), ETIMEDOUT);
	says("(demand_bytes)");
	says("1 of 2 held (client 1 holder pid ");
	/* No more bytes than the limit are asked for, but a buffer of that size takes more. */
	REFUSED(xmem_acquire(odd, 99999, 0), ENOSPC);
	says(takes);
	says("(demand_bytes)");
	xmem_release(b);
	xmem_release(held);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(odd);
	xmem_pool_close(pool);
}

/*
 * The system refuses what the limit allows. A writer that waits for its own buffers is told that,
 * too.
 */
TEST(API_a_refusal_says_that_no_more_can_be_made)
{
	struct xmem_pool *pool = WRITER(.demand_bytes = 8 * MB);
	struct xmem_buffer *b = acquire(pool, MB);
	struct rlimit before, none;

	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	none = (struct rlimit){ .rlim_cur = 3, .rlim_max = before.rlim_max };
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	REFUSED(xmem_acquire(pool, MB, 0), EAGAIN);
	says("none of 1048576 bytes can be made because there are too many open files");
	REFUSED(xmem_acquire(pool, MB, MS), ETIMEDOUT);
	says("ulimit -n");
	says("1 being written by this writer itself");
	/* No buffer is that large, so none can become free. */
	REFUSED(xmem_acquire(pool, 2 * MB, XMEM_FOREVER), EMFILE);
	CHECK(!setrlimit(RLIMIT_NOFILE, &before));
	xmem_release(acquire(pool, 7 * MB));
	REFUSED(xmem_acquire(pool, 8 * MB, 0), EAGAIN);
	says("may be made on demand (demand_bytes)");
	xmem_release(b);
	xmem_pool_close(pool);
}

/* ---- a host that is stopped ---- */

static int64_t time_of_refusal(struct xmem_pool *pool)
{
	int64_t begin = now_ns();

	REFUSED(xmem_acquire(pool, 3 * MB, 10 * MS), ETIMEDOUT);
	return now_ns() - begin;
}

/* Timeouts hold, and whatever the daemon serves when it continues is undone soon. */
TEST(P9_what_a_stopped_daemon_makes_late_goes)
{
	struct xmem_pool *pool, *looker;
	struct xmem_buffer *b;
	const char *name;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .cache_ns = 3600 * SECOND);
	looker = open_reader(name);
	b = acquire(pool, MB);
	daemon = stop_daemon();
	/* Each acquire waited a second longer, in vain. */
	EVENTUALLY(time_of_refusal(pool) < SECOND);
	REFUSED(xmem_acquire(pool, 3 * MB, 0), EAGAIN);
	SAME(stat_of(pool).attached, 1);
	continue_daemon(daemon);
	/* A stat by the writer itself would undo it at once. */
	EVENTUALLY(stat_of(looker).attached > 1);
	EVENTUALLY((trim_pool(pool, MB), stat_of(pool).attached == 1));
	xmem_pool_close(looker);
	xmem_release(acquire(pool, 3 * MB));
	xmem_release(b);
	xmem_pool_close(pool);
}

/* Bytes are not lacking: the ring has no room until a subscriber receives. */
TEST(API_an_acquire_on_demand_names_a_full_ring)
{
	struct setup setup = {
		.flags = XMEM_OPEN_WRITER, .slots = 64, .ring = 4, .wait_bound_ns = 3600 * SECOND,
	};
	const char *name = new_name(), *why = "";
	struct xmem_pool *writer = open_with(name, &setup), *reader = open_reader(name);
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	int i;

	s = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	for (i = 0; i < 4; i++) {
		CHECK((b = xmem_acquire(writer, 1024, 0)));
		WORKED(xmem_publish(b, NULL, NULL));
	}
	REFUSED(xmem_acquire(writer, 1024, 0), EAGAIN);
	why = last_message();
	CHECK(strstr(why, "the ring of 4 entries"));
	CHECK(!strstr(why, "demand_bytes"));
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}
