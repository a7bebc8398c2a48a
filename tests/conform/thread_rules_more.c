// SPDX-License-Identifier: MIT
/*
 * More rows of thread_rules.c: claims, pipelines, writing in place, attached files, copies, and
 * descriptions of contents. The rows that pass contents on use a second pool, whose ring is soon
 * full.
 */
#include "thread_rules.h"

#define SHARED_BYTES	8192
#define SHARED_BUFFERS	4
#define SIDE		32	/* pixels of an image of BYTES */

static struct {
	struct xmem_pool *owner, *stage, *sink, *reader;
	struct xmem_subscription *out;		/* of the sink, which the stage waits for */
	struct xmem_subscription *passed;	/* of the reader, which may lose publications */
	struct xmem_buffer *kept;		/* by the owner */
	uint64_t token;				/* of these contents */
} line;

/* ---- the stage ---- */

static struct xmem_buffer *publish_image(void)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *b = xmem_acquire(stage.writer, BYTES, 0), *got;
	uint64_t token;

	CHECK(b);
	fill(b, 0xcd);
	WORKED(xmem_describe_image(b, XMEM_IMAGE_GRAY8, SIDE, SIDE, 0));
	WORKED(xmem_publish(b, &keep, &token));
	got = xmem_get(stage.reader, token);
	CHECK(got);
	xmem_release(b);
	return got;
}

void line_set(void)
{
	const char *name = new_name();

	stage.image = publish_image();
	stage.file = new_memfd(BYTES, GOOD_SEALS);
	line.owner = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4);
	WORKED(xmem_preallocate(line.owner, BYTES, 1, NULL));
	WORKED(xmem_preallocate(line.owner, SHARED_BYTES, SHARED_BUFFERS, NULL));
	line.stage = OPEN(name, .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 3600 * SECOND);
	WORKED(xmem_preallocate(line.stage, BYTES, 2, NULL));
	line.sink = OPEN(name, .flags = XMEM_OPEN_WRITER);
	line.reader = open_reader(name);
	line.out = follow(line.sink, xmem_pool_client(line.stage), XMEM_SUBSCRIBE_WAITS);
	line.passed = follow(line.reader, xmem_pool_client(line.stage), 0);
	line.token = publish_kept(line.owner, 0xab, &line.kept);
}

void line_strike(void)
{
	struct xmem_buffer *b[SHARED_BUFFERS];
	unsigned int i;

	xmem_release(stage.image);
	close(stage.file);
	xmem_unsubscribe(line.passed);
	xmem_unsubscribe(line.out);
	xmem_release(line.kept);
	xmem_pool_close(line.reader);
	xmem_pool_close(line.sink);
	xmem_pool_close(line.stage);
	check_quiet(line.owner, 1);
	for (i = 0; i < SHARED_BUFFERS; i++)
		CHECK((b[i] = xmem_acquire(line.owner, SHARED_BYTES, patience_ns())));
	REFUSED(xmem_acquire(line.owner, SHARED_BYTES, 0), EAGAIN);
	for (i = 0; i < SHARED_BUFFERS; i++)
		xmem_release(b[i]);
	xmem_pool_close(line.owner);
}

/* ---- claims: each row uses up those that it sets aside ---- */

/* A buffer with so many references in all, or NULL for an allowed error. */
static struct xmem_buffer *with_references(uint32_t count)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);

	if (!b)
		return NULL;
	fill(b, count);
	SAME(AGAIN(xmem_set_ref_count(b, count, 0)), 0);
	return b;
}

/* Set references aside without a handle: returns the token, or 0. */
static uint64_t set_aside(uint32_t count)
{
	struct xmem_buffer *b = with_references(count);
	uint64_t token = xmem_token(b);

	if (b)
		SAME(AGAIN(xmem_forget(b)), 0);
	return token;
}

static struct xmem_buffer *take(uint64_t token, bool by_slot)
{
	struct xmem_buffer *b;

	do
		b = xmem_get(stage.reader, by_slot ? XMEM_SLOT(token & 0xffff) : token);
	while (!b && stage.signals && xmem_peek_last_error(NULL) == -EINTR);
	CHECK(b);
	SAME(xmem_token(b), token);
	return b;
}

/* No reference is left, and perhaps the contents are gone too. */
static void none_is_left(int err, int error)
{
	if (err != -error && err != -ESTALE)
		FAIL("it is %d, not %d", err, -error);
}

