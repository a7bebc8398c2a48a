// SPDX-License-Identifier: MIT
/*
 * xmem_receive_any sleeps while the rings and subscriptions that it watches change: it or another
 * thread follows new rings, and subscriptions are dropped. It must miss nothing.
 */
#include <pthread.h>

#include "harness.h"
#include "lib/private.h"

#define BYTES	1024
#define LONG	patience_ns()		/* a thread that sleeps for so long was not woken */

static struct {
	const char *name;
	struct xmem_pool *writer[2], *reader;
	struct xmem_subscription *all;
	struct raw raw;
} scene;

/* One subscription of the reader follows all @writers. */
static void scene_start(unsigned int writers)
{
	memset(&scene, 0, sizeof(scene));
	scene.name = new_name();
	while (writers--)
		scene.writer[writers] = open_writer(scene.name, 4, BYTES);
	scene.reader = open_reader(scene.name);
	raw_start(&scene.raw, scene.name, XMEM_ROLE_READER);
}

static void scene_end(void)
{
	unsigned int i;

	xmem_unsubscribe(scene.all);
	raw_close(&scene.raw);
	xmem_pool_close(scene.reader);
	for (i = 0; i < 2; i++)
		xmem_pool_close(scene.writer[i]);
}

static struct xmem_subscription *follow_all(void)
{
	struct xmem_subscription *s = xmem_subscribe(scene.reader, NULL);

	CHECK(s);
	return s;
}

static bool follows(struct xmem_pool *writer)
{
	return raw_follows(&scene.raw, xmem_pool_client(scene.reader), xmem_pool_client(writer));
}

static uint32_t *ring_word(struct xmem_pool *writer)
{
	return &xm_client_row(&scene.raw.map, xmem_pool_client(writer))->ring_waiters;
}

/* Wait until a thread of the reader waits for this writer's publications. */
static void until_waited_for(struct xmem_pool *writer)
{
	until_asleep(ring_word(writer));
}

/* Only the writer itself may wake them. Afterwards only a thread that still waits arms its word. */
static void wake_waiters_of(struct xmem_pool *writer)
{
	struct xmem_wait_request request = {
		.size = sizeof(request), .op = XMEM_OP_WAKE, .kind = XMEM_WAIT_RING,
		.client = xmem_pool_client(writer),
	};

	SAME(writer->link.backend->request(&writer->link, XMEM_IOC_WAIT, &request), 0);
}

/* ---- the thread that waits ---- */

/* Returns the stamp of what it got, or -errno. */
static void *wait_in_any(void *timeout_ns)
{
	struct xmem_buffer *got = xmem_receive_any(scene.reader, *(int64_t *)timeout_ns, NULL);
	int64_t result = got ? (int64_t)stamp_of(got) : xmem_peek_last_error(NULL);

	xmem_release(got);
	return (void *)result;
}

static pthread_t start_any(int64_t *timeout_ns)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wait_in_any, timeout_ns));
	return thread;
}

static int64_t result_of(pthread_t thread)
{
	void *result;

	CHECK(!pthread_join(thread, &result));
	return (int64_t)result;
}

/* ---- a ring that is followed later ---- */

/* While a thread waits beside @others, a writer joins, is followed, and then publishes. */
static void hears_a_newcomer(unsigned int others)
{
	int64_t timeout = LONG;
	pthread_t thread;
	struct xmem_pool *late;

	scene_start(others);
	scene.all = follow_all();
	thread = start_any(&timeout);
	until_waited_for(scene.writer[0]);
	late = open_writer(scene.name, 4, BYTES);
	EVENTUALLY(follows(late));
	until_waited_for(late);
	publish_stamp(late, 5);
	SAME(result_of(thread), 5);
	xmem_pool_close(late);
	scene_end();
}

TEST_WITHIN(P9_receive_any_hears_a_writer_that_came, 60)
{
	hears_a_newcomer(1);
	hears_a_newcomer(2);
}

