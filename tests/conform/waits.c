// SPDX-License-Identifier: MIT
/*
 * P9: nothing waits for ever for a dead process. The tests try each kind of sleep. Then the event
 * comes, or the other process ends or dies, or the waiter itself does. A test knows that a client
 * sleeps when the client has armed a waiters word.
 */
#include <poll.h>
#include <signal.h>

#include "harness.h"

#define BYTES	4096

struct waiter {
	const char *name;
	int publisher;
	uint32_t flags;
	int64_t timeout_ns;
	int expect;			/* errno that ends its sleep; 0: success */
};

static uint32_t *ring_word(const struct raw *raw, int publisher)
{
	return &xm_client_row(&raw->map, publisher)->ring_waiters;
}

static uint32_t *slots_word(const struct raw *raw, int owner)
{
	return &xm_client_row(&raw->map, owner)->slots_waiters;
}

/* ---- receivers ---- */

static void sleep_in_receive(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_reader(waiter->name);
	struct xmem_subscription *s = follow(pool, waiter->publisher, waiter->flags);
	struct xmem_buffer *b;

	tell_parent(1);
	b = xmem_receive(s, waiter->timeout_ns);
	if (waiter->expect)
		REFUSED(b, waiter->expect);
	else
		SAME(stamp_of(b), 3);
	tell_parent(2);
	hear_parent();
}

TEST(P9_a_sleeping_receiver_wakes_when_something_comes)
{
	struct waiter waiter = { .name = new_name(), .timeout_ns = XMEM_FOREVER };
	struct xmem_pool *writer = open_writer(waiter.name, 4, BYTES);
	struct child *child[3];
	struct raw raw;
	unsigned int i;

	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	waiter.publisher = xmem_pool_client(writer);
	for (i = 0; i < 3; i++) {
		child[i] = spawn(sleep_in_receive, &waiter);
		hear(child[i]);
	}
	until_asleep(ring_word(&raw, waiter.publisher));
	publish_stamp(writer, 3);
	for (i = 0; i < 3; i++)
		SAME(hear(child[i]), 2);
	for (i = 0; i < 3; i++)
		kill_child(child[i]);
	raw_close(&raw);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

static void own_a_pool(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_writer(waiter->name, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	xmem_pool_close(pool);
}

static void receivers_hear_of_the_end(bool killed)
{
	struct waiter waiter = { .name = new_name(), .timeout_ns = XMEM_FOREVER, .expect = EPIPE };
	struct child *owner = spawn(own_a_pool, &waiter), *child[2];
	struct raw raw;
	unsigned int i;

	waiter.publisher = hear(owner);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	for (i = 0; i < 2; i++) {
		child[i] = spawn(sleep_in_receive, &waiter);
		hear(child[i]);
		until_asleep(ring_word(&raw, waiter.publisher));
	}
	if (killed) {
		kill_child(owner);
	} else {
		tell(owner, 1);
		finish_child(owner);
	}
	for (i = 0; i < 2; i++)
		SAME(hear(child[i]), 2);
	raw_close(&raw);
}

TEST(P9_a_sleeping_receiver_hears_of_its_publishers_death)
{
	receivers_hear_of_the_end(true);
}

TEST(P9_a_sleeping_receiver_hears_of_its_publishers_leaving)
{
	receivers_hear_of_the_end(false);
}

TEST(P9_a_killed_waiter_does_not_hurt_the_publisher)
{
	struct waiter waiter = { .name = new_name(), .timeout_ns = XMEM_FOREVER };
	struct xmem_pool *writer = open_writer(waiter.name, 2, BYTES);
	struct raw raw;
	unsigned int i, k;

	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	waiter.publisher = xmem_pool_client(writer);
	for (k = 0; k < 3; k++) {
		struct child *child = spawn(sleep_in_receive, &waiter);

		hear(child);
		until_asleep(ring_word(&raw, waiter.publisher));
		kill_child(child);
		for (i = 0; i < 10; i++)
			publish_stamp(writer, i);
		check_quiet(writer, 2);
	}
	raw_close(&raw);
	xmem_pool_close(writer);
}

TEST(P9_timeouts_end_waiting)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .timeout_ns = 30 * MS,
	};
	struct xmem_pool *empty = open_reader(new_name());
	struct xmem_buffer *kept;
	int64_t start = now_ns();

	REFUSED(xmem_receive(s, 0), EAGAIN);
	REFUSED(xmem_receive(s, 30 * MS), ETIMEDOUT);
	CHECK(now_ns() - start >= 30 * MS);
	publish_kept(writer, 1, &kept);
	start = now_ns();
	REFUSED(xmem_acquire(writer, BYTES, 30 * MS), ETIMEDOUT);
	CHECK(now_ns() - start >= 30 * MS);
	start = now_ns();
	REFUSED(xmem_subscribe(empty, &options), ETIMEDOUT);
	CHECK(now_ns() - start >= 30 * MS);
	options.timeout_ns = 0;
	options.flags = XMEM_SUBSCRIBE_NOWAIT;
	REFUSED(xmem_subscribe(empty, &options), ENOENT);
	xmem_release(kept);
	xmem_unsubscribe(s);
	xmem_pool_close(empty);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- signals ---- */

static void nothing(int signal)
{
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = nothing };

	CHECK(!sigaction(SIGUSR1, &action, NULL));
}

