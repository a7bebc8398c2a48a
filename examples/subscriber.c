/* SPDX-License-Identifier: MIT */
/* Shows whatever is published in the pool "camera", across its publishers' restarts. */
#include <errno.h>
#include <stdio.h>
#include <xmem.h>

int main(void)
{
	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
	struct xmem_subscription *frames;
	struct xmem_buffer *frame;
	const char *why;

	while (pool && (frames = xmem_subscribe(pool, NULL))) {	/* waits for a publisher */
		printf("following publisher %d\n", xmem_subscription_publisher(frames));
		while ((frame = xmem_receive(frames, XMEM_FOREVER)) && xmem_data(frame)) {
			printf("%zu bytes at %p\n", xmem_size(frame), xmem_data(frame));
			xmem_release(frame);
		}
		if (xmem_peek_last_error(NULL) != -EPIPE)
			break;
		xmem_unsubscribe(frames);	/* EPIPE: all have ended; wait for the next one */
	}
	xmem_get_last_error(&why);
	fprintf(stderr, "subscriber: %s\n", why);
	return 1;
}
