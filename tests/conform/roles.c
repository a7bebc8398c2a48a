// SPDX-License-Identifier: MIT
/*
 * Roles: a client that opens a pool without naming a role is a reader, and becomes a writer by its
 * first call that is for writers.
 */
#include <pthread.h>
#include <unistd.h>

#include "attached.h"
#include "harness.h"

#define BYTES	4096

static uint32_t role_of(struct xmem_pool *pool)
{
	struct xmem_client_info info = { .size = sizeof(info) };

	WORKED(xmem_pool_client_info(pool, xmem_pool_client(pool), &info));
	return info.role;
}

/* It may be the first buffer. */
static void publish_first(struct xmem_pool *pool, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_acquire(pool, BYTES, patience_ns());

	CHECK(b);
	fill(b, stamp);
	WORKED(xmem_publish(b, NULL, NULL));
}

/* ---- each call for writers makes a writer ---- */

struct scene {
	struct xmem_pool *owner;	/* a writer of the pool, with a shared buffer */
	struct xmem_pool *pool;		/* joins without a role */
	struct xmem_buffer *held;	/* by @pool, of the owner */
};

static void acquire(struct scene *scene)
{
	struct xmem_buffer *b = xmem_acquire(scene->pool, BYTES, patience_ns());

	CHECK(b);
	xmem_release(b);
}

static void acquire_without_waiting(struct scene *scene)
{
	struct xmem_buffer *b = xmem_acquire(scene->pool, BYTES, 0);

	CHECK(b);
	xmem_release(b);
}

static void preallocate(struct scene *scene)
{
	WORKED(xmem_preallocate(scene->pool, BYTES, 1, NULL));
}

static void attach(struct scene *scene)
{
	int file = stamped(BYTES, 1, FULL_SEALS);
	struct xmem_buffer *b = xmem_attach_fd(scene->pool, file, 0, 0, 0);

	CHECK(b);
	close(file);
	xmem_release(b);
}

static void get_mut(struct scene *scene)
{
	WORKED(xmem_get_mut(scene->held));
}

static void forward(struct scene *scene)
{
	WORKED(xmem_publish(scene->held, NULL, NULL));
	scene->held = NULL;
}

static void wait_subscribers(struct scene *scene)
{
	SAME(xmem_wait_subscribers(scene->pool, 0, 0), 0);
}

static const struct {
	const char *name;
	void (*call)(struct scene *scene);
} calls[] = {
	{ "acquire", acquire },
	{ "acquire, without waiting", acquire_without_waiting },
	{ "preallocate", preallocate },
	{ "attach_fd", attach },
	{ "get_mut", get_mut },
	{ "forward", forward },
	{ "wait_subscribers", wait_subscribers },
};

static struct xmem_pool *open_sharing(const char *name)
{
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	return pool;
}

static struct scene scene_start(void)
{
	const char *name = new_name();
	struct scene scene = { .owner = open_sharing(name), .pool = OPEN(name, .flags = 0) };
	struct xmem_buffer *b = xmem_acquire(scene.owner, BYTES, 0);
	uint64_t token;

	fill(b, 1);
	WORKED(xmem_publish(b, NULL, &token));
	CHECK((scene.held = xmem_get(scene.pool, token)));
	SAME(stamp_of(scene.held), 1);
	return scene;
}

TEST(API_a_client_is_a_writer_from_its_first_call_for_writers_on)
{
	unsigned int i;

	for (i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct scene scene = scene_start();

		if (role_of(scene.pool) != XMEM_CLIENT_READER)
			FAIL("%s: it is a writer before", calls[i].name);
		calls[i].call(&scene);
		if (role_of(scene.pool) != XMEM_CLIENT_WRITER)
			FAIL("%s: it is a reader still", calls[i].name);
		xmem_release(scene.held);
		publish_first(scene.pool, 2);
		xmem_pool_close(scene.pool);
		xmem_pool_close(scene.owner);
	}
}

/* ---- others see a writer then, and not before ---- */

static void *subscribe_run(void *pool)
{
	return xmem_subscribe(pool, NULL);
}

