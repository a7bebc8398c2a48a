// SPDX-License-Identifier: MIT
/* xmem put POOL: frames from standard input, read straight into the buffers that are published. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/flow.h"

#define LINE_BYTES	1024

struct put {
	bool y4m;
	uint32_t format, width, height;	/* of images */
	uint32_t dtype, ndim;		/* of tensors; 0: only bytes */
	int64_t shape[XMEM_MAX_DIMENSIONS];
	uint64_t bytes;			/* of a frame */
	double rate;			/* 0: as they come */
	uint64_t most, wait_for, bound, slots;
	uint64_t frames;
	uint64_t base;			/* when the first was due */
};

/* ---- YUV4MPEG2 ---- */

/* 1: a line without its end. 0: the input has ended before it. -1: an error was printed. */
static int read_line(char line[LINE_BYTES])
{
	ssize_t got;
	int i;

	for (i = 0; i < LINE_BYTES; i++) {
		got = flow_read(STDIN_FILENO, line + i, 1);
		if (got < 0)
			return cli_fail("standard input: %s", strerror((int)-got)), -1;
		if (!got && !i)
			return 0;
		if (!got || line[i] == '\n') {
			line[i] = '\0';
			return 1;
		}
	}
	return cli_fail("standard input: it is no YUV4MPEG2"), -1;
}

static bool read_header(struct put *put)
{
	char line[LINE_BYTES], *word, *rest = line;
	int64_t bytes;
	int got = read_line(line);

	if (got < 0)
		return false;
	put->format = XMEM_IMAGE_I420;
	if (!got || strncmp(line, "YUV4MPEG2 ", 10))
		return cli_fail("standard input: it does not begin as YUV4MPEG2"), false;
	while ((word = strsep(&rest, " "))) {
		if (*word == 'W')
			put->width = (uint32_t)strtoul(word + 1, NULL, 10);
		else if (*word == 'H')
			put->height = (uint32_t)strtoul(word + 1, NULL, 10);
		else if (*word == 'C')
			put->format = flow_y4m_format(word + 1);
		if (put->format == XMEM_IMAGE_NONE)
			return cli_fail("standard input: there is no image format for %s: use "
					"ffmpeg -pix_fmt yuv420p", word), false;
	}
	bytes = xmem_image_bytes(put->format, put->width, put->height, 0);
	if (bytes < 0)
		return cli_fail("standard input: images of %u x %u", put->width, put->height),
		       false;
	put->bytes = (uint64_t)bytes;
	return true;
}

/* Does another frame begin? As read_line. */
static int begin_frame(const struct put *put)
{
	char line[LINE_BYTES];
	int got = put->y4m ? read_line(line) : 1;

	if (put->y4m && got > 0 && strncmp(line, "FRAME", 5))
		return cli_fail("standard input: frame %" PRIu64 " does not begin as a frame of "
				"YUV4MPEG2", put->frames), -1;
	return got;
}

/* ---- frames ---- */

static int describe(const struct put *put, struct xmem_buffer *buffer)
{
	struct xmem_metadata *metadata;
	int err = 0;

	if (put->y4m)
		err = xmem_describe_image(buffer, put->format, put->width, put->height, 0);
	else if (put->dtype)
		err = xmem_describe_tensor(buffer, put->dtype, put->ndim, put->shape, NULL);
	metadata = xmem_metadata_mut(buffer);
	if (!err && !put->y4m && !put->dtype)
		memset(metadata, 0, sizeof(*metadata));
	if (!err)
		metadata->id = put->frames;
	return err;
}

/* 1: the buffer has a frame. 0: the input has ended. -1: an error was printed. */
static int fill(const struct put *put, struct xmem_buffer *buffer)
{
	int begins = begin_frame(put);
	ssize_t got;

	if (begins <= 0)
		return begins;
	got = flow_read(STDIN_FILENO, xmem_data_mut(buffer), put->bytes);
	if (got < 0)
		return cli_fail("standard input: %s", strerror((int)-got)), -1;
	if ((uint64_t)got == put->bytes)
		return 1;
	if (!got && !put->y4m)
		return 0;
	return cli_fail("standard input: it ends after %zd of the %" PRIu64 " bytes of frame %"
			PRIu64, got, put->bytes, put->frames), -1;
}

