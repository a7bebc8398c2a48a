// SPDX-License-Identifier: MIT
/* Subscriptions that last: they need no publisher, and go on with the next one. */
#include <pthread.h>

#include "harness.h"
#include "polling.h"

#define BYTES	4096
#define KEPT	3		/* publications that a writer keeps */

static struct xmem_subscription *follow_for_ever(struct xmem_pool *pool, uint32_t history)
{
	struct xmem_subscription *s = xmem_subscribe(pool, &(struct xmem_subscribe_options){
		.size = sizeof(struct xmem_subscribe_options), .flags = XMEM_SUBSCRIBE_LASTS,
		.history = history,
	});

	CHECK(s);
	return s;
}

static void receives(struct xmem_subscription *s, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_receive(s, patience_ns());

	CHECK(b);
	SAME(stamp_of(b), stamp);
	xmem_release(b);
}

/* ---- publishers come and go ---- */

TEST(API_a_subscription_that_lasts_needs_no_publisher)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name), *writer;
	struct xmem_subscription *s = follow_for_ever(reader, 0);
	int i;

	SAME(sub_info(s).publisher, XMEM_NOBODY);
	for (i = 0; i < 20; i++) {
		REFUSED(xmem_receive(s, 0), EAGAIN);
		REFUSED(xmem_receive(s, MS), ETIMEDOUT);
		REFUSED(xmem_receive_any(reader, 0, NULL), EAGAIN);
		writer = open_writer(name, 2, BYTES);
		REFUSED(xmem_receive(s, 0), EAGAIN);	/* from here on the writer is followed */
		SAME(xmem_wait_subscribers(writer, 1, 0), 1);
		publish_stamp(writer, 2 * i);
		receives(s, 2 * i);
		SAME(sub_info(s).publisher, xmem_pool_client(writer));
		publish_stamp(writer, 2 * i + 1);
		xmem_pool_close(writer);
		receives(s, 2 * i + 1);		/* left by the ended writer */
	}
	SAME(sub_info(s).lost, 0);
	xmem_unsubscribe(s);
	check_quiet(reader, 1);
	xmem_pool_close(reader);
}

/* Later publishers wait for a lasting subscriber that is waited for. */
TEST(P3_a_writer_that_comes_later_waits_for_what_lasts)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name), *writer;
	struct xmem_subscription *s = xmem_subscribe(reader, &(struct xmem_subscribe_options){
		.size = sizeof(struct xmem_subscribe_options),
		.flags = XMEM_SUBSCRIBE_LASTS | XMEM_SUBSCRIBE_WAITS,
	});

	CHECK(s);
	writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(writer, BYTES, 1, NULL));
	REFUSED(xmem_receive(s, 0), EAGAIN);
	publish_stamp(writer, 1);
	REFUSED(xmem_acquire(writer, 0, 0), EAGAIN);
	receives(s, 1);
	xmem_release(xmem_acquire(writer, 0, 0));
	SAME(sub_info(s).lost, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(writer);
	xmem_pool_close(reader);
}

/*
 * A publisher that joins later may publish before it is followed. Those publications are history.
 */
TEST(P3_history_of_publishers_that_come_later_is_received)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow_for_ever(reader, 8);
	struct xmem_pool *writer = open_writer(name, 4, BYTES);

	publish_stamp(writer, 1);
	publish_stamp(writer, 2);
	receives(s, 1);
	receives(s, 2);
	xmem_unsubscribe(s);
	xmem_pool_close(writer);
	xmem_pool_close(reader);
}

/* ---- first all subscribe, and then they publish ---- */

struct peer {
	const char *name;
	uint64_t first, others;		/* first stamps: its own, and those that it receives */
	unsigned int keep;		/* 0: it publishes once, and that stays anyway */
	struct child *child;
};

static void peer_run(void *argument)
{
	const struct peer *peer = argument;
	struct xmem_pool *pool = xmem_pool_open(peer->name, &(struct xmem_pool_options){
		.size = sizeof(struct xmem_pool_options), .keep = peer->keep,
	});
	struct xmem_subscription *s = follow_for_ever(pool, 0);
	unsigned int each = peer->keep ? peer->keep : 1, i;
	struct xmem_buffer *b;

	tell_parent(1);
	hear_parent();
	WORKED(xmem_preallocate(pool, BYTES, each, NULL));
	for (i = 0; i < each; i++)
		publish_stamp(pool, peer->first + i);
	tell_parent(2);
	hear_parent();
	for (i = 0; i < each; i++) {
		b = xmem_receive(s, patience_ns());
		CHECK(b);
		SAME(stamp_of(b), peer->others + i);
		xmem_release(b);
	}
	SAME(sub_info(s).lost, 0);
	tell_parent(3);
	hear_parent();			/* the other one has received, too */
	xmem_unsubscribe(s);
	xmem_pool_close(pool);
}

