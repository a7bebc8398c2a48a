// SPDX-License-Identifier: MIT
/*
 * Addresses of device memory, and what is mapped at them.
 *
 * The caller's arena is reserved without any access for as long as the process lives, so that a
 * device pointer that is dereferenced on the CPU faults. The driver maps those bytes a second time,
 * in an arena of its own at a constant distance. Each process starts at a random place of its arena
 * (rule 25), and a child after fork() has neither arena.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "memory.h"
#include "tests.h"

static struct {
	char *base, *shadow;
	size_t bytes;
	CUdeviceptr first;		/* where this process begins */
	struct fk_span **span;		/* by address */
	struct fk_mapping **mapping;	/* by address */
	size_t spans, mappings;
} arena;				/* memory_lock */

static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;

static void *reserve(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTFORK);
	madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

static bool arena_start(void)
{
	uint64_t random = fk_self()->start_time + fk_self()->pid;

	for (size_t bytes = 256ul << 30; !arena.base && bytes >= 1ul << 30; bytes /= 2) {
		arena.base = reserve(bytes);
		arena.shadow = arena.base ? reserve(bytes) : NULL;
		arena.bytes = bytes;
		if (arena.base && !arena.shadow) {
			munmap(arena.base, bytes);
			arena.base = NULL;
		}
	}
	if (!arena.base)
		return false;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random *= 0x9e3779b97f4a7c15ULL;
	arena.first = (uintptr_t)arena.base + random % (arena.bytes / 2);
	arena.first = (arena.first + FK_BLOCK_BYTES - 1) & ~(FK_BLOCK_BYTES - 1);
	return true;
}

bool fk_memory_is_device(CUdeviceptr ptr)
{
	return arena.base && ptr >= (uintptr_t)arena.base &&
		ptr - (uintptr_t)arena.base < arena.bytes;
}

void *fk_shadow(CUdeviceptr ptr)
{
	return arena.shadow + (ptr - (uintptr_t)arena.base);
}

/* ---- Spans ---- */

