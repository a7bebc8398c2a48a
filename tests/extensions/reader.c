// SPDX-License-Identifier: MIT
/* An extension that reads: see extension.h. */
#include "find.h"

static const struct xmem_api *xmem;
static struct xmem_pool *pool;
static struct xmem_subscription *subscription;

static int start(const struct xmem_api *api, const char *name)
{
	xmem = api;
	pool = xmem->pool_open(name, NULL);
	subscription = pool ? xmem->subscribe(pool, NULL) : NULL;
	return subscription ? 0 : xmem->peek_last_error(NULL);
}

static struct xmem_buffer *receive(void)
{
	return xmem->receive(subscription, 0);
}

/* The value of every byte, or -1 if they differ. */
static int stamp(struct xmem_buffer *buffer)
{
	const unsigned char *data = xmem->data(buffer);
	size_t i;

	if (!data || xmem->size(buffer) != EXTENSION_BYTES)
		return -1;
	for (i = 1; i < EXTENSION_BYTES; i++)
		if (data[i] != *data)
			return -1;
	return *data;
}

static void stop(void)
{
	xmem->unsubscribe(subscription);
	xmem->pool_close(pool);
}

EXTENSION const struct reader_extension xmem_test_reader = { start, receive, stamp, stop,
							     find_table };
