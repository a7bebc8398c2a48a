// SPDX-License-Identifier: MIT
/*
 * A subscription to a pool: it follows all writers, also those that join later, gives each its
 * turn, and ends with the last one. Also xmem_receive_any, which watches several.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/resource.h>

#include "harness.h"

#define BYTES	4096

static struct xmem_subscription *follow_all(struct xmem_pool *pool, uint32_t flags)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = flags | XMEM_SUBSCRIBE_NOWAIT,
	};
	struct xmem_subscription *s = xmem_subscribe(pool, &options);

	CHECK(s);
	return s;
}

/* The stamp of the next publication, which is there or comes soon. */
static uint64_t next_stamp(struct xmem_subscription *s)
{
	struct xmem_buffer *b = receive_one(s);
	uint64_t stamp = stamp_of(b);

	xmem_release(b);
	return stamp;
}

static bool is_followed(const struct raw *raw, int publisher, int client)
{
	return xm_bit(xm_client_row(&raw->map, publisher)->subscribers, client);
}

TEST(API_a_subscription_says_how_far_it_is_behind)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 8, BYTES), *b = open_writer(name, 8, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow_all(reader, 0);
	struct xmem_subscription_info told = XMEM_INIT(told);
	unsigned int left;

	SAME(sub_info(s).follows, 2);
	SAME(sub_info(s).behind, 0);
	publish_stamp(a, 1);
	publish_stamp(a, 1);
	publish_stamp(b, 2);
	publish_stamp(b, 2);
	for (left = 4; left; left--) {
		SAME(sub_info(s).behind, left);
		if (left == 3)
			xmem_pool_close(b);	/* its publications are still there */
		if (next_stamp(s) == 1)
			SAME(sub_info(s).publisher, xmem_pool_client(a));
	}
	REFUSED(xmem_receive(s, 0), EAGAIN);
	SAME(sub_info(s).follows, 1);
	SAME(sub_info(s).behind, 0);
	xmem_pool_close(a);
	REFUSED(xmem_receive(s, patience_ns()), EPIPE);
	SAME(sub_info(s).follows, 0);

	told.size = offsetof(struct xmem_subscription_info, follows);
	told.follows = 77;
	WORKED(xmem_subscription_stat(s, &told));
	SAME(told.size, offsetof(struct xmem_subscription_info, follows));
	SAME(told.follows, 77);
	told.size = sizeof(told.size) - 1;
	SAME(xmem_subscription_stat(s, &told), -EINVAL);
	SAME(xmem_subscription_stat(s, NULL), -EINVAL);
	told.size = sizeof(told);
	xmem_unsubscribe(s);
	SAME(xmem_subscription_stat(s, &told), -EBADF);
	SAME(told.follows, 77);
	xmem_pool_close(reader);
}

/* A writer that no subscription follows is no reason to check again. */
TEST(P9_receive_any_sleeps_beside_a_writer_that_nobody_follows)
{
	const char *name = new_name();
	struct xmem_pool *writer[3], *reader = open_reader(name);
	struct xmem_subscription *s[2];
	int i;

	for (i = 0; i < 3; i++)
		writer[i] = open_writer(name, 2, BYTES);
	for (i = 0; i < 2; i++)
		s[i] = follow(reader, xmem_pool_client(writer[i]), 0);
	count_waits();
	REFUSED(xmem_receive_any(reader, SECOND / 5, NULL), ETIMEDOUT);
	CHECK(steps_seen() < 10);
	for (i = 0; i < 2; i++)
		xmem_unsubscribe(s[i]);
	for (i = 0; i < 3; i++)
		xmem_pool_close(writer[i]);
	xmem_pool_close(reader);
}

/* Entries that a writer claims to have published far ahead are no publications. */
TEST(P4_entries_of_the_far_future_are_none)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;
	struct pollfd look = { .events = POLLIN };
	struct raw raw;
	uint64_t i;

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	s = follow_all(reader, 0);
	for (i = 0; i <= raw.map.ring_mask; i++)
		xm_store(&xm_entry(&raw.map, raw.link.join.client, i)->position, 1ULL << 61);
	look.fd = xmem_subscription_poll_fd(s);
	WORKED(look.fd);
	SAME(poll(&look, 1, 0), 0);
	count_waits();
	REFUSED(xmem_receive(s, SECOND / 5), ETIMEDOUT);
	CHECK(steps_seen() < 10);
	SAME(sub_info(s).lost, 0);
	publish_stamp(writer, 7);
	SAME(next_stamp(s), 7);
	xmem_unsubscribe(s);
	raw_close(&raw);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- who is followed? ---- */

