// SPDX-License-Identifier: MIT
/*
 * More rows of thread_rules.c: memory that is made on demand and given back, and limbo. Each row
 * also has a pool of its own, in which it is alone, so no other row lacks what it gives back.
 */
#include "thread_rules.h"

static void note_limbo(struct xmem_pool *pool, const struct xmem_limbo *limbo, void *user)
{
	(void)pool;
	__atomic_add_fetch((uint32_t *)user, limbo->ended + limbo->overdue, __ATOMIC_RELAXED);
}

/* A writer that makes its buffers on demand, and has made one. */
static struct xmem_pool *open_maker(void)
{
	struct xmem_pool_options options = { .size = sizeof(options), .flags = XMEM_OPEN_WRITER };
	struct xmem_pool *pool = HANDLE(xmem_pool_open(NULL, &options), 0);

	if (pool)
		xmem_release(HANDLE(xmem_acquire(pool, BYTES, 0), -EAGAIN));
	return pool;
}

ROW(collect)
{
	struct xmem_pool *pool = open_maker();

	if (pool) {
		NUMBER(AGAIN(xmem_collect(pool, XMEM_KEEP_ALL, NULL)));
		NUMBER(AGAIN(xmem_collect(pool, 0, NULL)));
	}
	xmem_pool_close(pool);
	NUMBER(AGAIN(xmem_collect(stage.reader, XMEM_KEEP_ALL, NULL)));
}

ROW(limbo_hook)
{
	static uint32_t told;

	WORKED(xmem_limbo_hook(stage.reader, 0, 0, note_limbo, &told));
	NUMBER(AGAIN(xmem_collect(stage.reader, XMEM_KEEP_ALL, NULL)));
	WORKED(xmem_limbo_hook(stage.reader, 0, 0, NULL, NULL));
}
