// SPDX-License-Identifier: MIT
/*
 * Metadata: a process reads the description of a tensor or an image that another process has
 * written. Whatever a publisher writes there, at any moment, a reader stays within the contents.
 */
#include <pthread.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	65536
#define VIEW(type)	((struct type){ .size = sizeof(struct type) })
#define SHAPE(...)	((const int64_t[]){ __VA_ARGS__ })

struct pair {
	const char *name;
	struct xmem_pool *writer, *reader;
	struct xmem_subscription *s;
};

static struct pair open_pair(void)
{
	struct pair pair = { .name = new_name() };

	pair.writer = OPEN(pair.name, .flags = XMEM_OPEN_WRITER, .label = "the camera");
	WORKED(xmem_preallocate(pair.writer, BYTES, 2, NULL));
	pair.reader = open_reader(pair.name);
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

static struct xmem_buffer *take(struct pair *pair, size_t bytes)
{
	struct xmem_buffer *b = xmem_acquire(pair->writer, bytes, 0);

	CHECK(b);
	memset(xmem_metadata_mut(b), 0xa5, sizeof(struct xmem_metadata));
	return b;
}

static struct xmem_buffer *hand_over(struct pair *pair, struct xmem_buffer *b)
{
	WORKED(xmem_publish(b, NULL, NULL));
	b = xmem_receive(pair->s, 0);
	CHECK(b);
	return b;
}

/* ---- what is written is what is read ---- */

TEST(API_a_tensor_is_described_and_read_back)
{
	struct xmem_tensor t = VIEW(xmem_tensor), same = VIEW(xmem_tensor);
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 3 * 5 * 4), *got;
	struct xmem_metadata m;
	struct xmem_image image = VIEW(xmem_image);

	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_FLOAT32, 2, SHAPE(3, 5), NULL));
	/* Nothing of the earlier description is left. */
	WORKED(xmem_metadata_view(b, &m));
	SAME(m.image_stride | m.column_chars | m.reserved[15], 0);
	SAME(m.id | m.user[7] | m.timestamp_ns | m.image | m.storage, 0);
	SAME(m.shape[2] | m.shape[7] | m.strides[2], 0);
	CHECK(!strcmp(m.producer, "the camera") && !m.content_type[0] && !m.clock[0]);
	SAME(m.size, 60);
	b = hand_over(&pair, b);
	got = xmem_get(pair.reader, xmem_token(b));
	WORKED(xmem_tensor_view(b, 0, &t));
	WORKED(xmem_tensor_view(got, 0, &same));
	CHECK(!memcmp(&t, &same, sizeof(t)));
	SAME(t.size, sizeof(t));
	SAME(t.dtype, XMEM_DTYPE_FLOAT32);
	SAME(t.ndim, 2);
	SAME(t.item_bytes, 4);
	SAME(t.elements, 15);
	SAME(t.bytes, 60);
	SAME(t.shape[0], 3);
	SAME(t.strides[0], 20);
	SAME(t.element_strides[0], 5);
	SAME(t.flags, XMEM_TENSOR_DENSE | XMEM_TENSOR_ALIGNED | XMEM_TENSOR_DLPACK);
	CHECK(t.data == xmem_data(b));
	/* A view that may be of a GPU's memory may also be of the CPU's. */
	SAME(t.device_id, XMEM_CPU);
	WORKED(xmem_tensor_view(b, XMEM_VIEW_CUDA, &same));
	CHECK(!memcmp(&t, &same, sizeof(t)));
	SAME(xmem_image_view(b, 0, &image), -ENODATA);
	SAME(image.width, 0);
	xmem_release(got);
	xmem_release(b);
	close_pair(&pair);
}

