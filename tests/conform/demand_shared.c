// SPDX-License-Identifier: MIT
/*
 * Buffers that are made on demand, and that every writer may write in place. Buffers that other
 * clients have changed, given up or published return to their owner like any others: the owner uses
 * them again, gives them back to the system, and learns of them when it waits or polls for another
 * size.
 */
#include <pthread.h>

#include "harness.h"
#include "polling.h"

#define PAGE	page_size()
#define MB	(1ULL << 20)

/* An owner, a stage that changes what it receives, and a sink behind it. */
struct scene {
	const char *name;
	struct xmem_pool *owner, *stage, *sink;
	struct xmem_subscription *first, *second;
};

static struct scene start(uint64_t limit)
{
	struct scene s = { .name = new_name() };

	s.owner = OPEN(s.name, .flags = XMEM_OPEN_WRITER,
		       .demand_bytes = limit, .wait_bound_ns = XMEM_FOREVER);
	s.stage = OPEN(s.name, .flags = XMEM_OPEN_WRITER);
	s.sink = OPEN(s.name, .flags = XMEM_OPEN_WRITER);
	s.first = follow(s.stage, xmem_pool_client(s.owner), 0);
	s.second = follow(s.sink, xmem_pool_client(s.stage), 0);
	return s;
}

static void end(struct scene *s)
{
	xmem_unsubscribe(s->second);
	xmem_unsubscribe(s->first);
	xmem_pool_close(s->sink);
	xmem_pool_close(s->stage);
	check_quiet(s->owner, 1);
	CHECK(trim_pool(s->owner, 0) > 0);	/* none of its memory is lost */
	SAME(stat_of(s->owner).attached, 0);
	xmem_pool_close(s->owner);
}

/* The owner publishes this many bytes, and the stage is the only holder. */
static struct xmem_buffer *pass(struct scene *s, size_t bytes, uint64_t stamp)
{
	struct xmem_buffer *b = xmem_acquire(s->owner, bytes, 0);

	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	fill(b, stamp);
	WORKED(xmem_publish(b, NULL, NULL));
	b = receive_one(s->first);
	SAME(stamp_of(b), stamp);
	return b;
}

TEST(P1_what_is_made_on_demand_is_written_in_place)
{
	struct scene s = start(0);
	struct xmem_pool *reader = open_reader(s.name);
	uint64_t stamp;
	struct xmem_buffer *b, *got;
	size_t bytes;

	for (stamp = 1; stamp < 100; stamp++) {
		bytes = stamp % 3 ? PAGE : 5 * PAGE;
		b = pass(&s, bytes, stamp);
		SAME(info_of(b).flags, XMEM_BUFFER_SHARED);
		got = xmem_get(reader, xmem_token(b));
		CHECK(got);
		SAME(xmem_get_mut(b), -EBUSY);
		SAME(stamp_of(got), stamp);
		xmem_release(got);
		WORKED(xmem_get_mut(b));
		fill(b, stamp << 32);
		if (stamp % 2) {
			WORKED(xmem_publish(b, NULL, NULL));
			b = receive_one(s.second);
			SAME(info_of(b).publisher, xmem_pool_client(s.stage));
			SAME(stamp_of(b), stamp << 32);
			SAME(xmem_size(b), bytes);
		}
		xmem_release(b);
	}
	/* The buffers are used again, but one that was given up may return a little later. */
	CHECK(stat_of(s.owner).attached < 20);
	xmem_pool_close(reader);
	end(&s);
}

