// SPDX-License-Identifier: MIT
/*
 * Memory pools: one backing each, of FAKECUDA_POOL_MIB, from which streams allocate. The call
 * returns an address. Its memory may be used once the stream has got to the allocation, and is free
 * again once the stream that frees it has got to the free (rules 43 to 45).
 */
#include <stdlib.h>

#include "pool.h"

static struct fk_pool *pools, *defaults[FK_MAX_DEVICES], *currents[FK_MAX_DEVICES];

struct fk_pool *fk_pool_find_locked(struct fk_pool *wanted)
{
	struct fk_pool *pool = pools;

	while (pool && pool != wanted)
		pool = pool->next;
	return pool && !pool->destroyed ? pool : NULL;
}

struct fk_control *fk_pool_control_locked(const struct fk_pool *pool)
{
	return fk_mapping_find_locked(pool->span->base)->backing->control;
}

CUresult fk_pool_make_locked(struct fk_backing *backing, struct fk_device *device,
			     CUdeviceptr avoid, struct fk_pool **ret_pool)
{
	struct fk_pool *pool = calloc(1, sizeof(*pool));
	struct fk_span *span = fk_span_create_locked(backing->bytes, FK_BLOCK_BYTES, 0, avoid,
						     FK_SPAN_POOL);
	CUresult err = pool && span ? fk_map_locked(span, span->base, backing) :
		FK_OUT_OF_MEMORY;

	if (err) {
		if (span)
			fk_span_free_locked(span);
		fk_backing_put_locked(backing);
		free(pool);
		return err;
	}
	fk_backing_put_locked(backing);		/* from now on its mapping has it */
	pool->span = span;
	pool->device = device;
	pool->handle_types = backing->control->handle_types;
	pool->attribute[RESERVED_CURRENT] = pool->attribute[RESERVED_HIGH] = 0;
	pool->next = pools;
	pools = pool;
	span->pool = pool;
	fk_mapping_find_locked(span->base)->access[device->ordinal] = FK_READ | FK_WRITE;
	*ret_pool = pool;
	return FK_OK;
}

/* Its place stays, so that a handle that is used too late is recognized as bad. */
void fk_pool_reap_locked(struct fk_pool *pool)
{
	while (pool->destroyed && pool->span && !pool->span->allocs && !pool->span->opened_count) {
		if (fk_pin_waited_locked(&pool->span->pin))
			continue;
		fk_span_free_locked(pool->span);
		pool->span = NULL;
	}
}

static CUresult create_locked(struct fk_device *device, unsigned int handle_types, size_t most,
			      struct fk_pool **ret_pool)
{
	size_t bytes = (size_t)fk_option_number("POOL_MIB", 256) << 20;
	struct fk_backing *backing;
	CUresult err;

	if (most)
		bytes = (most + FK_BLOCK_BYTES - 1) & ~(FK_BLOCK_BYTES - 1);
	err = fk_backing_create_locked(device, bytes, FK_POOL, handle_types, &backing);
	if (!err)
		err = fk_pool_make_locked(backing, device, 0, ret_pool);
	if (!err)
		fk_pool_control_locked(*ret_pool)->address = (*ret_pool)->span->base;
	return err;
}

static CUresult default_locked(struct fk_device *device, struct fk_pool **ret_pool)
{
	CUresult err = FK_OK;

	if (!defaults[device->ordinal])
		err = create_locked(device, 0, 0, &defaults[device->ordinal]);
	if (err)
		return err;
	defaults[device->ordinal]->is_default = true;
	*ret_pool = defaults[device->ordinal];
	return FK_OK;
}

static CUresult current_locked(struct fk_device *device, struct fk_pool **ret_pool)
{
	*ret_pool = fk_pool_find_locked(currents[device->ordinal]);
	return *ret_pool ? FK_OK : default_locked(device, ret_pool);
}

static bool supported(const struct fk_device *device)
{
	return fk_device_attribute(device, 115) > 0;
}

