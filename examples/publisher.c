/* SPDX-License-Identifier: MIT */
/* Publishes its standard input in the pool "camera", a megabyte in each frame. */
#include <stdio.h>
#include <xmem.h>

int main(void)
{
	enum { BYTES = 1 << 20 };
	struct xmem_pool_options writer = { .size = sizeof(writer), .flags = XMEM_OPEN_WRITER };
	struct xmem_publish_options read = { .size = sizeof(read) };
	struct xmem_pool *pool = xmem_pool_open("camera", &writer);
	int well = pool && !xmem_preallocate(pool, BYTES, 8, NULL);
	struct xmem_buffer *frame;
	struct xmem_error why = XMEM_INIT(why);

	while (well && (frame = xmem_acquire(pool, BYTES, XMEM_FOREVER)) && xmem_data_mut(frame)) {
		read.length = fread(xmem_data_mut(frame), 1, BYTES, stdin);
		if (!read.length)
			return ferror(stdin) ? perror("publisher: standard input"), 1 : 0;
		well = !xmem_publish(frame, &read, NULL);
	}
	xmem_get_last_error(&why);
	fprintf(stderr, "publisher: %s\n", why.message);
	return 1;
}
