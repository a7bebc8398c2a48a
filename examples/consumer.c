/* SPDX-License-Identifier: MIT */
/*
 * consumer POOL: shows the pictures of producer.c, each where it lies. The producer waits for
 * it, so nothing is lost unless this program stops for more than a second. When the producer
 * ends, also by SIGKILL, it follows the next one; the pool stays open.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmem.h>

static void fail(void)
{
	const char *why;

	xmem_get_last_error(&why);
	fprintf(stderr, "consumer: %s\n", why);
	exit(1);	/* the host releases all that we hold */
}

/* The sum over all pixels. What the metadata says is the producer's claim: it is checked. */
static void show(struct xmem_buffer *picture)
{
	const struct xmem_metadata *metadata = xmem_buffer_metadata(picture);
	const uint8_t *pixel = xmem_data(picture);
	uint32_t sum = 0;
	int64_t height, width;

	if (!metadata || !pixel)
		fail();
	height = metadata->shape[0];
	width = metadata->shape[1];
	if (metadata->ndim != 2 || height < 1 || height > 10000 || width < 1 || width > 10000 ||
	    (uint64_t)(height * width) != xmem_size(picture)) {
		fprintf(stderr, "consumer: not a picture: %zu bytes\n", xmem_size(picture));
		exit(1);
	}
	for (int64_t i = 0; i < height * width; i++)
		sum = sum * 31 + pixel[i];
	printf("picture %" PRIu64 " sum %08" PRIx32 "\n", xmem_sequence(picture), sum);
}

int main(int argc, char **argv)
{
	struct xmem_subscribe_options wait_for_me = {
		.size = sizeof(wait_for_me), .flags = XMEM_SUBSCRIBE_WAITS,
	};
	struct xmem_pool *pool = xmem_pool_open(argc > 1 ? argv[1] : "pictures", NULL);
	struct xmem_subscription *pictures;
	struct xmem_buffer *picture;

	if (!pool)
		fail();
	while ((pictures = xmem_subscribe(pool, &wait_for_me))) {
		printf("following publisher %d\n", xmem_subscription_publisher(pictures));
		while ((picture = xmem_receive(pictures, XMEM_FOREVER))) {
			show(picture);
			xmem_release(picture);
		}
		if (xmem_peek_last_error(NULL) != -EPIPE)
			fail();
		printf("publisher ended, %" PRIu64 " lost\n", xmem_subscription_lost(pictures));
		xmem_unsubscribe(pictures);
	}
	fail();
}
