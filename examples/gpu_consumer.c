/* SPDX-License-Identifier: MIT */
/*
 * gpu_consumer POOL: shows the pictures of gpu_producer.c: their addresses on the GPU, and the sum
 * over all pixels, for which it copies them. When the producer ends, also by SIGKILL, it shows the
 * remaining pictures and follows the next producer.
 *
 * Building this needs nothing of CUDA. Without a GPU it says why and ends.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmem.h>
#include <xmem/cuda.h>

static void fail(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "gpu_consumer: %s\n", why.message);
	exit(1);	/* the host releases all that we hold */
}

static void show(struct xmem_buffer *picture)
{
	struct xmem_buffer_info info = XMEM_INIT(info);
	size_t bytes = xmem_size(picture);
	const void *at = xmem_cuda_ptr(picture);	/* the address for a kernel */
	uint8_t *pixel = malloc(bytes);
	uint32_t sum = 0;

	if (xmem_buffer_stat(picture, &info) || !at || !pixel ||
	    xmem_copy_to_host(pixel, picture, 0, bytes, NULL))
		fail();
	for (size_t i = 0; i < bytes; i++)
		sum = sum * 31 + pixel[i];
	printf("picture %" PRIu64 " sum %08" PRIx32 "\n", info.sequence, sum);
	printf("  %zu bytes at %p on GPU %d\n", bytes, at, xmem_cuda_device(picture));
	free(pixel);
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
