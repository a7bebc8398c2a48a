// SPDX-License-Identifier: MIT
/*
 * A writer keeps its last publications that a later subscriber could receive. Publications that
 * were sent to one client, retracted, evicted, forwarded or written in place leave gaps, and for
 * each gap one older publication stays.
 */
#include "past.h"

static struct xmem_pool *open_with_gaps(const char *name, uint32_t keep, uint32_t memory,
					unsigned int buffers)
{
	struct xmem_pool_options o = {
		.size = sizeof(o), .flags = XMEM_OPEN_WRITER, .keep = keep, .ring_entries = 64,
	};
	struct xmem_pool *pool = xmem_pool_open(name, &o);

	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, buffers,
				XMEM_OPTIONS(xmem_preallocate_options, .flags = memory)));
	return pool;
}

/* A later subscriber with this much history receives these publications and nothing else. */
static void receives(const char *name, struct xmem_pool *writer, uint32_t history,
		     const int *stamps, int count)
{
	struct xmem_pool_options o = { .size = sizeof(o), .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *late = xmem_pool_open(name, &o);	/* a writer also reads */
	struct xmem_subscription *s = follow_past(late, xmem_pool_client(writer), history);
	int i;

	for (i = 0; i < count; i++)
		receive_stamp(s, stamps[i]);
	receive_nothing(s);
	xmem_unsubscribe(s);
	xmem_pool_close(late);
}

#define RECEIVES(name, writer, history, ...) \
	receives(name, writer, history, (int []){ __VA_ARGS__ }, \
		 sizeof((int []){ __VA_ARGS__ }) / sizeof(int))

static struct xmem_buffer *acquire(struct xmem_pool *writer)
{
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);

	CHECK(b);
	return b;
}

/* Send @count to the one subscriber, which receives them all. */
static void send_and_receive(struct xmem_pool *writer, struct xmem_pool *reader,
			     struct xmem_subscription *s, int count)
{
	struct xmem_buffer *b;

	while (count--) {
		b = acquire(writer);
		WORKED(send_to(b, xmem_pool_client(reader), NULL));
		b = xmem_receive(s, 0);
		CHECK(b);
		xmem_release(b);
	}
}

TEST(API_what_is_sent_to_one_is_not_kept)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_with_gaps(name, 3, XMEM_MEMORY_SEALED, 16);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	int i;

	publish_stamps(writer, 0, 5);
	for (i = 0; i < 5; i++)
		receive_stamp(s, i);
	send_and_receive(writer, reader, s, 5);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	SAME(stat_of(writer).live, 3);
	RECEIVES(name, writer, 3, 2, 3, 4);
	send_and_receive(writer, reader, s, 200);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	receives(name, writer, 3, NULL, 0);	/* the ring has only the last 64 */
	SAME(stat_of(writer).live, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Buffers that were sent to one client are used again before a kept publication goes. */
TEST(API_what_is_sent_to_one_goes_before_what_is_kept)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_with_gaps(name, 4, XMEM_MEMORY_SEALED, 5);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	struct xmem_buffer *b;
	int i;

	publish_stamps(writer, 0, 4);
	for (i = 0; i < 4; i++)
		receive_stamp(s, i);
	send_and_receive(writer, reader, s, 20);
	b = acquire(writer);
	RECEIVES(name, writer, 4, 0, 1, 2, 3);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_what_is_retracted_is_not_kept)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_with_gaps(name, 3, XMEM_MEMORY_SEALED, 9);
	uint64_t token[8];
	int i;

	for (i = 0; i < 8; i++)
		token[i] = publish_stamp(writer, i);
	WORKED(xmem_retract(writer, token[7]));
	WORKED(xmem_retract(writer, token[6]));
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, writer, 8, 3, 4, 5);
	for (i = 8; i < 60; i++)
		WORKED(xmem_retract(writer, publish_stamp(writer, i)));
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, writer, 8, 3, 4, 5);
	publish_stamp(writer, 60);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, writer, 8, 4, 5, 60);
	xmem_pool_close(writer);
}

/* Held publications stay when an acquire has to evict, so a newer one goes. */
TEST(API_what_is_evicted_is_not_kept)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_with_gaps(name, 2, XMEM_MEMORY_SEALED, 3);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_buffer *held = xmem_get(reader, publish_stamp(writer, 0)), *b[2];

	CHECK(held);
	publish_stamp(writer, 1);
	b[0] = acquire(writer);
	b[1] = acquire(writer);
	fill(b[0], 2);
	WORKED(xmem_publish(b[0], NULL, NULL));
	xmem_release(b[1]);
	xmem_release(held);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, writer, 8, 0, 2);
	publish_stamp(writer, 3);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, writer, 8, 2, 3);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* The last ones that are older than the depth go in one batch, but no kept one goes with them. */
TEST(API_a_batch_that_is_evicted_leaves_what_is_kept)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_with_gaps(name, 6, XMEM_MEMORY_SEALED, 8);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	uint64_t token[8];
	int i;

	for (i = 0; i < 8; i++)
		token[i] = publish_stamp(writer, i);
	for (i = 7; i > 3; i--)
		WORKED(xmem_retract(writer, token[i]));
	for (i = 8; i < 12; i++)
		publish_stamp(writer, i);
	xmem_release(acquire(writer));
	xmem_unsubscribe(s);
	RECEIVES(name, writer, 8, 2, 3, 8, 9, 10, 11);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/*
 * A publication that a stage forwards stays as long as its owner keeps it, and does not count for
 * the stage.
 */
TEST(API_what_is_forwarded_is_not_kept)
{
	const char *name = new_name();
	struct xmem_pool *stage = open_with_gaps(name, 2, XMEM_MEMORY_SEALED, 4);
	struct xmem_pool *source = open_with_gaps(name, 0, XMEM_MEMORY_SEALED, 2);
	struct xmem_subscription *s = follow(stage, xmem_pool_client(source), 0);
	struct xmem_buffer *b;
	int i;

	publish_stamps(stage, 0, 2);
	for (i = 0; i < 6; i++) {
		publish_stamp(source, i);
		b = xmem_receive(s, 0);
		CHECK(b);
		WORKED(xmem_publish(b, NULL, NULL));
	}
	xmem_unsubscribe(s);
	xmem_pool_close(source);
	CHECK(xmem_collect(stage, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, stage, 2, 0, 1);
	xmem_pool_close(stage);
}

/* Contents that a client has written in place are received no more, and their buffer returns. */
TEST(API_what_is_written_in_place_is_not_kept)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_with_gaps(name, 2, 0, 6);
	struct xmem_pool *stage = open_with_gaps(name, 0, 0, 1);
	uint64_t token[4];
	struct xmem_buffer *b;
	int i;

	for (i = 0; i < 4; i++)
		token[i] = publish_stamp(writer, i);
	b = xmem_get(stage, token[2]);
	CHECK(b);
	WORKED(xmem_get_mut(b));
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	RECEIVES(name, writer, 8, 1, 3);
	xmem_release(b);
	CHECK(xmem_collect(writer, XMEM_KEEP_ALL, NULL) >= 0);
	SAME(stat_of(writer).live, 2);
	RECEIVES(name, writer, 8, 1, 3);
	xmem_pool_close(stage);
	xmem_pool_close(writer);
}
