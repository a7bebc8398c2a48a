// SPDX-License-Identifier: MIT
/*
 * P3: nothing in flight is lost or leaked, except what the subscriber's policy gives up. P8:
 * contents outlive the process that made them. The publishers here end between two calls; kills.c
 * kills them inside one.
 */
#include <signal.h>

#include "attached.h"

#define BYTES	4096

struct source {
	const char *name;
	unsigned int count;		/* of publications; then it waits */
	uint64_t first;			/* stamp */
	unsigned int buffers;
	bool clean;			/* the test tells it to close its pool */
	int64_t wait_bound_ns;
};

static void be_source(void *argument)
{
	struct source *source = argument;
	struct xmem_pool *pool = OPEN(source->name, .flags = XMEM_OPEN_WRITER,
				      .wait_bound_ns = source->wait_bound_ns);
	unsigned int i;

	WORKED(xmem_preallocate(pool, BYTES, source->buffers, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	for (i = 0; i < source->count; i++)
		publish_stamp(pool, source->first + i);
	tell_parent(1);
	hear_parent();
	if (source->clean)
		xmem_pool_close(pool);
}

static struct child *start_source(struct source *source, struct xmem_pool *reader,
				  struct xmem_subscription **ret_s, uint32_t flags)
{
	struct child *child = spawn(be_source, source);

	*ret_s = follow(reader, (int)hear(child), flags);
	tell(child, 1);
	hear(child);
	return child;
}

static void drained(struct xmem_subscription *s, uint64_t first, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		struct xmem_buffer *b = receive_one(s);

		SAME(stamp_of(b), first + i);
		SAME(info_of(b).sequence, i);
		xmem_release(b);
	}
	REFUSED(xmem_receive(s, patience_ns()), EPIPE);
	REFUSED(xmem_receive(s, 0), EPIPE);
	SAME(sub_info(s).lost, 0);
}

TEST(P3_in_flight_survives_the_publishers_death)
{
	struct source source = { .name = new_name(), .count = 4, .first = 10, .buffers = 8 };
	struct xmem_pool *reader = open_reader(source.name);
	struct xmem_subscription *s;
	struct child *child = start_source(&source, reader, &s, 0);

	kill_child(child);
	EVENTUALLY(stat_of(reader).zombies == 1);
	/* Its publications are kept, and its other buffers are gone. */
	EVENTUALLY(stat_of(reader).attached == 4);
	SAME(stat_of(reader).limbo, 4);
	drained(s, 10, 4);
	check_quiet(reader, 1);
	EVENTUALLY(stat_of(reader).attached == 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

TEST(P3_in_flight_survives_the_publishers_leaving)
{
	struct source source = {
		.name = new_name(), .count = 3, .first = 10, .buffers = 8, .clean = true,
	};
	struct xmem_pool *reader = open_reader(source.name);
	struct xmem_subscription *s;
	struct child *child = start_source(&source, reader, &s, 0);

	tell(child, 1);
	finish_child(child);
	drained(s, 10, 3);
	check_quiet(reader, 1);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

TEST(P3_in_flight_goes_with_its_last_subscriber)
{
	struct source source = { .name = new_name(), .count = 4, .first = 1, .buffers = 8 };
	struct xmem_pool *a = open_reader(source.name), *b = open_reader(source.name), *watcher;
	struct xmem_subscription *sa, *sb;
	struct child *child = spawn(be_source, &source);
	int publisher = hear(child);

	watcher = open_reader(source.name);
	sa = follow(a, publisher, 0);
	sb = follow(b, publisher, 0);
	tell(child, 1);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(watcher).zombies == 1);
	xmem_unsubscribe(sa);
	SAME(stat_of(watcher).zombies, 1);
	/* The other one ends without any message: its pool is closed. */
	xmem_pool_close(b);
	xmem_unsubscribe(sb);
	check_quiet(watcher, 2);
	EVENTUALLY(stat_of(watcher).attached == 0);
	xmem_pool_close(a);
	xmem_pool_close(watcher);
}

/*
 * The host sweeps the slots that the publisher has left. Meanwhile the only subscriber passes all
 * of them except the last, and tells the host only of that one. With so many slots the sweep takes
 * long.
 */
TEST_WITHIN(P3_a_ring_that_is_passed_during_a_sweep_leaves_nothing, 120)
{
	struct source source = { .name = new_name(), .count = 4, .first = 1, .buffers = 8 };
	struct xmem_pool *reader = OPEN(source.name, .slots = 32768);
	struct xmem_subscribe_options latest = {
		.size = sizeof(latest), .flags = XMEM_SUBSCRIBE_PUBLISHER, .depth = 1,
	};
	unsigned int rounds = scaled(200);
	uint64_t random = seed();
	struct xmem_subscription *s;
	struct child *child;
	int64_t until;

	while (rounds--) {
		child = spawn(be_source, &source);
		latest.publisher = hear(child);
		s = xmem_subscribe(reader, &latest);
		CHECK(s);
		tell(child, 1);
		hear(child);
		kill_child(child);
		until = now_ns() + random_next(&random) % (20 * MS);
		while (now_ns() < until)
			;
		xmem_release(receive_one(s));
		check_quiet(reader, 1);
		xmem_unsubscribe(s);
	}
	xmem_pool_close(reader);
}

/* ---- as a sweep of the daemon begins ---- */

#define BY_STEPS	"the module's sweeps cannot be stopped"

/* The daemon of this test, which stops itself at the step whose number the test puts there. */
static struct stopping {
	pid_t pid;
	uint64_t *steps;
} stopping_daemon(void)
{
	struct stopping daemon = { .pid = 0 };

	daemon_only(BY_STEPS);
	steps_only();
	daemon.steps = steps_of_daemon();
	use_own_daemon();
	daemon.pid = stop_daemon();
	continue_daemon(daemon.pid);
	return daemon;
}

static void stop_at_next_sweep(const struct stopping *daemon)
{
	daemon->steps[XM_STEPS] = 1 + XM_STEP_SWEEP_BEGIN;
}

static void until_sweep(const struct stopping *daemon)
{
	EVENTUALLY(is_stopped(daemon->pid));
	note_stopped(daemon->pid);
}

static void sweep_on(const struct stopping *daemon)
{
	daemon->steps[XM_STEPS] = 0;
	continue_daemon(daemon->pid);
}

static struct xmem_subscription *want_latest(struct xmem_pool *reader, int publisher)
{
	struct xmem_subscription *s = xmem_subscribe(reader, XMEM_OPTIONS(xmem_subscribe_options,
		.flags = XMEM_SUBSCRIBE_PUBLISHER, .publisher = publisher, .depth = 1));

	CHECK(s);
	return s;
}

/*
 * The daemon has looked at the rings when the only subscriber passes all publications. So the sweep
 * frees all slots, and the subscriber's put tells the daemon of none.
 */
TEST(P3_a_ring_passed_as_a_sweep_begins_leaves_nothing)
{
	struct source source = { .name = new_name(), .count = 4, .first = 1, .buffers = 8 };
	struct stopping daemon = stopping_daemon();
	struct xmem_pool *reader = open_reader(source.name);
	struct child *child = spawn(be_source, &source);
	struct xmem_subscription *s = want_latest(reader, (int)hear(child));

	tell(child, 1);
	hear(child);
	stop_at_next_sweep(&daemon);
	kill_child(child);
	until_sweep(&daemon);
	xmem_release(receive_one(s));
	sweep_on(&daemon);
	check_quiet(reader, 1);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

/* The sweep is for the slot that the first of two subscribers has put. */
TEST(P3_a_ring_passed_as_a_collect_begins_leaves_nothing)
{
	struct source source = { .name = new_name(), .count = 4, .first = 1, .buffers = 8 };
	struct stopping daemon = stopping_daemon();
	struct xmem_pool *a = open_reader(source.name), *b = open_reader(source.name);
	struct child *child = spawn(be_source, &source);
	int publisher = (int)hear(child);
	struct xmem_subscription *sa = want_latest(a, publisher), *sb = want_latest(b, publisher);

	tell(child, 1);
	hear(child);
	kill_child(child);
	EVENTUALLY(stat_of(a).zombies == 1);
	host_has_served(a);
	stop_at_next_sweep(&daemon);
	xmem_release(receive_one(sa));
	until_sweep(&daemon);
	xmem_release(receive_one(sb));
	sweep_on(&daemon);
	check_quiet(a, 2);
	xmem_unsubscribe(sa);
	xmem_unsubscribe(sb);
	xmem_pool_close(b);
	xmem_pool_close(a);
}

/* ---- at any moment of a sweep ---- */

/*
 * While the host checks the slot that the first of two subscribers has put, the second one receives
 * that publication and puts it.
 */
TEST_WITHIN(P3_a_ring_passed_during_a_collect_leaves_nothing, 120)
{
	struct source source = { .name = new_name(), .count = 4, .first = 1, .buffers = 8 };
	struct xmem_pool *a = open_reader(source.name), *b = open_reader(source.name);
	struct xmem_subscribe_options latest = {
		.size = sizeof(latest), .flags = XMEM_SUBSCRIBE_PUBLISHER, .depth = 1,
	};
	unsigned int rounds = scaled(50);
	struct xmem_subscription *sa, *sb;
	uint64_t random = seed();
	struct child *child;
	int64_t until;

	while (rounds--) {
		child = spawn(be_source, &source);
		latest.publisher = hear(child);
		sa = xmem_subscribe(a, &latest);
		sb = xmem_subscribe(b, &latest);
		CHECK(sa && sb);
		tell(child, 1);
		hear(child);
		kill_child(child);
		EVENTUALLY(stat_of(a).zombies == 1);
		xmem_release(receive_one(sa));
		until = now_ns() + random_next(&random) % (2 * MS);
		while (now_ns() < until)
			;
		xmem_release(receive_one(sb));
		check_quiet(a, 2);
		xmem_unsubscribe(sa);
		xmem_unsubscribe(sb);
	}
	xmem_pool_close(b);
	xmem_pool_close(a);
}

TEST(P3_held_contents_of_a_dead_publisher_go_with_the_last_hold)
{
	struct source source = { .name = new_name(), .count = 2, .first = 1, .buffers = 4 };
	struct xmem_pool *reader = open_reader(source.name), *other = open_reader(source.name);
	struct xmem_subscription *s;
	struct child *child = start_source(&source, reader, &s, 0);
	struct xmem_buffer *b = receive_one(s), *same;

	kill_child(child);
	EVENTUALLY(stat_of(reader).zombies == 1);
	SAME(stamp_of(b), 1);
	/*
	 * P8: a client that knows the token can still get the contents, even if it had not mapped
	 * them before.
	 */
	same = xmem_get(other, xmem_token(b));
	CHECK(same);
	SAME(stamp_of(same), 1);
	xmem_release(b);
	xmem_unsubscribe(s);
	EVENTUALLY(stat_of(reader).attached == 1);
	SAME(stamp_of(same), 1);
	xmem_release(same);
	EVENTUALLY(stat_of(reader).attached == 0);
	check_quiet(reader, 2);
	xmem_pool_close(other);
	xmem_pool_close(reader);
}

TEST(P8_contents_are_read_after_the_producer_has_died)
{
	struct source source = { .name = new_name(), .count = 1, .first = 0x5eed, .buffers = 2 };
	struct xmem_pool *reader = open_reader(source.name);
	struct xmem_subscription *s;
	struct child *child = start_source(&source, reader, &s, 0);
	struct xmem_buffer *b;

	/* The publisher dies before this process has mapped any payload. */
	kill_child(child);
	EVENTUALLY(stat_of(reader).clients == 1);
	b = xmem_receive(s, 0);
	CHECK(b);
	SAME(xmem_size(b), BYTES);
	SAME(stamp_of(b), 0x5eed);
	SAME(xmem_metadata_ptr(b)->size, BYTES);
	xmem_unsubscribe(s);
	SAME(stamp_of(b), 0x5eed);
	xmem_release(b);
	EVENTUALLY(stat_of(reader).attached == 0);
	xmem_pool_close(reader);
}

TEST(P8_the_pool_lives_as_long_as_a_buffer_of_it)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 0xb0b);

	xmem_pool_close(writer);
	xmem_pool_close(reader);
	SAME(stamp_of(b), 0xb0b);
	xmem_release(b);
	reader = OPEN(name, .flags = XMEM_OPEN_EXCLUSIVE);
	SAME(stat_of(reader).attached, 0);
	xmem_pool_close(reader);
}

TEST(P3_nothing_is_lost_after_a_wait_for_a_publisher)
{
	struct source source = { .name = new_name(), .buffers = 3, .wait_bound_ns = 3600 * SECOND };
	struct xmem_pool *reader = open_reader(source.name);
	struct xmem_subscription *s;
	struct child *child;
	unsigned int i;

	source.count = scaled(500);
	child = spawn(be_source, &source);
	s = follow(reader, (int)hear(child), XMEM_SUBSCRIBE_WAITS);
	tell(child, 1);
	for (i = 0; i < source.count; i++) {
		struct xmem_buffer *b = receive_one(s);

		SAME(info_of(b).sequence, i);
		SAME(stamp_of(b), i);
		xmem_release(b);
	}
	SAME(sub_info(s).lost, 0);
	xmem_unsubscribe(s);
	hear(child);
	kill_child(child);
	xmem_pool_close(reader);
}

TEST(P3_what_is_lost_is_counted)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s;
	uint64_t next = 0, i;

	WORKED(xmem_preallocate(writer, BYTES, 8, NULL));
	s = follow(reader, xmem_pool_client(writer), 0);
	for (i = 0; i < 100; i++)
		publish_stamp(writer, i);
	for (i = 0; i < 4; i++) {
		struct xmem_buffer *b = xmem_receive(s, 0);

		if (!b)
			break;
		CHECK(info_of(b).sequence >= next);
		SAME(stamp_of(b), info_of(b).sequence);
		next = info_of(b).sequence + 1;
		xmem_release(b);
	}
	CHECK(i > 0);			/* the last few are protected */
	SAME(next, 100);
	SAME(sub_info(s).lost + i, 100);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P3_a_late_subscriber_gets_what_comes_after)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0; i < 5; i++)
		publish_stamp(writer, i);
	s = follow(reader, xmem_pool_client(writer), 0);
	REFUSED(xmem_receive(s, 0), EAGAIN);
	publish_stamp(writer, 5);
	b = receive_one(s);
	SAME(stamp_of(b), 5);
	SAME(info_of(b).sequence, 5);
	SAME(sub_info(s).lost, 0);
	xmem_release(b);
	/* Once more, from a later place in the ring. */
	xmem_unsubscribe(s);
	publish_stamp(writer, 6);
	s = follow(reader, xmem_pool_client(writer), 0);
	publish_stamp(writer, 7);
	b = receive_one(s);
	SAME(stamp_of(b), 7);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P3_a_new_publisher_is_not_taken_for_a_dead_one)
{
	struct source source = { .name = new_name(), .count = 3, .first = 100, .buffers = 4 };
	struct xmem_pool *reader = OPEN(source.name, .clients = 3);
	struct xmem_subscription *old, *young;
	struct xmem_pool *others[2];
	struct child *child = start_source(&source, reader, &old, 0), *next;

	kill_child(child);
	EVENTUALLY(stat_of(reader).zombies == 1);
	/* Its id is not used again while its ring is in flight. */
	source.first = 200;
	next = start_source(&source, reader, &young, 0);
	CHECK(sub_info(young).publisher != sub_info(old).publisher);
	drained(old, 100, 3);
	kill_child(next);
	drained(young, 200, 3);
	xmem_unsubscribe(old);
	xmem_unsubscribe(young);
	check_quiet(reader, 1);
	/* Then the id is used again: the pool has only these three. */
	others[0] = open_reader(source.name);
	others[1] = open_reader(source.name);
	xmem_pool_close(others[1]);
	xmem_pool_close(others[0]);
	xmem_pool_close(reader);
}