FK_DEFINE(cuMemPoolCreate, 11020, cuMemPoolCreate, FK_WORK, struct fk_pool **ret_pool,
	  const CUmemPoolProps *props)
{
	struct fk_device *device;
	CUresult err;

	FK_ENTER(cuMemPoolCreate);
	if (!ret_pool || !props || props->type != 1)
		return FK_INVALID_VALUE;
	if (props->location.type == FK_HOST && props->handle_types)
		return FK_INVALID_VALUE;
	if (props->location.type >= FK_HOST && props->location.type <= FK_HOST_CURRENT)
		return FK_NOT_SUPPORTED;	/* attributes 142 and 144 */
	device = props->location.type == FK_DEVICE ? fk_device(props->location.id) : NULL;
	if (!device || (props->handle_types & ~15u))
		return FK_INVALID_VALUE;
	if (!supported(device) || (props->handle_types & ~FK_POSIX_FD))
		return FK_NOT_SUPPORTED;
	pthread_mutex_lock(&memory_lock);
	err = create_locked(device, props->handle_types, props->most, ret_pool);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuMemPoolDestroy, 11020, cuMemPoolDestroy, FK_WORK, struct fk_pool *pool)
{
	CUresult err = FK_INVALID_VALUE;

	FK_ENTER(cuMemPoolDestroy);
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	if (pool && !pool->is_default) {
		pool->destroyed = true;
		fk_pool_reap_locked(pool);
		err = FK_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* ---- A device's pools ---- */

FK_DEFINE(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool, FK_WORK,
	  struct fk_pool **ret_pool, CUdevice ordinal)
{
	CUresult err;

	FK_ENTER(cuDeviceGetDefaultMemPool);
	if (!ret_pool)
		return FK_INVALID_VALUE;
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	if (!supported(fk_device(ordinal)))
		return FK_NOT_SUPPORTED;
	pthread_mutex_lock(&memory_lock);
	err = default_locked(fk_device(ordinal), ret_pool);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool, FK_WORK, struct fk_pool **ret_pool,
	  CUdevice ordinal)
{
	CUresult err;

	FK_ENTER(cuDeviceGetMemPool);
	if (!ret_pool)
		return FK_INVALID_VALUE;
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	if (!supported(fk_device(ordinal)))
		return FK_NOT_SUPPORTED;
	pthread_mutex_lock(&memory_lock);
	err = current_locked(fk_device(ordinal), ret_pool);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool, FK_WORK, CUdevice ordinal,
	  struct fk_pool *pool)
{
	CUresult err = FK_INVALID_VALUE;

	FK_ENTER(cuDeviceSetMemPool);
	if (!fk_device(ordinal))
		return FK_INVALID_DEVICE;
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	if (pool && !pool->imported && pool->device == fk_device(ordinal)) {
		currents[ordinal] = pool;
		err = FK_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* ---- Allocating and freeing ---- */

struct operation {
	struct fk_pool *pool;
	CUdeviceptr ptr;
	uint64_t generation;
};

static struct fk_alloc *operand_locked(const struct operation *operation)
{
	struct fk_span *span = operation->pool->span;
	struct fk_alloc *alloc = span ? fk_alloc_find_locked(span, operation->ptr) : NULL;

	return alloc && alloc->generation == operation->generation ? alloc : NULL;
}

static void account_locked(struct fk_pool *pool, ssize_t bytes)
{
	uint64_t *attribute = pool->attribute;

	fk_device_charge(pool->device, bytes);
	attribute[USED_CURRENT] += bytes;
	attribute[RESERVED_CURRENT] = attribute[USED_CURRENT];
	if (attribute[USED_HIGH] < attribute[USED_CURRENT])
		attribute[USED_HIGH] = attribute[USED_CURRENT];
	attribute[RESERVED_HIGH] = attribute[USED_HIGH];
}

static void run_alloc(void *arg)
{
	struct operation *operation = arg;
	struct fk_alloc *alloc;

	pthread_mutex_lock(&memory_lock);
	alloc = operand_locked(operation);
	if (alloc)
		alloc->ready = true;
	pthread_mutex_unlock(&memory_lock);
	free(operation);
}

static void run_free(void *arg)
{
	struct operation *operation = arg;
	struct fk_alloc *alloc;

	pthread_mutex_lock(&memory_lock);
	alloc = operand_locked(operation);
	if (alloc) {
		account_locked(operation->pool, -(ssize_t)alloc->taken);
		fk_alloc_free_locked(operation->pool->span, alloc);
		fk_pool_reap_locked(operation->pool);
	}
	pthread_mutex_unlock(&memory_lock);
	free(operation);
}

static struct operation *make(struct fk_pool *pool, const struct fk_alloc *alloc)
{
	struct operation *operation = malloc(sizeof(*operation));

	if (operation)
		*operation = (struct operation) { pool, alloc->base, alloc->generation };
	return operation;
}

static CUresult alloc_locked(struct fk_pool *pool, size_t bytes, struct operation **ret_operation)
{
	struct fk_alloc *alloc;

	if (!pool || pool->imported)
		return FK_INVALID_VALUE;
	if (fk_device_used(pool->device) + bytes > pool->device->bytes)
		return FK_OUT_OF_MEMORY;
	alloc = fk_alloc_make_locked(pool->span, bytes, 512);
	*ret_operation = alloc ? make(pool, alloc) : NULL;
	if (!*ret_operation) {
		if (alloc)
			fk_alloc_free_locked(pool->span, alloc);
		return FK_OUT_OF_MEMORY;
	}
	account_locked(pool, alloc->taken);
	return FK_OK;
}

static CUresult pool_alloc(CUdeviceptr *ret_ptr, size_t bytes, struct fk_pool *wanted,
			   bool current, CUstream stream)
{
	struct fk_context *context = fk_stream_context(stream);
	struct operation *operation, copy;
	CUresult err = FK_OK;

	if (!ret_ptr)
		return FK_INVALID_VALUE;
	if (!context)
		return FK_INVALID_HANDLE;
	if (!supported(context->device))
		return FK_NOT_SUPPORTED;
	pthread_mutex_lock(&memory_lock);
	if (current)
		err = current_locked(context->device, &wanted);
	if (!err)
		err = alloc_locked(fk_pool_find_locked(wanted), bytes, &operation);
	pthread_mutex_unlock(&memory_lock);
	if (err)
		return err;
	copy = *operation;
	err = fk_stream_queue(stream, run_alloc, operation);
	if (err) {
		run_free(operation);
		return err;
	}
	*ret_ptr = copy.ptr;
	return FK_OK;
}

static CUresult free_locked(struct fk_span *span, CUdeviceptr ptr,
			    struct operation **ret_operation)
{
	struct fk_alloc *alloc = fk_alloc_find_locked(span, ptr);
	unsigned int openers = 0;

	if (!alloc || alloc->base != ptr || alloc->freeing)
		return FK_INVALID_VALUE;
	*ret_operation = make(span->pool, alloc);
	if (!*ret_operation)
		return FK_OUT_OF_MEMORY;
	if (alloc->export >= 0)
		openers = fk_export_end(fk_pool_control_locked(span->pool), alloc->export);
	if (openers)
		fk_violation("%#llx of a pool is freed, which %u process(es) have imported", ptr,
			     openers);
	alloc->freeing = true;
	return FK_OK;
}

/* FAKECUDA_POOL_DOUBLE=bug: if memory was imported twice, the first free ends both imports. */
static bool ends_all_imports(void)
{
	return fk_option_is("POOL_DOUBLE", "bug", "count");
}

/* The pool may have gone with the last import. */
static void run_free_import(void *arg)
{
	struct operation *operation = arg;
	struct fk_span *span;
	size_t offset;

	pthread_mutex_lock(&memory_lock);
	span = fk_span_find_locked(operation->ptr);
	if (span && span->kind == FK_SPAN_POOL && span->pool == operation->pool) {
		offset = operation->ptr - span->base;
		while (fk_opened_remove_locked(span, offset) && ends_all_imports())
			;
		fk_pool_reap_locked(span->pool);
	}
	pthread_mutex_unlock(&memory_lock);
	free(operation);
}

static CUresult free_import_locked(struct fk_span *span, CUdeviceptr ptr,
				   struct operation **ret_operation)
{
	if (!fk_opened_free_locked(span, ptr - span->base))
		return FK_INVALID_VALUE;
	while (ends_all_imports() && fk_opened_free_locked(span, ptr - span->base))
		;
	*ret_operation = malloc(sizeof(**ret_operation));
	if (!*ret_operation)
		return FK_OUT_OF_MEMORY;
	**ret_operation = (struct operation){ .pool = span->pool, .ptr = ptr };
	return FK_OK;
}

bool fk_pool_free(CUstream stream, CUdeviceptr ptr, bool wait, CUresult *ret_err)
{
	struct operation *operation = NULL;
	void (*run)(void *arg) = run_free;
	struct fk_span *span;

	pthread_mutex_lock(&memory_lock);
	span = fk_span_find_locked(ptr);
	if (!span || span->kind != FK_SPAN_POOL) {
		pthread_mutex_unlock(&memory_lock);
		return false;
	}
	if (span->pool->imported)
		run = run_free_import;
	*ret_err = span->pool->imported ? free_import_locked(span, ptr, &operation) :
		free_locked(span, ptr, &operation);
	pthread_mutex_unlock(&memory_lock);
	if (!operation)
		return true;
	if (wait)
		run(operation);
	else
		*ret_err = fk_stream_queue(stream, run, operation);
	return true;
}

#define LEGACY		NULL
#define PER_THREAD	((CUstream)2)
#define DEFAULT_OF(stream, default_stream) ((stream) ? (stream) : (default_stream))

#define DEFINE_ASYNC(suffix, needs, default_stream)					\
FK_DEFINE(cuMemAllocAsync, 11020, cuMemAllocAsync##suffix, needs, CUdeviceptr *ret_ptr,	\
	  size_t bytes, CUstream stream)						\
{											\
	FK_ENTER(cuMemAllocAsync##suffix);						\
	return pool_alloc(ret_ptr, bytes, NULL, true, DEFAULT_OF(stream, default_stream)); \
}											\
											\
FK_DEFINE(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync##suffix, needs,	\
	  CUdeviceptr *ret_ptr, size_t bytes, struct fk_pool *pool, CUstream stream)	\
{											\
	FK_ENTER(cuMemAllocFromPoolAsync##suffix);					\
	return pool_alloc(ret_ptr, bytes, pool, false, DEFAULT_OF(stream, default_stream)); \
}											\
											\
FK_DEFINE(cuMemFreeAsync, 11020, cuMemFreeAsync##suffix, needs, CUdeviceptr ptr,	\
	  CUstream stream)								\
{											\
	CUresult err;									\
											\
	FK_ENTER(cuMemFreeAsync##suffix);						\
	if (!fk_pool_free(DEFAULT_OF(stream, default_stream), ptr, false, &err))	\
		return FK_INVALID_VALUE;						\
	return err;									\
}											\
_Static_assert(true, "")

DEFINE_ASYNC(, FK_CONTEXT, LEGACY);
DEFINE_ASYNC(_ptsz, FK_CONTEXT | FK_PER_THREAD, PER_THREAD);
