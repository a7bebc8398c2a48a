// SPDX-License-Identifier: MIT
/*
 * Several writers fill one buffer, by turns. Each fills its range and hands the buffer over as its
 * only reference, and the next one writes on in place. A writer that is killed in its turn costs
 * the others nothing.
 */
#include <string.h>

#include "harness.h"

#define WRITERS	4
#define PART	4096
#define LONG	(60 * SECOND)		/* longer than any wait here */

static const char *name_of_pool;

/* Fill this writer's range. The next client that gets this token then has the buffer. */
static uint64_t fill_part(struct xmem_buffer *b, unsigned int part)
{
	char *bytes = xmem_data_mut(b);
	uint64_t token;

	CHECK(bytes);
	memset(bytes + part * PART, 'a' + part, PART);
	WORKED(xmem_set_ref_count(b, 1, LONG));
	token = xmem_token(b);
	WORKED(xmem_forget(b));
	return token;
}

/* Get the buffer that a token names, to write on. */
static struct xmem_buffer *take_over(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_buffer *b = xmem_get(pool, token);

	CHECK(b);
	WORKED(xmem_get_mut(b));
	SAME(xmem_capacity(b), WRITERS * PART);
	return b;
}

static void writer(void *argument)
{
	struct xmem_pool *pool = OPEN(name_of_pool, .flags = XMEM_OPEN_WRITER);

	tell_parent(fill_part(take_over(pool, hear_parent()), (uintptr_t)argument));
	hear_parent();
}

TEST(P6_writers_fill_one_buffer_by_turns)
{
	struct xmem_pool *pool = OPEN(name_of_pool = new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *viewer = open_reader(name_of_pool);
	struct xmem_subscription *frames = follow(viewer, xmem_pool_client(pool), 0);
	struct child *children[WRITERS] = { NULL };
	struct xmem_buffer *b = xmem_acquire(pool, WRITERS * PART, 0);
	const char *seen, *address;
	uint64_t token;

	CHECK(b);
	address = xmem_data_mut(b);
	token = fill_part(b, 0);
	for (uintptr_t part = 1; part < WRITERS; part++) {
		children[part] = spawn(writer, (void *)part);
		tell(children[part], token);
		token = hear(children[part]);
	}
	b = take_over(pool, token);
	CHECK(xmem_data_mut(b) == address);
	WORKED(xmem_publish(b, NULL, NULL));

	b = xmem_receive(frames, patience_ns());
	CHECK(b);
	seen = xmem_data(b);
	for (size_t i = 0; i < WRITERS * PART; i++)
		SAME(seen[i], 'a' + i / PART);
	xmem_release(b);
	for (unsigned int part = 1; part < WRITERS; part++) {
		tell(children[part], 1);
		finish_child(children[part]);
	}
	xmem_unsubscribe(frames);
	xmem_pool_close(viewer);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

static void dies_in_its_turn(void *argument)
{
	struct xmem_pool *pool = OPEN(name_of_pool, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b = take_over(pool, hear_parent());

	memset((char *)xmem_data_mut(b) + PART, 'x', PART);
	tell_parent(1);
	hear_parent();
}

TEST(P2_a_writer_is_killed_in_its_turn)
{
	struct xmem_pool *pool = OPEN(name_of_pool = new_name(), .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *b = xmem_acquire(pool, WRITERS * PART, 0);
	struct child *child = spawn(dies_in_its_turn, NULL);
	uint64_t token;

	CHECK(b);
	token = fill_part(b, 0);
	tell(child, token);
	hear(child);
	kill_child(child);

	/* The half-written contents are gone, and the buffer is free. */
	REFUSED(xmem_get(pool, token), ESTALE);
	/* Before the host has seen the death, this call would make another buffer on demand. */
	EVENTUALLY(stat_of(pool).clients == 1);
	b = xmem_acquire(pool, WRITERS * PART, patience_ns());
	CHECK(b);
	SAME(stat_of(pool).attached, 1);
	xmem_release(b);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}
