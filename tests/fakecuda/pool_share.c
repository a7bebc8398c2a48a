// SPDX-License-Identifier: MIT
/*
 * Pools for other processes: a descriptor passes the pool on, and 64 bytes pass each pointer on,
 * which mean something only together with the imported pool. An importer frees its pointer before
 * the exporter frees the memory (rules 43 to 45).
 */
#include <string.h>

#include "pool.h"

struct data {
	uint32_t magic;
	uint32_t index;			/* of the export */
	struct fk_name name;		/* of the pool's memory */
	uint64_t generation;		/* of the allocation */
};
#define DATA_MAGIC 0x6c6f6f70u

_Static_assert(sizeof(struct data) <= sizeof(CUmemPoolPtrExportData), "it has 64 bytes");

FK_DEFINE(cuMemPoolExportToShareableHandle, 11020, cuMemPoolExportToShareableHandle, FK_WORK,
	  void *ret_handle, struct fk_pool *pool, unsigned int type, unsigned long long flags)
{
	CUresult err = FK_INVALID_VALUE;
	int fd = -1;

	FK_ENTER(cuMemPoolExportToShareableHandle);
	if (!ret_handle || flags || type != FK_POSIX_FD)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	pool = fk_pool_find_locked(pool);
	if (pool && !pool->imported && (pool->handle_types & type)) {
		fd = fk_backing_export(fk_mapping_find_locked(pool->span->base)->backing);
		err = fd < 0 ? FK_OPERATING_SYSTEM : FK_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	if (!err)
		*(int *)ret_handle = fd;
	return err;
}

static CUresult import_locked(int fd, struct fk_pool **ret_pool)
{
	struct fk_backing *backing = fk_backing_open_locked(fd);
	struct fk_device *device;
	CUresult err;

	if (!backing)
		return fk_option_number("BAD_FD", FK_INVALID_VALUE);
	device = fk_device_by_index(backing->control->device_index);
	if (backing->control->kind != FK_POOL || !device) {
		err = backing->control->kind == FK_POOL ? FK_INVALID_DEVICE :
			fk_option_number("BAD_FD", FK_INVALID_VALUE);
		fk_backing_put_locked(backing);
		return err;
	}
	err = fk_pool_make_locked(backing, device, backing->control->address, ret_pool);
	if (!err)
		(*ret_pool)->imported = true;
	return err;
}

FK_DEFINE(cuMemPoolImportFromShareableHandle, 11020, cuMemPoolImportFromShareableHandle, FK_WORK,
	  struct fk_pool **ret_pool, void *handle, unsigned int type, unsigned long long flags)
{
	CUresult err;

	FK_ENTER(cuMemPoolImportFromShareableHandle);
	if (!ret_pool || flags || type != FK_POSIX_FD)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	err = import_locked((int)(intptr_t)handle, ret_pool);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

static CUresult export_locked(CUdeviceptr ptr, struct data *ret_data)
{
	struct fk_span *span = fk_span_find_locked(ptr);
	struct fk_mapping *mapping;
	struct fk_alloc *alloc;
	int index;

	if (!span || span->kind != FK_SPAN_POOL || span->pool->imported ||
	    !span->pool->handle_types)
		return FK_INVALID_VALUE;
	alloc = fk_alloc_find_locked(span, ptr);
	if (!alloc || alloc->base != ptr || alloc->freeing)
		return FK_INVALID_VALUE;
	mapping = fk_mapping_find_locked(ptr);
	index = fk_export_locked(mapping->backing->control, span, alloc);
	if (index < 0)
		return FK_OUT_OF_MEMORY;
	ret_data->magic = DATA_MAGIC;
	ret_data->index = index;
	ret_data->generation = alloc->generation;
	return fk_name_file(mapping->backing->fd, &ret_data->name) ? FK_OK : FK_MAP_FAILED;
}

FK_DEFINE(cuMemPoolExportPointer, 11020, cuMemPoolExportPointer, FK_WORK,
	  CUmemPoolPtrExportData *ret_bytes, CUdeviceptr ptr)
{
	CUmemPoolPtrExportData bytes = { { 0 } };
	struct data data = { 0 };
	CUresult err;

	FK_ENTER(cuMemPoolExportPointer);
	if (!ret_bytes)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	err = export_locked(ptr, &data);
	pthread_mutex_unlock(&memory_lock);
	if (err)
		return err;
	memcpy(&bytes, &data, sizeof(data));
	*ret_bytes = bytes;
	return FK_OK;
}

/* Files of one device have one inode, but no two processes have equal starts and generations. */
static bool is_of(const struct data *data, const struct fk_mapping *mapping)
{
	struct fk_name name;

	return fk_name_file(mapping->backing->fd, &name) && name.inode == data->name.inode &&
		name.device == data->name.device &&
		!memcmp(&mapping->backing->control->owner, &data->name.owner,
			sizeof(data->name.owner));
}

static CUresult import_pointer_locked(struct fk_pool *pool, const struct data *data,
				      CUdeviceptr *ret_ptr)
{
	struct fk_mapping *mapping;
	struct fk_control *control;
	size_t offset;
	CUresult err;

	if (!pool || !pool->imported || data->magic != DATA_MAGIC || data->index >= FK_MAX_EXPORTS)
		return FK_INVALID_VALUE;
	mapping = fk_mapping_find_locked(pool->span->base);
	if (!is_of(data, mapping))
		return FK_INVALID_VALUE;
	control = mapping->backing->control;
	offset = control->exports[data->index].offset;
	err = fk_opened_add_locked(pool->span, control, data->index, data->generation, offset);
	if (err == FK_INVALID_HANDLE)
		err = fk_option_number("POOL_GONE", FK_INVALID_VALUE);
	if (!err)
		*ret_ptr = pool->span->base + offset;
	return err;
}

FK_DEFINE(cuMemPoolImportPointer, 11020, cuMemPoolImportPointer, FK_WORK, CUdeviceptr *ret_ptr,
	  struct fk_pool *pool, const CUmemPoolPtrExportData *bytes)
{
	struct data data;
	CUresult err;

	FK_ENTER(cuMemPoolImportPointer);
	if (!ret_ptr || !bytes)
		return FK_INVALID_VALUE;
	memcpy(&data, bytes, sizeof(data));
	pthread_mutex_lock(&memory_lock);
	err = import_pointer_locked(fk_pool_find_locked(pool), &data, ret_ptr);
	pthread_mutex_unlock(&memory_lock);
	return err;
}