TEST(API_an_image_is_described_and_read_back)
{
	struct xmem_tensor t = VIEW(xmem_tensor);
	struct xmem_image i = VIEW(xmem_image);
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 128 * 48 + 2 * 64 * 24);
	struct xmem_metadata m;

	SAME(xmem_image_bytes(XMEM_IMAGE_I420, 100, 48, 128), 128 * 48 + 2 * 64 * 24 - 14);
	WORKED(xmem_describe_image(b, XMEM_IMAGE_I420, 100, 48, 128));
	WORKED(SOURCE(b, .producer = "camera 3", .timestamp_ns = 123, .clock = "CLOCK_TAI"));
	b = hand_over(&pair, b);
	WORKED(xmem_image_view(b, 0, &i));
	SAME(i.format, XMEM_IMAGE_I420);
	SAME(i.width, 100);
	SAME(i.height, 48);
	SAME(i.planes, 3);
	CHECK(i.plane[0].data == xmem_data(b));
	SAME((const char *)i.plane[1].data - (const char *)i.plane[0].data, 128 * 48);
	SAME((const char *)i.plane[2].data - (const char *)i.plane[1].data, 64 * 24);
	SAME(i.plane[0].stride, 128);
	SAME(i.plane[0].row_bytes, 100);
	SAME(i.plane[2].stride, 64);
	SAME(i.plane[2].row_bytes, 50);
	SAME(i.plane[2].rows, 24);
	CHECK(!i.plane[3].data && i.device_id == XMEM_CPU);
	WORKED(xmem_tensor_view(b, 0, &t));
	SAME(t.ndim, 1);		/* all planes, none of which is lost */
	SAME(t.dtype, XMEM_DTYPE_UINT8);
	SAME(t.shape[0], 128 * 48 + 2 * 64 * 24 - 14);
	WORKED(xmem_image_plane(&i, 2, &t));
	CHECK(t.data == i.plane[2].data && t.device_id == XMEM_CPU);
	SAME(t.ndim, 2);
	SAME(t.shape[0], 24);
	SAME(t.shape[1], 50);
	SAME(t.strides[0], 64);
	SAME(xmem_image_plane(&i, 3, &t), -EINVAL);
	SAME(xmem_image_plane(NULL, 0, &t), -EINVAL);
	i.size = offsetof(struct xmem_image, plane);	/* an answer that was cut */
	SAME(xmem_image_plane(&i, 0, &t), -EINVAL);
	i.size = sizeof(i);
	SAME(xmem_image_plane(&i, 0, NULL), -EINVAL);
	SAME(t.shape[1], 50);
	WORKED(xmem_metadata_view(b, &m));
	CHECK(!strcmp(m.content_type, "video/x-raw,I420") && !strcmp(m.producer, "camera 3"));
	CHECK(!strcmp(m.clock, "CLOCK_TAI"));
	SAME(m.timestamp_ns, 123);
	xmem_release(b);
	close_pair(&pair);
}

/* ---- refusals change nothing ---- */

#define UNCHANGED(call, error) do { \
	before = *m; \
	SAME(call, -(error)); \
	why = last_message(); \
	SAME(xmem_get_last_error(NULL), -(error)); \
	CHECK(*why && !memcmp(m, &before, sizeof(before))); \
} while (0)

TEST(API_a_wrong_description_is_refused_and_changes_nothing)
{
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 60);
	struct xmem_metadata *m = xmem_metadata_mut(b), before;
	static const char long_name[] = "0123456789abcdef0123456789abcdef";
	const char *why;

	UNCHANGED(xmem_describe_tensor(b, 0, 1, SHAPE(1), NULL), EINVAL);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE(3, 64, 1), 1, SHAPE(1), NULL), EINVAL);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 9, SHAPE(1), NULL), EINVAL);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, NULL, NULL), EINVAL);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(-1), NULL), EINVAL);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(2), SHAPE(-1)), EINVAL);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(61), NULL), ERANGE);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT64, 1, SHAPE(INT64_MAX), NULL), ERANGE);
	UNCHANGED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 2, SHAPE(2, 2), SHAPE(59, 1)), ERANGE);
	UNCHANGED(xmem_describe_image(b, 0, 1, 1, 0), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_FORMATS, 1, 1, 0), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 0, 1, 0), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 1, ~0u, 0), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, ~0u, 1, 0), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 10, 1, 9), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 10, 1, ~0ULL), EINVAL);
	UNCHANGED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 61, 1, 0), ERANGE);
	UNCHANGED(SOURCE(b, .content_type = long_name, .producer = "fits"), EINVAL);
	UNCHANGED(SOURCE(b, .content_type = "fits", .producer = long_name), EINVAL);
	UNCHANGED(SOURCE(b, .content_type = "not\nprintable"), EINVAL);
	UNCHANGED(SOURCE(b, .producer = "fits", .timestamp_ns = 1, .clock = long_name), EINVAL);
	UNCHANGED(SOURCE(b, .producer = "fits", .flags = 1), EINVAL);
	UNCHANGED(SOURCE(b, .producer = "fits", .reserved = 1), EINVAL);
	UNCHANGED(xmem_describe_source(b, NULL), EINVAL);
	/* and the largest ones that fit */
	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 2, SHAPE(2, 2), SHAPE(58, 1)));
	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT32, 0, NULL, NULL));
	WORKED(SOURCE(b, .content_type = long_name + 1, .producer = long_name + 1));
	WORKED(SOURCE(b, .content_type = m->content_type, .producer = m->producer));
	CHECK(!strcmp(m->producer, long_name + 1));
	xmem_release(b);
	close_pair(&pair);
}

