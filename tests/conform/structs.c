// SPDX-License-Identifier: MIT
/*
 * Structs of the public header grow at their end. A program that was compiled against an older or a
 * newer header passes shorter or longer ones. The tests try each struct one field short, exact,
 * longer with zeros, and longer with other bytes.
 */
#include <stddef.h>

#include "harness.h"

#define BYTES	4096
#define MORE	16		/* bytes that a newer header has */
#define POISON	0xa5

/* A struct as a newer header has it. */
#define LONGER(type) struct { struct type known; unsigned char more[MORE]; }

TEST(API_pool_options_grow)
{
	LONGER(xmem_pool_options) o = { .known = { .label = (const char *)1 } };
	struct xmem_pool *pool;

	/* The older header ends before the label, so the label is not read. */
	o.known.size = offsetof(struct xmem_pool_options, label);
	o.known.flags = XMEM_OPEN_WRITER;
	pool = xmem_pool_open(new_name(), &o.known);
	CHECK(pool);
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	xmem_pool_close(pool);
	o.known.size = sizeof(size_t) + sizeof(uint32_t);	/* the least: size and flags */
	pool = xmem_pool_open(new_name(), &o.known);
	CHECK(pool);
	xmem_pool_close(pool);
	o.known.size--;
	REFUSED(xmem_pool_open(new_name(), &o.known), EINVAL);
	o.known.size = 0;
	REFUSED(xmem_pool_open(new_name(), &o.known), EINVAL);

	o.known.label = "newer";
	o.known.keep = ~0u;
	o.known.size = offsetof(struct xmem_pool_options, keep);
	pool = xmem_pool_open(new_name(), &o.known);
	CHECK(pool);
	xmem_pool_close(pool);
	o.known.keep = 1;
	o.known.size = sizeof(o);
	pool = xmem_pool_open(new_name(), &o.known);
	CHECK(pool);
	xmem_pool_close(pool);
	o.more[MORE - 1] = 1;
	REFUSED(xmem_pool_open(new_name(), &o.known), E2BIG);
	o.known.size = ~(size_t)0;		/* never set: nothing is read */
	REFUSED(xmem_pool_open(new_name(), &o.known), E2BIG);
}

TEST(API_subscribe_options_grow)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	LONGER(xmem_subscribe_options) o = { .known = { .publisher = 12345, .timeout_ns = -1 } };
	struct xmem_subscription *s;

	o.known.size = offsetof(struct xmem_subscribe_options, publisher);
	s = xmem_subscribe(reader, &o.known);
	CHECK(s);
	xmem_unsubscribe(s);
	o.known.size = offsetof(struct xmem_subscribe_options, timeout_ns);
	REFUSED(xmem_subscribe(reader, &o.known), EINVAL);	/* now the publisher is there */
	o.known.publisher = 0;
	s = xmem_subscribe(reader, &o.known);
	CHECK(s);
	xmem_unsubscribe(s);
	o.known.size = sizeof(size_t) + sizeof(uint32_t) - 1;
	REFUSED(xmem_subscribe(reader, &o.known), EINVAL);

	o.known.timeout_ns = 0;
	/* An earlier header ends here, so nothing behind it is read. */
	o.known.history = o.known.depth = ~0u;
	o.known.label = (const char *)1;
	o.known.size = offsetof(struct xmem_subscribe_options, history);
	s = xmem_subscribe(reader, &o.known);
	CHECK(s);
	xmem_unsubscribe(s);
	o.known.label = NULL;
	o.known.size = sizeof(o);
	s = xmem_subscribe(reader, &o.known);
	CHECK(s);
	xmem_unsubscribe(s);
	o.more[0] = 1;
	REFUSED(xmem_subscribe(reader, &o.known), E2BIG);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_a_source_grows)
{
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = xmem_acquire(writer, 10, 0);
	LONGER(xmem_source) o = { .known = { .producer = "p", .timestamp_ns = 7,
					     .clock = (const char *)1 } };
	struct xmem_metadata *said = xmem_metadata_mut(b);

	CHECK(said);
	/* The older header ends before the clock, so the clock is not read. */
	o.known.size = offsetof(struct xmem_source, clock);
	WORKED(xmem_describe_source(b, &o.known));
	CHECK(!strcmp(said->producer, "p") && !strcmp(said->clock, "CLOCK_MONOTONIC"));
	o.known.size = sizeof(size_t) + sizeof(uint32_t) - 1;
	SAME(xmem_describe_source(b, &o.known), -EINVAL);
	o.known.clock = "CLOCK_TAI";
	o.known.size = sizeof(o);
	o.more[1] = 1;
	SAME(xmem_describe_source(b, &o.known), -E2BIG);
	CHECK(!strcmp(said->clock, "CLOCK_MONOTONIC"));
	o.more[1] = 0;
	WORKED(xmem_describe_source(b, &o.known));
	CHECK(!strcmp(said->clock, "CLOCK_TAI"));
	xmem_release(b);
	xmem_pool_close(writer);
}

