/* SPDX-License-Identifier: MIT */
/* Shows whatever is published in the pool "camera", across its publishers' restarts. */
#include <stdio.h>
#include <xmem.h>

int main(void)
{
	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
	struct xmem_subscription *frames = !pool ? NULL : xmem_subscribe(pool,
		XMEM_OPTIONS(xmem_subscribe_options, .flags = XMEM_SUBSCRIBE_LASTS, .history = 1));
	struct xmem_error why = XMEM_INIT(why);
	struct xmem_buffer *frame;

	for (; frames && (frame = xmem_receive(frames, XMEM_FOREVER)); xmem_release(frame))
		printf("%zu bytes at %p\n", xmem_size(frame), xmem_data(frame));
	xmem_get_last_error(&why);
	fprintf(stderr, "subscriber: %s\n", why.message);
	return 1;
}