TEST(API_unset_fields_of_a_source_stay_as_they_are)
{
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 60);
	struct xmem_metadata *m = xmem_metadata_mut(b), before;

	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(60), NULL));
	WORKED(SOURCE(b, .content_type = "a/b", .producer = "p", .timestamp_ns = 5));
	CHECK(!strcmp(m->content_type, "a/b") && !strcmp(m->producer, "p"));
	CHECK(!strcmp(m->clock, "CLOCK_MONOTONIC"));
	SAME(m->timestamp_ns, 5);
	SAME(m->shape[0], 60);
	before = *m;
	WORKED(SOURCE(b, .flags = 0));
	CHECK(!memcmp(m, &before, sizeof(before)));
	WORKED(SOURCE(b, .content_type = "c"));
	CHECK(!strcmp(m->content_type, "c") && !strcmp(m->producer, "p"));
	WORKED(SOURCE(b, .producer = ""));
	CHECK(!strcmp(m->content_type, "c") && !*m->producer);
	SAME(m->timestamp_ns, 5);
	WORKED(SOURCE(b, .timestamp_ns = 6, .clock = "CLOCK_TAI"));
	CHECK(!strcmp(m->content_type, "c") && !strcmp(m->clock, "CLOCK_TAI"));
	SAME(m->timestamp_ns, 6);
	WORKED(SOURCE(b, .clock = "/dev/ptp0"));	/* a clock without a time is none */
	CHECK(!strcmp(m->clock, "/dev/ptp0"));
	SAME(m->timestamp_ns, 0);
	xmem_release(b);
	close_pair(&pair);
}

TEST(API_only_who_writes_a_buffer_describes_it)
{
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 60), *old;
	struct xmem_metadata m;
	struct xmem_tensor t = VIEW(xmem_tensor);
	struct xmem_image i = VIEW(xmem_image);

	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(60), NULL));
	b = old = hand_over(&pair, b);
	SAME(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(1), NULL), -EPERM);
	SAME(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 1, 1, 0), -EPERM);
	SAME(SOURCE(b, .producer = "b"), -EPERM);
	xmem_release(b);
	SAME(xmem_describe_tensor(old, XMEM_DTYPE_INT8, 1, SHAPE(1), NULL), -EBADF);
	SAME(SOURCE(old, .flags = 0), -EBADF);
	SAME(xmem_metadata_view(old, &m), -EBADF);
	SAME(xmem_tensor_view(old, 0, &t), -EBADF);
	SAME(xmem_image_view(old, 0, &i), -EBADF);
	SAME(xmem_describe_tensor(NULL, XMEM_DTYPE_INT8, 0, NULL, NULL), -EINVAL);
	SAME(xmem_describe_image(NULL, XMEM_IMAGE_GRAY8, 1, 1, 0), -EINVAL);
	SAME(SOURCE(NULL, .flags = 0), -EINVAL);
	SAME(xmem_metadata_view(NULL, &m), -EINVAL);
	SAME(xmem_tensor_view(NULL, 0, &t), -EINVAL);
	SAME(xmem_image_view(NULL, 0, &i), -EINVAL);
	SAME(xmem_tensor_check(NULL, 1), -EINVAL);
	close_pair(&pair);
}

