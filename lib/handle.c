// SPDX-License-Identifier: MIT
/*
 * Where handles of buffers come from and go to. They are made in blocks and kept in a
 * free list; the fast ways are in handle.h.
 */
#include <stdlib.h>
#include <string.h>

#include "handle.h"

#define XL_BLOCK_HANDLES	64

struct xl_block {
	struct xl_block *next;
	struct xmem_buffer handle[XL_BLOCK_HANDLES];
};

/* Make one more block. It is freed with the pool. Under pool->lock. */
static bool refill(struct xmem_pool *pool)
{
	struct xl_block *block = aligned_alloc(_Alignof(struct xl_block), sizeof(*block));
	int i;

	if (!block) {
		xl_fail_fast(ENOMEM, "no memory for a buffer's handle");
		return false;
	}
	memset(block, 0, sizeof(*block));
	block->next = pool->blocks;
	pool->blocks = block;
	pool->made += XL_BLOCK_HANDLES;
	for (i = 0; i < XL_BLOCK_HANDLES; i++) {
		block->handle[i].pool = pool;
		block->handle[i].next =
			i + 1 < XL_BLOCK_HANDLES ? &block->handle[i + 1] : pool->spare;
	}
	pool->spare = &block->handle[0];
	return true;
}

struct xmem_buffer *xl_handle_new_locked(struct xmem_pool *pool)
{
	struct xmem_buffer *buffer;

	xl_lock(&pool->lock);
	buffer = pool->spare || refill(pool) ? xl_handle_pop(pool) : NULL;
	pool->out += pool->closed && buffer;
	xl_unlock(&pool->lock);
	return buffer;
}

void xl_handle_free_locked(struct xmem_buffer *buffer)
{
	struct xmem_pool *pool = buffer->pool;
	bool last;

	xl_lock(&pool->lock);
	xl_handle_push(pool, buffer);
	last = pool->closed && !--pool->out;
	xl_unlock(&pool->lock);
	if (unlikely(last))
		xl_pool_destroy(pool);
}

void xl_handles_destroy(struct xmem_pool *pool)
{
	struct xl_block *block;

	while ((block = pool->blocks)) {
		pool->blocks = block->next;
		free(block);
	}
}

/*
 * Counted from the free list, because a counter would cost each handle two stores. Under
 * pool->lock.
 */
u64 xl_handles_in_use(const struct xmem_pool *pool)
{
	const struct xmem_buffer *buffer;
	u64 spare = 0;

	for (buffer = pool->spare; buffer; buffer = buffer->next)
		spare++;
	return pool->made - spare;
}
