// SPDX-License-Identifier: MIT
/* Pieces of blocks and of pools: first fit, in a list by address. */
#include <stdlib.h>

#include "memory.h"

#define PIECE 512	/* sizes are rounded up to this, and addresses are aligned to it at least */

static CUdeviceptr align(CUdeviceptr at, size_t alignment)
{
	return (at + alignment - 1) & ~(CUdeviceptr)(alignment - 1);
}

struct fk_alloc *fk_alloc_make_locked(struct fk_span *span, size_t bytes, size_t alignment)
{
	struct fk_alloc **at = &span->allocs, *alloc;
	CUdeviceptr base = align(span->base, alignment);
	size_t taken = align(bytes ? bytes : 1, PIECE);

	while (*at && (*at)->base - base < taken) {
		base = align((*at)->base + (*at)->taken, alignment);
		at = &(*at)->next;
	}
	if (taken < bytes || base + taken > span->base + span->bytes)
		return NULL;
	alloc = calloc(1, sizeof(*alloc));
	if (!alloc)
		return NULL;
	alloc->base = base;
	alloc->bytes = bytes;
	alloc->taken = taken;
	alloc->generation = fk_generation();
	alloc->export = -1;
	alloc->next = *at;
	*at = alloc;
	return alloc;
}

struct fk_alloc *fk_alloc_find_locked(const struct fk_span *span, CUdeviceptr ptr)
{
	struct fk_alloc *alloc = span->allocs;

	while (alloc && (ptr < alloc->base || ptr >= alloc->base + alloc->taken))
		alloc = alloc->next;
	return alloc;
}

void fk_alloc_free_locked(struct fk_span *span, struct fk_alloc *alloc)
{
	struct fk_alloc **at = &span->allocs;

	while (*at != alloc)
		at = &(*at)->next;
	*at = alloc->next;
	free(alloc);
}

bool fk_piece_find_locked(const struct fk_span *span, CUdeviceptr ptr, CUdeviceptr *ret_base,
			  size_t *ret_bytes)
{
	const struct fk_alloc *alloc = fk_alloc_find_locked(span, ptr);

	if (alloc) {
		*ret_base = alloc->base;
		*ret_bytes = alloc->bytes;
		return true;
	}
	for (unsigned int i = 0; i < span->opened_count; i++) {
		CUdeviceptr base = span->base + span->opened[i].offset;

		if (ptr < base || ptr >= base + span->opened[i].bytes)
			continue;
		*ret_base = base;
		*ret_bytes = span->opened[i].bytes;
		return true;
	}
	return false;
}
