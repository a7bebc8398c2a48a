// SPDX-License-Identifier: MIT
/*
 * History: a subscriber that comes late receives the last publications that still exist, in
 * their order and before what comes later. They are not protected, so those that have gone are
 * passed and do not count as lost.
 */
#include "polling.h"

#define BYTES	4096

static struct xmem_subscription *follow_some(struct xmem_pool *pool, int publisher,
					     uint32_t history, uint32_t depth)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_PUBLISHER, .publisher = publisher,
		.history = history, .depth = depth,
	};
	struct xmem_subscription *s = xmem_subscribe(pool, &o);

	CHECK(s);
	return s;
}

static struct xmem_subscription *follow_past(struct xmem_pool *pool, int publisher,
					     uint32_t history)
{
	return follow_some(pool, publisher, history, 0);
}

/* The next one has this stamp, which is its number too. */
static void receive_stamp(struct xmem_subscription *s, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_receive(s, 0);

	CHECK(b);
	SAME(stamp_of(b), stamp);
	SAME(xmem_sequence(b), stamp);
	xmem_release(b);
}

static void receive_nothing(struct xmem_subscription *s)
{
	REFUSED(xmem_receive(s, 0), EAGAIN);
	SAME(xmem_subscription_lost(s), 0);
}

static void publish_stamps(struct xmem_pool *writer, uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		publish_stamp(writer, from);
}

TEST(API_history_is_what_was_published_before)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	int publisher = xmem_pool_client(writer), i, stamp;
	static const struct { uint32_t history; int first; } cases[] = {
		{ 0, 5 }, { 1, 4 }, { 3, 2 }, { 5, 0 }, { 6, 0 }, { ~0u, 0 },
	};

	publish_stamps(writer, 0, 5);
	for (i = 0; i < (int)(sizeof(cases) / sizeof(*cases)); i++) {
		struct xmem_subscription *s = follow_past(reader, publisher, cases[i].history);

		for (stamp = cases[i].first; stamp < 5; stamp++)
			receive_stamp(s, stamp);
		receive_nothing(s);
		xmem_unsubscribe(s);
	}
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_history_comes_before_what_is_new)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;

	publish_stamps(writer, 0, 3);
	s = follow_past(reader, xmem_pool_client(writer), 2);
	publish_stamps(writer, 3, 5);
	receive_stamp(s, 1);
	publish_stamps(writer, 5, 6);
	for (int stamp = 2; stamp < 6; stamp++)
		receive_stamp(s, stamp);
	receive_nothing(s);
	publish_stamps(writer, 6, 7);
	receive_stamp(s, 6);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* The last that exist are counted, whatever has gone between them. */
TEST(API_history_passes_what_has_gone)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 3, BYTES), *reader = open_reader(name);
	struct xmem_buffer *held;
	struct xmem_subscription *s;

	publish_kept(writer, 0, &held);
	publish_stamps(writer, 1, 9);	/* in the two other buffers */
	s = follow_past(reader, xmem_pool_client(writer), 64);
	receive_stamp(s, 0);
	/* What comes between them is gone. The last one at least is there. */
	for (;;) {
		struct xmem_buffer *b = xmem_receive(s, 0);
		bool last;

		CHECK(b);
		SAME(stamp_of(b), xmem_sequence(b));
		CHECK(xmem_sequence(b) >= 7);
		last = xmem_sequence(b) == 8;
		xmem_release(b);
		if (last)
			break;
	}
	receive_nothing(s);
	xmem_release(held);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* They go while the subscriber has yet to receive them: nothing protects them. */
TEST(API_history_may_go_before_it_is_received)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 5, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;

	publish_stamps(writer, 0, 4);
	s = follow_past(reader, xmem_pool_client(writer), 4);
	receive_stamp(s, 0);
	publish_stamps(writer, 4, 8);
	for (int stamp = 4; stamp < 8; stamp++)
		receive_stamp(s, stamp);
	receive_nothing(s);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* What is held of the history stays, as all that is held (P1). */