/* The index of the first span that ends above @ptr. */
static size_t span_index(CUdeviceptr ptr)
{
	size_t low = 0, high = arena.spans;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (arena.span[middle]->base + arena.span[middle]->bytes > ptr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool is_free(CUdeviceptr base, size_t bytes)
{
	size_t i = span_index(base);

	return base >= (uintptr_t)arena.base &&
		base + bytes <= (uintptr_t)arena.base + arena.bytes && base + bytes >= base &&
		(i == arena.spans || arena.span[i]->base >= base + bytes);
}

static CUdeviceptr align(CUdeviceptr at, size_t alignment)
{
	return (at + alignment - 1) & ~(CUdeviceptr)(alignment - 1);
}

/* First fit, so that an address is soon used again (rule 11). 0: none. */
static CUdeviceptr find_free(size_t bytes, size_t alignment, CUdeviceptr avoid)
{
	CUdeviceptr at = align(arena.first, alignment);

	while (!is_free(at, bytes) || at == avoid) {
		size_t i = span_index(at);

		if (i == arena.spans && at != avoid)
			return 0;
		at = at == avoid ? at + 1 : arena.span[i]->base + arena.span[i]->bytes;
		at = align(at, alignment);
	}
	return at;
}

struct fk_span *fk_span_create_locked(size_t bytes, size_t alignment, CUdeviceptr hint,
				      CUdeviceptr avoid, enum fk_span_kind kind)
{
	struct fk_span *span = calloc(1, sizeof(*span)), **all;
	size_t i;

	if (!span || (!arena.base && !arena_start()))
		goto err_span;
	alignment = alignment > FK_BLOCK_BYTES ? alignment : FK_BLOCK_BYTES;
	span->base = hint && hint % alignment == 0 && is_free(hint, bytes) ?
		hint : find_free(bytes, alignment, avoid);
	all = realloc(arena.span, (arena.spans + 1) * sizeof(*all));
	if (!all)
		goto err_span;
	arena.span = all;
	if (!span->base)
		goto err_span;
	span->bytes = bytes;
	span->kind = kind;
	span->id = fk_generation();
	i = span_index(span->base);
	memmove(all + i + 1, all + i, (arena.spans - i) * sizeof(*all));
	all[i] = span;
	arena.spans++;
	return span;
err_span:
	free(span);
	return NULL;
}

void fk_span_free_locked(struct fk_span *span)
{
	size_t i = span_index(span->base);
	struct fk_mapping *mapping;

	while ((mapping = fk_mapping_above_locked(span->base)) && mapping->span == span)
		fk_unmap_locked(mapping);
	while (span->allocs)
		fk_alloc_free_locked(span, span->allocs);
	arena.spans--;
	memmove(arena.span + i, arena.span + i + 1, (arena.spans - i) * sizeof(*arena.span));
	free(span->opened);
	free(span);
}

struct fk_span *fk_span_find_locked(CUdeviceptr ptr)
{
	size_t i = span_index(ptr);

	return i < arena.spans && arena.span[i]->base <= ptr ? arena.span[i] : NULL;
}

struct fk_span *fk_span_next_locked(const struct fk_span *after)
{
	size_t i = after ? span_index(after->base) + 1 : 0;

	return i < arena.spans ? arena.span[i] : NULL;
}

/* ---- Mappings ---- */

static size_t mapping_index(CUdeviceptr ptr)
{
	size_t low = 0, high = arena.mappings;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (arena.mapping[middle]->base + arena.mapping[middle]->bytes > ptr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct fk_mapping *fk_mapping_above_locked(CUdeviceptr ptr)
{
	size_t i = mapping_index(ptr);

	return i < arena.mappings ? arena.mapping[i] : NULL;
}

struct fk_mapping *fk_mapping_find_locked(CUdeviceptr ptr)
{
	struct fk_mapping *mapping = fk_mapping_above_locked(ptr);

	return mapping && mapping->base <= ptr ? mapping : NULL;
}

/* Is it mapped in the caller's arena, too? */
static bool is_for_cpu(const struct fk_span *span)
{
	return span->managed || fk_option_is("CPU_ACCESS", "allow", "fault");
}

static bool map_pages(const struct fk_span *span, CUdeviceptr base, struct fk_backing *backing)
{
	int how = MAP_SHARED | MAP_FIXED, prot = PROT_READ | PROT_WRITE;
	size_t bytes = backing->bytes;

	if (mmap(fk_shadow(base), bytes, prot, how, backing->fd, 0) == MAP_FAILED)
		return false;
	madvise(fk_shadow(base), bytes, MADV_DONTFORK);
	if (is_for_cpu(span) &&
	    mmap((void *)(uintptr_t)base, bytes, prot, how, backing->fd, 0) != MAP_FAILED)
		madvise((void *)(uintptr_t)base, bytes, MADV_DONTFORK);
	return true;
}

static void unmap_pages(void *at, size_t bytes)
{
	if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
		 0) != MAP_FAILED)
		madvise(at, bytes, MADV_DONTFORK);
}

CUresult fk_map_locked(struct fk_span *span, CUdeviceptr base, struct fk_backing *backing)
{
	struct fk_mapping *mapping = calloc(1, sizeof(*mapping)), **all;
	size_t i;

	all = realloc(arena.mapping, (arena.mappings + 1) * sizeof(*all));
	if (all)
		arena.mapping = all;
	if (!mapping || !all || !map_pages(span, base, backing)) {
		free(mapping);
		return FK_OUT_OF_MEMORY;
	}
	mapping->span = span;
	mapping->base = base;
	mapping->bytes = backing->bytes;
	mapping->backing = backing;
	backing->mappings++;
	i = mapping_index(base);
	memmove(all + i + 1, all + i, (arena.mappings - i) * sizeof(*all));
	all[i] = mapping;
	arena.mappings++;
	return FK_OK;
}

void fk_unmap_locked(struct fk_mapping *mapping)
{
	size_t i = mapping_index(mapping->base);

	unmap_pages(fk_shadow(mapping->base), mapping->bytes);
	if (is_for_cpu(mapping->span))
		unmap_pages((void *)(uintptr_t)mapping->base, mapping->bytes);
	arena.mappings--;
	memmove(arena.mapping + i, arena.mapping + i + 1,
		(arena.mappings - i) * sizeof(*arena.mapping));
	mapping->backing->mappings--;
	if (!mapping->backing->handles)
		fk_backing_put_locked(mapping->backing);
	free(mapping);
}

/* ---- Pins ---- */

bool fk_pin_waited_locked(struct fk_pin *pin)
{
	if (!pin->users)
		return false;
	pthread_cond_wait(&unpinned, &memory_lock);
	return true;
}

void fk_memory_done(struct fk_pin *pin)
{
	if (!pin)
		return;
	pthread_mutex_lock(&memory_lock);
	if (!--pin->users)
		pthread_cond_broadcast(&unpinned);
	pthread_mutex_unlock(&memory_lock);
}

/* At the end of the driver: addresses stay taken, but no memory is behind them. */
void fk_arena_stop_locked(void)
{
	while (arena.mappings)
		fk_unmap_locked(arena.mapping[arena.mappings - 1]);
}
