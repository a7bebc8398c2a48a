// SPDX-License-Identifier: MIT
/*
 * The end of waits: xmem_cancel, and a subscription or a pool that is dropped while threads wait
 * for it. Built with ASan and TSan, these tests also check the memory in which they wait.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	1024
#define MOST	8

static struct {
	struct xmem_pool *writer, *second, *reader;
	struct xmem_subscription *s;
	unsigned int entered, cancelled, refused;	/* atomic */
	struct raw raw;
} scene;

static const char *scene_start(void)
{
	const char *name = new_name();

	memset(&scene, 0, sizeof(scene));
	scene.writer = open_writer(name, 1, BYTES);
	scene.reader = open_reader(name);
	raw_start(&scene.raw, name, XMEM_ROLE_READER);
	return name;
}

static void scene_end(void)
{
	raw_close(&scene.raw);
	xmem_pool_close(scene.writer);
}

static uint32_t *ring_word(struct xmem_pool *pool)
{
	return &xm_client_row(&scene.raw.map, xmem_pool_client(pool))->ring_waiters;
}

static void enter(void)
{
	__atomic_add_fetch(&scene.entered, 1, __ATOMIC_SEQ_CST);
}

/* A call that waited, or that came too late, has failed as it should. */
static void *ended(const void *handle)
{
	int err = xmem_peek_last_error(NULL);

	CHECK(!handle);
	if (err != -ECANCELED && err != -EBADF)
		FAIL("ended with %d", err);
	__atomic_add_fetch(err == -ECANCELED ? &scene.cancelled : &scene.refused, 1,
			   __ATOMIC_SEQ_CST);
	return NULL;
}

static void *wait_in_receive(void *argument)
{
	enter();
	return ended(xmem_receive(scene.s, XMEM_FOREVER));
}

static void *wait_in_any(void *argument)
{
	enter();
	return ended(xmem_receive_any(scene.reader, XMEM_FOREVER, NULL));
}

static void *wait_in_acquire(void *argument)
{
	struct xmem_buffer *only = xmem_acquire(argument, BYTES, 0);

	CHECK(only);
	enter();
	ended(xmem_acquire(argument, BYTES, XMEM_FOREVER));
	xmem_release(only);
	return NULL;
}

static void *wait_in_subscribe(void *argument)
{
	enter();
	return ended(xmem_subscribe(argument, NULL));
}

static pthread_t start(void *(*body)(void *argument), void *argument)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, body, argument));
	return thread;
}

static void join(pthread_t thread)
{
	CHECK(!pthread_join(thread, NULL));
}

static void start_receivers(pthread_t *thread, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		thread[i] = start(wait_in_receive, NULL);
	EVENTUALLY(__atomic_load_n(&scene.entered, __ATOMIC_SEQ_CST) == count);
	until_asleep(ring_word(scene.writer));
}

/* @writers: for how many rings the threads wait. */
static void unsubscribe_under(unsigned int writers)
{
	struct xmem_subscription_info told = XMEM_INIT(told);
	const char *name = scene_start();
	pthread_t thread[MOST];
	unsigned int i;

	if (writers > 1)
		scene.second = open_writer(name, 1, BYTES);
	scene.s = xmem_subscribe(scene.reader, NULL);
	CHECK(scene.s);
	start_receivers(thread, MOST);
	xmem_unsubscribe(scene.s);
	for (i = 0; i < MOST; i++)
		join(thread[i]);
	/*
	 * At least one thread waited, because the word was armed. The others may have come too
	 * late.
	 */
	CHECK(scene.cancelled >= 1);
	SAME(scene.cancelled + scene.refused, MOST);
	REFUSED(xmem_receive(scene.s, XMEM_FOREVER), EBADF);
	SAME(xmem_subscription_stat(scene.s, &told), -EBADF);
	xmem_unsubscribe(scene.s);	/* a second release, which the library detects */
	xmem_pool_close(scene.reader);
	xmem_pool_close(scene.second);
	check_quiet(scene.writer, 2);
	scene_end();
}

TEST(P9_unsubscribe_under_waiting_threads_is_ECANCELED)
{
	unsubscribe_under(1);
}

TEST(P9_unsubscribe_under_threads_that_wait_for_several_is_ECANCELED)
{
	unsubscribe_under(2);
}

