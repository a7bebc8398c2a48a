/* SPDX-License-Identifier: MIT */
/*
 * Handles of buffers: what get and put touch, and the fast ways of taking and dropping
 * one. They are inline because get and put are little else; the others are in handle.c.
 */
#ifndef XMEM_HANDLE_H
#define XMEM_HANDLE_H

#include "payload/payload.h"
#include "private.h"

enum xl_mode { XL_READING = 1, XL_WRITING = 2 };

/* What get and put touch is in the first of its lines. */
struct xmem_buffer {
	_Alignas(64) struct xmem_pool *pool;
	struct xmem_buffer *next;	/* in the free list; pool->lock */
	u32 slot;
	u32 mode;			/* enum xl_mode */
	struct xm_publication what;	/* token 0 while written */
	struct xl_mapping *mapping; /* once data has been asked for; counted there; pool->lock */
	char *data;			/* into it; set once, atomically */
};

/* Take a handle, or drop it: the pool goes with the last one once it is closed. */
struct xmem_buffer *xl_handle_new_locked(struct xmem_pool *pool);
void xl_handle_free_locked(struct xmem_buffer *buffer);
/* When the pool ends: the memory of all handles. How many are in use; under pool->lock. */
void xl_handles_destroy(struct xmem_pool *pool);
u64 xl_handles_in_use(const struct xmem_pool *pool);

/*
 * The fast ways of the hot functions ask this: is there no other thread, so that
 * no lock is needed, and are handles not counted? Their locks come with the slow ways.
 */
static inline bool xl_handles_free(const struct xmem_pool *pool)
{
	return likely(__libc_single_threaded && !pool->closed);
}

/* ... and are there any? */
static inline bool xl_handles_ready(const struct xmem_pool *pool)
{
	return likely(xl_handles_free(pool) && pool->spare);
}

/* These two: under pool->lock, or where xl_handles_free says so. */
static inline struct xmem_buffer *xl_handle_pop(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer = pool->spare;

	pool->spare = buffer->next;
	return buffer;
}

static inline void xl_handle_push(struct xmem_pool *pool, struct xmem_buffer *buffer)
{
	if (buffer->mapping) {
		buffer->mapping->users--;
		buffer->mapping = NULL;
		buffer->data = NULL;
	}
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
