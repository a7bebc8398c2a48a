// SPDX-License-Identifier: MIT
/*
 * What does a writer know of its subscribers? How many there are, which they are, and how far they
 * are behind. It waits until some are there, and its descriptor is ready when they change.
 */
#include <pthread.h>

#include "lib/private.h"
#include "polling.h"

#define BYTES	4096

static int number_of(struct xmem_pool *writer)
{
	int count = xmem_wait_subscribers(writer, 0, 0);

	WORKED(count);
	return count;
}

/* ---- publishing once ---- */

static void receive_once(void *argument)
{
	struct xmem_pool *reader = open_reader(argument);
	struct xmem_subscription *s = xmem_subscribe(reader, NULL);

	CHECK(s);
	xmem_release(receive_one(s));
	REFUSED(xmem_receive(s, XMEM_FOREVER), EPIPE);
	SAME(sub_info(s).lost, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

TEST(P3_one_publication_reaches_awaited_subscribers)
{
	unsigned int round;

	for (round = 0; round < scaled(40); round++) {
		const char *name = new_name();
		struct xmem_pool *writer = open_writer(name, 1, BYTES);
		struct child *child[2] = {
			spawn(receive_once, (void *)name), spawn(receive_once, (void *)name),
		};

		SAME(xmem_wait_subscribers(writer, 2, XMEM_FOREVER), 2);
		publish_stamp(writer, round);
		xmem_pool_close(writer);
		finish_child(child[0]);
		finish_child(child[1]);
	}
}

/* ---- waiting ---- */

struct waiter {
	struct xmem_pool *writer;
	uint32_t count;
	int result;
	pthread_t thread;
};

static void *wait_in_thread(void *argument)
{
	struct waiter *waiter = argument;

	waiter->result = xmem_wait_subscribers(waiter->writer, waiter->count, XMEM_FOREVER);
	return NULL;
}

static const uint32_t *slots_word(struct xmem_pool *writer)
{
	return &xm_client_row(&writer->map, xmem_pool_client(writer))->slots_waiters;
}

static void begin_to_wait(struct waiter *waiter, struct xmem_pool *writer, uint32_t count)
{
	*waiter = (struct waiter){ .writer = writer, .count = count };
	CHECK(!pthread_create(&waiter->thread, NULL, wait_in_thread, waiter));
	until_asleep(slots_word(writer));
}

static int end_of(struct waiter *waiter)
{
	CHECK(!pthread_join(waiter->thread, NULL));
	return waiter->result;
}

TEST(P9_the_last_subscriber_wakes_a_waiting_writer)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader[2];
	struct xmem_subscription *s[2];
	struct waiter waiter;

	reader[0] = open_reader(name);
	reader[1] = open_reader(name);
	begin_to_wait(&waiter, writer, 2);
	s[0] = follow(reader[0], xmem_pool_client(writer), 0);
	until_asleep(slots_word(writer));
	s[1] = follow(reader[1], xmem_pool_client(writer), 0);
	SAME(end_of(&waiter), 2);
	SAME(number_of(writer), 2);
	xmem_unsubscribe(s[0]);
	EVENTUALLY(number_of(writer) == 1);
	begin_to_wait(&waiter, writer, 2);
	s[0] = xmem_subscribe(reader[0], NULL);		/* all writers */
	CHECK(s[0]);
	SAME(end_of(&waiter), 2);
	xmem_unsubscribe(s[0]);
	xmem_unsubscribe(s[1]);
	xmem_pool_close(reader[1]);
	xmem_pool_close(reader[0]);
	xmem_pool_close(writer);
}

static void follow_and_sleep(void *argument)
{
	struct xmem_pool *reader = open_reader(argument);

	tell_parent(xmem_subscribe(reader, NULL) != NULL);
	hear_parent();
}

TEST(P2_a_dead_subscriber_does_not_count)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES);
	struct child *child = spawn(follow_and_sleep, (void *)name);

	SAME(hear(child), 1);
	SAME(number_of(writer), 1);
	kill_child(child);
	EVENTUALLY(number_of(writer) == 0);
	child = spawn(follow_and_sleep, (void *)name);
	SAME(xmem_wait_subscribers(writer, 1, XMEM_FOREVER), 1);
	kill_child(child);
	xmem_pool_close(writer);
}

