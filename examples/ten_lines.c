/* SPDX-License-Identifier: MIT */
/* The README's example: shows whatever is published in the pool "camera". */
#include <inttypes.h>
#include <stdio.h>
#include <xmem.h>

int main(void)
{
	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
	struct xmem_subscription *frames = xmem_subscribe(pool, NULL);

	for (struct xmem_buffer *frame; (frame = xmem_receive(frames, XMEM_FOREVER)); xmem_release(frame))
		printf("%" PRIu64 ": %zu bytes at %p\n", xmem_sequence(frame), xmem_size(frame), xmem_data(frame));
	xmem_unsubscribe(frames);
	xmem_pool_close(pool);
}
