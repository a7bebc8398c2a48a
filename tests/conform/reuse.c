// SPDX-License-Identifier: MIT
/*
 * P1: contents are not replaced while any live client holds them. The first tests have no races.
 * Then one client acts in the midst of another's step (both are in one process, so that each order
 * is exact). At last all go on at once, with kills.
 */
#include <signal.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096

TEST(P1_held_contents_stay_while_the_publisher_goes_on)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 4, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *held;
	unsigned int i;

	publish_stamp(writer, 77);
	held = receive_one(s);
	for (i = 0; i < 100; i++)
		publish_stamp(writer, 1000 + i);
	SAME(stamp_of(held), 77);
	SAME(stat_of(reader).holds, 1);
	xmem_release(held);
	SAME(stat_of(reader).holds, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P1_acquire_finds_nothing_while_all_are_held)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *held[2];
	unsigned int i;

	for (i = 0; i < 2; i++)
		held[i] = publish_and_get(writer, reader, i + 1);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	REFUSED(xmem_acquire(writer, BYTES, 20 * MS), ETIMEDOUT);
	SAME(stamp_of(held[0]), 1);
	SAME(stamp_of(held[1]), 2);
	xmem_release(held[1]);
	publish_stamp(writer, 3);
	SAME(stamp_of(held[0]), 1);
	xmem_release(held[0]);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P1_what_a_waited_for_subscriber_may_receive_is_not_reused)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = 3600 * SECOND);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	unsigned int i;

	WORKED(xmem_preallocate(writer, BYTES, 3, NULL));
	s = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	for (i = 0; i < 3; i++)
		publish_stamp(writer, i);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	for (i = 0; i < 30; i++) {
		b = receive_one(s);
		SAME(stamp_of(b), i);
		SAME(info_of(b).sequence, i);
		REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
		xmem_release(b);
		publish_stamp(writer, i + 3);
	}
	SAME(sub_info(s).lost, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Four publications fill the ring and overwrite none, so the first slot is not free yet. */
TEST(P1_the_oldest_entry_of_a_full_ring_is_still_in_flight)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_buffer *b, *taken[3];
	struct xmem_subscription *s;
	unsigned int i;

	WORKED(xmem_preallocate(writer, BYTES, 6, NULL));
	s = follow(reader, xmem_pool_client(writer), 0);
	for (i = 0; i < 4; i++)
		publish_stamp(writer, i);
	/* Two are free. The third acquire evicts the oldest publication, which is then lost. */
	for (i = 0; i < 3; i++) {
		taken[i] = xmem_acquire(writer, BYTES, 0);
		CHECK(taken[i]);
		fill(taken[i], 100 + i);
	}
	for (i = 1; i < 4; i++) {
		b = receive_one(s);
		SAME(info_of(b).sequence, i);
		SAME(stamp_of(b), i);
		xmem_release(b);
	}
	SAME(sub_info(s).lost, 1);
	for (i = 0; i < 3; i++)
		xmem_release(taken[i]);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P1_a_clone_holds_as_well)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_buffer *b = publish_and_get(writer, reader, 5), *clone;

	clone = xmem_clone(b);
	CHECK(clone);
	SAME(xmem_token(clone), xmem_token(b));
	SAME(stat_of(writer).holds, 2);
	xmem_release(b);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(stamp_of(clone), 5);
	xmem_release(clone);
	publish_stamp(writer, 6);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P1_the_publisher_may_keep_what_it_published)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);
	uint64_t token;

	CHECK(b);
	fill(b, 9);
	WORKED(xmem_publish(b, &keep, &token));
	SAME(xmem_token(b), token);
	REFUSED(xmem_data_mut(b), EPERM);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(stamp_of(b), 9);
	xmem_release(b);
	publish_stamp(writer, 10);
	xmem_pool_close(writer);
}

/* ---- one step in the midst of another ---- */

static struct {
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *subscription;
	struct xmem_buffer *got;
	uint64_t token, stamp;
	int called;
} race;

static void race_start(unsigned int buffers)
{
	const char *name = new_name();

	memset(&race, 0, sizeof(race));
	race.writer = open_writer(name, buffers, BYTES);
	race.reader = open_reader(name);
}

static void race_end(void)
{
	xmem_release(race.got);
	xmem_unsubscribe(race.subscription);
	xmem_pool_close(race.reader);
	check_quiet(race.writer, 1);
	xmem_pool_close(race.writer);
}

static void get_it(int step)
{
	race.called++;
	race.got = xmem_get(race.reader, race.token);
}

TEST(P1_a_get_in_the_midst_of_a_scan_stops_it)
{
	static const int steps[] = {
		XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS,
	};
	unsigned int i;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct xmem_buffer *b, *kept;

		race_start(1);
		race.token = publish_kept(race.writer, 40 + i, &kept);
		xmem_release(kept);
		at_step(steps[i], 0, STEP_CALL, get_it);
		b = xmem_acquire(race.writer, BYTES, 0);
		SAME(race.called, 1);
		/* Either the getter has it, or the writer: never both. */
		if (race.got)
			CHECK(!b);
		else
			CHECK(b);
		CHECK(race.got);	/* the host resolves a scan that stands still */
		SAME(stamp_of(race.got), 40 + i);
		race_end();
	}
}

static void receive_it(int step)
{
	race.called++;
	race.got = xmem_receive(race.subscription, 0);
	if (race.got)
		race.stamp = stamp_of(race.got);
}