static void interrupted_in_receive(void *argument)
{
	catch_signals();
	sleep_in_receive(argument);
}

static void interrupted_in_acquire(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_writer(waiter->name, 1, BYTES);
	struct xmem_buffer *kept;

	catch_signals();
	publish_kept(pool, 1, &kept);
	tell_parent(xmem_pool_client(pool));
	REFUSED(xmem_acquire(pool, BYTES, XMEM_FOREVER), EINTR);
	tell_parent(2);
	hear_parent();
}

static void interrupted_in_subscribe(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_reader(waiter->name);

	catch_signals();
	tell_parent(1);
	REFUSED(xmem_subscribe(pool, NULL), EINTR);
	tell_parent(2);
	hear_parent();
}

/* One signal may come between arming and sleeping: repeat until one has an effect. */
static void interrupt(struct child *child)
{
	struct pollfd heard = { .fd = child->link, .events = POLLIN };

	do
		CHECK(!kill(child->pid, SIGUSR1));
	while (!poll(&heard, 1, 20));
	SAME(hear(child), 2);
	kill_child(child);
}

TEST(P9_a_signal_interrupts_receive)
{
	struct waiter waiter = { .name = new_name(), .timeout_ns = XMEM_FOREVER, .expect = EINTR };
	struct xmem_pool *writer = open_writer(waiter.name, 2, BYTES);
	struct child *child;
	struct raw raw;

	waiter.publisher = xmem_pool_client(writer);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	child = spawn(interrupted_in_receive, &waiter);
	hear(child);
	until_asleep(ring_word(&raw, waiter.publisher));
	interrupt(child);
	raw_close(&raw);
	xmem_pool_close(writer);
}

TEST(P9_a_signal_interrupts_acquire)
{
	struct waiter waiter = { .name = new_name() };
	struct child *child;
	struct raw raw;

	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	child = spawn(interrupted_in_acquire, &waiter);
	until_asleep(slots_word(&raw, (int)hear(child)));
	interrupt(child);
	raw_close(&raw);
}

TEST(P9_a_signal_interrupts_subscribe)
{
	struct waiter waiter = { .name = new_name() };
	struct child *child;
	struct raw raw;

	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	child = spawn(interrupted_in_subscribe, &waiter);
	hear(child);
	until_asleep(&raw.map.pool->clients_waiters);
	interrupt(child);
	raw_close(&raw);
}

/* ---- owners ---- */

static void sleep_in_acquire(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = OPEN(waiter->name, .flags = XMEM_OPEN_WRITER,
				      .wait_bound_ns = 3600 * SECOND);
	struct xmem_buffer *b;

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	tell_parent(publish_kept(pool, 3, &b));
	hear_parent();
	xmem_release(b);
	b = xmem_acquire(pool, BYTES, XMEM_FOREVER);
	CHECK(b);
	tell_parent(2);
	hear_parent();
}