/*
 * The last receive has failed with EPIPE. Its message says how the publisher ended, and so do those
 * of all later ones.
 */
static void ends_with(struct xmem_subscription *s, const char *word, uint64_t lost)
{
	const char *why;
	int i;

	for (i = 0; i < 2; i++) {
		REFUSED(xmem_receive(s, 0), EPIPE);
		why = last_message();
		if (!strstr(why, word))
			FAIL("the message does not contain '%s': %s", word, why);
		SAME(sub_info(s).lost, lost);
	}
	xmem_unsubscribe(s);
}

TEST(P3_rings_of_dead_publishers_are_bounded)
{
	struct source source = { .name = new_name(), .count = 2, .first = 1, .buffers = 2 };
	struct xmem_pool *reader = OPEN(source.name, .clients = 40, .slots = 4096);
	struct xmem_pool *watcher = open_reader(source.name);
	struct xmem_subscription *s[12];
	unsigned int i;

	for (i = 0; i < 12; i++) {
		struct child *child = start_source(&source, reader, &s[i], 0);

		kill_child(child);
		EVENTUALLY(stat_of(watcher).clients == 2);
		EVENTUALLY(stat_of(watcher).zombies <= 8);
	}
	SAME(stat_of(watcher).zombies, 8);
	EVENTUALLY(stat_of(watcher).attached == 16);
	/* The oldest were given up, and count as lost; the others are all there. */
	for (i = 0; i < 12; i++)
		SAME(sub_info(s[i]).behind, i < 4 ? 0 : 2);
	for (i = 0; i < 4; i++) {
		REFUSED(xmem_receive(s[i], 0), EPIPE);
		ends_with(s[i], "dropped its ring", 2);
	}
	for (; i < 12; i++) {
		drained(s[i], 1, 2);
		ends_with(s[i], "has been received", 0);
	}
	check_quiet(watcher, 2);
	EVENTUALLY(stat_of(watcher).attached == 0);
	xmem_pool_close(reader);
	xmem_pool_close(watcher);
}