TEST(P1_history_that_is_held_stays)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 3, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;
	struct xmem_buffer *held;

	publish_stamps(writer, 0, 2);
	s = follow_past(reader, xmem_pool_client(writer), 2);
	held = xmem_receive(s, 0);
	CHECK(held);
	publish_stamps(writer, 2, 20);
	SAME(stamp_of(held), 0);
	SAME(xmem_sequence(held), 0);
	SAME(xmem_publisher(held), xmem_pool_client(writer));
	xmem_release(held);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

/* ---- descriptors ---- */

static void is_readable_until_received(struct xmem_subscription *s, int fd)
{
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	receive_stamp(s, 0);
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	receive_stamp(s, 1);
	receive_nothing(s);
	SAME(by_poll(fd, POLLIN, 0), 0);
}

TEST(P9_descriptors_are_readable_as_long_as_there_is_history)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	int publisher = xmem_pool_client(writer), fd = fd_of(reader);
	struct xmem_subscription *s;

	publish_stamps(writer, 0, 2);
	SAME(by_poll(fd, POLLIN, 0), 0);
	s = follow_past(reader, publisher, 2);
	is_readable_until_received(s, fd);
	xmem_unsubscribe(s);

	s = follow_past(reader, publisher, 2);
	is_readable_until_received(s, xmem_subscription_poll_fd(s));
	xmem_unsubscribe(s);

	/* A subscription that is dropped before it has received it leaves nothing behind. */
	s = follow_past(reader, publisher, 2);
	receive_stamp(s, 0);
	xmem_unsubscribe(s);
	s = follow_past(reader, publisher, 0);
	receive_nothing(s);
	EVENTUALLY(!by_poll(fd, POLLIN, 0));
	SAME(by_poll(xmem_subscription_poll_fd(s), POLLIN, 0), 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- ends ---- */

static void publish_and_wait(void *argument)
{
	struct xmem_pool *writer = open_writer(argument, 4, BYTES);

	publish_stamps(writer, 0, 3);
	tell_parent(xmem_pool_client(writer));
	hear_parent();
}

/* What the host has yet to take back may still be received. */
static bool has_ended(struct xmem_subscription *s)
{
	struct xmem_buffer *b = xmem_receive(s, 0);
	bool ended = !b && xmem_peek_last_error(NULL) == -EPIPE;

	xmem_release(b);
	return ended;
}

TEST(P2_history_ends_with_its_publisher)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(publish_and_wait, (void *)name);
	struct xmem_subscription *s = follow_past(reader, (int)hear(child), 3);
	struct xmem_buffer *held = xmem_receive(s, 0);

	CHECK(held);
	kill_child(child);
	EVENTUALLY(stat_of(reader).clients == 1);
	EVENTUALLY(has_ended(s));
	SAME(xmem_subscription_lost(s), 0);
	SAME(stamp_of(held), 0);
	xmem_release(held);
	xmem_unsubscribe(s);
	check_quiet(reader, 1);
	EVENTUALLY(stat_of(reader).attached == 0);
	xmem_pool_close(reader);
}

/* ---- what a writer keeps ---- */

static struct xmem_pool *open_keeper(const char *name, uint32_t keep, unsigned int buffers)
{
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .keep = keep, .ring_entries = 16,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &o);

	CHECK(pool);
	WORKED(xmem_preallocate(pool, buffers, BYTES));
	return pool;
}

/* It has published @count, and the last @kept of them at least are there. */
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

/* A buffer that is free, or that nobody keeps, is taken first, although it is larger. */
TEST(API_what_is_kept_goes_last)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_keeper(name, 4, 4), *reader = open_reader(name);
	struct xmem_buffer *b[2];

	WORKED(xmem_preallocate(writer, 2, 4 * BYTES));
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

