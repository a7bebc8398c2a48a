// SPDX-License-Identifier: MIT
/*
 * Copies: contents of any length and at any place arrive whole, with their metadata, within a pool
 * and between two pools, and no byte beside them changes.
 */
#include <stdlib.h>

#include "harness.h"

#define LARGE	((8 << 20) + 4096)

static unsigned char byte_at(size_t i)
{
	return (i * 2654435761u) >> 13;
}

static void fill_bytes(unsigned char *data, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		data[i] = byte_at(i);
}

static void same_bytes(const unsigned char *data, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (data[i] != byte_at(i))
			FAIL("byte %zu of %zu is wrong", i, bytes);
}

/* Each of these bytes is still 0xa5. */
static void untouched(const unsigned char *data, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (data[i] != 0xa5)
			FAIL("byte %zu beside the copy was written", i);
}

TEST(API_a_copy_of_any_size_to_any_place)
{
	static const size_t size[] = {
		0, 1, 63, 64, 65, 4096, 4 << 20, (4 << 20) - 1, (4 << 20) + 1,
		(4 << 20) + 63, (4 << 20) + 64, (4 << 20) + 65, 8 << 20,
	};
	static const size_t at[] = { 0, 1, 31, 32, 63, 64, 65, 4000 };
	struct xmem_pool *pool = open_writer(new_name(), 1, LARGE);
	struct xmem_buffer *b = xmem_acquire(pool, 0, 0);
	unsigned char *data = xmem_data_mut(b), *from = malloc(LARGE + 7);
	unsigned int s, a;

	CHECK(b && data && from);
	for (s = 0; s < sizeof(size) / sizeof(*size); s++)
		for (a = 0; a < sizeof(at) / sizeof(*at); a++) {
			size_t end = at[a] + size[s], after = end + 4096 < LARGE ? 4096 :
							      LARGE - end;

			fill_bytes(from + a % 7, size[s]);
			memset(data, 0xa5, at[a]);
			memset(data + end, 0xa5, after);
			WORKED(xmem_copy_from_host(b, at[a], from + a % 7, size[s], NULL));
			untouched(data, at[a]);
			same_bytes(data + at[a], size[s]);
			untouched(data + end, after);
		}
	SAME(xmem_size(b), LARGE);
	free(from);
	xmem_release(b);
	xmem_pool_close(pool);
}

/* Publish @bytes from @offset on, of a buffer for which @acquired bytes were acquired. */
static void copy_between(struct xmem_pool *writer, struct xmem_subscription *s,
			 struct xmem_pool *other, size_t offset, size_t bytes, size_t acquired)
{
	struct xmem_publish_options part = { .size = sizeof(part), .offset = offset,
					     .length = bytes };
	struct xmem_buffer *b = xmem_acquire(writer, 0, 0), *to;
	struct xmem_subscription *of_other;
	struct xmem_metadata m, same;
	int64_t shape = bytes;

	CHECK(b && xmem_data_mut(b));
	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_UINT8, 1, &shape, NULL));
	WORKED(SOURCE(b, .timestamp_ns = 77, .clock = "CLOCK_TAI"));
	xmem_metadata_mut(b)->user[7] = bytes;
	fill_bytes((unsigned char *)xmem_data_mut(b) + offset, bytes);
	WORKED(xmem_publish(b, &part, NULL));
	b = xmem_receive(s, 0);
	CHECK(b);

	of_other = follow(other, xmem_pool_client(other), 0);
	to = xmem_acquire(other, acquired, 0);
	CHECK(to);
	memset(xmem_data_mut(to), 0xa5, xmem_capacity(to));
	WORKED(xmem_copy(to, b, NULL));
	SAME(xmem_size(to), bytes);
	WORKED(xmem_publish(to, NULL, NULL));
	to = xmem_receive(of_other, 0);
	CHECK(to);
	SAME(xmem_size(to), bytes);
	same_bytes(xmem_data(to), bytes);
	untouched((const unsigned char *)xmem_data(to) + bytes, xmem_capacity(to) - bytes);
	WORKED(xmem_metadata_view(b, &m));
	WORKED(xmem_metadata_view(to, &same));
	SAME(m.offset, offset);
	SAME(same.offset, 0);
	m.offset = 0;
	CHECK(!memcmp(&m, &same, sizeof(m)));
	xmem_release(to);
	xmem_release(b);
	xmem_unsubscribe(of_other);
}

