// SPDX-License-Identifier: MIT
/*
 * Writers that make buffers on demand and poll: an acquire fails for lack of room, and the
 * descriptor is writable as soon as releases of other clients, or calls of the owner itself, may
 * have made that room (P9).
 */
#include "harness.h"
#include "polling.h"

#define PAGE	page_size()

/* A writer whose two buffers fill its two pages. A reader has both. */
struct scene {
	struct xmem_pool *pool, *reader;
	struct xmem_buffer *held[2];
	uint64_t token[2];
};

static void start(struct scene *s, size_t bytes, uint64_t limit)
{
	const char *name = new_name();
	int i;

	s->pool = OPEN(name, .flags = XMEM_OPEN_WRITER, .demand_bytes = limit,
		       .wait_bound_ns = XMEM_FOREVER);
	s->reader = open_reader(name);
	for (i = 0; i < 2; i++) {
		struct xmem_publish_options keep = {
			.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP,
		};
		struct xmem_buffer *b = xmem_acquire(s->pool, bytes, 0);

		CHECK(b);
		WORKED(xmem_publish(b, &keep, &s->token[i]));
		CHECK((s->held[i] = xmem_get(s->reader, s->token[i])));
		xmem_release(b);
	}
}

static void refused(struct scene *s, size_t bytes)
{
	acquire_in_vain(s->pool, bytes);
}

static void told(struct scene *s, size_t bytes)
{
	xmem_release(acquire_by_poll(s->pool, bytes, 0));
}

static void end(struct scene *s)
{
	xmem_pool_close(s->reader);
	xmem_pool_close(s->pool);
}

/* Two buffers share a file, which is given back only when both are free. */
TEST(P9_poll_wakes_for_the_other_half_of_a_file)
{
	struct scene s;

	start(&s, PAGE / 2, PAGE);
	xmem_release(s.held[0]);
	refused(&s, PAGE);
	xmem_release(s.held[1]);
	told(&s, PAGE);
	end(&s);
}

/* The file of a buffer is larger than the buffer: it has whole pages. */
TEST(P9_poll_wakes_for_buffers_that_do_not_fill_their_pages)
{
	struct scene s;

	start(&s, PAGE + PAGE / 8, 4 * PAGE);
	refused(&s, 4 * PAGE);
	xmem_release(s.held[0]);
	refused(&s, 4 * PAGE);
	xmem_release(s.held[1]);
	told(&s, 4 * PAGE);
	end(&s);
}

TEST(P9_poll_wakes_for_the_rest_of_a_collection)
{
	struct scene s;

	start(&s, PAGE, 2 * PAGE);
	refused(&s, 2 * PAGE);
	xmem_release(s.held[0]);
	SAME(xmem_collect(s.pool, XMEM_KEEP_ALL, NULL), 1);
	refused(&s, 2 * PAGE);
	xmem_release(s.held[1]);
	told(&s, 2 * PAGE);
	end(&s);
}

TEST(P9_poll_wakes_for_its_own_retractions)
{
	struct xmem_subscription *waited;
	uint64_t token;
	struct scene s;

	start(&s, PAGE, 3 * PAGE);
	waited = follow(s.reader, xmem_pool_client(s.pool), XMEM_SUBSCRIBE_WAITS);
	WORKED(xmem_publish(xmem_acquire(s.pool, PAGE, 0), NULL, &token));
	refused(&s, 3 * PAGE);
	xmem_release(s.held[0]);
	xmem_release(s.held[1]);
	refused(&s, 3 * PAGE);
	WORKED(xmem_retract(s.pool, token));
	told(&s, 3 * PAGE);
	xmem_unsubscribe(waited);
	end(&s);
}
