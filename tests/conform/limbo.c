// SPDX-License-Identifier: MIT
/*
 * Limbo: buffers that other clients hold although their owner wants them back, or has ended. Which
 * clients see it, since when, who is warned, and what a collection finds.
 */
#include <pthread.h>

#include "harness.h"

#define BYTES	4096
#define HELD	3

static struct xmem_client_info client_of(struct xmem_pool *pool, int client)
{
	struct xmem_client_info info;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_pool_client_info(pool, client, &info));
	return info;
}

static struct xmem_slot_info slot_of(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_slot_info info;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_pool_slot_info(pool, token & 0xffff, &info));
	return info;
}

/* A writer whose HELD buffers are all held by the reader alone. */
struct scene {
	const char *name;
	struct xmem_pool *writer, *reader;
	struct xmem_buffer *held[HELD];
};

static void set(struct scene *scene)
{
	int i;

	*scene = (struct scene){ .name = new_name() };
	scene->writer = open_writer(scene->name, HELD, BYTES);
	scene->reader = open_reader(scene->name);
	for (i = 0; i < HELD; i++)
		scene->held[i] = publish_and_get(scene->writer, scene->reader, i);
}

static void strike(struct scene *scene)
{
	int i;

	for (i = 0; i < HELD; i++)
		xmem_release(scene->held[i]);
	xmem_pool_close(scene->reader);
	xmem_pool_close(scene->writer);
}

TEST(P10_buffers_that_an_owner_lacks_are_overdue)
{
	struct xmem_pool_info info;
	struct scene s;
	int reader;

	set(&s);
	reader = xmem_pool_client(s.reader);
	/* The buffers are in use, and no acquire lacks them. */
	info = stat_of(s.reader);
	SAME(info.overdue, 0);
	SAME(info.overdue_age_ns, 0);
	SAME(client_of(s.writer, reader).limbo, 0);
	SAME(slot_of(s.reader, xmem_token(s.held[0])).overdue, 0);
	REFUSED(xmem_acquire(s.writer, BYTES, 0), EAGAIN);
	info = stat_of(s.reader);
	SAME(info.overdue, HELD);
	SAME(info.bytes_overdue, HELD * BYTES);
	EVENTUALLY(stat_of(s.reader).overdue_age_ns > 0);
	SAME(info.limbo, 0);
	SAME(info.bytes_limbo, 0);
	SAME(client_of(s.writer, reader).limbo, HELD);
	SAME(client_of(s.writer, reader).bytes_limbo, HELD * BYTES);
	SAME(client_of(s.writer, reader).bytes_ended, 0);
	SAME(client_of(s.reader, xmem_pool_client(s.writer)).limbo, 0);
	SAME(slot_of(s.reader, xmem_token(s.held[0])).overdue, 1);
	/* One returns, so the writer has what it wants. */
	xmem_release(s.held[0]);
	s.held[0] = NULL;
	SAME(stat_of(s.reader).overdue, HELD - 1);
	xmem_release(xmem_acquire(s.writer, BYTES, 0));
	SAME(stat_of(s.reader).overdue, 0);
	strike(&s);
}