ROW(set_ref_count)
{
	struct xmem_buffer *b = with_references(3);
	uint64_t token = xmem_token(b);

	if (!b)
		return;
	SAME(AGAIN(xmem_set_ref_count(b, 2, SECOND)), 0);
	xmem_release(b);
	b = take(token, false);
	SAME(stamp_of(b), 3);
	xmem_release(b);
	none_is_left(AGAIN(xmem_drop_ref(stage.reader, token)), ERANGE);
}

ROW(offer)
{
	struct xmem_buffer *b = with_references(1);
	uint64_t token = xmem_token(b);

	if (!b)
		return;
	SAME(AGAIN(xmem_offer(b, 1, 0)), 0);
	SAME(AGAIN(xmem_offer(b, 1, 20 * SECOND)), 0);
	xmem_release(b);
	xmem_release(take(token, false));
	xmem_release(take(token, true));
	none_is_left(AGAIN(xmem_drop_ref(stage.reader, token)), ERANGE);
}

ROW(claims)
{
	uint64_t token = set_aside(2);

	if (!token)
		return;
	SAME(xmem_claims(stage.reader, token), 2);
	xmem_release(take(token, false));
	SAME(xmem_claims(stage.reader, token), 1);
	xmem_release(take(token, true));
}

ROW(forget)
{
	uint64_t token = set_aside(1);

	if (token)
		xmem_release(take(token, false));
}

ROW(add_ref)
{
	uint64_t token = set_aside(1);

	if (!token)
		return;
	SAME(AGAIN(xmem_add_ref(stage.reader, token)), 0);
	xmem_release(take(token, true));
	xmem_release(take(token, false));
}

ROW(drop_ref)
{
	uint64_t token = set_aside(2);

	if (!token)
		return;
	SAME(AGAIN(xmem_drop_ref(stage.reader, token)), 0);
	SAME(AGAIN(xmem_drop_ref(stage.writer, token)), 0);
	none_is_left(AGAIN(xmem_drop_ref(stage.writer, token)), ERANGE);
}

/* The request may have been served although a handler ran. */
ROW(void_claims)
{
	uint64_t token = set_aside(5);
	bool interrupted = false;
	int err;

	if (!token)
		return;
	while ((err = xmem_void_claims(stage.writer, token)) == -EINTR && stage.signals)
		interrupted = true;
	if (interrupted && err)
		none_is_left(err, ENOENT);
	else
		SAME(err, 0);
	none_is_left(AGAIN(xmem_void_claims(stage.writer, token)), ENOENT);
}

/* ---- pipelines ---- */

static void drain(void)
{
	struct xmem_buffer *b;

	while ((b = HANDLE(xmem_receive(line.out, 0), 0)))
		xmem_release(b);
}

static struct xmem_buffer *get_kept(void)
{
	struct xmem_buffer *b = xmem_get(line.stage, line.token);

	CHECK(b);
	return b;
}

static void publish_written(void)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);

	if (!b)
		return;
	SAME(xmem_publish(b, &keep, NULL), 0);
	xmem_release(b);
	b = HANDLE(xmem_acquire(stage.writer, BYTES, 0), 0);
	if (b)
		SAME(xmem_publish(b, NULL, NULL), 0);
}

/* Publish until the ring is full, and then wait. */
static void publish_held(void)
{
	struct xmem_buffer *b;
	unsigned int i;
	int64_t err = 0;

	for (i = 0; i < 5 && !err; i++) {
		b = get_kept();
		err = NUMBER(xmem_publish(b, XMEM_OPTIONS(xmem_publish_options,
							  .timeout_ns = SHORT), NULL));
		if (err)
			xmem_release(b);
	}
	xmem_release(HANDLE(xmem_receive(line.out, 0), 0));
}

static void publish_to_one(void)
{
	struct xmem_buffer *b = get_kept();
	uint32_t client = xmem_pool_client(line.sink);

	drain();
	if (NUMBER(xmem_publish(b, XMEM_OPTIONS(xmem_publish_options, .flags = XMEM_PUBLISH_CLIENT,
						.client = client, .timeout_ns = SHORT), NULL)))
		xmem_release(b);
	b = HANDLE(xmem_acquire(line.stage, BYTES, SHORT), 0);
	if (b)
		SAME(send_to(b, client, NULL), 0);
	xmem_release(HANDLE(xmem_receive(line.passed, 0), 0));
}

ROW(publish)
{
	publish_written();
	publish_held();
	publish_to_one();
}

