// SPDX-License-Identifier: MIT
/*
 * History under SIGKILL, with a stopped owner, and in a race. It is not protected, so a publisher
 * reclaims and overwrites it while a late subscriber reads it. Still the subscriber receives
 * correct contents (P1), its holds are released when it dies (P2), and a stopped owner delays no
 * client (P9).
 */
#include <signal.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	256
#define BUFFERS	6
#define KEEP	4
#define ALL	64

struct scene {
	const char *name;
	int step;
	unsigned int after;
	int publisher;
};

static struct xmem_subscription *follow_past(struct xmem_pool *pool, int publisher)
{
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_PUBLISHER | XMEM_SUBSCRIBE_NOWAIT,
		.publisher = publisher, .history = ALL,
	};

	return xmem_subscribe(pool, &o);
}

static struct xmem_pool *open_keeper(const char *name)
{
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .clients = 4, .ring_entries = 16,
		.keep = KEEP,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &o);

	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, BUFFERS, NULL));
	return pool;
}

static bool has_died(struct child *child)
{
	siginfo_t info = { 0 };

	CHECK(!waitid(P_PID, child->pid, &info, WEXITED | WNOHANG | WNOWAIT));
	return info.si_pid != 0;
}

/*
 * Subscribe late, receive all that is there, and end. The contents are whole and in order. Returns
 * how many there were.
 */
static unsigned int look_back(struct xmem_pool *pool, int publisher)
{
	struct xmem_subscription *s = follow_past(pool, publisher);
	struct xmem_buffer *b;
	uint64_t next = 0;
	unsigned int got;

	if (!s)
		return 0;
	for (got = 0; got < 2 * KEEP && (b = xmem_receive(s, 0)); got++) {
		SAME(stamp_of(b), info_of(b).sequence);
		CHECK(info_of(b).sequence >= next);
		next = info_of(b).sequence + 1;
		xmem_release(b);
	}
	xmem_unsubscribe(s);
	return got;
}

/* ---- readers of the history ---- */

static void look_back_for_ever(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_reader(scene->name);

	tell_parent(1);
	at_step(scene->step, scene->after, STEP_KILL, NULL);
	for (;;)
		look_back(pool, scene->publisher);
}

static void kill_reader(struct xmem_pool *writer, struct scene *scene, uint64_t *stamp)
{
	struct child *child = spawn(look_back_for_ever, scene);
	int i;

	hear(child);
	for (i = 0; !has_died(child); i++) {
		publish_stamp(writer, (*stamp)++);
		if (i == 1000000)
			FAIL("%s: not reached", step_name(scene->step));
	}
	died_of_kill(child);
	check_quiet(writer, 1);
	for (i = 0; i < 2 * BUFFERS; i++)
		publish_stamp(writer, (*stamp)++);
}

TEST_WITHIN(P2_killed_at_every_step_of_receiving_history, 60)
{
	static const int steps[] = {
		XM_STEP_RECEIVE_READ, XM_STEP_RECEIVE_HELD, XM_STEP_RECEIVE_VALID,
		XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED,
	};
	struct scene scene = { .name = new_name() };
	struct xmem_pool *writer;
	uint64_t stamp = 0;
	unsigned int i;

	steps_only();
	writer = open_keeper(scene.name);
	scene.publisher = xmem_pool_client(writer);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		scene.step = steps[i];
		for (scene.after = 0; scene.after < 8; scene.after += 7)
			kill_reader(writer, &scene, &stamp);
	}
	xmem_pool_close(writer);
}

/* ---- publishers of the history ---- */

static void publish_for_ever(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_keeper(scene->name);
	uint64_t stamp;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(scene->step, scene->after, STEP_KILL, NULL);
	for (stamp = 0;; stamp++)
		publish_stamp(pool, stamp);
}