/* The memory of a dropped subscription is used again, and the old handle is not valid for it. */
TEST(API_a_dropped_subscription_is_not_the_next_one)
{
	struct xmem_subscription_info told = XMEM_INIT(told);
	struct xmem_subscription *old, *new;
	unsigned int i;

	scene_start();
	old = follow(scene.reader, xmem_pool_client(scene.writer), 0);
	xmem_unsubscribe(old);
	for (i = 0; i < 3; i++) {
		new = follow(scene.reader, xmem_pool_client(scene.writer), 0);
		REFUSED(xmem_receive(old, 0), EBADF);
		SAME(xmem_subscription_stat(old, &told), -EBADF);
		xmem_unsubscribe(old);
		publish_stamp(scene.writer, i);
		xmem_release(receive_one(new));
		xmem_unsubscribe(new);
	}
	xmem_pool_close(scene.reader);
	scene_end();
}

/* Start one thread in each call that can wait. The armed words show that the threads are in it. */
static void start_one_of_each(pthread_t *thread, const char *name)
{
	scene.s = follow(scene.reader, xmem_pool_client(scene.writer), 0);
	thread[0] = start(wait_in_receive, NULL);
	until_asleep(ring_word(scene.writer));
	thread[1] = start(wait_in_acquire, scene.reader);
	until_asleep(&xm_client_row(&scene.raw.map, xmem_pool_client(scene.reader))->slots_waiters);
	/* All other writers are already followed. */
	thread[2] = start(wait_in_subscribe, scene.reader);
	until_asleep(&scene.raw.map.pool->clients_waiters);
}

static void both_reader_and_writer(const char *name)
{
	xmem_pool_close(scene.reader);
	scene.reader = open_writer(name, 1, BYTES);
}

TEST(P9_closing_a_pool_under_threads_that_wait_is_ECANCELED)
{
	const char *name = scene_start();
	struct xmem_pool *closed;
	pthread_t thread[3];
	unsigned int i;

	both_reader_and_writer(name);
	start_one_of_each(thread, name);
	closed = scene.reader;
	xmem_pool_close(closed);
	for (i = 0; i < 3; i++)
		join(thread[i]);
	SAME(scene.cancelled, 3);
	/* The subscription is a handle of its own, so it continues to work. */
	publish_stamp(scene.writer, 3);
	xmem_release(receive_one(scene.s));
	xmem_unsubscribe(scene.s);
	check_quiet(scene.writer, 2);
	scene_end();
}

TEST(P9_closing_a_pool_under_receive_any_is_ECANCELED)
{
	const char *name = scene_start();
	struct xmem_subscription *more;
	pthread_t thread;

	scene.second = open_writer(name, 1, BYTES);
	scene.s = follow(scene.reader, xmem_pool_client(scene.writer), 0);
	more = follow(scene.reader, xmem_pool_client(scene.second), 0);
	thread = start(wait_in_any, NULL);
	until_asleep(ring_word(scene.second));
	xmem_pool_close(scene.reader);
	join(thread);
	SAME(scene.cancelled, 1);
	xmem_unsubscribe(more);
	xmem_unsubscribe(scene.s);
	xmem_pool_close(scene.second);
	check_quiet(scene.writer, 2);
	scene_end();
}

TEST(P9_cancel_ends_all_waits_now_and_later)
{
	const char *name = scene_start();
	struct xmem_buffer *got;
	pthread_t thread[3];
	unsigned int i;

	both_reader_and_writer(name);
	start_one_of_each(thread, name);
	SAME(xmem_cancel(scene.reader), 0);
	for (i = 0; i < 3; i++)
		join(thread[i]);
	SAME(scene.cancelled, 3);
	/*
	 * Calls that never wait work; calls that may wait are refused, even if they need not wait.
	 */
	publish_stamp(scene.writer, 3);
	REFUSED(xmem_receive(scene.s, XMEM_FOREVER), ECANCELED);
	REFUSED(xmem_receive_any(scene.reader, 1, NULL), ECANCELED);
	REFUSED(xmem_acquire(scene.reader, BYTES, patience_ns()), ECANCELED);
	REFUSED(xmem_subscribe(scene.reader, NULL), ECANCELED);
	got = xmem_receive(scene.s, 0);
	CHECK(got);
	xmem_release(got);
	publish_stamp(scene.writer, 4);
	got = xmem_receive_any(scene.reader, 0, NULL);
	CHECK(got);
	xmem_release(got);
	REFUSED(xmem_receive(scene.s, 0), EAGAIN);
	got = xmem_acquire(scene.reader, BYTES, 0);
	CHECK(got);
	xmem_release(got);
	/* Another handle of the pool is not affected. */
	publish_stamp(scene.writer, 5);
	SAME(xmem_cancel(scene.reader), 0);
	SAME(xmem_cancel(NULL), -EINVAL);
	xmem_unsubscribe(scene.s);
	xmem_pool_close(scene.reader);
	check_quiet(scene.writer, 2);
	scene_end();
}