TEST(P1_a_receive_in_the_midst_of_a_evict)
{
	static const int steps[] = {
		XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS,
	};
	unsigned int i, n;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		for (n = 0; n < 3; n++) {
			struct xmem_buffer *b[2];

			race_start(2);
			race.subscription = follow(race.reader, xmem_pool_client(race.writer), 0);
			publish_stamp(race.writer, 100);
			publish_stamp(race.writer, 101);
			at_step(steps[i], n, STEP_CALL, receive_it);
			b[0] = xmem_acquire(race.writer, BYTES, 0);
			no_step();
			if (b[0])
				fill(b[0], 200);
			b[1] = xmem_acquire(race.writer, BYTES, 0);
			if (b[1])
				fill(b[1], 201);
			if (race.got) {
				SAME(stamp_of(race.got), race.stamp);
				CHECK(!b[0] || !b[1]);
			}
			xmem_release(b[0]);
			xmem_release(b[1]);
			race_end();
		}
	}
}

/* Publish as often as there is a buffer, many times round the ring. */
static void overtake(int step)
{
	unsigned int i;

	race.called++;
	for (i = 0; i < 40; i++) {
		struct xmem_buffer *b = xmem_acquire(race.writer, BYTES, 0);

		if (!b)
			break;
		fill(b, 500 + i);
		WORKED(xmem_publish(b, NULL, NULL));
	}
}

TEST(P1_the_publisher_overtakes_in_the_midst_of_a_receive)
{
	static const int steps[] = {
		XM_STEP_RECEIVE_READ, XM_STEP_RECEIVE_HELD, XM_STEP_RECEIVE_VALID,
	};
	unsigned int i;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		race_start(4);
		race.subscription = follow(race.reader, xmem_pool_client(race.writer), 0);
		publish_stamp(race.writer, 7);
		at_step(steps[i], 0, STEP_CALL, overtake);
		race.got = receive_one(race.subscription);
		SAME(race.called, 1);
		if (steps[i] == XM_STEP_RECEIVE_VALID)
			SAME(stamp_of(race.got), 7);
		overtake(0);
		/* The contents are those that the sequence number names. */
		if (info_of(race.got).sequence == 0)
			SAME(stamp_of(race.got), 7);
		else
			SAME(stamp_of(race.got), 500 + info_of(race.got).sequence - 1);
		SAME(sub_info(race.subscription).lost, info_of(race.got).sequence);
		race_end();
	}
}

TEST(P1_the_publisher_overtakes_in_the_midst_of_a_get)
{
	static const int steps[] = { XM_STEP_GET_HELD, XM_STEP_GET_DONE };
	struct xmem_buffer *kept;
	unsigned int i;

	steps_only();
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		race_start(2);
		race.token = publish_kept(race.writer, 7, &kept);
		xmem_release(kept);
		at_step(steps[i], 0, STEP_CALL, overtake);
		race.got = xmem_get(race.reader, race.token);
		SAME(race.called, 1);
		CHECK(race.got);	/* it held before the scan checked */
		overtake(0);
		SAME(stamp_of(race.got), 7);
		race_end();
	}
}

/* ---- everything at once ---- */

/*
 * More than the three readers hold (6), plus those spared for subscribers that may lose the oldest
 * (half).
 */
#define STRESS_BUFFERS	16

static void stress_writer(void *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 16,
				      .wait_bound_ns = 50 * MS);
	uint64_t stamp;

	WORKED(xmem_preallocate(pool, 2048, STRESS_BUFFERS, NULL));
	tell_parent(xmem_pool_client(pool));
	for (stamp = 1;; stamp++)
		publish_stamp(pool, stamp);
}

struct stress_reader {
	const char *name;
	int publisher;
	uint64_t random;
};

/* Hold up to two at a time, and check each when it is received and when it is released. */
static void stress_reader(void *argument)
{
	struct stress_reader *arg = argument;
	struct xmem_pool *pool = open_reader(arg->name);
	bool waits = random_next(&arg->random) & 1;
	struct xmem_subscription *s = follow(pool, arg->publisher,
					     waits ? XMEM_SUBSCRIBE_WAITS : 0);
	struct xmem_buffer *held[2] = { NULL };
	uint64_t stamp[2] = { 0 }, last = 0;

	for (;;) {
		unsigned int i = random_next(&arg->random) & 1;

		if (held[i]) {
			SAME(stamp_of(held[i]), stamp[i]);
			xmem_release(held[i]);
		}
		held[i] = receive_one(s);
		stamp[i] = stamp_of(held[i]);
		SAME(stamp[i], info_of(held[i]).sequence + 1);
		CHECK(stamp[i] > last);
		last = stamp[i];
		tell_parent(last);
	}
}

/* Read and drop what the children report: a full socket would block them. */
static void drain(struct child *child, unsigned int count)
{
	while (count--)
		hear(child);
}

TEST_WITHIN(P1_contents_stay_while_readers_are_killed_at_random, 60)
{
	const char *name = new_name();
	struct xmem_pool *watcher = open_reader(name);
	struct child *writer = spawn(stress_writer, (void *)name);
	struct stress_reader arg = { .name = name, .random = seed(), .publisher = hear(writer) };
	struct child *reader[3];
	unsigned int i, kills = scaled(90);

	for (i = 0; i < 3; i++) {
		random_next(&arg.random);
		reader[i] = spawn(stress_reader, &arg);
	}
	for (i = 0; i < kills; i++) {
		unsigned int victim = random_next(&arg.random) % 3, k;

		for (k = 0; k < 3; k++)
			drain(reader[k], 1 + random_next(&arg.random) % 20);
		kill_child(reader[victim]);
		reader[victim] = spawn(stress_reader, &arg);
	}
	for (i = 0; i < 3; i++)
		kill_child(reader[i]);
	kill_child(writer);
	check_quiet(watcher, 1);
	EVENTUALLY(stat_of(watcher).attached == 0);
	xmem_pool_close(watcher);
}
