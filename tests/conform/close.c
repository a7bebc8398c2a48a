// SPDX-License-Identifier: MIT
/*
 * xmem_pool_close while another thread is in a call with that handle, and calls that come later
 * with it. Built with ASan and TSan, these tests also check the memory that the calls use.
 */
#include <pthread.h>
#include <unistd.h>

#include "harness.h"

#define BYTES	1000
#define MOST	300000

static struct {
	struct xmem_pool *pool;
	int (*call)(struct xmem_pool *pool);
	unsigned int calls;		/* atomic */
	uint64_t token;
} scene;

/* ---- the calls: each returns 0, or why it was refused ---- */

static int last(const void *handle)
{
	return handle ? 0 : xmem_peek_last_error(NULL);
}

static int call_acquire(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, BYTES, XMEM_FOREVER);
	int err = last(buffer);

	xmem_release(buffer);
	return err;
}

/* The next size always differs, so the buffer is made on demand, or given up. */
static int call_acquire_any(struct xmem_pool *pool)
{
	static __thread uint64_t state = 1;
	size_t bytes = 1 + random_next(&state) % MOST;
	struct xmem_buffer *buffer = xmem_acquire(pool, bytes, patience_ns());
	int err = last(buffer);

	xmem_release(buffer);
	return err == -ETIMEDOUT || err == -ENOSPC ? 0 : err;
}

static int call_publish(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = xmem_acquire(pool, BYTES, XMEM_FOREVER);

	if (!buffer)
		return last(buffer);
	SAME(xmem_publish(buffer, NULL, NULL), 0);
	return 0;
}

static int call_trim(struct xmem_pool *pool)
{
	int64_t bytes = trim_pool(pool, 0);

	return bytes < 0 ? bytes : 0;
}

static int call_collect(struct xmem_pool *pool)
{
	int ready = xmem_collect(pool, XMEM_KEEP_ALL, NULL);

	return ready < 0 ? ready : 0;
}

static int call_stat(struct xmem_pool *pool)
{
	struct xmem_pool_info info = { .size = sizeof(info) };

	return xmem_pool_stat(pool, &info);
}

static int call_client_info(struct xmem_pool *pool)
{
	struct xmem_client_info info = { .size = sizeof(info) };

	return xmem_pool_client_info(pool, 0, &info);
}

static int call_slot_info(struct xmem_pool *pool)
{
	struct xmem_slot_info info = { .size = sizeof(info) };

	return xmem_pool_slot_info(pool, 0, &info);
}

static int call_holds(struct xmem_pool *pool)
{
	int64_t holds = xmem_pool_holds(pool, 0, 0);

	return holds < 0 ? holds : 0;
}

static int call_preallocate(struct xmem_pool *pool)
{
	int err = xmem_preallocate(pool, BYTES, 1, NULL);

	return err == -ENOSPC || err == -EDQUOT ? 0 : err;
}

static int call_reopen(struct xmem_pool *pool)
{
	struct xmem_pool *again = xmem_pool_reopen(pool);
	int err = last(again);

	xmem_pool_close(again);
	return err;
}

static int call_fd(struct xmem_pool *pool)
{
	int fd = xmem_pool_fd(pool);

	return fd < 0 ? fd : close(fd);
}

static int call_poll_fd(struct xmem_pool *pool)
{
	int fd = xmem_pool_poll_fd(pool);

	return fd < 0 ? fd : 0;
}

static int call_subscribe(struct xmem_pool *pool)
{
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_NOWAIT,
	};
	struct xmem_subscription *subscription = xmem_subscribe(pool, &options);
	int err = last(subscription);

	xmem_unsubscribe(subscription);
	return err == -ENOENT ? 0 : err;
}

static int call_receive_any(struct xmem_pool *pool)
{
	int err = last(xmem_receive_any(pool, 0, NULL));

	return err == -ENOENT ? 0 : err;
}

static int stale(int err)
{
	return err == -ESTALE ? 0 : err;
}

