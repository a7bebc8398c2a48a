/* SPDX-License-Identifier: MIT */
/*
 * consumer POOL: shows the pictures of producer.c, each in place. The producer waits for this
 * program, so nothing is lost unless it stops for more than a second. When the producer ends, also
 * by SIGKILL, this program follows the next one; the pool stays open.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmem.h>

static void fail(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "consumer: %s\n", why.message);
	exit(1);	/* the host releases all that we hold */
}

/*
 * The sum over all pixels. The view checks the publisher's description: all rows lie within the
 * buffer.
 */
static void show(struct xmem_buffer *picture)
{
	struct xmem_image image = XMEM_INIT(image);
	struct xmem_buffer_info info = XMEM_INIT(info);
	uint32_t sum = 0;

	if (xmem_image_view(picture, 0, &image) || xmem_buffer_stat(picture, &info))
		fail();
	if (image.format != XMEM_IMAGE_GRAY8) {
		fprintf(stderr, "consumer: not a grey picture: format %u\n", image.format);
		exit(1);
	}
	for (uint32_t y = 0; y < image.height; y++) {
		const uint8_t *row = (const uint8_t *)image.plane[0].data +
				     y * image.plane[0].stride;

		for (uint32_t x = 0; x < image.width; x++)
			sum = sum * 31 + row[x];
	}
	printf("picture %" PRIu64 " sum %08" PRIx32 "\n", info.sequence, sum);
}

int main(int argc, char **argv)
{
	struct xmem_subscribe_options wait_for_me = {
		.size = sizeof(wait_for_me), .flags = XMEM_SUBSCRIBE_WAITS,
	};
	struct xmem_pool *pool = xmem_pool_open(argc > 1 ? argv[1] : "pictures", NULL);
	struct xmem_subscription_info told = XMEM_INIT(told);
	struct xmem_subscription *pictures;
	struct xmem_buffer *picture;

	if (!pool)
		fail();
	while ((pictures = xmem_subscribe(pool, &wait_for_me))) {
		xmem_subscription_stat(pictures, &told);
		printf("following publisher %" PRIu32 "\n", told.publisher);
		while ((picture = xmem_receive(pictures, XMEM_FOREVER))) {
			show(picture);
			xmem_release(picture);
		}
		if (xmem_peek_last_error(NULL) != -EPIPE)
			fail();
		xmem_subscription_stat(pictures, &told);
		printf("publisher ended, %" PRIu64 " lost\n", told.lost);
		xmem_unsubscribe(pictures);
	}
	fail();
}