/* The buffers are of two kinds and of one size: each acquire takes either. */
TEST(API_buffers_on_demand_beside_preallocated_ones_of_another_kind)
{
	struct scene s = start(8 * MB);
	struct xmem_buffer *b[4];
	int i, shared = 0;

	WORKED(xmem_preallocate(s.owner, PAGE, 2,
				XMEM_OPTIONS(xmem_preallocate_options,
					     .flags = XMEM_MEMORY_SEALED)));
	for (i = 0; i < 4; i++) {
		b[i] = pass(&s, PAGE, i + 1);
		shared += info_of(b[i]).flags & XMEM_BUFFER_SHARED ? 1 : 0;
		SAME(xmem_get_mut(b[i]),
		     info_of(b[i]).flags & XMEM_BUFFER_SHARED ? 0 : -EOPNOTSUPP);
	}
	SAME(shared, 2);
	for (i = 0; i < 4; i++)
		xmem_release(b[i]);
	end(&s);
}

TEST(API_shared_buffers_on_demand_in_huge_pages)
{
	const char *name = new_name();
	struct xmem_pool *owner = OPEN(name, .flags = XMEM_OPEN_WRITER,
				       .memory = XMEM_MEMORY_HUGE);
	struct xmem_pool *stage = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *b = xmem_acquire(owner, huge_page_size(), 0), *got;
	uint64_t token;

	CHECK(b);
	fill(b, 1);
	CHECK(info_of(b).flags & XMEM_BUFFER_SHARED);
	SAME(stat_of(owner).bytes_huge + stat_of(owner).bytes_advised, huge_page_size());
	WORKED(xmem_publish(b, &keep, &token));
	got = xmem_get(stage, token);
	CHECK(got);
	xmem_release(b);
	WORKED(xmem_get_mut(got));
	fill(got, 2);
	WORKED(xmem_publish(got, NULL, NULL));
	xmem_pool_close(stage);
	check_quiet(owner, 1);
	xmem_pool_close(owner);
}

/* ---- waiting for a buffer of another size ---- */

static void *acquire_large(void *argument)
{
	struct xmem_buffer *b = xmem_acquire(argument, 2 * PAGE, patience_ns());

	WORKED(b ? 0 : xmem_peek_last_error(NULL));
	xmem_release(b);
	return NULL;
}

TEST(P9_a_buffer_given_up_in_place_makes_room_for_a_larger_one)
{
	struct scene s = start(2 * PAGE);
	struct xmem_buffer *b = pass(&s, PAGE, 1);
	pthread_t thread;

	WORKED(xmem_get_mut(b));
	REFUSED(xmem_acquire(s.owner, 2 * PAGE, 0), EAGAIN);
	SAME(pthread_create(&thread, NULL, acquire_large, s.owner), 0);
	xmem_release(b);
	SAME(pthread_join(thread, NULL), 0);
	end(&s);
}

/* Only two buffers may be made. A larger one can be made once both have returned. */
static void poll_for_larger(bool publishes)
{
	struct scene s = start(2 * PAGE);
	struct xmem_buffer *b[2], *large;
	int i;

	for (i = 0; i < 2; i++)
		b[i] = pass(&s, PAGE, i + 1);
	for (i = 0; i < 2; i++)
		WORKED(xmem_get_mut(b[i]));
	REFUSED(xmem_acquire(s.owner, 2 * PAGE, 0), EAGAIN);
	/* The descriptor may be ready in vain when only one has returned. */
	for (i = 0; i < 2; i++) {
		REFUSED(xmem_acquire(s.owner, 2 * PAGE, 0), EAGAIN);
		if (publishes) {
			WORKED(xmem_publish(b[i], NULL, NULL));
			b[i] = receive_one(s.second);
			REFUSED(xmem_acquire(s.owner, 2 * PAGE, 0), EAGAIN);
		}
		xmem_release(b[i]);
	}
	/* Each return may count twice: the client drops its hold, and the host takes the slot. */
	large = acquire_by_poll(s.owner, 2 * PAGE, 4);
	xmem_release(large);
	end(&s);
}

TEST(P9_poll_wakes_for_buffers_given_up_in_place)
{
	poll_for_larger(false);
}

TEST(P9_poll_wakes_for_buffers_published_in_place)
{
	poll_for_larger(true);
}
