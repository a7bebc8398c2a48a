// SPDX-License-Identifier: MIT
/*
 * Publications that a writer keeps for later subscribers. Its collector leaves the last ones alone,
 * and they go one by one when an acquire finds nothing else.
 */
#include <pthread.h>

#include "past.h"

static struct xmem_pool *open_keeper(const char *name, uint32_t keep, unsigned int buffers)
{
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .keep = keep, .ring_entries = 64,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &o);

	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, buffers, NULL));
	return pool;
}

/* It has published @count, and at least the last @kept of them are there. */
static void has_kept(struct xmem_pool *reader, struct xmem_pool *writer, unsigned int count,
		     unsigned int kept)
{
	struct xmem_subscription *s = follow_past(reader, xmem_pool_client(writer), kept);
	unsigned int stamp;

	for (stamp = count - kept; stamp < count; stamp++)
		receive_stamp(s, stamp);
	receive_nothing(s);
	xmem_unsubscribe(s);
}

TEST(API_a_writer_keeps_the_last_for_those_who_come_later)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 6, 8), *reader = open_reader(name);
	unsigned int count;

	for (count = 0; count < 100; count++) {
		has_kept(reader, writer, count, count < 6 ? count : 6);
		publish_stamp(writer, count);
	}
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/*
 * Long history comes before later publications, too, for a thread that gets the lock for itself
 * meanwhile (lib/base/lock.h).
 */
TEST(API_long_history_comes_before_what_is_new)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 62, 80), *reader = open_reader(name);
	uint64_t first = warm_up(writer, reader, 160), stamp;
	struct xmem_subscription *s;

	publish_stamps(writer, first, first + 60);
	s = follow_past(reader, xmem_pool_client(writer), 60);
	publish_stamps(writer, first + 60, first + 62);
	for (stamp = first; stamp < first + 62; stamp++)
		receive_stamp(s, stamp);
	receive_nothing(s);
	for (; stamp < first + 100; stamp++) {
		publish_stamp(writer, stamp);
		receive_stamp(s, stamp);
	}
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- threads ---- */

#define THREADS	4
#define PAST	48
#define FUTURE	200

static struct {
	struct xmem_subscription *s;
	unsigned int seen[PAST + FUTURE];
} shared;

static void *receive_some(void *unused)
{
	struct xmem_buffer *b;

	while ((b = xmem_receive(shared.s, patience_ns()))) {
		SAME(stamp_of(b), info_of(b).sequence);
		__atomic_add_fetch(&shared.seen[info_of(b).sequence], 1, __ATOMIC_SEQ_CST);
		xmem_release(b);
	}
	SAME(xmem_peek_last_error(NULL), -ECANCELED);
	return unused;
}

/* Threads share a subscription: each gets some, and each publication is received once. */
TEST(P1_threads_share_history)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 60, 80), *reader = open_reader(name);
	pthread_t thread[THREADS];
	int i, stamp;

	publish_stamps(writer, 0, PAST);
	shared.s = follow_past(reader, xmem_pool_client(writer), PAST);
	for (i = 0; i < THREADS; i++)
		SAME(pthread_create(&thread[i], NULL, receive_some, NULL), 0);
	for (i = 0; i < PAST; i++)
		EVENTUALLY(__atomic_load_n(&shared.seen[i], __ATOMIC_SEQ_CST));
	for (stamp = PAST; stamp < PAST + FUTURE; stamp++) {
		publish_stamp(writer, stamp);
		EVENTUALLY(__atomic_load_n(&shared.seen[stamp], __ATOMIC_SEQ_CST));
	}
	WORKED(xmem_cancel(reader));
	for (i = 0; i < THREADS; i++)
		SAME(pthread_join(thread[i], NULL), 0);
	for (stamp = 0; stamp < PAST + FUTURE; stamp++)
		SAME(shared.seen[stamp], 1);
	SAME(sub_info(shared.s).lost, 0);
	xmem_unsubscribe(shared.s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- which publications go, and when ---- */

/* Keeping never makes an acquire fail: the oldest go one by one when there is nothing else. */
TEST(API_what_is_kept_goes_before_an_acquire_fails)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 4096, 4), *reader = open_reader(name);
	struct xmem_buffer *b[4];
	int fd = fd_of(writer), i;

	publish_stamps(writer, 0, 50);
	has_kept(reader, writer, 50, 4);
	for (i = 0; i < 4; i++) {
		SAME(by_poll(fd, POLLOUT, WAIT_MS), POLLOUT);
		b[i] = xmem_acquire(writer, BYTES, 0);
		CHECK(b[i]);
		has_kept(reader, writer, 50, 3 - i);
	}
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	for (i = 0; i < 4; i++)
		xmem_release(b[i]);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Missing publications do not count: the last ones that exist are received. */
TEST(API_history_counts_what_exists)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 2, 3), *reader = open_reader(name);
	struct xmem_buffer *held;
	struct xmem_subscription *s;

	publish_kept(writer, 0, &held);
	publish_stamps(writer, 1, 9);	/* in the two other buffers; the last two stay there */
	s = follow_past(reader, xmem_pool_client(writer), 3);
	receive_stamp(s, 0);
	receive_stamp(s, 7);
	receive_stamp(s, 8);
	receive_nothing(s);
	xmem_unsubscribe(s);
	s = follow_past(reader, xmem_pool_client(writer), 2);
	receive_stamp(s, 7);
	receive_stamp(s, 8);
	receive_nothing(s);
	xmem_unsubscribe(s);
	xmem_release(held);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* An acquire first takes a free buffer, or one that is not kept, even if it is larger. */
TEST(API_what_is_kept_goes_last)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 4, 4), *reader = open_reader(name);
	struct xmem_buffer *b[2];

	WORKED(xmem_preallocate(writer, 4 * BYTES, 2, NULL));
	publish_stamps(writer, 0, 4);
	b[0] = xmem_acquire(writer, BYTES, 0);
	b[1] = xmem_acquire(writer, BYTES, 0);
	CHECK(b[0] && b[1]);
	SAME(xmem_capacity(b[0]), 4 * BYTES);
	SAME(xmem_capacity(b[1]), 4 * BYTES);
	has_kept(reader, writer, 4, 4);
	xmem_release(b[0]);
	xmem_release(b[1]);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Keeping does not change what the present subscribers lose. */
TEST(P3_keeping_takes_nothing_from_those_who_wait)
{
	const char *name = new_name();
	struct xmem_pool *writer, *reader = OPEN(name, .ring = 16);
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .keep = 2,
		.wait_bound_ns = 3600 * SECOND,
	};
	struct xmem_subscription *waits;
	int i;

	writer = xmem_pool_open(name, &o);
	CHECK(writer);
	WORKED(xmem_preallocate(writer, BYTES, 4, NULL));
	waits = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	publish_stamps(writer, 0, 4);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	for (i = 0; i < 40; i++) {
		receive_stamp(waits, i);
		publish_stamp(writer, i + 4);
	}
	xmem_unsubscribe(waits);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_keep_is_checked)
{
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_READER, .keep = 1,
	};
	const char *why;

	REFUSED(xmem_pool_open(new_name(), &o), EINVAL);
	why = last_message();
	CHECK(strstr(why, "keep"));
	o.flags = XMEM_OPEN_WRITER;
	o.keep = 4097;
	REFUSED(xmem_pool_open(new_name(), &o), EINVAL);
}
