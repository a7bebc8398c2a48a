// SPDX-License-Identifier: MIT
/*
 * History: a subscriber that comes late receives the last publications that still exist, in their
 * order and before later ones. They are not protected, so missing ones are passed and do not count
 * as lost.
 */
#include <pthread.h>

#include "past.h"

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

/* History counts the last publications that exist, whatever is missing between them. */
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
	/* The publications between them are gone. At least the last one is there. */
	for (;;) {
		struct xmem_buffer *b = xmem_receive(s, 0);
		bool last;

		CHECK(b);
		SAME(stamp_of(b), info_of(b).sequence);
		CHECK(info_of(b).sequence >= 7);
		last = info_of(b).sequence == 8;
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

/* Publications may go before the subscriber receives them: nothing protects them. */
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

/* A buffer of the history that is held stays like every held buffer (P1). */
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
	SAME(info_of(held).sequence, 0);
	SAME(info_of(held).publisher, xmem_pool_client(writer));
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

	/*
	 * A subscription that is dropped before it has received its history leaves nothing behind.
	 */
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

/* Publications that the host has not taken back yet may still be received. */
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
	SAME(sub_info(s).lost, 0);
	SAME(stamp_of(held), 0);
	xmem_release(held);
	xmem_unsubscribe(s);
	check_quiet(reader, 1);
	EVENTUALLY(stat_of(reader).attached == 0);
	xmem_pool_close(reader);
}

/* ---- many publishers ---- */

static struct xmem_subscription *follow_all_past(struct xmem_pool *pool, uint32_t history)
{
	struct xmem_subscribe_options o = { .size = sizeof(o), .history = history };
	struct xmem_subscription *s = xmem_subscribe(pool, &o);

	CHECK(s);
	return s;
}

/* It receives the last few from publishers that are there, and all from those that join later. */
TEST(API_all_of_a_newcomer_is_received)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	struct xmem_pool *newcomer;
	struct xmem_subscription *s;
	int fd, i;

	publish_stamps(writer, 0, 4);
	s = follow_all_past(reader, 1);
	fd = xmem_subscription_poll_fd(s);
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	receive_stamp(s, 3);
	receive_nothing(s);
	newcomer = open_writer(name, 8, BYTES);
	publish_stamps(newcomer, 0, 5);
	for (i = 0; i < 5; i++) {
		SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
		receive_stamp(s, i);
		SAME(sub_info(s).publisher, xmem_pool_client(newcomer));
	}
	receive_nothing(s);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(newcomer);
	xmem_pool_close(writer);
}

/* A writer that another subscription has followed until now is no newcomer. */
TEST(API_a_writer_that_was_there_is_no_newcomer)
{
	const char *name = new_name();
	struct xmem_pool *first = open_writer(name, 8, BYTES), *writer, *reader;
	struct xmem_subscription *all, *one;

	writer = open_writer(name, 8, BYTES);
	reader = open_reader(name);
	one = follow_past(reader, xmem_pool_client(writer), 0);
	all = follow_all_past(reader, 2);
	publish_stamps(writer, 0, 5);
	REFUSED(xmem_receive(all, 0), EAGAIN);
	xmem_unsubscribe(one);
	/* A post tells the host of the end, and until then the writer is already followed. */
	for (int stamp = 3; stamp < 5; stamp++) {
		struct xmem_buffer *b = xmem_receive(all, patience_ns());

		CHECK(b);
		SAME(stamp_of(b), stamp);
		xmem_release(b);
	}
	receive_nothing(all);
	xmem_unsubscribe(all);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
	xmem_pool_close(first);
}

static void join_and_publish(void *argument)
{
	struct xmem_pool *writer;

	hear_parent();
	writer = open_writer(argument, 8, BYTES);
	publish_stamps(writer, 0, 3);
	tell_parent(1);
	hear_parent();
}

static struct xmem_pool *late_pool;
static struct child *late_child;

static void *subscribe_before_it_comes(void *unused)
{
	struct xmem_subscription *s = follow_all_past(late_pool, 1);

	for (int stamp = 0; stamp < 3; stamp++) {
		struct xmem_buffer *b = xmem_receive(s, patience_ns());

		CHECK(b);
		SAME(stamp_of(b), stamp);
		xmem_release(b);
	}
	xmem_unsubscribe(s);
	return unused;
}

/* A subscriber that waits for a first writer receives all of its publications. */
TEST(API_all_of_the_first_writer_is_received)
{
	const char *name = new_name();
	pthread_t thread;
	struct raw raw;

	late_pool = open_reader(name);
	late_child = spawn(join_and_publish, (void *)name);
	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(pthread_create(&thread, NULL, subscribe_before_it_comes, NULL), 0);
	until_asleep(&raw.map.pool->clients_waiters);
	tell(late_child, 1);
	hear(late_child);
	SAME(pthread_join(thread, NULL), 0);
	kill_child(late_child);
	raw_close(&raw);
	xmem_pool_close(late_pool);
}

/* The next client with its id publishes at those places of the ring. */
TEST(P5_history_is_not_that_of_the_next_client)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name), *next;
	int publisher = xmem_pool_client(writer);
	struct xmem_subscription *s;

	publish_stamps(writer, 0, 3);
	s = follow_past(reader, publisher, 3);
	receive_stamp(s, 0);
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(reader).clients == 1 && stat_of(reader).zombies == 0);
	next = open_writer(name, 8, BYTES);
	SAME(xmem_pool_client(next), publisher);
	publish_stamps(next, 0, 3);
	REFUSED(xmem_receive(s, 0), EPIPE);
	SAME(sub_info(s).lost, 0);

	/* The remains of the old subscription do not affect the new one's history. */
	xmem_unsubscribe(s);
	s = follow_past(reader, publisher, 2);
	receive_stamp(s, 1);
	receive_stamp(s, 2);
	receive_nothing(s);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(next);
}

/* Once more while the old subscription still exists. */
TEST(P5_two_subscriptions_have_their_own_history)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name), *next;
	int publisher = xmem_pool_client(writer), fd;
	struct xmem_subscription *old, *s;

	publish_stamps(writer, 0, 3);
	old = follow_past(reader, publisher, 3);
	receive_stamp(old, 0);
	xmem_pool_close(writer);
	EVENTUALLY(stat_of(reader).clients == 1 && stat_of(reader).zombies == 0);
	next = open_writer(name, 8, BYTES);
	SAME(xmem_pool_client(next), publisher);
	publish_stamps(next, 0, 3);
	s = follow_past(reader, publisher, 2);
	fd = xmem_subscription_poll_fd(s);
	REFUSED(xmem_receive(old, 0), EPIPE);
	xmem_unsubscribe(old);
	SAME(by_poll(fd, POLLIN, WAIT_MS), POLLIN);
	receive_stamp(s, 1);
	receive_stamp(s, 2);
	receive_nothing(s);
	SAME(by_poll(fd, POLLIN, 0), 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(next);
}
