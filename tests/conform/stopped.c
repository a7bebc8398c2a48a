// SPDX-License-Identifier: MIT
/*
 * P9: xmemd is stopped. Timeouts and signals end the waits for its answers, and what it serves
 * later is undone. A call that only sends it a message does not wait at all.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096

TEST(P9_a_subscription_given_up_in_time_is_undone)
{
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
	const char *name;
	struct raw raw;
	pid_t daemon;
	int me, publisher;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	publisher = xmem_pool_client(writer);
	reader = open_reader(name);
	me = xmem_pool_client(reader);
	raw_start(&raw, name, XMEM_ROLE_READER);
	daemon = stop_daemon();
	REFUSED(subscribe_for(reader, publisher, XMEM_SUBSCRIBE_WAITS, 100 * MS), ETIMEDOUT);
	REFUSED(subscribe_for(reader, publisher, XMEM_SUBSCRIBE_WAITS, 100 * MS), ETIMEDOUT);
	continue_daemon(daemon);
	host_has_served(reader);
	CHECK(!raw_follows(&raw, me, publisher));	/* so the publisher does not wait for it */
	CHECK((s = subscribe_for(reader, publisher, XMEM_SUBSCRIBE_WAITS, 0)));
	publish_stamp(writer, 1);
	xmem_release(receive_one(s));

	/* A subscribe that would be refused does not end the existing subscription. */
	daemon = stop_daemon();
	REFUSED(subscribe_for(reader, publisher, 0, 100 * MS), EEXIST);
	continue_daemon(daemon);
	host_has_served(reader);
	CHECK(raw_follows(&raw, me, publisher));
	publish_stamp(writer, 2);
	xmem_release(receive_one(s));
	xmem_unsubscribe(s);
	raw_close(&raw);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- signals ---- */

struct asker {
	const char *name;
	void (*ask)(struct asker *asker, struct xmem_pool *pool);
	uint64_t token;
	int publisher;
};

static void ask_for_a_subscription(struct asker *asker, struct xmem_pool *pool)
{
	tell_parent(1);
	SAME(hear_parent(), 1);
	REFUSED(subscribe_for(pool, asker->publisher, 0, 0), EINTR);
	tell_parent(2);
	SAME(hear_parent(), 2);
	CHECK(subscribe_for(pool, asker->publisher, 0, 0));
}

static void ask_for_buffers(struct asker *asker, struct xmem_pool *pool)
{
	unsigned int attached = stat_of(pool).attached;

	tell_parent(1);
	SAME(hear_parent(), 1);
	SAME(xmem_preallocate(pool, BYTES, 3, NULL), -EINTR);
	tell_parent(2);
	SAME(hear_parent(), 2);
	WORKED(xmem_preallocate(pool, BYTES, 2, NULL));
	EVENTUALLY(stat_of(pool).attached == attached + 2);
}

static void ask_for_data(struct asker *asker, struct xmem_pool *pool)
{
	struct xmem_buffer *b = xmem_get(pool, asker->token);

	CHECK(b);
	tell_parent(1);
	SAME(hear_parent(), 1);
	CHECK(!xmem_data(b));
	SAME(xmem_peek_last_error(NULL), -EINTR);
	tell_parent(2);
	SAME(hear_parent(), 2);
	SAME(stamp_of(b), 7);
}

static void ask_for_a_pool(struct asker *asker, struct xmem_pool *pool)
{
	struct xmem_pool *other;

	tell_parent(1);
	SAME(hear_parent(), 1);
	REFUSED(xmem_pool_open(NULL, NULL), EINTR);
	tell_parent(2);
	SAME(hear_parent(), 2);
	CHECK((other = xmem_pool_open(NULL, NULL)));
	xmem_pool_close(other);
}

static void ring(int signal)
{
}

static void asker_body(void *argument)
{
	struct sigaction action = { .sa_handler = ring };
	struct asker *asker = argument;
	struct xmem_pool *pool = OPEN(asker->name, .flags = XMEM_OPEN_WRITER);

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	asker->ask(asker, pool);
	xmem_pool_close(pool);
}

TEST(P9_signals_end_what_waits_for_a_stopped_daemon)
{
	void (*const asks[4])(struct asker *asker, struct xmem_pool *pool) = {
		ask_for_a_subscription, ask_for_buffers, ask_for_data, ask_for_a_pool,
	};
	struct asker asker[4];
	struct child *child[4];
	struct xmem_buffer *kept;
	struct xmem_pool *writer;
	const char *name;
	unsigned int i;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	writer = open_writer(name, 2, BYTES);
	for (i = 0; i < 4; i++) {
		asker[i] = (struct asker){ .name = name, .ask = asks[i] };
		asker[i].publisher = xmem_pool_client(writer);
		asker[i].token = i ? asker[0].token : publish_kept(writer, 7, &kept);
		child[i] = spawn(asker_body, &asker[i]);
		SAME(hear(child[i]), 1);
	}
	daemon = stop_daemon();
	for (i = 0; i < 4; i++) {
		struct pollfd heard = { .fd = child[i]->link, .events = POLLIN };

		tell(child[i], 1);
		do	/* a signal may come before it waits: repeat until one has an effect */
			CHECK(!kill(child[i]->pid, SIGUSR1));
		while (!poll(&heard, 1, 20));
		SAME(hear(child[i]), 2);
	}
	continue_daemon(daemon);
	for (i = 0; i < 4; i++) {
		tell(child[i], 2);
		finish_child(child[i]);
	}
	xmem_release(kept);
	xmem_pool_close(writer);
}

/* ---- messages without an answer ---- */

#define MANY	1000

static void publish_many(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, MANY, 64);
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < MANY; i++)
		tell_parent(publish_kept(pool, i, &kept));
	hear_parent();
}

