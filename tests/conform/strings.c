// SPDX-License-Identifier: MIT
/*
 * Columns of strings: a process reads a column that another process has written. Whatever the
 * publisher writes into the metadata or into the offsets, a reader stays within the contents.
 */
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096
#define NULLS	XMEM_STRINGS_VALIDITY
#define COLUMN	((struct xmem_strings){ .size = sizeof(struct xmem_strings) })

static const char *const rows[] = { "one", NULL, "", "f\xc3\xbcnf" };
#define ROWS	4
#define CHARS	8

struct pair {
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
};

static struct pair open_pair(void)
{
	const char *name = new_name();
	struct pair pair = { .writer = open_writer(name, 2, BYTES) };

	pair.reader = open_reader(name);
	pair.s = follow(pair.reader, xmem_pool_client(pair.writer), 0);
	return pair;
}

static void close_pair(struct pair *pair)
{
	xmem_unsubscribe(pair->s);
	xmem_pool_close(pair->reader);
	check_quiet(pair->writer, 1);
	xmem_pool_close(pair->writer);
}

/* Write the rows as a column into a new buffer. */
static struct xmem_buffer *write_column(struct pair *pair, struct xmem_strings *ret_plan)
{
	struct xmem_strings plan = COLUMN;
	struct xmem_buffer *b;
	int32_t *offset;
	size_t length;
	char *data;
	int i;

	WORKED(xmem_strings_plan(ROWS, CHARS, NULLS, &plan));
	b = xmem_acquire(pair->writer, plan.bytes, 0);
	CHECK(b);
	WORKED(xmem_describe_strings(b, ROWS, CHARS, NULLS));
	data = xmem_data_mut(b);
	memset(data, 0, plan.chars_at);
	offset = (int32_t *)(data + plan.offsets_at);
	for (i = 0; i < ROWS; i++) {
		length = rows[i] ? strlen(rows[i]) : 0;
		memcpy(data + plan.chars_at + offset[i], rows[i] ? rows[i] : "", length);
		offset[i + 1] = offset[i] + length;
		data[plan.validity_at] |= !!rows[i] << i;
	}
	SAME(offset[ROWS], CHARS);
	*ret_plan = plan;
	return b;
}

static struct xmem_buffer *hand_over(struct pair *pair, struct xmem_buffer *b)
{
	WORKED(xmem_publish(b, NULL, NULL));
	b = xmem_receive(pair->s, 0);
	CHECK(b);
	return b;
}

TEST(API_a_column_of_strings_is_described_and_read_back)
{
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_strings s = COLUMN, plan;
	struct pair pair = open_pair();
	struct xmem_buffer *b = hand_over(&pair, write_column(&pair, &plan));
	const char *chars;
	int i;

	WORKED(xmem_strings_view(b, 0, &s));
	CHECK(s.data == xmem_data(b) && s.device_id == XMEM_CPU && s.flags == NULLS);
	CHECK(s.rows == ROWS && s.chars == CHARS && s.bytes == plan.bytes);
	CHECK(s.offsets_at == plan.offsets_at && s.chars_at == plan.chars_at);
	for (i = 0; i < ROWS; i++) {
		SAME(xmem_strings_get(&s, i, &chars), rows[i] ? strlen(rows[i]) : 0);
		CHECK(!chars == !rows[i]);
		CHECK(!chars || !memcmp(chars, rows[i], strlen(rows[i])));
	}
	SAME(xmem_strings_get(&s, ROWS, &chars), -EINVAL);
	WORKED(xmem_strings_view(b, XMEM_VIEW_CUDA, &s));
	/* A reader that does not know columns sees their bytes. */
	WORKED(xmem_tensor_view(b, 0, &tensor));
	SAME(tensor.dtype, XMEM_DTYPE_UINT8);
	SAME(tensor.bytes, plan.bytes);
	SAME(xmem_image_view(b, 0, &image), -ENODATA);
	xmem_release(b);
	close_pair(&pair);
}

#define UNCHANGED(call, error) do { \
	before = *m; \
	SAME(call, -(error)); \
	CHECK(*last_message() && !memcmp(m, &before, sizeof(before))); \
} while (0)