static void hold_it(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_reader(waiter->name);
	struct xmem_subscription *s = follow(pool, waiter->publisher, waiter->flags);
	struct xmem_buffer *b;

	tell_parent(1);
	b = receive_one(s);
	tell_parent(xmem_token(b));
	hear_parent();
	xmem_release(b);
	tell_parent(3);
	hear_parent();
}

enum ending { KILLED, RELEASED, KILLED_WITHOUT_RECEIVING, KILLED_BEFORE_IT_WAKES };

/* An owner sleeps until its one buffer is free. A subscriber holds it, or has not received it. */
static void owner_wakes(enum ending ending)
{
	struct waiter waiter = { .name = new_name(), .flags = XMEM_SUBSCRIBE_WAITS };
	struct child *owner = spawn(sleep_in_acquire, &waiter), *holder;
	struct raw raw;

	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	waiter.publisher = hear(owner);
	holder = spawn(hold_it, &waiter);
	hear(holder);
	if (ending == KILLED_WITHOUT_RECEIVING)
		stop_child(holder);
	tell(owner, 1);
	hear(owner);
	if (ending != KILLED_WITHOUT_RECEIVING)
		hear(holder);
	tell(owner, 1);
	until_asleep(slots_word(&raw, waiter.publisher));
	if (ending == KILLED_BEFORE_IT_WAKES)	/* as the holder does before it wakes sleepers */
		CHECK(xm_disarm(slots_word(&raw, waiter.publisher)));
	if (ending == RELEASED)
		tell(holder, 1);
	else
		kill_child(holder);
	SAME(hear(owner), 2);
	raw_close(&raw);
}

TEST(P9_a_sleeping_owner_wakes_when_the_holder_releases)
{
	owner_wakes(RELEASED);
}

TEST(P9_a_sleeping_owner_wakes_when_the_holder_is_killed)
{
	owner_wakes(KILLED);
}

TEST(P9_a_sleeping_owner_wakes_when_who_it_waits_for_is_killed)
{
	owner_wakes(KILLED_WITHOUT_RECEIVING);
}

TEST(P9_a_sleeping_owner_wakes_when_its_waker_is_killed_half_way)
{
	daemon_only("the kernel changes the word and wakes in one call");
	owner_wakes(KILLED_BEFORE_IT_WAKES);
}

/* A publisher of more buffers than its ring has entries: it waits for space there. */
static void sleep_for_ring_space(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = OPEN(waiter->name, .flags = XMEM_OPEN_WRITER, .ring = 4,
				      .wait_bound_ns = 3600 * SECOND);
	unsigned int i;

	WORKED(xmem_preallocate(pool, BYTES, 12, NULL));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
	for (i = 0; i < 4; i++)
		publish_stamp(pool, i);
	REFUSED(xmem_acquire(pool, BYTES, 0), EAGAIN);
	publish_stamp(pool, 4);		/* it sleeps: acquire has 10 s, and enough free buffers */
	tell_parent(2);
	hear_parent();
}

TEST(P9_a_publisher_that_waits_for_ring_space_wakes_when_one_is_received)
{
	struct waiter waiter = { .name = new_name() };
	struct child *owner;
	struct xmem_subscription *s;
	struct xmem_pool *reader;
	struct xmem_buffer *kept;
	struct raw raw;

	owner = spawn(sleep_for_ring_space, &waiter);
	waiter.publisher = hear(owner);
	reader = open_reader(waiter.name);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	s = follow(reader, waiter.publisher, XMEM_SUBSCRIBE_WAITS);
	tell(owner, 1);
	until_asleep(slots_word(&raw, waiter.publisher));
	/* Received, and kept: no put follows that would wake it. */
	kept = receive_one(s);
	SAME(hear(owner), 2);
	SAME(stamp_of(kept), 0);
	xmem_release(kept);
	xmem_unsubscribe(s);
	raw_close(&raw);
	xmem_pool_close(reader);
}

