// SPDX-License-Identifier: MIT
/*
 * How long contents are: as long as was acquired, unless the publisher says otherwise, and never
 * beyond the buffer.
 */
#include "harness.h"

#define BYTES	100000

struct pair {
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
};

static void open_pair(struct pair *pair)
{
	const char *name = new_name();

	pair->writer = open_writer(name, 2, BYTES);
	pair->reader = open_reader(name);
	pair->s = follow(pair->reader, xmem_pool_client(pair->writer), 0);
}

static void close_pair(struct pair *pair)
{
	xmem_unsubscribe(pair->s);
	xmem_pool_close(pair->reader);
	check_quiet(pair->writer, 1);
	xmem_pool_close(pair->writer);
}

/* Both a receive and a get by token have @bytes from @offset of the buffer on. */
static void arrives(struct pair *pair, const struct xmem_publish_options *options, size_t acquired,
		    size_t offset, size_t bytes)
{
	struct xmem_buffer *b = xmem_acquire(pair->writer, acquired, 0), *same;
	unsigned char *data = xmem_data_mut(b);
	size_t i;

	CHECK(b && data);
	SAME(xmem_size(b), acquired ? acquired : BYTES);
	SAME(xmem_capacity(b), BYTES);
	for (i = 0; i < BYTES; i++)
		data[i] = i % 251;
	WORKED(xmem_publish(b, options, NULL));
	b = xmem_receive(pair->s, 0);
	CHECK(b);
	same = xmem_get(pair->reader, xmem_token(b));
	CHECK(same);
	SAME(xmem_size(b), bytes);
	SAME(xmem_size(same), bytes);
	SAME(xmem_capacity(b), BYTES);
	SAME(xmem_capacity(same), BYTES);
	SAME(xmem_metadata_ptr(b)->size, bytes);
	SAME(xmem_metadata_ptr(b)->offset, offset);
	if (bytes) {
		SAME(*(const unsigned char *)xmem_data(b), offset % 251);
		SAME(((const unsigned char *)xmem_data(same))[bytes - 1],
		     (offset + bytes - 1) % 251);
	}
	xmem_release(same);
	xmem_release(b);
}

TEST(API_contents_are_as_long_as_was_acquired)
{
	struct xmem_publish_options plain = { .size = sizeof(plain) };
	struct pair pair;

	open_pair(&pair);
	arrives(&pair, NULL, 10, 0, 10);
	arrives(&pair, &plain, 10, 0, 10);
	arrives(&pair, NULL, BYTES, 0, BYTES);
	arrives(&pair, NULL, 0, 0, BYTES);
	arrives(&pair, &plain, 0, 0, BYTES);
	close_pair(&pair);
}

TEST(API_a_publisher_may_say_another_length)
{
	struct xmem_publish_options options = { .size = sizeof(options), .length = 3 };
	struct pair pair;

	open_pair(&pair);
	arrives(&pair, &options, 10, 0, 3);
	options.length = 5000;			/* more than was acquired, but there */
	arrives(&pair, &options, 10, 0, 5000);
	options.length = BYTES;
	arrives(&pair, &options, 10, 0, BYTES);
	options.length = 0;
	options.offset = 4;			/* up to the end of what was acquired */
	arrives(&pair, &options, 10, 4, 6);
	options.offset = 10;
	arrives(&pair, &options, 10, 10, 0);
	options.offset = BYTES - 1;
	options.length = 1;
	arrives(&pair, &options, 10, BYTES - 1, 1);
	close_pair(&pair);
}

TEST(API_contents_beyond_the_buffer_are_ERANGE)
{
	static const struct { uint64_t offset, length; } wrong[] = {
		{ 0, BYTES + 1 }, { 1, BYTES }, { BYTES, 1 }, { BYTES + 1, 1 }, { 11, 0 },
		{ BYTES, 0 }, { ~0ULL, 1 }, { 1, ~0ULL }, { ~0ULL, ~0ULL }, { ~0ULL, 0 },
	};
	struct xmem_pool *writer = open_writer(new_name(), 1, BYTES);
	struct xmem_buffer *b = xmem_acquire(writer, 10, 0);
	const char *why;
	unsigned int i;

	CHECK(b);
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct xmem_publish_options options = {
			.size = sizeof(options),
			.offset = wrong[i].offset,
			.length = wrong[i].length,
		};
		uint64_t token = 0x5a5a;

		SAME(xmem_publish(b, &options, &token), -ERANGE);
		why = last_message();
		SAME(xmem_get_last_error(NULL), -ERANGE);
		CHECK(strstr(why, "100000") && strstr(why, "10 of"));
		SAME(token, 0x5a5a);
		SAME(xmem_size(b), 10);		/* the refused publish has not changed the buffer */
	}
	WORKED(xmem_publish(b, NULL, NULL));
	xmem_pool_close(writer);
}