static int publish(struct put *put, struct xmem_buffer *buffer)
{
	struct xmem_publish_options options = { .size = sizeof(options), .length = put->bytes };

	if (!put->base)
		put->base = flow_now();
	if (put->rate > 0)
		flow_sleep(put->base + (uint64_t)((double)put->frames * 1e9 / put->rate));
	options.timestamp_ns = flow_now();
	put->frames++;
	return xmem_publish(buffer, &options, NULL);
}

static int put_all(struct put *put, struct xmem_pool *pool)
{
	struct xmem_buffer *buffer;
	int got = 1;

	while (put->frames < put->most) {
		buffer = xmem_acquire(pool, put->bytes, XMEM_FOREVER);
		if (!buffer)
			return cli_fail_xmem();
		got = fill(put, buffer);
		if (got > 0 && (describe(put, buffer) || publish(put, buffer))) {
			cli_fail_xmem();
			got = -1;
		}
		if (got <= 0) {
			xmem_release(buffer);
			break;
		}
	}
	return got < 0 ? CLI_FAILED : CLI_DONE;
}

/* ---- the command ---- */

/* "480,640,3" or "480x640x3", and the bytes of such a tensor. */
static bool take_shape(struct put *put, const char *text)
{
	uint64_t bytes = XMEM_DTYPE_BITS(put->dtype) / 8;
	char *end = (char *)text;

	for (put->ndim = 0; put->ndim < XMEM_MAX_DIMENSIONS; put->ndim++, text = end + 1) {
		put->shape[put->ndim] = strtoll(text, &end, 10);
		if (end == text || put->shape[put->ndim] < 1 ||
		    __builtin_mul_overflow(bytes, (uint64_t)put->shape[put->ndim], &bytes))
			break;
		if (!*end) {
			put->ndim++;
			put->bytes = bytes;
			return true;
		}
		if (*end != ',' && *end != 'x')
			break;
	}
	cli_usage("put: --shape is up to 8 numbers, such as 480,640,3");
	return false;
}

static bool take_options(struct put *put, const char *const *value)
{
	put->y4m = value['y'];
	put->most = UINT64_MAX;
	put->dtype = value['a'] ? XMEM_DTYPE_UINT8 : 0;
	if (!!value['z'] + !!value['a'] + !!value['y'] != 1 || (value['d'] && !value['a']))
		return cli_usage("put: what is a frame? --size, --shape with --dtype, or --y4m"),
		       false;
	return (!value['z'] || flow_bytes("size", value['z'], &put->bytes)) &&
	       (!value['d'] || flow_dtype(value['d'], &put->dtype)) &&
	       (!value['a'] || take_shape(put, value['a'])) &&
	       (!value['r'] || flow_rate("rate", value['r'], &put->rate)) &&
	       (!value['n'] || flow_number("count", value['n'], INT64_MAX, &put->most)) &&
	       (!value['c'] || flow_number("slots", value['c'], 65536, &put->slots)) &&
	       (!value['N'] || flow_number("wait-for", value['N'], 256, &put->wait_for)) &&
	       (!value['b'] || flow_seconds("wait-bound", value['b'], &put->bound));
}

int cli_put(const struct cli_arguments *arguments)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_WRITER, .label = "xmem put",
	};
	struct put put = { 0 };
	struct xmem_pool *pool;
	int status;

	if (!take_options(&put, arguments->value))
		return CLI_USAGE;
	if (put.y4m && !read_header(&put))
		return CLI_FAILED;
	options.slots = (uint32_t)put.slots;
	options.wait_bound_ns = (int64_t)put.bound;
	pool = flow_join(arguments->pool, &options);
	if (!pool)
		return CLI_FAILED;
	status = flow_await(pool, put.wait_for);
	if (!status)
		status = put_all(&put, pool);
	xmem_pool_close(pool);
	fprintf(stderr, "xmem: %" PRIu64 " frames\n", put.frames);
	return status;
}