/* It is retracted, or a client has it, or it has been received and is gone. */
static void was_retracted(int err)
{
	CHECK(!err || err == -EBUSY || err == -ESTALE);
}

ROW(retract)
{
	struct xmem_publish_options keep = {
		.size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP, .timeout_ns = SHORT,
	};
	struct xmem_buffer *b = HANDLE(xmem_acquire(line.stage, BYTES, SHORT), 0);
	uint64_t token;
	int err;

	drain();
	if (b) {
		SAME(xmem_publish(b, NULL, &token), 0);
		was_retracted(xmem_retract(line.stage, token));
	}
	b = get_kept();
	if (!NUMBER(xmem_publish(b, &keep, &token))) {
		err = xmem_retract(line.stage, token);
		/* Another thread has retracted it, or the ring has moved on. */
		CHECK(!err || err == -EPERM);
	}
	xmem_release(b);
}

/* ---- writing in place, attached files, and kinds of memory ---- */

/* Shared contents that only the stage holds, or NULL. */
static struct xmem_buffer *get_shared(void)
{
	struct xmem_publish_options keep = { .size = sizeof(keep), .flags = XMEM_PUBLISH_KEEP };
	struct xmem_buffer *b = HANDLE(xmem_acquire(line.owner, SHARED_BYTES, SHORT), 0), *got;
	uint64_t token;

	if (!b)
		return NULL;
	SAME(xmem_publish(b, &keep, &token), 0);
	got = xmem_get(line.stage, token);
	CHECK(got);
	xmem_release(b);
	return got;
}

/* EBUSY: line.passed lags; API_a_subscriber_that_lags_makes_get_mut_busy_for_a_moment. */
ROW(get_mut)
{
	struct xmem_buffer *b = get_shared();

	drain();
	if (b && !NUMBER_OR(xmem_get_mut(b), -EBUSY)) {
		fill(b, 7);
		if (!AGAIN(xmem_publish(b, NULL, NULL)))
			b = NULL;
		CHECK(!b);
	}
	xmem_release(b);
	b = get_shared();
	if (b)
		NUMBER_OR(xmem_get_mut(b), -EBUSY);
	xmem_release(b);		/* thrown away, if it was being written */
}

ROW(attach_fd)
{
	struct xmem_buffer *b = HANDLE(xmem_attach_fd(stage.writer, stage.file, 0, 0, 0), 0);
	struct xmem_buffer *more = HANDLE(xmem_attach_fd(stage.writer, stage.file, 64, 64, 0), 0);

	if (b)
		SAME(xmem_publish(b, NULL, NULL), 0);
	CHECK(!more || info_of(more).flags & XMEM_BUFFER_ATTACHED);
	xmem_release(more);
}

/* ---- copies, and descriptions of contents ---- */

ROW(copy)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);

	if (!b)
		return;
	SAME(xmem_copy(b, stage.read, NULL), 0);
	SAME(stamp_of(b), 0xab);
	xmem_release(b);
}

ROW(copy_to)
{
	struct xmem_buffer *own = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0), *b;

	if (!own)
		return;
	b = HANDLE(xmem_copy_to(own, XMEM_CPU, SHORT), 0);
	if (b)
		xmem_release(b);
	xmem_release(own);
}

ROW(copy_from_host)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);

	if (!b)
		return;
	SAME(xmem_copy_from_host(b, 5, "copied", 7, NULL), 0);
	CHECK(!strcmp((const char *)xmem_data(b) + 5, "copied"));
	xmem_release(b);
}

ROW(copy_to_host)
{
	uint64_t word = 0;

	SAME(xmem_copy_to_host(&word, stage.read, 8, 8, NULL), 0);
	SAME(word, 0xab);
}

ROW(describe_tensor)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);
	struct xmem_tensor tensor = { .size = sizeof(tensor) };
	int64_t shape[] = { 4, 8 };

	if (!b)
		return;
	SAME(xmem_describe_tensor(b, XMEM_DTYPE_FLOAT32, 2, shape, NULL), 0);
	SAME(xmem_tensor_view(b, 0, &tensor), 0);
	SAME(tensor.elements, 32);
	xmem_release(b);
}

ROW(describe_image)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);

	if (!b)
		return;
	SAME(xmem_describe_image(b, XMEM_IMAGE_RGB8, 16, 16, 0), 0);
	SAME(xmem_metadata_ptr(b)->image, XMEM_IMAGE_RGB8);
	xmem_release(b);
}