#define ENDED	100

/*
 * A publisher that waits for subscribers publishes, and ends before the reader has received
 * anything.
 */
static struct xmem_subscription *end_unread(struct source *source, struct xmem_pool *reader)
{
	struct xmem_subscription *s;

	kill_child(start_source(source, reader, &s, XMEM_SUBSCRIBE_WAITS));
	EVENTUALLY(stat_of(reader).clients == 1);
	return s;
}

TEST(P3_an_awaited_subscriber_loses_nothing_of_many_dead_publishers)
{
	struct source source = {
		.name = new_name(), .count = 2, .buffers = 2, .wait_bound_ns = patience_ns(),
	};
	struct xmem_pool *reader = OPEN(source.name, .clients = ENDED + 1, .slots = ENDED * 64);
	struct xmem_subscription *s[ENDED];
	unsigned int i;

	for (i = 0; i < ENDED; i++) {
		source.first = 2 * i;
		s[i] = end_unread(&source, reader);
	}
	SAME(stat_of(reader).zombies, ENDED);
	for (i = 0; i < ENDED; i++) {
		drained(s[i], 2 * i, 2);
		ends_with(s[i], "has been received", 0);
	}
	EVENTUALLY(stat_of(reader).zombies == 0);
	EVENTUALLY(stat_of(reader).attached == 0);
	xmem_pool_close(reader);
}