TEST(P9_a_new_writer_wakes_clients_that_wait_for_one)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name), *pool = OPEN(name, .flags = 0);
	struct raw raw;
	struct xmem_buffer *b;
	pthread_t thread;
	void *s;

	raw_start(&raw, name, XMEM_ROLE_READER);
	REFUSED(xmem_subscribe(reader, &(struct xmem_subscribe_options){
		.size = sizeof(struct xmem_subscribe_options), .flags = XMEM_SUBSCRIBE_NOWAIT,
	}), ENOENT);
	CHECK(!pthread_create(&thread, NULL, subscribe_run, reader));
	until_asleep(&raw.map.pool->clients_waiters);
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	CHECK(!pthread_join(thread, &s));
	CHECK(s);
	publish_stamp(pool, 7);
	CHECK((b = receive_one(s)));
	SAME(stamp_of(b), 7);
	xmem_release(b);
	xmem_unsubscribe(s);
	raw_close(&raw);
	xmem_pool_close(pool);
	xmem_pool_close(reader);
}

static void *receive_run(void *subscription)
{
	return xmem_receive(subscription, patience_ns());
}

/* The subscription follows another writer, and sleeps on the word of its ring. */
TEST(P9_a_receiver_follows_a_client_that_becomes_a_writer)
{
	const char *name = new_name();
	struct xmem_pool *first = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_pool *pool = OPEN(name, .flags = 0);
	struct xmem_subscription *s;
	struct raw raw;
	pthread_t thread;
	void *b;

	raw_start(&raw, name, XMEM_ROLE_READER);
	CHECK((s = xmem_subscribe(reader, &(struct xmem_subscribe_options){
		.size = sizeof(struct xmem_subscribe_options), .history = 1 })));
	CHECK(!pthread_create(&thread, NULL, receive_run, s));
	until_asleep(&xm_client_row(&raw.map, xmem_pool_client(first))->ring_waiters);
	publish_first(pool, 8);
	CHECK(!pthread_join(thread, &b));
	CHECK(b);
	SAME(stamp_of(b), 8);
	SAME(info_of(b).publisher, xmem_pool_client(pool));
	xmem_release(b);
	xmem_unsubscribe(s);
	raw_close(&raw);
	xmem_pool_close(pool);
	xmem_pool_close(first);
	xmem_pool_close(reader);
}

/* ---- who may not? ---- */

TEST(P4_a_client_that_may_only_read_becomes_no_writer)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES), *pool;
	int all = xmem_pool_fd(writer), reads = xmem_pool_fd_narrow(all, XMEM_MAY_READ);

	CHECK(all >= 0 && reads >= 0);
	/* An option for writers alone is no reason to refuse it. */
	pool = xmem_pool_open(NULL, XMEM_OPTIONS(xmem_pool_options, .flags = XMEM_OPEN_FD,
						 .fd = reads, .wait_bound_ns = SECOND, .keep = 1));
	CHECK(pool);
	REFUSED(xmem_acquire(pool, BYTES, 0), EACCES);
	error_says("only read");
	SAME(xmem_preallocate(pool, BYTES, 1, NULL), -EACCES);
	SAME(role_of(pool), XMEM_CLIENT_READER);
	xmem_pool_close(pool);
	close(reads);
	close(all);
	xmem_pool_close(writer);
}

TEST(API_a_client_that_wants_to_read_only_becomes_no_writer)
{
	struct xmem_pool *pool = open_reader(new_name());

	REFUSED(xmem_acquire(pool, BYTES, 0), EPERM);
	error_says("XMEM_OPEN_READER");
	SAME(xmem_preallocate(pool, BYTES, 1, NULL), -EPERM);
	SAME(role_of(pool), XMEM_CLIENT_READER);
	xmem_pool_close(pool);
}

TEST(P4_the_request_to_write)
{
	struct xmem_grant_request request = { .size = sizeof(request), .op = XMEM_OP_WRITER };
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name);
	struct raw raw;
	uint64_t writers;

	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &request), -EPERM);
	raw_close(&raw);
	raw_start(&raw, name, XMEM_ROLE_EITHER);
	writers = xm_load(&raw.map.pool->writers);
	request.flags = 1;
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &request), -EINVAL);
	request.flags = 0;
	request.slot = 1;
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &request), -EINVAL);
	request.slot = 0;
	request.op++;
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &request), -EINVAL);
	request.op--;
	SAME(xm_load(&raw.map.pool->writers), writers);
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &request), 0);
	SAME(raw_request(&raw, XMEM_IOC_GRANT, &request), 0);
	SAME(xm_load(&raw.map.pool->writers), writers + 1);
	raw_close(&raw);
	xmem_pool_close(pool);
}