TEST(API_a_subscription_receives_from_all_writers)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 2, BYTES), *b = open_writer(name, 2, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow_all(reader, 0);
	struct xmem_buffer *got;
	uint64_t stamps = 0, i;

	SAME(sub_info(s).publisher, xmem_pool_client(a));
	publish_stamp(a, 1);
	publish_stamp(b, 2);
	for (i = 0; i < 2; i++) {
		got = receive_one(s);
		stamps += stamp_of(got);
		SAME(info_of(got).publisher, xmem_pool_client(stamp_of(got) == 1 ? a : b));
		SAME(sub_info(s).publisher, info_of(got).publisher);
		SAME(info_of(got).sequence, 0);
		xmem_release(got);
	}
	SAME(stamps, 3);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	xmem_unsubscribe(s);
	check_quiet(a, 3);
	xmem_pool_close(reader);
	xmem_pool_close(b);
	xmem_pool_close(a);
}

TEST(API_a_silent_first_writer_hides_nobody)
{
	const char *name = new_name();
	struct xmem_pool *silent = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow_all(reader, 0);

	publish_stamp(writer, 7);
	SAME(next_stamp(s), 7);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
	xmem_pool_close(silent);
}

/* A program does not receive its own publications. */
TEST(API_a_subscription_to_all_does_not_follow_its_own_client)
{
	const char *name = new_name();
	struct xmem_pool *own = open_writer(name, 2, BYTES), *other = open_writer(name, 2, BYTES);
	struct xmem_subscription *s = follow_all(own, 0);

	publish_stamp(own, 1);
	publish_stamp(other, 2);
	SAME(next_stamp(s), 2);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	xmem_unsubscribe(s);
	xmem_pool_close(own);
	xmem_pool_close(other);
}

struct sleeper {
	const char *name;
	unsigned int writers;
};

/* Receive one, asleep until it comes. */
static void sleep_for_all(void *argument)
{
	struct sleeper *sleeper = argument;
	struct xmem_pool *pool = open_reader(sleeper->name);
	struct xmem_subscription *s = follow_all(pool, 0);

	tell_parent(xmem_pool_client(pool));
	tell_parent(next_stamp(s));
	hear_parent();
}

/* A writer joins while a subscriber of @writers others sleeps. Only the newcomer publishes. */
static void newcomer_wakes(unsigned int writers)
{
	struct sleeper sleeper = { .name = new_name(), .writers = writers };
	struct xmem_pool *there[3], *late;
	struct child *child;
	struct raw raw;
	unsigned int i;
	int client;

	for (i = 0; i < writers; i++)
		there[i] = open_writer(sleeper.name, 2, BYTES);
	raw_start(&raw, sleeper.name, XMEM_ROLE_READER);
	child = spawn(sleep_for_all, &sleeper);
	client = hear(child);
	for (i = 0; i < writers; i++)
		until_asleep(&xm_client_row(&raw.map, xmem_pool_client(there[i]))->ring_waiters);
	late = open_writer(sleeper.name, 2, BYTES);
	EVENTUALLY(is_followed(&raw, xmem_pool_client(late), client));
	publish_stamp(late, 42);
	SAME(hear(child), 42);
	kill_child(child);
	raw_close(&raw);
	xmem_pool_close(late);
	for (i = 0; i < writers; i++)
		xmem_pool_close(there[i]);
}

TEST(P9_a_sleeper_with_one_writer_hears_of_a_newcomer)
{
	newcomer_wakes(1);
}

TEST(P9_a_sleeper_with_several_writers_hears_of_a_newcomer)
{
	newcomer_wakes(3);
}