/* Subscribers that are there lose no more and no less by it. */
TEST(P3_keeping_takes_nothing_from_those_who_wait)
{
	const char *name = new_name();
	struct xmem_pool *writer, *reader = OPEN(name, .ring = 16);
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .keep = 2,
		.wait_bound_ns = 60 * SECOND,
	};
	struct xmem_subscription *waits;
	int i;

	writer = xmem_pool_open(name, &o);
	CHECK(writer);
	WORKED(xmem_preallocate(writer, 4, BYTES));
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
	struct xmem_pool_options o = { .size = sizeof(o), .keep = 1 };
	const char *why;

	REFUSED(xmem_pool_open(new_name(), &o), EINVAL);
	xmem_peek_last_error(&why);
	CHECK(strstr(why, "keep"));
	o.flags = XMEM_OPEN_WRITER;
	o.keep = 4097;
	REFUSED(xmem_pool_open(new_name(), &o), EINVAL);
	o.keep = 4096;
	o.reserved = 1;
	REFUSED(xmem_pool_open(new_name(), &o), EINVAL);
}

/* ---- only the latest ---- */

TEST(API_depth_is_how_many_of_the_latest_are_received)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 32, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow_some(reader, xmem_pool_client(writer), 0, 3);
	int fd = xmem_subscription_poll_fd(s);

	publish_stamps(writer, 0, 3);
	receive_stamp(s, 0);
	SAME(xmem_subscription_lost(s), 0);
	publish_stamps(writer, 3, 10);
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	receive_stamp(s, 7);
	SAME(xmem_subscription_lost(s), 6);
	publish_stamps(writer, 10, 11);
	receive_stamp(s, 8);
	receive_stamp(s, 9);
	receive_stamp(s, 10);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	SAME(by_poll(fd, POLLIN, 0), 0);
	SAME(xmem_subscription_lost(s), 6);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* History is among the latest, too, and what is older than those is passed, not lost. */
TEST(API_depth_bounds_history)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 32, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;

	publish_stamps(writer, 0, 5);
	s = follow_some(reader, xmem_pool_client(writer), 5, 2);
	receive_stamp(s, 3);
	receive_stamp(s, 4);
	receive_nothing(s);
	xmem_unsubscribe(s);

	s = follow_some(reader, xmem_pool_client(writer), 4, 4);
	receive_stamp(s, 1);
	publish_stamps(writer, 5, 7);
	receive_stamp(s, 3);
	receive_stamp(s, 4);
	SAME(xmem_subscription_lost(s), 0);
	publish_stamps(writer, 7, 12);
	receive_stamp(s, 8);
	SAME(xmem_subscription_lost(s), 3);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Of each publisher so many, in a joint subscription. */
TEST(API_depth_is_of_each_publisher)
{
	const char *name = new_name();
	struct xmem_pool *writer[2], *reader = open_reader(name);
	struct xmem_subscribe_options o = { .size = sizeof(o), .depth = 1 };
	struct xmem_subscription *s;
	unsigned int i, seen = 0;

	for (i = 0; i < 2; i++)
		writer[i] = open_writer(name, 8, BYTES);
	s = xmem_subscribe(reader, &o);
	CHECK(s);
	for (i = 0; i < 2; i++)
		publish_stamps(writer[i], 0, 4);
	for (i = 0; i < 2; i++) {
		struct xmem_buffer *b = xmem_receive(s, 0);

		CHECK(b);
		SAME(stamp_of(b), 3);
		seen |= 1u << (xmem_publisher(b) == xmem_pool_client(writer[1]));
		xmem_release(b);
	}
	SAME(seen, 3);
	REFUSED(xmem_receive_any(reader, 0, NULL), EAGAIN);
	SAME(xmem_subscription_lost(s), 6);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	for (i = 0; i < 2; i++)
		xmem_pool_close(writer[i]);
}

TEST(API_depth_is_not_for_those_who_are_waited_for)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_WAITS, .depth = 1,
	};
	struct xmem_pool *pool = open_reader(new_name());
	const char *why;

	REFUSED(xmem_subscribe(pool, &o), EINVAL);
	xmem_peek_last_error(&why);
	CHECK(strstr(why, "depth"));
	xmem_pool_close(pool);
}
