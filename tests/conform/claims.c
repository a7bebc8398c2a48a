// SPDX-License-Identifier: MIT
/*
 * Handing buffers over by count: a producer says how many references there are, passes the token
 * on in a way of its own, and forgets the buffer. It is free with the last release, and not before.
 */
#include "harness.h"

#define BYTES	4096

static uint32_t claims_of(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_slot_info info = { .size = sizeof(info) };

	WORKED(xmem_pool_slot_info(pool, token & 0xffff, &info));
	return info.claims;
}

/* Acquire, fill with @stamp, say how many references there are: the handle stays. */
static struct xmem_buffer *counted(struct xmem_pool *pool, uint64_t stamp, uint32_t count,
				   int64_t timeout_ns)
{
	struct xmem_buffer *b = xmem_acquire(pool, BYTES, 0);

	CHECK(b);
	fill(b, stamp);
	WORKED(xmem_set_ref_count(b, count, timeout_ns));
	return b;
}

/* The same, and forget it: the token. */
static uint64_t hand_over(struct xmem_pool *pool, uint64_t stamp, uint32_t count,
			  int64_t timeout_ns)
{
	struct xmem_buffer *b = counted(pool, stamp, count, timeout_ns);
	uint64_t token = xmem_token(b);

	CHECK(token);
	SAME(stamp_of(b), stamp);
	WORKED(xmem_forget(b));
	SAME(claims_of(pool, token), count);
	return token;
}

/* Is the one buffer of this writer free? */
static bool is_free(struct xmem_pool *writer)
{
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0);

	if (!b && xmem_peek_last_error(NULL) != -EAGAIN)
		FAIL("acquire: %d", xmem_peek_last_error(NULL));
	xmem_release(b);
	return b;
}

/* ---- the pattern ---- */

struct consumer {
	const char *name;
	bool by_slot;
};

/* Get what it hears of, look, and release it when it hears again. */
static void consume(void *argument)
{
	const struct consumer *how = argument;
	struct xmem_pool *pool = open_reader(how->name);
	struct xmem_buffer *b;
	uint64_t token;

	tell_parent(1);
	while ((token = hear_parent())) {
		b = how->by_slot ? xmem_get_slot(pool, token & 0xffff) : xmem_get(pool, token);
		if (!b)
			FAIL("get: %d", xmem_peek_last_error(NULL));
		SAME(xmem_token(b), token);
		SAME(xmem_size(b), BYTES);
		tell_parent(stamp_of(b));
		hear_parent();
		xmem_release(b);
		tell_parent(1);
	}
	xmem_pool_close(pool);
}

static struct child *start_consumer(struct consumer *how)
{
	struct child *child = spawn(consume, how);

	hear(child);
	return child;
}

/* @child releases what it got. */
static void releases(struct child *child)
{
	tell(child, 1);
	hear(child);
}

static void pattern(bool by_slot)
{
	struct consumer how = { .name = new_name(), .by_slot = by_slot };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES);
	struct child *a = start_consumer(&how), *b = start_consumer(&how);
	uint64_t stamp, token;

	for (stamp = 1; stamp < 20; stamp++) {
		token = hand_over(writer, stamp, 2, 0);
		CHECK(!is_free(writer));
		tell(a, token);
		SAME(hear(a), stamp);
		CHECK(!is_free(writer));
		releases(a);
		CHECK(!is_free(writer));
		SAME(claims_of(writer, token), 1);
		tell(b, token);
		SAME(hear(b), stamp);
		SAME(claims_of(writer, token), 0);
		CHECK(!is_free(writer));
		releases(b);
		CHECK(is_free(writer));
		REFUSED(xmem_get(writer, token), ESTALE);
	}
	tell(a, 0);
	tell(b, 0);
	finish_child(a);
	finish_child(b);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P1_handed_over_by_count_a_buffer_is_free_with_the_last_release)
{
	pattern(false);
}

TEST(P1_handed_over_by_the_number_of_its_slot)
{
	pattern(true);
}

TEST(P1_a_writer_that_waits_is_woken_by_the_last_release)
{
	struct consumer how = { .name = new_name() };
	struct xmem_pool *writer = open_writer(how.name, 1, BYTES);
	struct child *a = start_consumer(&how);
	struct xmem_buffer *b;

	tell(a, hand_over(writer, 7, 1, 0));
	SAME(hear(a), 7);
	tell(a, 1);
	b = xmem_acquire(writer, BYTES, 15 * SECOND);
	CHECK(b);
	xmem_release(b);
	hear(a);
	tell(a, 0);
	finish_child(a);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}