static int call_add_ref(struct xmem_pool *pool)
{
	return stale(xmem_add_ref(pool, 123456));
}

static int call_drop_ref(struct xmem_pool *pool)
{
	return stale(xmem_drop_ref(pool, 123456));
}

static int call_void_claims(struct xmem_pool *pool)
{
	return stale(xmem_void_claims(pool, 123456));
}

static int call_retract(struct xmem_pool *pool)
{
	int err = xmem_retract(pool, 123456);

	return err == -EPERM ? 0 : stale(err);
}

static int call_hook(struct xmem_pool *pool)
{
	return xmem_limbo_hook(pool, 0, 0, NULL, NULL);
}

static int call_cancel(struct xmem_pool *pool)
{
	return xmem_cancel(pool);
}

static int call_client(struct xmem_pool *pool)
{
	int client = xmem_pool_client(pool);

	return client < 0 ? client : 0;
}

static int call_attach(struct xmem_pool *pool)
{
	int fd = new_memfd(4096, GOOD_SEALS), err;
	struct xmem_buffer *buffer = xmem_attach_fd(pool, fd, 0, 64, 0);

	err = last(buffer);
	xmem_release(buffer);
	close(fd);
	return err == -ENOSPC || err == -EDQUOT || err == -EAGAIN ? 0 : err;
}

static int (*const calls[])(struct xmem_pool *pool) = {
	call_acquire, call_acquire_any, call_publish, call_trim, call_collect, call_stat,
	call_client_info, call_slot_info, call_holds, call_preallocate, call_reopen, call_fd,
	call_poll_fd, call_subscribe, call_receive_any, call_add_ref, call_drop_ref,
	call_void_claims, call_retract, call_hook, call_cancel, call_client,
	call_attach,
};
#define CALLS	(sizeof(calls) / sizeof(calls[0]))

/* ---- closing under them ---- */

static void *call_until_closed(void *argument)
{
	int err;

	do {
		err = scene.call(scene.pool);
		__atomic_add_fetch(&scene.calls, 1, __ATOMIC_SEQ_CST);
	} while (!err);
	/* A wait that was under way is cancelled, and some calls return the first error. */
	if (err != -EBADF && err != -ECANCELED)
		FAIL("ended with %d", err);
	return NULL;
}

static struct xmem_pool *open_for(const char *name, bool on_demand)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .cache_ns = MS,
		.demand_bytes = on_demand ? 2 << 20 : XMEM_NO_DEMAND,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &options);

	CHECK(pool);
	if (!on_demand)
		SAME(xmem_preallocate(pool, MOST, 8, NULL), 0);
	return pool;
}

/* @threads: with 1, locks are biased to that thread. */
static void close_under(const char *name, unsigned int threads, bool on_demand, uint64_t *state)
{
	unsigned int calls_before_it = random_next(state) % 100, i;
	pthread_t thread[4];

	scene.calls = 0;
	scene.pool = open_for(name, on_demand);
	for (i = 0; i < threads; i++)
		CHECK(!pthread_create(&thread[i], NULL, call_until_closed, NULL));
	while (__atomic_load_n(&scene.calls, __ATOMIC_SEQ_CST) < calls_before_it)
		;
	xmem_pool_close(scene.pool);
	for (i = 0; i < threads; i++)
		CHECK(!pthread_join(thread[i], NULL));
}

static void close_under_all(unsigned int threads, bool on_demand)
{
	const char *name = new_name();
	struct xmem_pool *watch = open_reader(name);
	uint64_t state = seed();
	unsigned int round, i;

	for (i = 0; i < CALLS; i++) {
		scene.call = calls[i];
		/* A new pool could get the closed handle's place. */
		if (threads > 1 && scene.call == call_reopen)
			continue;
		for (round = 0; round < scaled(8); round++)
			close_under(name, threads, on_demand, &state);
	}
	check_quiet(watch, 1);
	xmem_pool_close(watch);
}

TEST_WITHIN(P9_closing_a_pool_under_any_call, 60)
{
	close_under_all(1, false);
}