/* ---- calls that have what they want ---- */

static struct {
	struct xmem_pool *source, *other, *stage, *reader;
	struct xmem_subscription *s, *follows;
	struct xmem_buffer *held;
} ready;

static int had(struct xmem_buffer *buffer)
{
	xmem_release(buffer);
	return buffer ? 0 : xmem_peek_last_error(NULL);
}

static int receive(int64_t timeout_ns)
{
	return had(xmem_receive(ready.s, timeout_ns));
}

static int receive_any(int64_t timeout_ns)
{
	return had(xmem_receive_any(ready.stage, timeout_ns, NULL));
}

static int acquire(int64_t timeout_ns)
{
	return had(xmem_acquire(ready.stage, BYTES, timeout_ns));
}

/* Its timeout of 0 means no limit. */
static int subscribe(int64_t timeout_ns)
{
	struct xmem_subscription *s =
		subscribe_for(ready.stage, xmem_pool_client(ready.other),
			      timeout_ns ? 0 : XMEM_SUBSCRIBE_NOWAIT, timeout_ns);

	xmem_unsubscribe(s);
	return s ? 0 : xmem_peek_last_error(NULL);
}

static int forward(int64_t timeout_ns)
{
	return xmem_publish(ready.held, XMEM_OPTIONS(xmem_publish_options,
		.flags = XMEM_PUBLISH_KEEP, .timeout_ns = timeout_ns), NULL);
}

static int send_held(int64_t timeout_ns)
{
	return xmem_publish(ready.held, XMEM_OPTIONS(xmem_publish_options,
		.flags = XMEM_PUBLISH_KEEP | XMEM_PUBLISH_CLIENT, .timeout_ns = timeout_ns,
		.client = xmem_pool_client(ready.reader)), NULL);
}

static int count_subscribers(int64_t timeout_ns)
{
	int count = xmem_wait_subscribers(ready.stage, 0, timeout_ns);

	return count < 0 ? count : 0;
}

static int wait_for_subscriber(int64_t timeout_ns)
{
	int count = xmem_wait_subscribers(ready.stage, 1, timeout_ns);

	return count < 0 ? count : 0;
}

/* Each function that fails after a timeout, except those for GPUs, which tests/cuda has. */
static const struct {
	const char *name;
	int (*call)(int64_t timeout_ns);
} calls[] = {
	{ "receive", receive },
	{ "receive_any", receive_any },
	{ "acquire", acquire },
	{ "subscribe", subscribe },
	{ "forward", forward },
	{ "send, held for reading", send_held },
	{ "wait_subscribers, any", count_subscribers },
	{ "wait_subscribers", wait_for_subscriber },
};

static void try_cancelled(const char *name, int (*call)(int64_t timeout_ns))
{
	const int64_t timeouts[] = { 1, patience_ns(), XMEM_FOREVER };
	unsigned int t;
	int err;

	publish_stamp(ready.source, 1);
	for (t = 0; t < sizeof(timeouts) / sizeof(*timeouts); t++) {
		err = call(timeouts[t]);
		if (err != -ECANCELED)
			FAIL("%s: %d with timeout %lld", name, err, (long long)timeouts[t]);
	}
	err = call(0);
	if (err)
		FAIL("%s: %d without a timeout", name, err);
}

TEST(API_cancel_ends_each_call_that_has_a_timeout)
{
	const char *name = new_name();
	unsigned int i;

	ready.source = open_writer(name, 3, BYTES);
	ready.other = open_writer(name, 1, BYTES);
	ready.stage = open_writer(name, 3, BYTES);
	ready.reader = open_reader(name);
	ready.s = follow(ready.stage, xmem_pool_client(ready.source), 0);
	ready.follows = follow(ready.reader, xmem_pool_client(ready.stage), 0);
	publish_stamp(ready.source, 0);
	ready.held = receive_one(ready.s);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		SAME(calls[i].call(0), calls[i].call == receive ||
				       calls[i].call == receive_any ? -EAGAIN : 0);
	SAME(xmem_cancel(ready.stage), 0);
	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		try_cancelled(calls[i].name, calls[i].call);
	/* Sending this client's own contents never waits. */
	WORKED(xmem_publish(xmem_acquire(ready.stage, BYTES, 0), XMEM_OPTIONS(xmem_publish_options,
		.flags = XMEM_PUBLISH_CLIENT, .timeout_ns = XMEM_FOREVER,
		.client = xmem_pool_client(ready.reader)), NULL));
	xmem_release(ready.held);
	xmem_unsubscribe(ready.follows);
	xmem_unsubscribe(ready.s);
	xmem_pool_close(ready.reader);
	xmem_pool_close(ready.stage);
	xmem_pool_close(ready.other);
	xmem_pool_close(ready.source);
}

