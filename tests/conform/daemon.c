// SPDX-License-Identifier: MIT
/*
 * The daemon as its clients see it: how xmemd behaves when they release contents of dead clients,
 * and what they notice when xmemd is killed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "harness.h"
#include "lib/host/futex.h"

#define BYTES	4096

/* ---- contents of dead clients ---- */

struct left {
	const char *name;
	unsigned int count;
};

static void publish_and_wait(void *argument)
{
	struct left *left = argument;
	struct xmem_pool *pool = open_writer(left->name, left->count, BYTES);
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < left->count; i++)
		tell_parent(publish_kept(pool, i, &kept));
	hear_parent();
}

/* Drop the raw client's hold of a slot without telling the host. */
static void drop_silently(struct raw *raw, uint64_t token)
{
	xm_put(&raw->map, raw->link.join.client, xm_token_slot(token));
}

static int collect(struct raw *raw, uint64_t token)
{
	return raw_slot(raw, XMEM_OP_COLLECT, xm_token_slot(token));
}

static uint32_t owner_of(struct raw *raw, uint64_t token)
{
	return xm_load(&xm_slot_row(&raw->map, xm_token_slot(token))->owner);
}

/* So the cost of a release does not depend on how many slots of dead clients there are. */
TEST(P8_the_host_looks_at_the_slot_that_was_released_and_at_no_other)
{
	struct left left = { .name = new_name(), .count = 3 };
	struct child *child;
	uint64_t token[3];
	struct raw raw;
	unsigned int i;

	daemon_only("the kernel reaps in batches");
	raw_start(&raw, left.name, XMEM_ROLE_READER);
	child = spawn(publish_and_wait, &left);
	for (i = 0; i < 3; i++) {
		token[i] = hear(child);
		raw_hold(&raw, token[i]);
	}
	kill_child(child);
	EVENTUALLY(owner_of(&raw, token[0]) == XMEM_OWNER_HOST);
	/* It is still held. When the answer arrives, the host has finished handling the end. */
	SAME(collect(&raw, token[0]), 0);
	SAME(owner_of(&raw, token[0]), XMEM_OWNER_HOST);
	drop_silently(&raw, token[1]);
	drop_silently(&raw, token[2]);
	SAME(collect(&raw, token[0]), 0);
	SAME(owner_of(&raw, token[1]), XMEM_OWNER_HOST);
	SAME(collect(&raw, token[1]), 0);
	SAME(owner_of(&raw, token[1]), XMEM_OWNER_NONE);
	SAME(owner_of(&raw, token[2]), XMEM_OWNER_HOST);
	drop_silently(&raw, token[0]);
	SAME(collect(&raw, token[0]), 0);
	SAME(collect(&raw, token[2]), 0);
	for (i = 0; i < 3; i++)
		SAME(owner_of(&raw, token[i]), XMEM_OWNER_NONE);
	raw_close(&raw);
}

/* ---- the death of xmemd ---- */

/* The process at the other end of a connection to the host. */
static pid_t daemon_pid(void)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct raw raw;

	raw_open(&raw);
	CHECK(!getsockopt(raw.link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	raw_close(&raw);
	CHECK(peer.pid > 1);
	return peer.pid;
}

struct sleeper {
	const char *name;
	int publisher;
	void (*sleep)(struct xmem_pool *pool, int publisher);
};

static void sleep_for_a_buffer(struct xmem_pool *pool, int publisher)
{
	struct xmem_subscription *s = follow(pool, publisher, 0);

	tell_parent(1);
	REFUSED(xmem_receive(s, XMEM_FOREVER), ENOTCONN);
}

static void sleep_for_space(struct xmem_pool *pool, int publisher)
{
	struct xmem_buffer *kept;

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	publish_kept(pool, 1, &kept);
	tell_parent(1);
	REFUSED(xmem_acquire(pool, BYTES, XMEM_FOREVER), ENOTCONN);
}

static void sleep_for_a_writer(struct xmem_pool *pool, int publisher)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_PUBLISHER,
		.publisher = publisher + 40,
	};

	tell_parent(1);
	REFUSED(xmem_subscribe(pool, &options), ENOTCONN);
}

static void sleeper_body(void *argument)
{
	struct sleeper *sleeper = argument;
	struct xmem_pool *pool = OPEN(sleeper->name, .flags = XMEM_OPEN_WRITER);

	sleeper->sleep(pool, sleeper->publisher);
	tell_parent(2);
	hear_parent();
}

static bool asleep(const struct raw *raw)
{
	const struct xm_map *map = &raw->map;
	unsigned int c, words = 0;

	words += xm_load(&map->pool->clients_waiters) & XMEM_WAITERS_ARMED;
	for (c = 0; c < map->clients; c++)
		words += (xm_load(&xm_client_row(map, c)->ring_waiters) & XMEM_WAITERS_ARMED) +
			 (xm_load(&xm_client_row(map, c)->slots_waiters) & XMEM_WAITERS_ARMED);
	return words == 3;
}