/* A holder that is killed after its last put and before the wake that must follow. */
static void die_owing_a_wake(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_reader(waiter->name);
	struct xmem_subscription *s = follow(pool, waiter->publisher, waiter->flags);
	struct xmem_buffer *b;

	tell_parent(1);
	b = receive_one(s);
	tell_parent(1);
	hear_parent();
	at_step(XM_STEP_PUT_DROPPED, 0, STEP_KILL, NULL);
	xmem_release(b);
}

TEST(P9_a_wake_owed_by_a_dead_holder_is_given)
{
	struct waiter waiter = { .name = new_name() };
	struct child *owner, *holder;
	struct raw raw;

	steps_only();
	owner = spawn(sleep_in_acquire, &waiter);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	waiter.publisher = hear(owner);
	holder = spawn(die_owing_a_wake, &waiter);
	hear(holder);
	tell(owner, 1);
	hear(owner);
	hear(holder);
	tell(owner, 1);
	until_asleep(slots_word(&raw, waiter.publisher));
	tell(holder, 1);
	died_of_kill(holder);
	SAME(hear(owner), 2);
	raw_close(&raw);
}

/* A publisher that is killed after its tail moved and before it wakes its subscribers. */
static void die_owing_receivers_a_wake(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_writer(waiter->name, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	at_step(XM_STEP_PUBLISH_TAIL, 0, STEP_KILL, NULL);
	publish_stamp(pool, 3);
}

TEST(P9_a_wake_owed_by_a_dead_publisher_is_given)
{
	struct waiter waiter = { .name = new_name(), .timeout_ns = XMEM_FOREVER };
	struct child *owner, *child;
	struct raw raw;

	steps_only();
	owner = spawn(die_owing_receivers_a_wake, &waiter);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	waiter.publisher = hear(owner);
	child = spawn(sleep_in_receive, &waiter);
	hear(child);
	until_asleep(ring_word(&raw, waiter.publisher));
	tell(owner, 1);
	died_of_kill(owner);
	SAME(hear(child), 2);
	raw_close(&raw);
}

/* ---- waiting for clients ---- */

static void sleep_in_subscribe(void *argument)
{
	struct waiter *waiter = argument;
	struct xmem_pool *pool = open_reader(waiter->name);
	struct xmem_subscription *s;

	tell_parent(1);
	s = xmem_subscribe(pool, NULL);
	CHECK(s);
	tell_parent(2);
	xmem_release(receive_one(s));
	tell_parent(3);
}

TEST(P9_a_sleeping_subscriber_wakes_when_a_publisher_comes)
{
	struct waiter waiter = { .name = new_name() };
	struct child *child = spawn(sleep_in_subscribe, &waiter);
	struct xmem_pool *writer;
	struct raw raw;

	hear(child);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	until_asleep(&raw.map.pool->clients_waiters);
	writer = open_writer(waiter.name, 2, BYTES);
	SAME(hear(child), 2);
	publish_stamp(writer, 3);
	SAME(hear(child), 3);
	finish_child(child);
	raw_close(&raw);
	xmem_pool_close(writer);
}

/* ---- a killed process does not block on others ---- */

TEST(P9_a_waiter_can_be_killed)
{
	struct waiter waiter = { .name = new_name(), .timeout_ns = XMEM_FOREVER };
	struct xmem_pool *writer = open_writer(waiter.name, 1, BYTES);
	struct child *child[3];
	struct raw raw;
	struct waiter other = { .name = new_name() };
	struct raw there;

	waiter.publisher = xmem_pool_client(writer);
	raw_start(&raw, waiter.name, XMEM_ROLE_READER);
	raw_start(&there, other.name, XMEM_ROLE_READER);
	child[0] = spawn(sleep_in_receive, &waiter);
	hear(child[0]);
	until_asleep(ring_word(&raw, waiter.publisher));
	child[1] = spawn(interrupted_in_acquire, &waiter);
	until_asleep(slots_word(&raw, (int)hear(child[1])));
	child[2] = spawn(sleep_in_subscribe, &other);
	hear(child[2]);
	until_asleep(&there.map.pool->clients_waiters);
	kill_child(child[0]);
	kill_child(child[1]);
	kill_child(child[2]);
	raw_close(&raw);
	raw_close(&there);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}
