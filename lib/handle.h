/* SPDX-License-Identifier: MIT */
/*
 * Handles of buffers, and the fast ways of taking and dropping one. These are inline,
 * because get and put do little else; the slow ways are in handle.c.
 */
#ifndef XMEM_HANDLE_H
#define XMEM_HANDLE_H

#include <sys/single_threaded.h>

#include "payload/payload.h"
#include "private.h"

enum xl_mode { XL_READING = 1, XL_WRITING = 2 };

/* Get and put touch only the first cache line of it. */
struct xmem_buffer {
	_Alignas(64) struct xmem_pool *pool;
	struct xmem_buffer *next;	/* in the free list; under pool->lock */
	u32 slot;
	u32 mode;			/* enum xl_mode */
	struct xm_publication what;	/* token 0 while written */
};

/* Take a handle; drop it. Once the pool is closed, the last handle destroys it. */
struct xmem_buffer *xl_handle_new_locked(struct xmem_pool *pool);
void xl_handle_free_locked(struct xmem_buffer *buffer);
/* Free the memory of all handles, when the pool ends. */
void xl_handles_destroy(struct xmem_pool *pool);

/* How many handles are in use? Under pool->lock. */
u64 xl_handles_in_use(const struct xmem_pool *pool);

/*
 * May a hot function go its fast way? Only if the process has no other thread, so that no
 * lock is needed, and the pool is open, so that handles are not counted.
 */
static inline bool xl_handles_free(const struct xmem_pool *pool)
{
	return likely(__libc_single_threaded && !pool->closed);
}

/* The same, and is there a spare handle? */
static inline bool xl_handles_ready(const struct xmem_pool *pool)
{
	return likely(xl_handles_free(pool) && pool->spare);
}

/* Call these two under pool->lock, or if xl_handles_free() is true. */
static inline struct xmem_buffer *xl_handle_pop(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = pool->spare;

	pool->spare = buffer->next;
	return buffer;
}

static inline void xl_handle_push(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	buffer->mode = 0;
	buffer->next = pool->spare;
	pool->spare = buffer;
}

static inline struct xmem_buffer *xl_handle_new(struct xmem_pool *pool)
{
	return xl_handles_ready(pool) ? xl_handle_pop(pool) : xl_handle_new_locked(pool);
}

static inline void xl_handle_free(struct xmem_buffer *buffer)
{
	if (xl_handles_free(buffer->pool))
		xl_handle_push(buffer->pool, buffer);
	else
		xl_handle_free_locked(buffer);
}

#endif