/* An answer is cut to the caller's size, and does not change what a newer caller has behind it. */
TEST(API_views_are_answers_that_grow)
{
	struct { struct xmem_tensor t; uint64_t more; } newer;
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 60);
	struct xmem_tensor t;
	struct xmem_image i = { .size = 3 };

	WORKED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 60, 1, 0));
	b = hand_over(&pair, b);
	memset(&newer, 0xa5, sizeof(newer));
	newer.t.size = sizeof(newer);
	WORKED(xmem_tensor_view(b, 0, &newer.t));
	SAME(newer.t.size, sizeof(newer.t));
	SAME(newer.more, 0xa5a5a5a5a5a5a5a5);
	memset(&t, 0xa5, sizeof(t));
	t.size = offsetof(struct xmem_tensor, item_bytes);
	WORKED(xmem_tensor_view(b, 0, &t));
	SAME(t.ndim, 2);
	SAME(t.item_bytes, 0xa5a5a5a5);
	SAME(xmem_image_view(b, 0, &i), -EINVAL);
	SAME(xmem_image_view(b, 0, NULL), -EINVAL);
	SAME(xmem_tensor_view(b, 0, NULL), -EINVAL);
	SAME(xmem_tensor_view(b, 2, &t), -EINVAL);
	SAME(xmem_image_view(b, 1u << 31, &i), -EINVAL);
	SAME(xmem_metadata_view(b, NULL), -EINVAL);
	xmem_release(b);
	close_pair(&pair);
}

/* ---- what a publisher may claim ---- */

/* The publisher describes a tensor of @bytes, but publishes less of the buffer. */
TEST(API_a_view_ends_with_the_contents_not_with_the_buffer)
{
	struct xmem_publish_options part = { .size = sizeof(part), .offset = 6, .length = 54 };
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 60);
	struct xmem_tensor t = VIEW(xmem_tensor);
	const char *why;

	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT32, 1, SHAPE(15), NULL));
	WORKED(xmem_publish(b, &part, NULL));
	b = xmem_receive(pair.s, 0);
	SAME(xmem_tensor_view(b, 0, &t), -ERANGE);
	why = last_message();
	SAME(xmem_get_last_error(NULL), -ERANGE);
	CHECK(strstr(why, "60 bytes") && strstr(why, "54"));
	SAME(t.elements, 0);
	xmem_release(b);
	b = take(&pair, 60);
	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT32, 1, SHAPE(13), NULL));
	WORKED(xmem_publish(b, &part, NULL));
	b = xmem_receive(pair.s, 0);
	WORKED(xmem_tensor_view(b, 0, &t));
	CHECK(!(t.flags & XMEM_TENSOR_ALIGNED) && t.data == xmem_data(b));
	xmem_release(b);
	close_pair(&pair);
}

TEST(API_metadata_that_says_nothing_is_ENODATA)
{
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, 60);
	struct xmem_metadata *m = xmem_metadata_mut(b);
	struct xmem_tensor t = VIEW(xmem_tensor);
	struct xmem_image i = VIEW(xmem_image);

	memset(m, 0, sizeof(*m));
	SAME(xmem_tensor_view(b, 0, &t), -ENODATA);
	SAME(xmem_image_view(b, 0, &i), -ENODATA);
	SAME(xmem_tensor_check(m, 60), -ENODATA);
	memset(m, 0xa5, sizeof(*m));
	SAME(xmem_tensor_view(b, 0, &t), -EBADMSG);
	SAME(xmem_image_view(b, 0, &i), -EBADMSG);
	SAME(xmem_tensor_check(m, 60), -EBADMSG);
	WORKED(xmem_describe_tensor(b, XMEM_DTYPE_INT8, 1, SHAPE(60), NULL));
	SAME(xmem_tensor_check(m, 60), 0);
	SAME(xmem_tensor_check(m, 59), -ERANGE);
	m->storage = XMEM_STORAGE_CUDA;
	SAME(xmem_tensor_view(b, 0, &t), -EBADMSG);
	SAME(xmem_tensor_view(b, XMEM_VIEW_CUDA, &t), -EBADMSG);
	xmem_release(b);
	close_pair(&pair);
}