/* A client that sleeps for several writers is woken by each of them. */
TEST(P9_a_sleeper_is_woken_by_any_of_its_writers)
{
	struct sleeper sleeper = { .name = new_name() };
	struct xmem_pool *writer[3];
	struct raw raw;
	unsigned int i;

	raw_start(&raw, sleeper.name, XMEM_ROLE_READER);
	for (i = 0; i < 3; i++)
		writer[i] = open_writer(sleeper.name, 2, BYTES);
	for (i = 0; i < 3; i++) {
		struct child *child = spawn(sleep_for_all, &sleeper);

		hear(child);
		until_asleep(&xm_client_row(&raw.map, xmem_pool_client(writer[2]))->ring_waiters);
		publish_stamp(writer[i], 10 + i);
		SAME(hear(child), 10 + i);
		kill_child(child);
	}
	raw_close(&raw);
	for (i = 0; i < 3; i++)
		xmem_pool_close(writer[i]);
}

/* ---- the end ---- */

TEST(API_EPIPE_is_said_when_the_last_writer_has_ended)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 2, BYTES), *b = open_writer(name, 2, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow_all(reader, 0);

	publish_stamp(a, 1);
	xmem_pool_close(a);
	SAME(next_stamp(s), 1);
	REFUSED(xmem_receive(s, 0), EAGAIN);	/* b is there */
	publish_stamp(b, 2);
	xmem_pool_close(b);
	SAME(next_stamp(s), 2);
	REFUSED(xmem_receive(s, XMEM_FOREVER), EPIPE);
	/* The subscription has ended for good. To continue, a program subscribes again. */
	a = open_writer(name, 2, BYTES);
	REFUSED(xmem_receive(s, XMEM_FOREVER), EPIPE);
	xmem_unsubscribe(s);
	s = follow_all(reader, 0);
	publish_stamp(a, 3);
	SAME(next_stamp(s), 3);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(a);
}

TEST(API_a_newcomer_keeps_a_subscription_from_ending)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 2, BYTES), *reader = open_reader(name), *b;
	struct xmem_subscription *s = follow_all(reader, 0);

	publish_stamp(a, 1);
	xmem_pool_close(a);
	b = open_writer(name, 2, BYTES);
	SAME(next_stamp(s), 1);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	publish_stamp(b, 2);
	SAME(next_stamp(s), 2);
	xmem_pool_close(b);
	REFUSED(xmem_receive(s, XMEM_FOREVER), EPIPE);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

/* ---- turns, and losses ---- */

TEST(API_a_busy_writer_starves_no_other)
{
	const char *name = new_name();
	struct xmem_pool *busy = open_writer(name, 16, BYTES), *rare = open_writer(name, 2, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow_all(reader, 0);
	unsigned int i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < 4; i++)
			publish_stamp(busy, 1);
		publish_stamp(rare, 2);
		/* The next two are one of each writer. */
		SAME(next_stamp(s) + next_stamp(s), 3);
	}
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(rare);
	xmem_pool_close(busy);
}

TEST(API_what_all_writers_overtook_is_counted)
{
	const char *name = new_name();
	struct xmem_pool *reader = OPEN(name, .ring = 4);
	struct xmem_pool *a = open_writer(name, 4, BYTES), *b = open_writer(name, 4, BYTES);
	struct xmem_subscription *s = follow_all(reader, 0);
	unsigned int i, received = 0;

	for (i = 0; i < 20; i++) {
		publish_stamp(a, i);
		publish_stamp(b, i);
	}
	xmem_pool_close(a);	/* its losses still count */
	for (;;) {
		struct xmem_buffer *got = xmem_receive(s, 0);

		if (!got)
			break;
		received++;
		xmem_release(got);
	}
	SAME(xmem_peek_last_error(NULL), -EAGAIN);
	SAME(received + sub_info(s).lost, 40);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(b);
}

/* ---- several subscriptions ---- */