/* A reader that has released more while the daemon is stopped than the socket has room for. */
static struct xmem_pool *release_many(struct xmem_pool **ret_looker)
{
	struct xmem_buffer *held[MANY];
	struct xmem_pool *reader;
	const char *name = new_name();
	struct child *child;
	unsigned int i;
	pid_t daemon;

	reader = OPEN(name, .slots = 1024);
	*ret_looker = open_reader(name);
	child = spawn(publish_many, (void *)name);
	for (i = 0; i < MANY; i++)
		CHECK((held[i] = xmem_get(reader, hear(child))));
	kill_child(child);
	EVENTUALLY(stat_of(reader).clients == 2);
	daemon = stop_daemon();
	for (i = 0; i < MANY; i++)
		xmem_release(held[i]);
	SAME(stat_of(*ret_looker).attached, MANY);
	continue_daemon(daemon);
	return reader;
}

/* No release is lost, and none waits. */
TEST(P9_a_release_does_not_wait_for_a_stopped_daemon)
{
	struct xmem_pool *reader, *looker;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	reader = release_many(&looker);
	host_has_served(reader);	/* the releases are served before this request */
	SAME(stat_of(reader).attached, 0);
	xmem_pool_close(looker);
	xmem_pool_close(reader);
}

/* No other request is needed: the reader itself makes no further call. */
TEST(P9_pending_releases_are_sent_without_a_call)
{
	struct xmem_pool *reader, *looker;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	reader = release_many(&looker);
	EVENTUALLY(stat_of(looker).attached == 0);
	xmem_pool_close(looker);
	xmem_pool_close(reader);
}

/*
 * A writer that has dropped more attached files while the daemon is stopped than the socket has
 * room for. One datagram detaches each of them.
 */
static struct xmem_pool *detach_many(void)
{
	static struct xmem_buffer *b[MANY];
	struct xmem_pool *writer = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 1024);
	int file = new_memfd(64, GOOD_SEALS);
	unsigned int i;
	pid_t daemon;

	for (i = 0; i < MANY; i++)
		CHECK((b[i] = xmem_attach_fd(writer, file, 0, 0, 0)));
	close(file);
	daemon = stop_daemon();
	for (i = 0; i < MANY; i++)
		xmem_release(b[i]);
	continue_daemon(daemon);
	return writer;
}

TEST(P9_detaching_does_not_wait_for_a_stopped_daemon)
{
	struct xmem_pool *writer;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	writer = detach_many();
	host_has_served(writer);	/* the datagrams that had no room are sent first */
	SAME(stat_of(writer).attached, 0);
	xmem_pool_close(writer);
}

/* No other request is needed: a call that counts what there is sends them. */
TEST(P9_pending_detaches_are_sent_by_the_next_stat)
{
	struct xmem_pool *writer;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	writer = detach_many();
	EVENTUALLY(stat_of(writer).attached == 0);
	xmem_pool_close(writer);
}

static void publish_one(void *argument)
{
	struct xmem_pool *pool = open_writer(argument, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	SAME(hear_parent(), 1);
	publish_stamp(pool, 5);
	tell_parent(2);
	hear_parent();
}

TEST(P9_the_end_of_a_ring_does_not_wait_for_a_stopped_daemon)
{
	struct xmem_subscription *s;
	struct xmem_pool *reader;
	struct xmem_buffer *b;
	struct child *child;
	const char *name;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	reader = open_reader(name);
	child = spawn(publish_one, (void *)name);
	s = follow(reader, hear(child), 0);
	tell(child, 1);
	SAME(hear(child), 2);
	kill_child(child);
	EVENTUALLY(stat_of(reader).clients == 1);
	daemon = stop_daemon();
	CHECK((b = xmem_receive(s, 0)));	/* mapping its data would need a request */
	xmem_release(b);
	REFUSED(xmem_receive(s, XMEM_FOREVER), EPIPE);
	xmem_unsubscribe(s);
	continue_daemon(daemon);
	host_has_served(reader);
	EVENTUALLY(!stat_of(reader).attached);
	xmem_pool_close(reader);
}

/*
 * Closing waits for a moment, so that a program that opens the pool again does not meet its old
 * client.
 */
TEST(P9_closing_does_not_wait_long_for_a_stopped_daemon)
{
	struct xmem_pool *pool[2];
	struct xmem_subscription *s;
	const char *name;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	name = new_name();
	pool[0] = open_writer(name, 1, BYTES);
	pool[1] = open_reader(name);
	s = follow(pool[1], xmem_pool_client(pool[0]), 0);
	daemon = stop_daemon();
	xmem_unsubscribe(s);
	xmem_pool_close(pool[1]);
	xmem_pool_close(pool[0]);
	continue_daemon(daemon);
}

/* A late host has refused nothing, so the next acquire asks it again. */
TEST(P9_an_acquire_that_met_a_stopped_daemon_is_no_refusal)
{
	struct xmem_buffer *held, *b;
	struct xmem_pool *pool;
	pid_t daemon;

	daemon_only("the kernel does not stop");
	use_own_daemon();
	pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER);
	CHECK((held = xmem_acquire(pool, 16 * BYTES, XMEM_FOREVER)));
	daemon = stop_daemon();
	REFUSED(xmem_acquire(pool, 16 * BYTES, 100 * MS), ETIMEDOUT);
	REFUSED(xmem_acquire(pool, 16 * BYTES, 0), EAGAIN);
	continue_daemon(daemon);
	CHECK((b = xmem_acquire(pool, 16 * BYTES, patience_ns())));
	xmem_release(b);
	xmem_release(held);
	xmem_pool_close(pool);
}