ROW(describe_source)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);

	if (!b)
		return;
	SAME(SOURCE(b, .producer = "rows", .timestamp_ns = 5), 0);
	CHECK(!strcmp(xmem_metadata_ptr(b)->producer, "rows"));
	SAME(xmem_metadata_ptr(b)->timestamp_ns, 5);
	xmem_release(b);
}

ROW(metadata_view)
{
	struct xmem_metadata metadata;

	SAME(xmem_metadata_view(stage.image, &metadata), 0);
	SAME(metadata.image, XMEM_IMAGE_GRAY8);
	SAME(metadata.size, BYTES);
}

ROW(tensor_view)
{
	struct xmem_tensor tensor = { .size = sizeof(tensor) };

	SAME(xmem_tensor_view(stage.image, 0, &tensor), 0);
	CHECK(tensor.elements == BYTES && tensor.data == xmem_data(stage.image));
	SAME(xmem_tensor_view(stage.read, 0, &tensor), -ENODATA);
}

ROW(image_view)
{
	struct xmem_image image = { .size = sizeof(image) };

	SAME(xmem_image_view(stage.image, 0, &image), 0);
	CHECK(image.width == SIDE && image.height == SIDE && image.planes == 1);
}

ROW(image_plane)
{
	struct xmem_image image = { .size = sizeof(image) };
	struct xmem_tensor plane = { .size = sizeof(plane) };

	SAME(xmem_image_view(stage.image, 0, &image), 0);
	SAME(xmem_image_plane(&image, 0, &plane), 0);
	CHECK(plane.elements == BYTES && plane.data == xmem_data(stage.image));
}

ROW(image_bytes)		{ SAME(xmem_image_bytes(XMEM_IMAGE_GRAY8, SIDE, SIDE, 0), BYTES); }

ROW(describe_strings)
{
	struct xmem_buffer *b = HANDLE(xmem_acquire(stage.writer, BYTES, SHORT), 0);
	struct xmem_strings strings = { .size = sizeof(strings) };

	if (!b)
		return;
	SAME(xmem_describe_strings(b, 3, 9, XMEM_STRINGS_VALIDITY), 0);
	SAME(xmem_strings_view(b, 0, &strings), 0);
	SAME(strings.chars, 9);
	xmem_release(b);
}

ROW(strings_view)
{
	struct xmem_strings strings = { .size = sizeof(strings) };

	SAME(xmem_strings_view(stage.image, 0, &strings), -ENODATA);
}

ROW(strings_plan)
{
	struct xmem_strings strings = { .size = sizeof(strings) };

	SAME(xmem_strings_plan(3, 9, 0, &strings), 0);
	SAME(strings.bytes, 64 + 9);
}

ROW(strings_get)
{
	static _Alignas(64) const int32_t contents[32] = { 0, 3 };
	struct xmem_strings strings = { .size = sizeof(strings) };
	const char *chars;

	SAME(xmem_strings_plan(1, 3, 0, &strings), 0);
	strings.data = contents;
	SAME(xmem_strings_get(&strings, 0, &chars), 3);
	CHECK(chars == (const char *)&contents[16]);
}

ROW(tensor_check)
{
	struct xmem_metadata metadata;

	SAME(xmem_metadata_view(stage.image, &metadata), 0);
	SAME(xmem_tensor_check(&metadata, BYTES), 0);
	SAME(xmem_tensor_check(&metadata, BYTES - 1), -ERANGE);
}

ROW(data_private)
{
	struct xmem_buffer *b = HANDLE(xmem_clone(stage.read), 0);
	unsigned char *mine = b ? xmem_data_private(b) : NULL;

	if (b && !mine)
		was_refused("data_private", xmem_peek_last_error(NULL), 0);
	if (mine) {
		SAME(*mine, 0xab);
		*mine = 1;
		SAME(stamp_of(b), 0xab);
	}
	xmem_release(b);
	mine = HANDLE(xmem_data_private(stage.read), 0);
	CHECK(!mine || *mine == 0xab);
}

ROW(buffer_stat)
{
	struct xmem_client_info client = { .size = sizeof(client) };
	struct xmem_buffer_info info = info_of(stage.read);

	SAME(info.flags, XMEM_BUFFER_SHARED);
	SAME(info.sequence, 0);
	SAME(info.timestamp_ns, 0);
	SAME(info.publisher, xmem_pool_client(stage.writer));
	SAME(xmem_pool_client_info(stage.reader, info.publisher, &client), 0);
	CHECK(!strcmp(info.label, client.label));
}