TEST(API_a_copy_has_contents_and_metadata_of_the_first)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, LARGE), *reader = open_reader(name);
	struct xmem_pool *other = open_writer(new_name(), 2, LARGE);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);

	copy_between(writer, s, other, 0, 100, 100);
	copy_between(writer, s, other, 3, 100, 0);
	copy_between(writer, s, other, 5, 6 << 20, 10);		/* longer than was acquired */
	copy_between(writer, s, other, 0, LARGE, 0);
	copy_between(writer, s, writer, 1, LARGE - 1, 1);	/* within one pool */
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	check_quiet(writer, 1);
	check_quiet(other, 1);
	xmem_pool_close(other);
	xmem_pool_close(writer);
}

TEST(API_a_copy_that_is_refused_changes_nothing)
{
	struct xmem_pool *pool = open_writer(new_name(), 1, 1000);
	struct xmem_pool *large = open_writer(new_name(), 2, 1001);
	struct xmem_buffer *to = xmem_acquire(pool, 10, 0), *from = xmem_acquire(large, 1001, 0);
	struct xmem_buffer *published;
	unsigned char *data = xmem_data_mut(to);
	const char *why;
	uint64_t token;

	CHECK(to && from && data);
	memset(data, 0xa5, 1000);
	memset(xmem_data_mut(from), 1, 1001);
	xmem_metadata_mut(to)->id = 5;
	SAME(xmem_copy(to, from, NULL), -ERANGE);
	why = last_message();
	SAME(xmem_get_last_error(NULL), -ERANGE);
	CHECK(strstr(why, "1001 bytes") && strstr(why, "1000"));
	SAME(xmem_copy_from_host(to, 0, data, 1001, NULL), -ERANGE);
	SAME(xmem_copy_from_host(to, 1000, data, 1, NULL), -ERANGE);
	SAME(xmem_copy_from_host(to, ~0ULL, data, 1, NULL), -ERANGE);
	SAME(xmem_copy_from_host(to, 1, data, ~0ULL, NULL), -ERANGE);
	SAME(xmem_copy_from_host(to, 1001, NULL, 0, NULL), -ERANGE);
	SAME(xmem_copy_from_host(to, 0, NULL, 1, NULL), -EINVAL);
	SAME(xmem_copy_from_host(to, 1000, NULL, 0, NULL), 0);
	SAME(xmem_copy(to, to, NULL), -EINVAL);
	SAME(xmem_copy(NULL, NULL, NULL), -EINVAL);
	SAME(xmem_copy(NULL, from, NULL), -EINVAL);
	SAME(xmem_copy(to, NULL, NULL), -EINVAL);
	SAME(xmem_copy_from_host(NULL, 0, data, 1, NULL), -EINVAL);
	untouched(data, 1000);
	SAME(xmem_size(to), 10);
	SAME(xmem_metadata_ptr(to)->id, 5);
	WORKED(xmem_publish(from, &(struct xmem_publish_options){
			.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP },
			&token));
	published = xmem_get(large, token);
	SAME(xmem_copy(published, to, NULL), -EPERM);
	SAME(xmem_copy_from_host(published, 0, data, 1, NULL), -EPERM);
	SAME(((const unsigned char *)xmem_data(published))[0], 1);
	xmem_release(published);
	SAME(xmem_copy(to, published, NULL), -EBADF);
	SAME(xmem_copy(published, to, NULL), -EBADF);
	xmem_release(from);
	xmem_release(to);
	xmem_pool_close(large);
	xmem_pool_close(pool);
}

TEST(API_a_part_is_copied_to_any_place)
{
	struct xmem_pool *pool = open_writer(new_name(), 2, LARGE);
	struct xmem_buffer *from = xmem_acquire(pool, 1000, 0), *to = xmem_acquire(pool, 10, 0);
	unsigned char *data = xmem_data_mut(to), got[100];
	uint64_t token;

	CHECK(from && data);
	fill_bytes(xmem_data_mut(from), 1000);
	memset(data, 0xa5, 2000);
	xmem_metadata_mut(to)->id = 5;
	xmem_metadata_mut(from)->id = 6;
	WORKED(xmem_publish(from, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP }, &token));
	WORKED(xmem_copy_range(to, 1000, from, 0, 1000, NULL));
	untouched(data, 1000);
	same_bytes(data + 1000, 1000);
	WORKED(xmem_copy_to_host(got, to, 1000, sizeof(got), NULL));	/* behind its contents */
	same_bytes(got, sizeof(got));
	WORKED(xmem_copy_range(to, 0, from, 999, 1, NULL));
	SAME(data[0], byte_at(999));
	untouched(data + 1, 999);
	/* Neither the length of the contents nor the metadata have changed. */
	SAME(xmem_size(to), 10);
	SAME(xmem_metadata_ptr(to)->id, 5);
	SAME(xmem_copy_range(to, 0, from, 1000, 0, NULL), 0);
	SAME(xmem_copy_range(to, 0, from, 999, 2, NULL), -ERANGE);
	SAME(xmem_copy_range(to, 0, from, 1, ~0ULL, NULL), -ERANGE);
	SAME(xmem_copy_range(to, LARGE, from, 0, 1, NULL), -ERANGE);
	SAME(xmem_copy_range(to, 0, to, 1, 1, NULL), -EINVAL);
	SAME(xmem_copy_range(from, 0, to, 0, 1, NULL), -EPERM);
	SAME(xmem_copy_to_host(got, from, 950, 51, NULL), -ERANGE);
	SAME(xmem_copy_to_host(NULL, from, 0, 1, NULL), -EINVAL);
	SAME(xmem_copy_to_host(NULL, from, 1000, 0, NULL), 0);
	SAME(xmem_copy_to_host(got, NULL, 0, 1, NULL), -EINVAL);
	xmem_release(from);
	xmem_release(to);
	xmem_pool_close(pool);
}