TEST(API_publish_options_grow)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	LONGER(xmem_publish_options) o = { .known = { .length = ~0ULL, .timestamp_ns = 7 } };
	struct xmem_buffer *b = xmem_acquire(writer, 10, 0);

	CHECK(b);
	o.known.size = sizeof(size_t) + sizeof(uint32_t) - 1;
	SAME(xmem_publish(b, &o.known, NULL), -EINVAL);
	o.known.size = sizeof(o);
	SAME(xmem_publish(b, &o.known, NULL), -ERANGE);
	o.more[3] = 1;
	SAME(xmem_publish(b, &o.known, NULL), -E2BIG);
	o.more[3] = 0;
	o.known.size = offsetof(struct xmem_publish_options, length);
	WORKED(xmem_publish(b, &o.known, NULL));
	b = xmem_receive(s, 0);
	CHECK(b);
	SAME(xmem_size(b), 10);
	SAME(info_of(b).timestamp_ns, 7);
	xmem_release(b);

	b = xmem_acquire(writer, 10, 0);
	CHECK(b);
	o.known.length = 5;
	o.known.size = sizeof(o);
	WORKED(xmem_publish(b, &o.known, NULL));
	b = xmem_receive(s, 0);
	CHECK(b);
	SAME(xmem_size(b), 5);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- answers ---- */

struct question {
	struct xmem_pool *pool;
	size_t bytes;			/* of the struct as this header has it */
	int (*ask)(struct xmem_pool *pool, void *ret);
};

static int ask_pool(struct xmem_pool *pool, void *ret)
{
	return xmem_pool_stat(pool, ret);
}

static int ask_client(struct xmem_pool *pool, void *ret)
{
	return xmem_pool_client_info(pool, xmem_pool_client(pool), ret);
}

static int ask_slot(struct xmem_pool *pool, void *ret)
{
	return xmem_pool_slot_info(pool, 0, ret);
}

/*
 * The answer to a struct of @size bytes is the first @size of @whole, and no byte behind changes.
 */
static void answered(const struct question *question, const unsigned char *whole, size_t size)
{
	union {
		size_t size;
		unsigned char byte[512];
	} answer;
	size_t valid = size < question->bytes ? size : question->bytes, i;

	memset(answer.byte, POISON, sizeof(answer.byte));
	answer.size = size;
	WORKED(question->ask(question->pool, &answer));
	SAME(answer.size, valid);
	CHECK(!memcmp(answer.byte + sizeof(size_t), whole + sizeof(size_t),
		      valid - sizeof(size_t)));
	for (i = valid; i < sizeof(answer.byte); i++)
		SAME(answer.byte[i], POISON);
}

static void answers_fit(const struct question *question)
{
	union {
		size_t size;
		unsigned char byte[512];
	} whole;
	size_t size;

	memset(whole.byte, POISON, sizeof(whole.byte));
	whole.size = question->bytes;
	WORKED(question->ask(question->pool, &whole));
	for (size = sizeof(size_t); size <= question->bytes + MORE; size++)
		answered(question, whole.byte, size);
	whole.size = sizeof(size_t) - 1;
	SAME(question->ask(question->pool, &whole), -EINVAL);
	SAME(whole.size, sizeof(size_t) - 1);
	SAME(question->ask(question->pool, NULL), -EINVAL);
}

TEST(API_answers_are_cut_to_the_callers_size)
{
	struct xmem_pool *pool = open_writer(new_name(), 3, BYTES);
	const struct question question[] = {
		{ pool, sizeof(struct xmem_pool_info), ask_pool },
		{ pool, sizeof(struct xmem_client_info), ask_client },
		{ pool, sizeof(struct xmem_slot_info), ask_slot },
	};
	struct xmem_buffer *kept;
	unsigned int i;

	publish_kept(pool, 1, &kept);
	for (i = 0; i < sizeof(question) / sizeof(*question); i++)
		answers_fit(&question[i]);
	xmem_release(kept);
	xmem_pool_close(pool);
}
