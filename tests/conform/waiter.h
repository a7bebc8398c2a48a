/* SPDX-License-Identifier: MIT */
/* A thread that sleeps in xmem_acquire. */
#ifndef XM_CONFORM_WAITER_H
#define XM_CONFORM_WAITER_H

#include <pthread.h>

#include "harness.h"

struct waiter {
	pthread_t thread;
	struct raw raw;			/* open while it waits: its end would wake it */
	struct xmem_pool *pool;
	size_t bytes;
};

static void *waiter_run(void *argument)
{
	struct waiter *waiter = argument;

	return xmem_acquire(waiter->pool, waiter->bytes, patience_ns());
}

/* When this returns, the thread sleeps, if no thread has waited before. */
static void begin_to_wait(struct waiter *waiter, const char *name, struct xmem_pool *pool,
			  size_t bytes)
{
	waiter->pool = pool;
	waiter->bytes = bytes;
	raw_start(&waiter->raw, name, XMEM_ROLE_READER);
	CHECK(!pthread_create(&waiter->thread, NULL, waiter_run, waiter));
	until_asleep(&xm_client_row(&waiter->raw.map, xmem_pool_client(pool))->slots_waiters);
}

/* The buffer that the thread has got. Checks that it got one. */
static struct xmem_buffer *end_of_wait(struct waiter *waiter)
{
	void *got;

	CHECK(!pthread_join(waiter->thread, &got));
	raw_close(&waiter->raw);
	CHECK(got);
	return got;
}

#endif
