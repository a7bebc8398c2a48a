// SPDX-License-Identifier: MIT
/* xmem cat POOL: the contents of publications to standard output, as they are or as YUV4MPEG2. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/flow.h"

struct cat {
	bool y4m;
	double rate;			/* in the header */
	struct xmem_image first;	/* of a stream of images, which are all like it */
	struct flow_memory memory;
};

static int fail_output(int err)
{
	return err == -EPIPE ? err : (cli_fail("standard output: %s", strerror(-err)), err);
}

static int write_header(struct cat *cat, const struct xmem_image *image)
{
	const char *name = flow_y4m_name(image->format);
	char header[128];

	if (!name) {
		cli_fail("cat: YUV4MPEG2 has no images of format %u: leave out --y4m",
			 image->format);
		return -EINVAL;
	}
	cat->first = *image;
	snprintf(header, sizeof(header), "YUV4MPEG2 W%u H%u F%.0f:1000 Ip C%s\n", image->width,
		 image->height, cat->rate * 1000, name);
	return flow_write(STDOUT_FILENO, header, strlen(header));
}

static int write_planes(const struct xmem_image *image)
{
	const struct xmem_plane *plane;
	int err = flow_write(STDOUT_FILENO, "FRAME\n", 6);
	uint32_t i, row;

	for (i = 0; i < image->planes && !err; i++) {
		plane = &image->plane[i];
		if (plane->stride == plane->row_bytes)
			err = flow_write(STDOUT_FILENO, plane->data,
					 plane->stride * plane->rows);
		for (row = 0; plane->stride != plane->row_bytes && row < plane->rows && !err; row++)
			err = flow_write(STDOUT_FILENO,
					 (const char *)plane->data + row * plane->stride,
					 plane->row_bytes);
	}
	return err;
}

/* 0, -EPIPE: nobody reads, or another negative errno after an error that was printed. */
static int write_image(struct cat *cat, struct xmem_buffer *buffer)
{
	struct xmem_image image = { .size = sizeof(image) };
	int err = xmem_image_view(buffer, 0, &image);

	if (err) {
		cli_fail_xmem();
		return err;
	}
	if (!cat->first.format)
		err = write_header(cat, &image);
	else if (image.format != cat->first.format || image.width != cat->first.width ||
		 image.height != cat->first.height)
		return cli_fail("cat: the images have changed from %u x %u to %u x %u, or to "
				"another format", cat->first.width, cat->first.height,
				image.width, image.height), -EINVAL;
	if (err == -EINVAL)
		return err;
	err = err ? err : write_planes(&image);
	return err ? fail_output(err) : 0;
}

static int write_one(struct cat *cat, struct xmem_buffer *buffer)
{
	const void *data;
	int err;

	if (cat->y4m)
		return write_image(cat, buffer);
	data = flow_contents(buffer, &cat->memory);
	if (!data) {
		cli_fail_xmem();
		return -EIO;
	}
	err = flow_write(STDOUT_FILENO, data, xmem_size(buffer));
	return err ? fail_output(err) : 0;
}

static int follow(struct cat *cat, struct xmem_subscription *subscription, uint64_t count)
{
	struct xmem_buffer *buffer;
	int err = 0;

	while (count-- && !err) {
		buffer = xmem_receive(subscription, XMEM_FOREVER);
		if (!buffer && xmem_peek_last_error(NULL) == -EPIPE)
			return CLI_DONE;
		if (!buffer)
			return cli_fail_xmem();
		err = write_one(cat, buffer);
		xmem_release(buffer);
	}
	return err && err != -EPIPE ? CLI_FAILED : CLI_DONE;
}

int cli_cat(const struct cli_arguments *arguments)
{
	const struct xmem_subscribe_options options = {
		.size = sizeof(options),
		.flags = arguments->value['W'] ? XMEM_SUBSCRIBE_WAITS : 0,
	};
	struct xmem_subscription_info info = { .size = sizeof(info) };
	const char *count = arguments->value['n'], *rate = arguments->value['r'];
	struct cat cat = { .y4m = arguments->value['y'], .rate = 25 };
	struct xmem_subscription *subscription;
	struct xmem_pool *pool;
	uint64_t most = UINT64_MAX;
	int status;

	if ((count && !flow_number("count", count, INT64_MAX, &most)) ||
	    (rate && !flow_rate("rate", rate, &cat.rate)))
		return CLI_USAGE;
	signal(SIGPIPE, SIG_IGN);
	pool = cli_open(arguments->pool);
	if (!pool)
		return CLI_FAILED;
	subscription = xmem_subscribe(pool, &options);
	status = subscription ? follow(&cat, subscription, most) : cli_fail_xmem();
	if (!xmem_subscription_stat(subscription, &info) && info.lost)
		fprintf(stderr, "xmem: %" PRIu64 " publications were lost\n", info.lost);
	xmem_unsubscribe(subscription);
	xmem_pool_close(pool);
	free(cat.memory.data);
	return status;
}