/*
 * Bits of @order: the second one is first; the first one has published, and receives, before the
 * other.
 */
static void meet(unsigned int order, unsigned int keep)
{
	const char *name = new_name();
	struct peer peer[] = { { name, 10, 20, keep, NULL }, { name, 20, 10, keep, NULL } };
	struct peer *one = &peer[order & 1], *other = &peer[!(order & 1)];
	struct xmem_pool *looker = open_reader(name);

	one->child = spawn(peer_run, one);
	other->child = spawn(peer_run, other);
	SAME(hear(one->child), 1);
	SAME(hear(other->child), 1);
	tell(one->child, 0);
	if (order & 2)
		SAME(hear(one->child), 2);
	if (order & 4)
		tell(one->child, 0);
	tell(other->child, 0);
	SAME(hear(other->child), 2);
	if (!(order & 2))
		SAME(hear(one->child), 2);
	if (!(order & 4))
		tell(one->child, 0);
	tell(other->child, 0);
	SAME(hear(one->child), 3);
	SAME(hear(other->child), 3);
	tell(one->child, 0);
	tell(other->child, 0);
	finish_child(one->child);
	finish_child(other->child);
	check_quiet(looker, 1);
	xmem_pool_close(looker);
}

TEST(P3_processes_that_subscribe_first_and_publish_then_lose_nothing)
{
	unsigned int order;

	for (order = 0; order < 8; order++) {
		meet(order, 0);
		meet(order, KEPT);
	}
}

/* ---- sleeping without a publisher ---- */

struct sleeper {
	struct xmem_pool *pool;
	struct xmem_subscription *s;
	bool any;
	pthread_t thread;
	struct raw raw;
};

static void *sleep_run(void *argument)
{
	struct sleeper *sleeper = argument;
	struct xmem_buffer *b = sleeper->any ?
		xmem_receive_any(sleeper->pool, patience_ns(), NULL) :
		xmem_receive(sleeper->s, patience_ns());

	return b ? b : (void *)(intptr_t)xmem_peek_last_error(NULL);
}

static void begin_to_sleep(struct sleeper *sleeper, const char *name, bool any)
{
	*sleeper = (struct sleeper){ .pool = open_reader(name), .any = any };
	sleeper->s = follow_for_ever(sleeper->pool, 8);
	raw_start(&sleeper->raw, name, XMEM_ROLE_READER);
	CHECK(!pthread_create(&sleeper->thread, NULL, sleep_run, sleeper));
	until_asleep(&sleeper->raw.map.pool->clients_waiters);
}

static void *end_of_sleep(struct sleeper *sleeper)
{
	void *got;

	CHECK(!pthread_join(sleeper->thread, &got));
	raw_close(&sleeper->raw);
	return got;
}

static void wakes_for_a_writer(bool any)
{
	const char *name = new_name();
	struct sleeper sleeper;
	struct xmem_pool *writer;
	struct xmem_buffer *b;

	begin_to_sleep(&sleeper, name, any);
	writer = open_writer(name, 1, BYTES);
	publish_stamp(writer, 5);
	b = end_of_sleep(&sleeper);
	SAME(stamp_of(b), 5);
	xmem_release(b);
	xmem_unsubscribe(sleeper.s);
	xmem_pool_close(writer);
	xmem_pool_close(sleeper.pool);
}

TEST(P9_a_subscription_that_lasts_is_woken_by_the_first_writer)
{
	wakes_for_a_writer(false);
}

TEST(P9_receive_any_is_woken_by_the_first_writer_of_what_lasts)
{
	wakes_for_a_writer(true);
}

/* Another subscription of the handle follows a writer, and the thread sleeps on that ring. */
TEST(P9_receive_any_hears_of_a_writer_beside_a_ring_that_another_follows)
{
	const char *name = new_name();
	struct xmem_pool *first = open_writer(name, 1, BYTES), *writer;
	struct sleeper sleeper = { .pool = open_reader(name), .any = true };
	struct xmem_subscription *one = follow(sleeper.pool, xmem_pool_client(first), 0);
	struct xmem_buffer *b;

	sleeper.s = follow_for_ever(sleeper.pool, 8);
	raw_start(&sleeper.raw, name, XMEM_ROLE_READER);
	CHECK(!pthread_create(&sleeper.thread, NULL, sleep_run, &sleeper));
	until_asleep(&xm_client_row(&sleeper.raw.map, xmem_pool_client(first))->ring_waiters);
	writer = open_writer(name, 1, BYTES);
	publish_stamp(writer, 6);
	b = end_of_sleep(&sleeper);
	SAME(stamp_of(b), 6);
	xmem_release(b);
	xmem_unsubscribe(one);
	xmem_unsubscribe(sleeper.s);
	xmem_pool_close(writer);
	xmem_pool_close(first);
	xmem_pool_close(sleeper.pool);
}

