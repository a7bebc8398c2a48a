/* SPDX-License-Identifier: MIT */
/*
 * producer POOL: publishes 25 grey pictures a second, each with a description. It waits up to a
 * second for a subscriber that asks for that, as consumer.c does, and not for others. It prints a
 * line for each picture, and so does consumer.c.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xmem.h>

enum { WIDTH = 320, HEIGHT = 240, BYTES = WIDTH * HEIGHT };

static void fail(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "producer: %s\n", why.message);
	exit(1);	/* the host releases all our buffers */
}

/* A gradient that moves; each process has other pictures. The sum is over all pixels. */
static uint32_t draw(uint8_t *pixel, uint64_t number)
{
	uint32_t sum = 0;

	for (int i = 0; i < BYTES; i++) {
		pixel[i] = (uint8_t)(i % WIDTH + i / WIDTH * (getpid() % 97) + (int)number);
		sum = sum * 31 + pixel[i];
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct xmem_pool_options writer = {
		.size = sizeof(writer), .flags = XMEM_OPEN_WRITER, .wait_bound_ns = 1000000000,
	};
	struct xmem_publish_options options = { .size = sizeof(options) };
	struct xmem_pool *pool = xmem_pool_open(argc > 1 ? argv[1] : "pictures", &writer);
	struct timespec pause = { .tv_nsec = 1000000000 / 25 }, now;

	if (!pool || xmem_preallocate(pool, BYTES, 8, NULL))
		fail();
	for (uint64_t number = 0;; number++) {
		struct xmem_buffer *picture = xmem_acquire(pool, BYTES, XMEM_FOREVER);

		if (!picture || !xmem_data_mut(picture))
			fail();
		printf("picture %" PRIu64 " sum %08" PRIx32 "\n", number,
		       draw(xmem_data_mut(picture), number));
		if (xmem_describe_image(picture, XMEM_IMAGE_GRAY8, WIDTH, HEIGHT, 0))
			fail();
		clock_gettime(CLOCK_MONOTONIC, &now);
		options.timestamp_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		if (xmem_publish(picture, &options, NULL))
			fail();
		nanosleep(&pause, NULL);
	}
}