TEST(API_one_pool_handle_subscribes_to_all_once)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 2, BYTES), *b = open_writer(name, 2, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscribe_options one = {
		.size = sizeof(one), .flags = XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = xmem_pool_client(b),
	};
	struct xmem_subscription *alone = follow(reader, xmem_pool_client(a), 0), *all;

	all = follow_all(reader, 0);
	REFUSED(xmem_subscribe(reader, NULL), EEXIST);
	REFUSED(xmem_subscribe(reader, &one), EEXIST);
	/* A writer that another subscription of this client follows is not received here, ... */
	publish_stamp(a, 1);
	publish_stamp(b, 2);
	SAME(next_stamp(all), 2);
	REFUSED(xmem_receive(all, 0), EAGAIN);
	SAME(next_stamp(alone), 1);
	/* ... until that subscription is dropped. */
	xmem_unsubscribe(alone);
	REFUSED(xmem_receive(all, 0), EAGAIN);
	publish_stamp(a, 3);
	SAME(next_stamp(all), 3);
	xmem_unsubscribe(all);
	xmem_pool_close(reader);
	xmem_pool_close(b);
	xmem_pool_close(a);
}

TEST(API_writers_that_wait_for_nobody_are_followed_without)
{
	const char *name = new_name();
	struct xmem_pool *hasty = OPEN(name, .flags = XMEM_OPEN_WRITER), *patient;
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_WAITS | XMEM_SUBSCRIBE_NOWAIT,
	};
	struct xmem_subscription *s;

	WORKED(xmem_preallocate(hasty, BYTES, 2, NULL));
	REFUSED(xmem_subscribe(reader, &options), EOPNOTSUPP);
	patient = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(patient, BYTES, 1, NULL));
	s = follow_all(reader, XMEM_SUBSCRIBE_WAITS);
	publish_stamp(patient, 1);
	REFUSED(xmem_acquire(patient, BYTES, 0), EAGAIN);
	publish_stamp(hasty, 2);
	publish_stamp(hasty, 3);
	publish_stamp(hasty, 4);	/* the oldest is lost, and no publisher waited */
	SAME(next_stamp(s) + next_stamp(s) + next_stamp(s), 1 + 3 + 4);
	SAME(sub_info(s).lost, 1);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(patient);
	xmem_pool_close(hasty);
}

TEST(API_receive_any_takes_turns_and_says_which)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 8, BYTES), *b = open_writer(name, 8, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *of_a, *of_b, *from = NULL;
	struct xmem_buffer *got;
	unsigned int i, round;

	REFUSED(xmem_receive_any(reader, 0, &from), ENOENT);
	of_a = follow(reader, xmem_pool_client(a), 0);
	of_b = follow(reader, xmem_pool_client(b), 0);
	REFUSED(xmem_receive_any(reader, 0, &from), EAGAIN);
	CHECK(!from);
	for (round = 0; round < 2; round++) {
		uint64_t sum = 0;

		publish_stamp(a, 1);
		publish_stamp(a, 1);
		publish_stamp(b, 2);
		for (i = 0; i < 2; i++) {
			got = xmem_receive_any(reader, XMEM_FOREVER, &from);
			CHECK(got && from == (stamp_of(got) == 1 ? of_a : of_b));
			sum += stamp_of(got);
			xmem_release(got);
		}
		SAME(sum, 3);
	}
	/* One subscription has ended. The call says so when nothing else is there. */
	xmem_pool_close(b);
	for (i = 0; i < 2; i++) {
		got = xmem_receive_any(reader, 0, NULL);
		CHECK(got);
		SAME(stamp_of(got), 1);
		xmem_release(got);
	}
	REFUSED(xmem_receive_any(reader, XMEM_FOREVER, &from), EPIPE);
	CHECK(from == of_b);
	xmem_unsubscribe(of_b);
	REFUSED(xmem_receive_any(reader, 0, &from), EAGAIN);
	REFUSED(xmem_receive_any(reader, MS, &from), ETIMEDOUT);
	REFUSED(xmem_receive_any(reader, -1, &from), EINVAL);
	REFUSED(xmem_receive_any(NULL, 0, &from), EINVAL);
	xmem_unsubscribe(of_a);
	xmem_pool_close(reader);
	xmem_pool_close(a);
}

/* ---- descriptors ---- */

static void limit_files(struct rlimit *old, unsigned int files)
{
	struct rlimit less;

	CHECK(!getrlimit(RLIMIT_NOFILE, old));
	less = *old;
	less.rlim_cur = files;
	CHECK(!setrlimit(RLIMIT_NOFILE, &less));
}