TEST_WITHIN(P9_closing_a_pool_under_any_call_of_several_threads, 60)
{
	close_under_all(3, false);
}

TEST_WITHIN(P9_closing_a_pool_under_any_call_that_makes_on_demand, 60)
{
	close_under_all(1, true);
}

/* ---- closing in the middle of one ---- */

static int in_step[2], go_on[2];

static void say_and_wait(int step)
{
	char byte = 0;

	CHECK(write(in_step[1], &byte, 1) == 1);
	CHECK(read(go_on[0], &byte, 1) == 1);
}

static void *acquire_once(void *argument)
{
	xmem_release(xmem_acquire(argument, BYTES, XMEM_FOREVER));
	return NULL;
}

static void *close_it(void *argument)
{
	xmem_pool_close(argument);
	return NULL;
}

/* The acquire has made a buffer, and does not go on until the close has come as far as it can. */
TEST(P9_closing_a_pool_waits_for_an_acquire)
{
	const char *name = new_name();
	struct xmem_pool *watch = open_reader(name), *pool = open_for(name, true);
	pthread_t acquires, closes;
	char byte = 0;

	steps_only();
	CHECK(!pipe(in_step) && !pipe(go_on));
	at_step(XM_STEP_FILE_MADE, 0, STEP_CALL, say_and_wait);
	CHECK(!pthread_create(&acquires, NULL, acquire_once, pool));
	CHECK(read(in_step[0], &byte, 1) == 1);
	CHECK(!pthread_create(&closes, NULL, close_it, pool));
	EVENTUALLY(others_sleep());
	/* If the close had told the host that the client ends, the host would know that by now. */
	host_has_served(watch);
	SAME(stat_of(watch).clients, 2);
	CHECK(write(go_on[1], &byte, 1) == 1);
	CHECK(!pthread_join(acquires, NULL) && !pthread_join(closes, NULL));
	check_quiet(watch, 1);
	xmem_pool_close(watch);
	close(in_step[0]);
	close(in_step[1]);
	close(go_on[0]);
	close(go_on[1]);
}

/* ---- calls that come later ---- */

static void all_refused(struct xmem_pool *closed)
{
	unsigned int i;

	for (i = 0; i < CALLS; i++)
		SAME(calls[i](closed), -EBADF);
	REFUSED(xmem_get(closed, scene.token), EBADF);
	xmem_pool_close(closed);	/* a second release, which the library detects */
}

TEST(API_a_closed_pool_is_found_out)
{
	struct xmem_pool *pool = open_for(new_name(), false);

	scene.token = publish_stamp(pool, 1);
	xmem_pool_close(pool);
	all_refused(pool);
}

/* Handles that were not dropped continue to work, and do not make the pool's handle good. */
TEST(API_a_closed_pool_is_found_out_while_its_buffers_are_used)
{
	const char *name = new_name();
	struct xmem_pool *watch = open_reader(name), *pool = open_for(name, false), *other;
	struct xmem_subscription *s = follow(pool, xmem_pool_client(pool), 0);
	struct xmem_buffer *written, *clone;
	uint64_t token;

	scene.token = publish_stamp(pool, 1);
	written = xmem_acquire(pool, BYTES, 0);
	CHECK(written);
	xmem_pool_close(pool);
	all_refused(pool);
	other = open_reader(name);	/* it does not disturb handles that are still used */
	fill(written, 2);
	SAME(xmem_publish(written, NULL, &token), 0);
	xmem_release(receive_one(s));
	written = receive_one(s);
	SAME(stamp_of(written), 2);
	clone = xmem_clone(written);
	CHECK(clone);
	xmem_release(written);
	xmem_unsubscribe(s);
	all_refused(pool);
	SAME(stamp_of(clone), 2);
	xmem_release(clone);
	written = xmem_get(other, token);	/* the writer has ended; another client reads */
	xmem_release(written);
	xmem_pool_close(other);
	check_quiet(watch, 1);
	xmem_pool_close(watch);
}