TEST(API_a_wrong_column_is_refused_and_changes_nothing)
{
	struct pair pair = open_pair();
	struct xmem_strings s = COLUMN, plan;
	struct xmem_buffer *b = xmem_acquire(pair.writer, 100, 0), *old;
	struct xmem_metadata *m = xmem_metadata_mut(b), before;

	UNCHANGED(xmem_describe_strings(b, 1ULL << 31, 0, 0), EINVAL);
	UNCHANGED(xmem_describe_strings(b, 0, 1ULL << 31, 0), EINVAL);
	UNCHANGED(xmem_describe_strings(b, 1, 1, 2), EINVAL);
	UNCHANGED(xmem_describe_strings(b, 1, 37, 0), ERANGE);
	UNCHANGED(xmem_describe_strings(b, 1, 1, NULLS), ERANGE);
	SAME(xmem_describe_strings(NULL, 1, 1, 0), -EINVAL);
	WORKED(xmem_describe_strings(b, 1, 36, 0));
	SAME(xmem_strings_view(b, 2, &s), -EINVAL);
	SAME(xmem_strings_view(b, 0, NULL), -EINVAL);
	SAME(xmem_strings_view(NULL, 0, &s), -EINVAL);
	xmem_release(b);
	b = old = hand_over(&pair, write_column(&pair, &plan));
	SAME(xmem_describe_strings(b, 1, 1, 0), -EPERM);
	xmem_release(b);
	SAME(xmem_describe_strings(old, 1, 1, 0), -EBADF);
	SAME(xmem_strings_view(old, 0, &s), -EBADF);
	SAME(s.rows, 0);
	close_pair(&pair);
}

/* The publisher describes a column, but publishes less of the buffer, or another part of it. */
TEST(API_a_column_ends_with_the_contents)
{
	struct xmem_publish_options part = { .size = sizeof(part) };
	struct pair pair = open_pair();
	struct xmem_strings s = COLUMN, plan;
	struct xmem_buffer *b = write_column(&pair, &plan);

	part.length = plan.bytes - 1;
	WORKED(xmem_publish(b, &part, NULL));
	b = xmem_receive(pair.s, 0);
	SAME(xmem_strings_view(b, 0, &s), -ERANGE);
	CHECK(strstr(last_message(), "column"));
	SAME(s.rows, 0);
	xmem_release(b);
	b = xmem_acquire(pair.writer, BYTES, 0);
	WORKED(xmem_describe_strings(b, ROWS, CHARS, NULLS));
	part.offset = 32;
	part.length = 1024;
	WORKED(xmem_publish(b, &part, NULL));
	b = xmem_receive(pair.s, 0);
	SAME(xmem_strings_view(b, 0, &s), -EBADMSG);
	CHECK(strstr(last_message(), "multiple"));
	xmem_release(b);
	close_pair(&pair);
}

/* Metadata and offsets are shared memory, and the publisher writes them after all checks. */
TEST(P4_a_column_that_changes_while_it_is_read)
{
	struct pair pair = open_pair();
	struct xmem_strings s = COLUMN, plan;
	struct xmem_buffer *b = write_column(&pair, &plan);
	struct xmem_metadata *m = xmem_metadata_mut(b);
	int32_t *offset = (int32_t *)((char *)xmem_data_mut(b) + plan.offsets_at);
	const char *chars = NULL;

	b = hand_over(&pair, b);
	WORKED(xmem_strings_view(b, 0, &s));
	m->column_rows = m->column_chars = XMEM_STRINGS_MAX;
	SAME(xmem_strings_get(&s, ROWS, &chars), -EINVAL);
	offset[1] = CHARS + 1;
	SAME(xmem_strings_get(&s, 0, &chars), -EBADMSG);
	offset[1] = -1;
	SAME(xmem_strings_get(&s, 0, &chars), -EBADMSG);
	CHECK(strstr(last_message(), "row 0 is from 0 to -1"));
	offset[0] = offset[1] = BYTES;
	SAME(xmem_strings_get(&s, 0, &chars), -EBADMSG);
	CHECK(!chars);
	SAME(xmem_strings_view(b, 0, &s), -EBADMSG);	/* the tensor has fewer bytes */
	m->shape[0] = m->column_rows;
	SAME(xmem_strings_view(b, 0, &s), -EBADMSG);
	m->column = 2;
	SAME(xmem_strings_view(b, 0, &s), -EBADMSG);
	m->column = 0;
	SAME(xmem_strings_view(b, 0, &s), -ENODATA);
	SAME(s.rows, ROWS);
	xmem_release(b);
	close_pair(&pair);
}
