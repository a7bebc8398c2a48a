/* SPDX-License-Identifier: MIT */
/*
 * gpu_producer POOL: as producer.c, but its pictures are in the memory of a GPU. It draws them on
 * the CPU and copies them. A program with kernels of its own writes to xmem_cuda_ptr_mut(), and
 * xmem/stream.h publishes contents that a stream has yet to write.
 *
 * Building this needs nothing of CUDA. Without a GPU it says why and ends.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <xmem.h>
#include <xmem/cuda.h>

enum { WIDTH = 320, HEIGHT = 240, BYTES = WIDTH * HEIGHT, GPU = 0 };

static void fail(void)
{
	struct xmem_error why = XMEM_INIT(why);

	xmem_get_last_error(&why);
	fprintf(stderr, "gpu_producer: %s\n", why.message);
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
	struct xmem_pool *pool = xmem_pool_open(argc > 1 ? argv[1] : "pictures", &writer);
	struct timespec pause = { .tv_nsec = 1000000000 / 25 };
	static uint8_t drawn[BYTES];

	/*
	 * A process that opens memory of a GPU can write it, so readers get it only by this flag.
	 */
	if (!pool ||
	    xmem_preallocate(pool, BYTES, 8,
			     XMEM_OPTIONS(xmem_preallocate_options, .device_id = GPU,
					  .flags = XMEM_MEMORY_CUDA | XMEM_MEMORY_READERS)))
		fail();
	for (uint64_t number = 0;; number++) {
		struct xmem_buffer *picture = xmem_acquire_cuda(pool, BYTES, GPU, XMEM_FOREVER);
		uint32_t sum = draw(drawn, number);

		if (!picture || xmem_copy_from_host(picture, 0, drawn, BYTES, NULL))
			fail();
		printf("picture %" PRIu64 " sum %08" PRIx32 "\n", number, sum);
		if (xmem_describe_image(picture, XMEM_IMAGE_GRAY8, WIDTH, HEIGHT, 0) ||
		    xmem_publish(picture, NULL, NULL))
			fail();
		nanosleep(&pause, NULL);
	}
}