TEST_WITHIN(P9_receive_any_hears_a_publisher_that_came_back, 60)
{
	int64_t timeout = LONG;
	pthread_t thread;
	int client;

	scene_start(2);
	scene.all = follow_all();
	client = xmem_pool_client(scene.writer[1]);
	thread = start_any(&timeout);
	until_waited_for(scene.writer[1]);
	xmem_pool_close(scene.writer[1]);
	EVENTUALLY(xm_load(&xm_client_row(&scene.raw.map, client)->state) == XMEM_CLIENT_NONE);
	scene.writer[1] = open_writer(scene.name, 4, BYTES);
	SAME(xmem_pool_client(scene.writer[1]), client);
	EVENTUALLY(follows(scene.writer[1]));
	until_waited_for(scene.writer[1]);
	publish_stamp(scene.writer[1], 6);
	SAME(result_of(thread), 6);
	scene_end();
}

/* ---- a subscription that is dropped ---- */

/* From then on the joint subscription follows the writer that the dropped one followed alone. */
TEST_WITHIN(P9_receive_any_hears_a_writer_that_another_subscription_followed, 60)
{
	struct xmem_subscription *one;
	int64_t timeout = LONG;
	pthread_t thread;

	scene_start(2);
	one = follow(scene.reader, xmem_pool_client(scene.writer[1]), 0);
	scene.all = follow_all();
	thread = start_any(&timeout);
	until_waited_for(scene.writer[0]);
	until_waited_for(scene.writer[1]);
	xmem_unsubscribe(one);
	EVENTUALLY(follows(scene.writer[1]));
	wake_waiters_of(scene.writer[1]);
	until_waited_for(scene.writer[1]);
	publish_stamp(scene.writer[1], 7);
	SAME(result_of(thread), 7);
	scene_end();
}

/* The reader's host forgets that it follows the writer; the library does not know that yet. */
static void host_forgets(struct xmem_pool *writer)
{
	uint32_t client = xmem_pool_client(writer);
	struct xmem_unsubscribe_request request = {
		.size = sizeof(request), .publisher = client,
		.incarnation = xm_client_row(&scene.raw.map, client)->incarnation,
	};
	struct xmem_link *link = &scene.reader->link;

	SAME(link->backend->request(link, XMEM_IOC_UNSUBSCRIBE, &request), 0);
	CHECK(!follows(writer));
}

/*
 * No ring is left to wait for. The word on which the thread sleeps is that of a ring that the
 * client no longer follows, since an earlier moment than the unsubscribe or since a later one.
 */
TEST_WITHIN(P9_receive_any_ends_with_the_last_subscription, 60)
{
	struct xmem_subscription *one;
	int64_t timeout = LONG;
	pthread_t thread;
	int earlier;

	scene_start(1);
	for (earlier = 0; earlier < 2; earlier++) {
		one = follow(scene.reader, xmem_pool_client(scene.writer[0]), 0);
		thread = start_any(&timeout);
		until_waited_for(scene.writer[0]);
		if (earlier)
			host_forgets(scene.writer[0]);
		until_waited_for(scene.writer[0]);
		xmem_unsubscribe(one);
		SAME(result_of(thread), -ENOENT);
	}
	scene_end();
}

/* The answer after an error, also after one that is found before anything is received. */
TEST(API_receive_any_names_no_subscription_after_an_error)
{
	struct xmem_subscription *poison = (void *)&scene, *one = poison;
	struct xmem_pool *pool = open_reader(new_name());

	REFUSED(xmem_receive_any(NULL, 0, &one), EINVAL);
	CHECK(!one);
	one = poison;
	REFUSED(xmem_receive_any(pool, -1, &one), EINVAL);
	CHECK(!one);
	one = poison;
	REFUSED(xmem_receive_any(pool, 0, &one), ENOENT);
	CHECK(!one);
	xmem_pool_close(pool);
	one = poison;
	REFUSED(xmem_receive_any(pool, 0, &one), EBADF);
	CHECK(!one);
}