static void *receive_in_thread(void *subscription)
{
	xmem_release(receive_one(subscription));
	return NULL;
}

static void *receive_any_in_thread(void *reader)
{
	struct xmem_buffer *b = xmem_receive_any(reader, XMEM_FOREVER, NULL);

	CHECK(b);
	xmem_release(b);
	return NULL;
}

/* A thread of the reader sleeps in @receive until @writer publishes. */
static void wait_once(struct raw *raw, struct xmem_pool *writer, void *(*receive)(void *),
		      void *from)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, receive, from));
	until_asleep(&xm_client_row(&raw->map, xmem_pool_client(writer))->ring_waiters);
	publish_stamp(writer, 1);
	CHECK(!pthread_join(thread, NULL));
}

/* The resources of the first wait for several writers are kept for the next wait. */
TEST(P10_waiting_again_needs_no_descriptor)
{
	const char *name = new_name();
	struct xmem_pool *writer[2] = { open_writer(name, 1, BYTES), open_writer(name, 1, BYTES) };
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow_all(reader, 0);
	struct rlimit old;
	struct raw raw;
	int highest;

	raw_start(&raw, name, XMEM_ROLE_READER);
	wait_once(&raw, writer[0], receive_in_thread, s);
	wait_once(&raw, writer[0], receive_any_in_thread, reader);
	highest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(highest >= 0);
	limit_files(&old, highest);	/* no lower one is free */
	REFUSED(xmem_receive(s, MS), ETIMEDOUT);
	REFUSED(xmem_receive_any(reader, MS, NULL), ETIMEDOUT);
	publish_stamp(writer[1], 3);
	xmem_release(receive_one(s));
	CHECK(!setrlimit(RLIMIT_NOFILE, &old));
	close(highest);
	raw_close(&raw);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer[1]);
	xmem_pool_close(writer[0]);
}

/* Payloads are mapped before the receive returns them. */
static void receive_without_descriptors(void *argument)
{
	struct sleeper *sleeper = argument;
	struct xmem_pool *pool = open_reader(sleeper->name);
	struct xmem_subscription *s = follow_all(pool, 0);
	struct xmem_buffer *b;
	struct rlimit old;

	limit_files(&old, 0);
	tell_parent(1);
	hear_parent();
	/* This payload was attached before the client subscribed. */
	b = xmem_receive(s, 0);
	CHECK(b && xmem_data(b));
	SAME(stamp_of(b), 1);
	xmem_release(b);
	/* This payload is new. Nothing is lost because it cannot be mapped now. */
	tell_parent(2);
	hear_parent();
	REFUSED(xmem_receive(s, 0), EMFILE);
	REFUSED(xmem_receive(s, XMEM_FOREVER), EMFILE);
	CHECK(!setrlimit(RLIMIT_NOFILE, &old));
	b = xmem_receive(s, 0);
	CHECK(b);
	SAME(info_of(b).sequence, 1);
	limit_files(&old, 0);
	CHECK(xmem_data(b));
	SAME(stamp_of(b), 2);
	CHECK(!setrlimit(RLIMIT_NOFILE, &old));
	xmem_release(b);
	SAME(sub_info(s).lost, 0);
	tell_parent(3);
}

TEST(API_received_data_needs_no_descriptor)
{
	struct sleeper sleeper = { .name = new_name() };
	struct xmem_pool *writer = open_writer(sleeper.name, 1, BYTES);
	struct child *child = spawn(receive_without_descriptors, &sleeper);
	struct xmem_buffer *b;

	SAME(hear(child), 1);
	publish_stamp(writer, 1);
	tell(child, 1);
	SAME(hear(child), 2);
	WORKED(xmem_preallocate(writer, 2 * BYTES, 1, NULL));
	b = xmem_acquire(writer, 2 * BYTES, 0);
	CHECK(b);
	fill(b, 2);
	WORKED(xmem_publish(b, NULL, NULL));
	tell(child, 1);
	SAME(hear(child), 3);
	finish_child(child);
	xmem_pool_close(writer);
}
