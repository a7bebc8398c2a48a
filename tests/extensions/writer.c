// SPDX-License-Identifier: MIT
/* An extension that writes: see extension.h. */
#include "find.h"

static const struct xmem_api *xmem;
static struct xmem_pool *pool;

static int start(const struct xmem_api *api, const char *name)
{
	struct xmem_pool_options options = { .size = sizeof(options), .flags = XMEM_OPEN_WRITER };

	xmem = api;
	pool = xmem->pool_open(name, &options);
	return pool ? xmem->preallocate(pool, EXTENSION_BYTES, 2, NULL) :
		      xmem->peek_last_error(NULL);
}

static int publish(unsigned char stamp)
{
	struct xmem_buffer *buffer = xmem->acquire(pool, EXTENSION_BYTES, 0);
	void *data = buffer ? xmem->data_mut(buffer) : NULL;

	if (!data)
		return xmem->peek_last_error(NULL);
	memset(data, stamp, EXTENSION_BYTES);
	return xmem->publish(buffer, NULL, NULL);
}

static int drop(struct xmem_buffer *buffer)
{
	xmem->clear_last_error();
	xmem->release(buffer);
	return xmem->peek_last_error(NULL);
}

static void stop(void)
{
	xmem->pool_close(pool);
}

EXTENSION const struct writer_extension xmem_test_writer = { start, publish, drop, stop,
							     find_table };