TEST(P9_cancel_ends_a_wait_for_several)
{
	const char *name = scene_start();
	pthread_t thread[2];

	scene.second = open_writer(name, 1, BYTES);
	scene.s = xmem_subscribe(scene.reader, NULL);
	CHECK(scene.s);
	thread[0] = start(wait_in_receive, NULL);
	thread[1] = start(wait_in_any, NULL);
	until_asleep(ring_word(scene.second));
	SAME(xmem_cancel(scene.reader), 0);
	join(thread[0]);
	join(thread[1]);
	SAME(scene.cancelled, 2);
	xmem_unsubscribe(scene.s);
	xmem_pool_close(scene.reader);
	xmem_pool_close(scene.second);
	scene_end();
}

/* xmem_cancel also applies to a subscription that is made later. */
TEST(API_cancel_holds_for_later_subscriptions)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_NOWAIT,
	};

	scene_start();
	SAME(xmem_cancel(scene.reader), 0);
	scene.s = xmem_subscribe(scene.reader, &options);
	CHECK(scene.s);
	publish_stamp(scene.writer, 1);
	REFUSED(xmem_receive(scene.s, XMEM_FOREVER), ECANCELED);
	xmem_release(xmem_receive(scene.s, 0));
	publish_stamp(scene.writer, 2);
	REFUSED(xmem_receive(scene.s, XMEM_FOREVER), ECANCELED);
	xmem_unsubscribe(scene.s);
	xmem_pool_close(scene.reader);
	scene_end();
}

/* ---- a stress: waits and their ends meet at any moment ---- */

static void *receive_until_it_is_gone(void *argument)
{
	struct xmem_subscription *s = argument;
	struct xmem_buffer *b;

	while ((b = xmem_receive(s, XMEM_FOREVER)))
		xmem_release(b);
	return ended(NULL);
}

static void *publish_some(void *argument)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		publish_stamp(argument, i);
	return NULL;
}

TEST_WITHIN(P9_unsubscribe_meets_publications_and_waits, 60)
{
	const char *name = scene_start();
	unsigned int round, i;

	xmem_pool_close(scene.writer);
	scene.writer = open_writer(name, 8, BYTES);
	scene.second = open_writer(name, 8, BYTES);
	for (round = 0; round < scaled(100); round++) {
		struct xmem_subscription *s = xmem_subscribe(scene.reader, NULL);
		pthread_t thread[4], publisher;

		CHECK(s);
		for (i = 0; i < 4; i++)
			thread[i] = start(receive_until_it_is_gone, s);
		publisher = start(publish_some, round & 1 ? scene.writer : scene.second);
		if (round & 2)
			join(publisher);
		xmem_unsubscribe(s);
		if (!(round & 2))
			join(publisher);
		for (i = 0; i < 4; i++)
			join(thread[i]);
	}
	SAME(scene.cancelled + scene.refused, 4 * scaled(100));
	xmem_pool_close(scene.reader);
	xmem_pool_close(scene.second);
	check_quiet(scene.writer, 2);
	scene_end();
}

/* ---- threads that are cancelled ---- */

static void *open_and_close(void *argument)
{
	for (;;) {
		struct xmem_pool *pool = open_writer(argument, 2, BYTES);

		xmem_pool_close(pool);
		pthread_testcancel();
	}
	return NULL;
}

/* Wherever the thread is cancelled, it leaves no lock taken: opening and forking still work. */
TEST_WITHIN(P9_a_thread_that_is_cancelled_leaves_no_lock_taken, 60)
{
	const char *name = new_name();
	struct xmem_pool *pool;
	pthread_t thread;
	int i, status;
	pid_t pid;

	for (i = 0; i < 50; i++) {
		CHECK(!pthread_create(&thread, NULL, open_and_close, (void *)name));
		pool = open_writer(name, 1, BYTES);
		CHECK(!pthread_cancel(thread) && !pthread_join(thread, NULL));
		xmem_pool_close(pool);
		pid = fork();
		CHECK(pid >= 0);
		if (!pid)
			_exit(0);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
	}
}