/* Bytes that move within a buffer are not overwritten before they are read, even if many move. */
TEST(API_a_copy_from_the_buffer_itself_moves)
{
	struct xmem_pool *pool = open_writer(new_name(), 1, LARGE);
	struct xmem_buffer *b = xmem_acquire(pool, 0, 0);
	unsigned char *data = xmem_data_mut(b);
	size_t bytes = LARGE - 4096;

	CHECK(data);
	fill_bytes(data, bytes);
	WORKED(xmem_copy_from_host(b, 100, data, bytes, NULL));
	same_bytes(data + 100, bytes);
	WORKED(xmem_copy_from_host(b, 3, data + 100, bytes, NULL));
	same_bytes(data + 3, bytes);
	WORKED(xmem_copy_to_host(data, b, 3, bytes, NULL));
	same_bytes(data, bytes);
	xmem_release(b);
	xmem_pool_close(pool);
}

/* ---- into a new buffer ---- */

TEST(API_a_copy_to_a_new_buffer_is_being_written)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 2, 4096), *reader = open_reader(name);
	struct xmem_buffer *from = publish_and_get(pool, reader, 7), *to, *own;
	uint64_t token;

	own = xmem_acquire(pool, 16, 0);
	CHECK(own);
	memcpy(xmem_data_mut(own), "sixteen letters", 16);
	xmem_metadata_mut(own)->id = 5;
	WORKED(xmem_publish(own, &(struct xmem_publish_options){
		.size = sizeof(struct xmem_publish_options), .flags = XMEM_PUBLISH_KEEP }, &token));
	xmem_release(from);
	to = xmem_copy_to(own, XMEM_CPU, patience_ns());
	CHECK(to && xmem_data_mut(to) && xmem_slot(to) != xmem_slot(own));
	SAME(xmem_size(to), 16);
	CHECK(!strcmp(xmem_data(to), "sixteen letters"));
	SAME(xmem_metadata_ptr(to)->id, 5);
	CHECK(!strcmp(xmem_data(own), "sixteen letters"));
	WORKED(xmem_publish(to, NULL, NULL));
	xmem_release(own);
	xmem_pool_close(reader);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

TEST(API_a_copy_to_a_new_buffer_that_is_refused_leaves_none)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 2, 4096), *reader = open_reader(name);
	struct xmem_buffer *from = publish_and_get(pool, reader, 7), *other;

	REFUSED(xmem_copy_to(NULL, XMEM_CPU, 0), EINVAL);
	REFUSED(xmem_copy_to(from, XMEM_CPU, 0), EPERM);	/* of a reader's pool */
	other = xmem_get(pool, xmem_token(from));
	CHECK(other);
	REFUSED(xmem_copy_to(other, XMEM_CPU - 1, 0), ENODEV);
	REFUSED(xmem_copy_to(other, XMEM_CPU, -1), EINVAL);
	xmem_release(from);
	from = xmem_acquire(pool, 0, 0);
	CHECK(from);
	REFUSED(xmem_copy_to(other, XMEM_CPU, 0), EAGAIN);
	REFUSED(xmem_copy_to(other, XMEM_CPU, MS), ETIMEDOUT);
	xmem_release(from);
	from = xmem_copy_to(other, XMEM_CPU, 0);
	CHECK(from);
	xmem_release(from);
	xmem_release(other);
	REFUSED(xmem_copy_to(other, XMEM_CPU, 0), EBADF);
	xmem_pool_close(reader);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}