TEST(P9_a_sleep_without_a_publisher_can_be_ended)
{
	struct sleeper sleeper;
	void *got;

	begin_to_sleep(&sleeper, new_name(), false);
	xmem_unsubscribe(sleeper.s);
	got = end_of_sleep(&sleeper);
	SAME((intptr_t)got, -ECANCELED);
	xmem_pool_close(sleeper.pool);

	begin_to_sleep(&sleeper, new_name(), true);
	WORKED(xmem_cancel(sleeper.pool));
	got = end_of_sleep(&sleeper);
	SAME((intptr_t)got, -ECANCELED);
	xmem_unsubscribe(sleeper.s);
	xmem_pool_close(sleeper.pool);
}

/* ---- descriptors ---- */

TEST(API_descriptors_say_that_a_writer_is_there_for_what_lasts)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name), *writer;
	struct xmem_subscription *s = follow_for_ever(reader, 0);
	int of_pool = fd_of(reader), of_s = xmem_subscription_poll_fd(s), i;

	WORKED(of_s);
	for (i = 0; i < 3; i++) {
		REFUSED(xmem_receive(s, 0), EAGAIN);
		SAME(by_poll(of_pool, POLLIN, 0), 0);
		SAME(by_poll(of_s, POLLIN, 0), 0);
		writer = open_writer(name, 1, BYTES);
		SAME(by_poll(of_pool, POLLIN, WAIT_MS), POLLIN);
		SAME(by_poll(of_s, POLLIN, WAIT_MS), POLLIN);
		REFUSED(xmem_receive(s, 0), EAGAIN);
		SAME(by_poll(of_s, POLLIN, 0), 0);
		publish_stamp(writer, i);
		SAME(by_poll(of_pool, POLLIN, WAIT_MS), POLLIN);
		receives(s, i);
		xmem_pool_close(writer);
		EVENTUALLY(!xmem_receive(s, 0) && !by_poll(of_pool, POLLIN, 0));
	}
	xmem_unsubscribe(s);
	writer = open_writer(name, 1, BYTES);
	SAME(by_poll(of_pool, POLLIN, 0), 0);
	xmem_pool_close(writer);
	xmem_pool_close(reader);
}

/* ---- refusals ---- */

TEST(API_options_of_a_subscription_that_lasts_are_checked)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscribe_options o = {
		.size = sizeof(o), .flags = XMEM_SUBSCRIBE_LASTS, .timeout_ns = 1,
	};
	struct xmem_subscription *s;

	REFUSED(xmem_subscribe(reader, &o), EINVAL);
	error_says("timeout_ns");
	o.timeout_ns = 0;
	o.flags |= XMEM_SUBSCRIBE_PUBLISHER;
	REFUSED(xmem_subscribe(reader, &o), EINVAL);
	error_says("XMEM_SUBSCRIBE_PUBLISHER");
	s = follow_for_ever(reader, 0);
	o.flags = XMEM_SUBSCRIBE_LASTS;
	REFUSED(xmem_subscribe(reader, &o), EEXIST);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

TEST(P4_a_client_cannot_drop_what_does_not_last)
{
	struct xmem_unsubscribe_request request = { .size = sizeof(request) };
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_READER);
	request.flags = XMEM_UNSUBSCRIBE_LASTS | XMEM_UNSUBSCRIBE_DROPPED;
	SAME(raw_request(&raw, XMEM_IOC_UNSUBSCRIBE, &request), -ENOENT);
	request.flags = XMEM_UNSUBSCRIBE_LASTS | XMEM_UNSUBSCRIBE_ENDED;
	SAME(raw_request(&raw, XMEM_IOC_UNSUBSCRIBE, &request), -EINVAL);
	request.flags = XMEM_UNSUBSCRIBE_LASTS;
	SAME(raw_request(&raw, XMEM_IOC_UNSUBSCRIBE, &request), 0);
	request.flags = XMEM_UNSUBSCRIBE_LASTS | XMEM_UNSUBSCRIBE_DROPPED;
	SAME(raw_request(&raw, XMEM_IOC_UNSUBSCRIBE, &request), 0);
	SAME(raw_request(&raw, XMEM_IOC_UNSUBSCRIBE, &request), -ENOENT);
	raw_close(&raw);
	xmem_pool_close(reader);
}