/*
 * Rings of ended publishers keep slots and ids. The next publisher lacks them, and its error says
 * so.
 */
TEST(P10_rings_that_are_waited_for_refuse_the_next_publisher)
{
	struct source source = {
		.name = new_name(), .count = 1, .buffers = 1, .wait_bound_ns = patience_ns(),
	};
	struct xmem_pool *reader = OPEN(source.name, .clients = 12, .slots = 10 * 64,
					.label = "late"), *next;
	struct xmem_subscription *s[11];
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER,
	};
	const char *why;
	char who[128];
	unsigned int i;

	for (i = 0; i < 10; i++)
		s[i] = end_unread(&source, reader);
	/* No group of slots is free. The message names the subscriber that has not received. */
	next = OPEN(source.name, .flags = XMEM_OPEN_WRITER);
	snprintf(who, sizeof(who), "10 are left by clients that have ended, 10 slots of clients "
		 "that have ended are still used (client %d late pid %d: 10)",
		 xmem_pool_client(reader), getpid());
	refused_slots(next, who);
	/* No id is free for one more client. */
	REFUSED(xmem_pool_open(source.name, &o), EUSERS);
	why = last_message();
	CHECK(strstr(why, "10 have ended whose publications others hold or have yet to receive"));
	/* The next publisher continues after the subscriber has received. */
	drained(s[0], 0, 1);
	EVENTUALLY(!xmem_preallocate(next, BYTES, 1, NULL));
	xmem_pool_close(next);
	for (i = 0; i < 10; i++) {
		if (i)
			drained(s[i], 0, 1);
		ends_with(s[i], "has been received", 0);
	}
	xmem_pool_close(reader);
}