/* A writer's own handles do not count, and publications in flight are not late yet. */
TEST(P10_own_handles_and_flights_are_not_overdue)
{
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *sub;
	struct xmem_buffer *kept, *b;
	const char *name = new_name();

	writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	reader = open_reader(name);
	sub = follow(reader, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS);
	publish_kept(writer, 1, &kept);
	b = receive_one(sub);
	xmem_release(b);
	b = xmem_get(reader, publish_stamp(writer, 2));
	CHECK(b);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(stat_of(writer).overdue, 0);
	xmem_release(receive_one(sub));		/* now no subscriber has to receive it any more */
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	SAME(stat_of(writer).overdue, 1);
	xmem_release(b);
	xmem_release(kept);
	xmem_unsubscribe(sub);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- collecting ---- */

TEST(API_collect_finds_what_nobody_uses)
{
	struct scene s;
	int i;

	SAME(xmem_collect(NULL, XMEM_KEEP_ALL, NULL), 0);	/* all pools */
	set(&s);
	SAME(xmem_collect(s.writer, XMEM_KEEP_ALL, NULL), 0);
	SAME(stat_of(s.writer).overdue, HELD);
	for (i = 0; i < HELD; i++) {
		xmem_release(s.held[i]);
		s.held[i] = NULL;
		SAME(xmem_collect(s.writer, XMEM_KEEP_ALL, NULL), 1);
		SAME(stat_of(s.writer).overdue, HELD - 1 - i);
	}
	SAME(xmem_collect(s.writer, XMEM_KEEP_ALL, NULL), 0);
	SAME(xmem_collect(s.reader, XMEM_KEEP_ALL, NULL), 0);
	publish_stamp(s.writer, 4);
	SAME(xmem_collect(s.writer, XMEM_KEEP_ALL, NULL), 1);
	strike(&s);
}

/* ---- the warning ---- */

struct told {
	struct xmem_pool *pool;
	struct xmem_limbo last;
	int times;
};

static void note(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *user)
{
	struct told *told = user;

	SAME(pool == told->pool, true);
	told->last = *limbo;
	told->times++;
	/* The function may make calls, which do not call it again. */
	SAME(stat_of(pool).overdue, limbo->overdue);
}

TEST(API_limbo_beyond_a_limit_is_told_once)
{
	struct told told = { .times = 0 };
	struct scene s;

	SAME(xmem_limbo_hook(NULL, 0, 0, note, &told), -EINVAL);
	set(&s);
	told.pool = s.writer;
	WORKED(xmem_limbo_hook(s.writer, ~0ULL, HELD - 1, note, &told));
	stat_of(s.writer);
	SAME(told.times, 0);
	REFUSED(xmem_acquire(s.writer, BYTES, 0), EAGAIN);
	SAME(told.times, 1);
	SAME(told.last.size, sizeof(told.last));
	SAME(told.last.overdue, HELD);
	SAME(told.last.bytes_overdue, HELD * BYTES);
	SAME(told.last.ended, 0);
	REFUSED(xmem_acquire(s.writer, BYTES, MS), ETIMEDOUT);
	SAME(told.times, 1);
	/* The limbo shrinks, and then is too much again. */
	xmem_release(s.held[0]);
	xmem_collect(s.writer, XMEM_KEEP_ALL, NULL);
	SAME(told.times, 1);
	s.held[0] = publish_and_get(s.writer, s.reader, 1);
	REFUSED(xmem_acquire(s.writer, BYTES, MS), ETIMEDOUT);
	SAME(told.times, 2);
	/* Bytes count too. Afterwards the function is not called any more. */
	WORKED(xmem_limbo_hook(s.writer, HELD * BYTES, ~0u, note, &told));
	xmem_collect(s.writer, XMEM_KEEP_ALL, NULL);
	SAME(told.times, 2);
	WORKED(xmem_limbo_hook(s.writer, HELD * BYTES - 1, ~0u, note, &told));
	trim_pool(s.writer, 0);
	SAME(told.times, 3);
	WORKED(xmem_limbo_hook(s.writer, 0, 0, NULL, NULL));
	xmem_collect(s.writer, XMEM_KEEP_ALL, NULL);
	SAME(told.times, 3);
	strike(&s);
}

/* An error in the program's function is not the call's error. */
static void fail_otherwise(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *told)
{
	*(int *)told += 1;
	REFUSED(xmem_get(pool, 1 << 16), ESTALE);
	xmem_clear_last_error();
	SAME(xmem_preallocate(NULL, 1, 1, NULL), -EINVAL);
	errno = EXDEV;
}

static void clear_error(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *told)
{
	*(int *)told += 1;
	xmem_clear_last_error();
}

static void fails_as_ever(xmem_limbo_function *call, int64_t timeout_ns, int error)
{
	const char *message;
	struct scene s;
	int told = 0;

	set(&s);
	WORKED(xmem_limbo_hook(s.writer, 0, 0, call, &told));
	errno = 0;
	CHECK(!xmem_acquire(s.writer, BYTES, timeout_ns));
	SAME(errno, error);
	message = last_message();
	SAME(xmem_peek_last_error(NULL), -error);
	if (!strstr(message, "no free buffer"))
		FAIL("the message is '%s'", message);
	SAME(told, 1);
	strike(&s);
}

TEST(API_the_limbo_hook_leaves_the_error_of_the_call)
{
	struct scene s;
	int told = 0;

	fails_as_ever(fail_otherwise, 0, EAGAIN);
	fails_as_ever(clear_error, 0, EAGAIN);
	fails_as_ever(fail_otherwise, MS, ETIMEDOUT);
	/* And there is no error where the call has not failed. */
	set(&s);
	WORKED(xmem_limbo_hook(s.writer, 0, 0, fail_otherwise, &told));
	xmem_clear_last_error();
	errno = 0;
	SAME(xmem_collect(s.writer, XMEM_KEEP_ALL, NULL), 0);
	SAME(told, 1);
	SAME(errno, 0);
	SAME(xmem_peek_last_error(NULL), 0);
	strike(&s);
}

/* A thread that is cancelled in the function learns whether that ended it there. */
static void be_cancelled(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *told)
{
	pthread_cancel(pthread_self());
	pthread_testcancel();
	*(int *)told += 1;
}

static void *collect(void *pool)
{
	SAME(xmem_collect(pool, XMEM_KEEP_ALL, NULL), 0);
	pthread_testcancel();
	return NULL;
}

TEST(P9_a_thread_cancelled_while_it_is_told_of_limbo_returns_first)
{
	pthread_t thread;
	struct scene s;
	int told = 0;
	void *end;

	set(&s);
	WORKED(xmem_limbo_hook(s.writer, 0, 0, be_cancelled, &told));
	CHECK(!pthread_create(&thread, NULL, collect, s.writer));
	CHECK(!pthread_join(thread, &end));
	CHECK(end == PTHREAD_CANCELED);
	SAME(told, 1);
	strike(&s);			/* its calls are over, so the pool can be closed */
}

/* ---- ended owners ---- */

static void publish_and_stay(void *name)
{
	struct xmem_pool *pool = open_writer(name, 2, BYTES);
	struct xmem_buffer *kept;

	tell_parent(publish_kept(pool, 1, &kept));
	hear_parent();
}

TEST(P10_an_ended_owner_hands_its_limbo_to_the_host)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(publish_and_stay, (void *)name);
	struct xmem_buffer *b = xmem_get(reader, hear(child));
	struct told told = { .pool = reader };
	struct xmem_pool_info info;
	int me = xmem_pool_client(reader);

	CHECK(b);
	WORKED(xmem_limbo_hook(reader, 0, 0, note, &told));
	SAME(stat_of(reader).limbo_age_ns, 0);
	SAME(told.times, 0);
	kill_child(child);
	EVENTUALLY(stat_of(reader).attached == 1);
	info = stat_of(reader);
	SAME(info.limbo, 1);
	SAME(info.bytes_limbo, BYTES);
	EVENTUALLY(stat_of(reader).limbo_age_ns > 0);
	SAME(client_of(reader, me).limbo, 1);
	SAME(client_of(reader, me).bytes_limbo, BYTES);
	SAME(told.times, 1);
	/*
	 * The function was called at the first check, when the host may not have reaped the other
	 * one.
	 */
	CHECK(told.last.ended == 1 || told.last.ended == 2);
	SAME(told.last.bytes_ended, told.last.ended * BYTES);
	xmem_collect(reader, XMEM_KEEP_ALL, NULL);			/* a client holds it */
	SAME(stat_of(reader).limbo, 1);
	xmem_release(b);
	EVENTUALLY(stat_of(reader).limbo == 0);
	SAME(stat_of(reader).limbo_age_ns, 0);
	xmem_pool_close(reader);
}