/* ---- while it changes ---- */

struct liar {
	struct xmem_metadata *m;
	uint64_t random;
	bool stop;
};

/* Change one word of metadata after another to something else and back, many times. */
static void *lie(void *argument)
{
	static const int64_t number[] = {
		0, 1, -1, 1000000, 1 << 19, INT64_MAX, INT64_MIN, 1LL << 32, 65536,
		XMEM_DTYPE_FLOAT64, XMEM_IMAGE_RGB8, 9LL << 32 | XMEM_DTYPE_UINT8,
	};
	struct liar *liar = argument;
	uint64_t *word = (uint64_t *)liar->m, r, was, lie;
	unsigned int i;

	while (!__atomic_load_n(&liar->stop, __ATOMIC_RELAXED)) {
		r = random_next(&liar->random);
		word = (uint64_t *)liar->m + (r & 1 ? r / 2 % 64 : 2 + r / 2 % 10);
		lie = number[(r >> 32) % (sizeof(number) / sizeof(*number))];
		was = *word;
		for (i = 0; i < 300; i++) {
			__atomic_store_n(word, lie, __ATOMIC_RELAXED);
			__atomic_store_n(word, was, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void look_at_tensor(const struct xmem_tensor *t, const char *data)
{
	uint64_t last = 0;
	uint32_t i;

	CHECK(t->data == data && t->bytes <= BYTES && t->ndim <= 8 && t->item_bytes);
	if (!t->elements)
		return;
	for (i = 0; i < t->ndim; i++)
		last += (uint64_t)(t->shape[i] - 1) * (uint64_t)t->strides[i];
	CHECK(last + t->item_bytes == t->bytes);
}

static void look_at_image(const struct xmem_image *i, const char *data)
{
	uint32_t p;

	CHECK(i->planes >= 1 && i->planes <= 3);
	for (p = 0; p < i->planes; p++) {
		const struct xmem_plane *plane = &i->plane[p];

		CHECK((const char *)plane->data >= data && plane->stride >= plane->row_bytes);
		CHECK((const char *)plane->data + plane->stride * (plane->rows - 1) +
		      plane->row_bytes <= data + BYTES);
	}
}

TEST(P4_metadata_that_changes_while_it_is_read)
{
	struct pair pair = open_pair();
	struct xmem_buffer *b = take(&pair, BYTES);
	struct liar liar = { .m = xmem_metadata_mut(b), .random = seed() };
	struct xmem_tensor t = VIEW(xmem_tensor);
	struct xmem_image i = VIEW(xmem_image);
	struct xmem_metadata copy;
	unsigned int rounds = scaled(300000), round, good = 0, refused = 0;
	int64_t end = now_ns() + patience_ns();
	pthread_t thread;

	WORKED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, 240, 100, 256));
	b = hand_over(&pair, b);
	SAME(pthread_create(&thread, NULL, lie, &liar), 0);
	/* On a busy machine the other thread does not run all the time. */
	for (round = 0; round < rounds || good < 100 || refused < 100; round++) {
		const char *data = xmem_data(b);

		CHECK(now_ns() < end);
		if (!xmem_tensor_view(b, 0, &t))
			look_at_tensor(&t, data);
		if (!xmem_image_view(b, 0, &i)) {
			look_at_image(&i, data);
			good++;
		} else {
			refused++;
		}
		WORKED(xmem_metadata_view(b, &copy));
		SAME(copy.size, BYTES);
		SAME(copy.offset, 0);
		CHECK(strlen(copy.content_type) < sizeof(copy.content_type));
	}
	__atomic_store_n(&liar.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("    %u were good, %u were refused\n", good, refused);
	xmem_release(b);
	close_pair(&pair);
}