/* No client makes a call after the kill: the kernel wakes one sleeper, and that one the others. */
TEST(P9_who_sleeps_when_the_daemon_is_killed_is_woken)
{
	struct sleeper sleeper[5] = {
		{ .sleep = sleep_for_a_buffer }, { .sleep = sleep_for_space },
		{ .sleep = sleep_for_a_writer }, { .sleep = sleep_for_a_buffer },
		{ .sleep = sleep_for_a_buffer },
	};
	struct xmem_pool *writer;
	struct child *child[5];
	const char *name;
	struct raw raw;
	unsigned int i;

	daemon_only("the kernel does not end");
	use_own_daemon();
	name = new_name();
	writer = open_writer(name, 2, BYTES);
	for (i = 0; i < 5; i++) {
		sleeper[i].name = name;
		sleeper[i].publisher = xmem_pool_client(writer);
		child[i] = spawn(sleeper_body, &sleeper[i]);
		SAME(hear(child[i]), 1);
	}
	raw_start(&raw, name, XMEM_ROLE_READER);
	EVENTUALLY(asleep(&raw) && others_sleep());
	CHECK(!kill(daemon_pid(), SIGKILL));
	for (i = 0; i < 5; i++) {
		SAME(hear(child[i]), 2);
		kill_child(child[i]);
	}
	raw_close(&raw);
	xmem_pool_close(writer);
}

TEST(P9_the_next_call_after_the_daemon_was_killed_says_so)
{
	struct xmem_subscription *s;
	struct xmem_pool *writer, *reader;
	struct xmem_buffer *kept, *b, *c, *unsent;
	const char *name;
	uint64_t token;
	pid_t pid;

	daemon_only("the kernel does not end");
	use_own_daemon();
	name = new_name();
	writer = open_writer(name, 4, BYTES);
	reader = open_reader(name);
	s = follow(reader, xmem_pool_client(writer), 0);
	token = publish_kept(writer, 1, &kept);
	CHECK((b = xmem_get(reader, token)));
	CHECK((unsent = xmem_acquire(writer, BYTES, 0)));
	publish_stamp(writer, 2);
	pid = daemon_pid();
	CHECK(!kill(pid, SIGKILL));
	EVENTUALLY(!(c = xmem_get(reader, token)) || (xmem_release(c), false));
	SAME(xmem_peek_last_error(NULL), -ENOTCONN);
	REFUSED(xmem_acquire(writer, BYTES, 0), ENOTCONN);
	SAME(xmem_publish(unsent, NULL, NULL), -ENOTCONN);
	REFUSED(xmem_clone(b), ENOTCONN);
	REFUSED(xmem_receive(s, 0), ENOTCONN);
	REFUSED(xmem_receive(s, patience_ns()), ENOTCONN);
	REFUSED(xmem_subscribe(reader, NULL), ENOTCONN);
	SAME(xmem_preallocate(writer, BYTES, 1, NULL), -ENOTCONN);
	SAME(stamp_of(kept), 1);	/* held contents stay readable */
	xmem_release(unsent);
	xmem_release(kept);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
	writer = open_writer(name, 1, BYTES);	/* of another daemon */
	publish_stamp(writer, 1);
	xmem_pool_close(writer);
}

static void ring(int signal)
{
}

/* In a pool of its own, because the end of another client would wake it at that moment. */
static void receive_until_alarm(void *argument)
{
	struct sigaction action = { .sa_handler = ring };
	struct xmem_pool *writer = open_writer(argument, 2, BYTES);
	struct xmem_pool *pool = open_reader(argument);
	struct xmem_subscription *s = follow(pool, xmem_pool_client(writer), 0);

	CHECK(!sigaction(SIGALRM, &action, NULL));
	tell_parent(now_ns());
	REFUSED(xmem_receive(s, XMEM_FOREVER), EINTR);
	xmem_unsubscribe(s);
	xmem_pool_close(pool);
	xmem_pool_close(writer);
}

/* The signal comes when a check once a second would be under way. */
TEST(P9_a_signal_after_a_whole_second_is_not_missed)
{
	struct child *child[10];
	int64_t begin[10], late;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		child[i] = spawn(receive_until_alarm, (void *)new_name());
		begin[i] = hear(child[i]);
	}
	EVENTUALLY(others_sleep());
	for (i = 0; i < 10; i++) {
		late = (now_ns() - begin[i]) % 1000000000;
		usleep((1000000000 - late) / 1000);
		CHECK(!kill(child[i]->pid, SIGALRM));
	}
	for (i = 0; i < 10; i++)
		finish_child(child[i]);
}