TEST_WITHIN(P3_history_of_a_publisher_killed_at_every_step, 60)
{
	static const int steps[] = {
		XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS,
		XM_STEP_PUBLISH_POSITION, XM_STEP_PUBLISH_LIVE, XM_STEP_PUBLISH_OPEN,
		XM_STEP_PUBLISH_FIELDS, XM_STEP_PUBLISH_ENTRY, XM_STEP_PUBLISH_TAIL,
	};
	struct scene scene = { .name = new_name() };
	struct xmem_pool *reader;
	unsigned int i;

	steps_only();
	reader = OPEN(scene.name, .clients = 4, .ring = 16, .slots = 64);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct child *child;
		int publisher;

		scene.step = steps[i];
		scene.after = 7 + 13 * i;
		child = spawn(publish_for_ever, &scene);
		publisher = hear(child);
		tell(child, 1);
		while (!has_died(child))
			look_back(reader, publisher);
		died_of_kill(child);
		look_back(reader, publisher);
		EVENTUALLY(stat_of(reader).clients == 1);
		check_quiet(reader, 1);
		EVENTUALLY(stat_of(reader).attached == 0);
	}
	xmem_pool_close(reader);
}

/* ---- in the midst of a receive ---- */

static struct {
	struct xmem_pool *writer;
	uint64_t stamp;
	unsigned int more;
} midst;

/* Other clients come and go between reading the entry and holding its buffer. */
static void publish_more(int step)
{
	unsigned int i;

	(void)step;
	no_step();
	for (i = 0; i < midst.more; i++)
		publish_stamp(midst.writer, midst.stamp++);
}

/*
 * @more publications happen after the subscriber has read an entry and before it holds its buffer.
 * They use its buffer again (BUFFERS), and also its entry (16). The subscriber receives the next
 * publication that exists.
 */
static void goes_in_the_midst(unsigned int more)
{
	const char *name = new_name();
	struct xmem_pool *reader;
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	uint64_t last = 0;

	midst.writer = open_keeper(name);
	midst.more = more;
	for (midst.stamp = 0; midst.stamp < KEEP; midst.stamp++)
		publish_stamp(midst.writer, midst.stamp);
	reader = open_reader(name);
	s = follow_past(reader, xmem_pool_client(midst.writer));
	CHECK(s);
	at_step(XM_STEP_RECEIVE_READ, 0, STEP_CALL, publish_more);
	while ((b = xmem_receive(s, 0))) {
		SAME(stamp_of(b), info_of(b).sequence);
		CHECK(info_of(b).sequence >= more - (BUFFERS - KEEP));
		CHECK(info_of(b).sequence > last);
		last = info_of(b).sequence;
		xmem_release(b);
	}
	SAME(xmem_peek_last_error(NULL), -EAGAIN);
	SAME(last, midst.stamp - 1);
	xmem_unsubscribe(s);
	check_quiet(reader, 2);
	xmem_pool_close(reader);
	xmem_pool_close(midst.writer);
}

TEST(P1_history_that_goes_in_the_midst_is_passed)
{
	steps_only();
	goes_in_the_midst(BUFFERS);
	goes_in_the_midst(3 * BUFFERS);
}

/* ---- a stopped owner ---- */

static void stop_in_a_scan(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_writer(scene->name, KEEP + 1, BYTES);
	uint64_t stamp;

	for (stamp = 0; stamp < KEEP; stamp++)
		publish_stamp(pool, stamp);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	/* This acquire takes the last free buffer, so it scans for others. */
	at_step(scene->step, 0, STEP_STOP, NULL);
	publish_stamp(pool, stamp);
	no_step();
	hear_parent();
}

/* The host resolves the slot that the owner was about to reclaim, and the reader receives it. */
TEST(P9_history_that_a_stopped_owner_scans_is_received)
{
	struct scene scene = { .name = new_name(), .step = XM_STEP_SCAN_HOLDS };
	struct xmem_pool *reader;
	struct xmem_subscription *s;
	struct child *child;
	int stamp;

	steps_only();
	reader = OPEN(scene.name, .clients = 4, .ring = 16, .slots = 64);
	child = spawn(stop_in_a_scan, &scene);
	s = follow_past(reader, (int)hear(child));
	CHECK(s);
	tell(child, 1);
	wait_stopped(child);
	for (stamp = 0; stamp <= KEEP; stamp++) {
		struct xmem_buffer *b = xmem_receive(s, 0);

		CHECK(b);
		SAME(stamp_of(b), stamp);
		xmem_release(b);
	}
	continue_child(child);
	kill_child(child);
	xmem_unsubscribe(s);
	check_quiet(reader, 1);
	xmem_pool_close(reader);
}
