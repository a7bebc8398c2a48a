// SPDX-License-Identifier: MIT
/*
 * cuMemAlloc and cuMemFree. As with a real driver, small allocations share blocks of 2 MiB, so that
 * clients see that an allocation has neighbours (rule 10). An allocation of more than half a block
 * has a backing of its own. New memory is filled with other bytes than zeros, unless
 * FAKECUDA_POISON=0.
 */
#include <string.h>

#include "memory.h"

#define POISON		0xa5
#define FREED		0xdb
#define POISON_BYTES	(1ul << 20)	/* of each allocation at most, for speed */

static void poison(const struct fk_alloc *alloc)
{
	size_t bytes = alloc->taken < POISON_BYTES ? alloc->taken : POISON_BYTES;

	if (fk_option_number("POISON", 1))
		memset(fk_shadow(alloc->base), POISON, bytes);
}

static struct fk_span *block_make_locked(struct fk_context *context, size_t bytes, bool managed)
{
	struct fk_backing *backing;
	struct fk_span *span;
	CUresult err;

	bytes = (bytes + FK_BLOCK_BYTES - 1) & ~(FK_BLOCK_BYTES - 1);
	if (fk_backing_create_locked(context->device, bytes, FK_LEGACY, 0, &backing))
		return NULL;
	span = fk_span_create_locked(bytes, FK_BLOCK_BYTES, 0, 0, FK_SPAN_BLOCK);
	if (span)
		span->managed = managed;
	err = span ? fk_map_locked(span, span->base, backing) : FK_OUT_OF_MEMORY;
	if (err) {
		if (span)
			fk_span_free_locked(span);
		fk_backing_put_locked(backing);
		return NULL;
	}
	backing->control->address = span->base;
	fk_backing_put_locked(backing);		/* from now on its mapping has it */
	span->context = context;
	for (int i = 0; i < fk_device_count(); i++)
		if (managed || i == context->device->ordinal)
			fk_mapping_find_locked(span->base)->access[i] = FK_READ | FK_WRITE;
	return span;
}

static struct fk_alloc *alloc_locked(struct fk_context *context, size_t bytes)
{
	struct fk_span *span = NULL;
	struct fk_alloc *alloc;

	if (bytes + FK_BLOCK_BYTES < bytes)
		return NULL;
	while (bytes <= FK_BLOCK_BYTES / 2 && (span = fk_span_next_locked(span))) {
		if (span->kind != FK_SPAN_BLOCK || span->context != context || span->managed ||
		    span->bytes != FK_BLOCK_BYTES)
			continue;
		alloc = fk_alloc_make_locked(span, bytes, 512);
		if (alloc)
			return alloc;
	}
	span = block_make_locked(context, bytes, false);
	return span ? fk_alloc_make_locked(span, bytes, 512) : NULL;
}

FK_DEFINE(cuMemAlloc, 3020, cuMemAlloc_v2, FK_CONTEXT | FK_UNSAFE,
	  CUdeviceptr *ret_ptr, size_t bytes)
{
	struct fk_alloc *alloc;

	FK_ENTER(cuMemAlloc_v2);
	if (!ret_ptr || !bytes)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	alloc = alloc_locked(fk_context_current(), bytes);
	if (alloc) {
		alloc->ready = true;
		poison(alloc);
		*ret_ptr = alloc->base;
	}
	pthread_mutex_unlock(&memory_lock);
	return alloc ? FK_OK : FK_OUT_OF_MEMORY;
}

/* Managed memory, which the CPU and all devices have. Each allocation has a block of its own. */
static struct fk_alloc *alloc_managed_locked(struct fk_context *context, size_t bytes)
{
	struct fk_span *span = bytes + FK_BLOCK_BYTES < bytes ? NULL :
		block_make_locked(context, bytes, true);

	return span ? fk_alloc_make_locked(span, bytes, 512) : NULL;
}

enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2 };

FK_DEFINE(cuMemAllocManaged, 6000, cuMemAllocManaged, FK_CONTEXT, CUdeviceptr *ret_ptr,
	  size_t bytes, unsigned int flags)
{
	struct fk_alloc *alloc;

	FK_ENTER(cuMemAllocManaged);
	if (!ret_ptr || !bytes || (flags != ATTACH_GLOBAL && flags != ATTACH_HOST))
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	alloc = alloc_managed_locked(fk_context_current(), bytes);
	if (alloc) {
		alloc->ready = true;
		*ret_ptr = alloc->base;
	}
	pthread_mutex_unlock(&memory_lock);
	return alloc ? FK_OK : FK_OUT_OF_MEMORY;
}

/*
 * Rule 22: another process has it open. FAKECUDA_FREE_OPEN=poison changes the bytes that it then
 * reads.
 */
static void end_export_locked(struct fk_span *span, struct fk_alloc *alloc)
{
	struct fk_control *control = fk_mapping_find_locked(span->base)->backing->control;
	unsigned int openers;

	if (alloc->export < 0)
		return;
	openers = fk_export_end(control, alloc->export);
	if (!openers)
		return;
	fk_violation("cuMemFree of %#llx, which %u process(es) have open", alloc->base, openers);
	if (fk_option_is("FREE_OPEN", "poison", "keep"))
		memset(fk_shadow(alloc->base), FREED, alloc->taken);
}

static CUresult free_locked(CUdeviceptr ptr)
{
	struct fk_span *span;
	struct fk_alloc *alloc;

	do {
		span = fk_span_find_locked(ptr);
		if (span && span->kind == FK_SPAN_IMPORT)
			fk_violation("cuMemFree of %#llx, which cuIpcOpenMemHandle gave", ptr);
		if (!span || span->kind != FK_SPAN_BLOCK)
			return FK_INVALID_VALUE;
	} while (fk_pin_waited_locked(&span->pin));
	alloc = fk_alloc_find_locked(span, ptr);
	if (!alloc || alloc->base != ptr)
		return FK_INVALID_VALUE;
	end_export_locked(span, alloc);
	fk_alloc_free_locked(span, alloc);
	if (!span->allocs)
		fk_span_free_locked(span);
	return FK_OK;
}

FK_DEFINE(cuMemFree, 3020, cuMemFree_v2, FK_CONTEXT | FK_UNSAFE,
	  CUdeviceptr ptr)
{
	CUresult err;

	FK_ENTER(cuMemFree_v2);
	if (!ptr)
		return FK_OK;
	fk_stream_drain_all();
	if (fk_pool_free(NULL, ptr, true, &err))
		return err;
	pthread_mutex_lock(&memory_lock);
	err = free_locked(ptr);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* Free all that was allocated or opened in it. */
void fk_memory_context_gone(struct fk_context *context)
{
	struct fk_span *span;

	pthread_mutex_lock(&memory_lock);
again:
	for (span = NULL; (span = fk_span_next_locked(span));) {
		if (span->context != context ||
		    (span->kind != FK_SPAN_BLOCK && span->kind != FK_SPAN_IMPORT))
			continue;
		if (fk_pin_waited_locked(&span->pin))
			goto again;
		for (struct fk_alloc *alloc = span->allocs; alloc; alloc = alloc->next)
			end_export_locked(span, alloc);
		while (span->opened_count)
			fk_opened_remove_locked(span, span->opened[0].offset);
		fk_span_free_locked(span);
		goto again;
	}
	pthread_mutex_unlock(&memory_lock);
}