TEST(P9_a_wait_for_subscribers_keeps_its_timeout)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	uint32_t most = stat_of(writer).clients_max;

	SAME(xmem_wait_subscribers(writer, 1, 0), 1);
	SAME(xmem_wait_subscribers(writer, 2, 0), -EAGAIN);
	error_says("1 of 2 follow this writer of pool ");
	SAME(xmem_wait_subscribers(writer, 2, 10 * MS), -ETIMEDOUT);
	error_says("1 of 2 follow this writer of pool ");
	SAME(xmem_wait_subscribers(writer, most, 10 * MS), -ETIMEDOUT);
	SAME(xmem_wait_subscribers(writer, most + 1, 10 * MS), -EINVAL);
	SAME(xmem_wait_subscribers(writer, 1, -1), -EINVAL);
	SAME(xmem_wait_subscribers(reader, 1, 0), -EPERM);
	SAME(xmem_wait_subscribers(NULL, 1, 0), -EINVAL);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_cancel_ends_a_wait_for_subscribers)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct waiter waiter;

	begin_to_wait(&waiter, writer, 2);
	WORKED(xmem_cancel(writer));
	SAME(end_of(&waiter), -ECANCELED);
	SAME(xmem_wait_subscribers(writer, 1, MS), -ECANCELED);
	SAME(xmem_wait_subscribers(writer, 1, 0), 1);
	SAME(xmem_wait_subscribers(writer, 2, 0), -EAGAIN);
	xmem_pool_close(writer);
	writer = open_writer(name, 1, BYTES);
	begin_to_wait(&waiter, writer, 2);
	xmem_pool_close(writer);
	SAME(end_of(&waiter), -ECANCELED);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

/* ---- which they are ---- */

static struct xmem_subscriber_info next(struct xmem_pool *writer, uint32_t first)
{
	struct xmem_subscriber_info info;

	memset(&info, 0xa5, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_subscriber_next(writer, first, &info));
	SAME(info.size, sizeof(info));
	SAME(info.reserved, 0);
	return info;
}

static void no_more(struct xmem_pool *writer, uint32_t first)
{
	struct xmem_subscriber_info info = { .size = sizeof(info) };

	SAME(xmem_subscriber_next(writer, first, &info), -ENOENT);
}

/* @info describes @reader. Its strings are copies of what the pool has. */
static void is(const struct xmem_subscriber_info *info, struct xmem_pool *reader)
{
	struct xmem_client_info client = { .size = sizeof(client) };

	WORKED(xmem_pool_client_info(reader, xmem_pool_client(reader), &client));
	SAME(info->client, client.id);
	SAME(info->incarnation, client.incarnation);
	CHECK(!strcmp(info->label, client.label));
}

TEST(API_a_writer_sees_its_subscribers_and_how_far_they_are_behind)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4,
					.wait_bound_ns = MS);
	struct xmem_pool *other = open_writer(name, 1, BYTES);
	struct xmem_pool *left = OPEN(name, .label = "left"), *right = OPEN(name, .label = "right");
	struct xmem_subscription *l, *r, *of_other;
	struct xmem_subscriber_info info;
	int i;

	WORKED(xmem_preallocate(writer, BYTES, 8, NULL));
	no_more(writer, 0);
	of_other = follow(left, xmem_pool_client(other), 0);
	no_more(writer, 0);
	l = follow(left, xmem_pool_client(writer), 0);
	r = follow(right, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	for (i = 0; i < 3; i++)
		publish_stamp(writer, i);
	xmem_release(receive_one(r));
	info = next(writer, 0);
	is(&info, left);
	SAME(info.behind, 3);
	SAME(info.waits, 0);
	SAME(info.demoted, 0);
	info = next(writer, info.client + 1);
	is(&info, right);
	SAME(info.behind, 2);
	SAME(info.waits, 1);
	SAME(info.demoted, 0);
	no_more(writer, info.client + 1);
	no_more(writer, ~0u);
	/* The ring is full for the subscribers that it waits for, until the bound has passed. */
	for (i = 0; i < 3; i++)
		publish_stamp(writer, i);
	info = next(writer, xmem_pool_client(right));
	SAME(info.behind, 4);			/* as many as the ring has */
	SAME(info.demoted, 1);
	SAME(next(other, 0).client, xmem_pool_client(left));
	xmem_unsubscribe(l);
	host_has_served(left);
	SAME(next(writer, 0).client, xmem_pool_client(right));
	xmem_unsubscribe(r);
	xmem_unsubscribe(of_other);
	xmem_pool_close(right);
	xmem_pool_close(left);
	xmem_pool_close(other);
	xmem_pool_close(writer);
}

TEST(API_only_a_writer_lists_its_subscribers)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_subscriber_info info = { .size = sizeof(info) };

	SAME(xmem_subscriber_next(reader, 0, &info), -EPERM);
	SAME(xmem_subscribers_poll_fd(reader), -EPERM);
	SAME(xmem_subscriber_next(NULL, 0, &info), -EINVAL);
	SAME(xmem_subscribers_poll_fd(NULL), -EINVAL);
	info.size = sizeof(info.size) - 1;
	SAME(xmem_subscriber_next(writer, 0, &info), -EINVAL);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- the descriptor ---- */

struct polled {
	struct xmem_pool *writer;
	int fd, epoll;
};

/*
 * epoll checks again only when it is woken. Both are level-triggered: they stay ready until the
 * program reads the subscribers.
 */
static void has_changed(const struct polled *polled)
{
	SAME(by_epoll(polled->epoll, WAIT_MS), EPOLLIN);
	SAME(by_epoll(polled->epoll, 0), EPOLLIN);
	SAME(by_poll(polled->fd, POLLIN | POLLOUT, 0), POLLIN);
}

static void has_not(const struct polled *polled)
{
	SAME(by_poll(polled->fd, POLLIN | POLLOUT, 0), 0);
	SAME(by_epoll(polled->epoll, 0), 0);
}

static void looked_at(const struct polled *polled, int count)
{
	has_changed(polled);
	SAME(number_of(polled->writer), count);
	has_not(polled);
}

static struct polled poll_subscribers(struct xmem_pool *writer)
{
	struct polled polled = { writer, xmem_subscribers_poll_fd(writer), -1 };

	WORKED(polled.fd);
	SAME(xmem_subscribers_poll_fd(writer), polled.fd);
	polled.epoll = new_epoll(polled.fd, EPOLLIN);
	return polled;
}

TEST(API_a_descriptor_says_that_subscribers_have_come_or_gone)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct polled polled = poll_subscribers(writer);
	struct xmem_subscription *s;
	struct child *child;

	has_not(&polled);
	s = follow(reader, xmem_pool_client(writer), 0);
	has_changed(&polled);
	SAME(xmem_wait_subscribers(writer, 1, SECOND), 1);
	looked_at(&polled, 1);		/* waiting did not read them */
	publish_stamp(writer, 1);
	xmem_release(receive_one(s));
	has_not(&polled);
	child = spawn(follow_and_sleep, (void *)name);
	SAME(hear(child), 1);
	has_changed(&polled);
	next(writer, xmem_pool_client(reader) + 1);
	has_changed(&polled);		/* that did not read all of them */
	next(writer, 0);
	has_not(&polled);
	kill_child(child);
	looked_at(&polled, 1);
	xmem_unsubscribe(s);
	looked_at(&polled, 0);
	s = follow(reader, xmem_pool_client(writer), 0);
	looked_at(&polled, 1);
	xmem_pool_close(reader);
	xmem_unsubscribe(s);		/* and the client ends */
	looked_at(&polled, 0);
	close(polled.epoll);
	xmem_pool_close(writer);
}

/* The descriptor may be polled for as long as the program lives. */
TEST(API_a_poll_for_subscribers_makes_nobody_wake_the_writer)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct polled polled = poll_subscribers(writer);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	const struct xmem_pool_header *header = writer->map.pool;

	looked_at(&polled, 1);
	SAME(xm_load(slots_word(writer)) & XMEM_WAITERS_ARMED, 0);
	SAME(xm_load(&header->clients_waiters) & XMEM_WAITERS_ARMED, 0);
	xmem_unsubscribe(s);
	close(polled.epoll);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_a_poll_for_subscribers_hangs_up_with_the_client)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	int fd = dup(xmem_subscribers_poll_fd(writer));

	WORKED(fd);
	SAME(by_poll(fd, POLLIN, 0), 0);
	xmem_pool_close(writer);
	SAME(by_poll(fd, POLLIN, WAIT_MS) & (POLLIN | POLLHUP), POLLIN | POLLHUP);
	close(fd);
}
