// SPDX-License-Identifier: MIT
/*
 * Virtual memory management: memory and addresses apart. Rules 35 and 38 to 42. None of this needs
 * a current context, and cuMemUnmap waits for no stream, only for an operation that is just using
 * the memory.
 */
#include <string.h>

#include "memory.h"
#include "vmm.h"

static bool supported(void)
{
	return fk_device_count() && fk_device_attribute(fk_device(0), 102) > 0;
}

/* FK_OK, or the result for bad properties. */
static CUresult check_prop(const CUmemAllocationProp *prop)
{
	enum { PINNED = 1 };

	if (prop->type != PINNED || (prop->handle_types & ~15u))
		return FK_INVALID_VALUE;
	if ((prop->location.type == FK_HOST || prop->location.type == FK_HOST_CURRENT) &&
	    prop->handle_types)
		return FK_INVALID_VALUE;
	if (prop->location.type >= FK_HOST && prop->location.type <= FK_HOST_CURRENT)
		return FK_NOT_SUPPORTED;	/* memory of the CPU: attributes 141, 145 */
	if (prop->location.type != FK_DEVICE)
		return FK_INVALID_VALUE;
	if (!fk_device(prop->location.id))
		return FK_INVALID_DEVICE;
	if (prop->handle_types & ~FK_POSIX_FD)
		return FK_NOT_SUPPORTED;
	if (prop->handle_types && !fk_device_attribute(fk_device(prop->location.id), 103))
		return FK_NOT_SUPPORTED;
	return FK_OK;
}

FK_DEFINE(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity, FK_INIT,
	  size_t *ret_bytes, const CUmemAllocationProp *prop, int option)
{
	CUresult err;

	FK_ENTER(cuMemGetAllocationGranularity);
	if (!ret_bytes || !prop || option < 0 || option > 1)
		return FK_INVALID_VALUE;
	err = supported() ? check_prop(prop) : FK_NOT_SUPPORTED;
	if (!err)
		*ret_bytes = FK_BLOCK_BYTES;
	return err;
}

FK_DEFINE(cuMemCreate, 10020, cuMemCreate, FK_WORK, struct fk_backing **ret_handle, size_t bytes,
	  const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult err;

	FK_ENTER(cuMemCreate);
	if (!ret_handle || !prop || !bytes || bytes % FK_BLOCK_BYTES || flags)
		return FK_INVALID_VALUE;
	err = supported() ? check_prop(prop) : FK_NOT_SUPPORTED;
	if (err)
		return err;
	pthread_mutex_lock(&memory_lock);
	err = fk_backing_create_locked(fk_device(prop->location.id), bytes, FK_VMM,
				       prop->handle_types, ret_handle);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuMemRelease, 10020, cuMemRelease, FK_INIT, struct fk_backing *handle)
{
	bool valid;

	FK_ENTER(cuMemRelease);
	pthread_mutex_lock(&memory_lock);
	valid = fk_backing_is_handle_locked(handle);
	if (valid)
		fk_backing_put_locked(handle);
	pthread_mutex_unlock(&memory_lock);
	return valid ? FK_OK : FK_INVALID_VALUE;
}

/* ---- Addresses ---- */

FK_DEFINE(cuMemAddressReserve, 10020, cuMemAddressReserve, FK_WORK, CUdeviceptr *ret_ptr,
	  size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	struct fk_span *span;

	FK_ENTER(cuMemAddressReserve);
	if (!supported())
		return FK_NOT_SUPPORTED;
	if (!ret_ptr || !bytes || bytes % FK_BLOCK_BYTES || (alignment & (alignment - 1)) || flags)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	span = fk_span_create_locked(bytes, alignment, hint, 0, FK_SPAN_RESERVED);
	if (span)
		*ret_ptr = span->base;
	pthread_mutex_unlock(&memory_lock);
	return span ? FK_OK : FK_OUT_OF_MEMORY;
}

static struct fk_span *reserved_locked(CUdeviceptr ptr, size_t bytes)
{
	struct fk_span *span = fk_span_find_locked(ptr);

	if (!span || span->kind != FK_SPAN_RESERVED || !bytes || ptr + bytes < ptr ||
	    ptr + bytes > span->base + span->bytes)
		return NULL;
	return span;
}

static bool is_mapped_locked(CUdeviceptr ptr, size_t bytes)
{
	struct fk_mapping *mapping = fk_mapping_above_locked(ptr);

	return mapping && mapping->base < ptr + bytes;
}

FK_DEFINE(cuMemAddressFree, 10020, cuMemAddressFree, FK_INIT, CUdeviceptr ptr, size_t bytes)
{
	CUresult err = FK_INVALID_VALUE;
	struct fk_span *span;

	FK_ENTER(cuMemAddressFree);
	pthread_mutex_lock(&memory_lock);
	span = reserved_locked(ptr, bytes);
	if (span && span->base == ptr && span->bytes == bytes && !is_mapped_locked(ptr, bytes)) {
		fk_span_free_locked(span);
		err = FK_OK;
	}
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* ---- Mappings ---- */

FK_DEFINE(cuMemMap, 10020, cuMemMap, FK_WORK, CUdeviceptr ptr, size_t bytes, size_t offset,
	  struct fk_backing *handle, unsigned long long flags)
{
	CUresult err = FK_INVALID_VALUE;
	struct fk_span *span;

	FK_ENTER(cuMemMap);
	if (offset || flags || ptr % FK_BLOCK_BYTES)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	span = reserved_locked(ptr, bytes);
	if (span && fk_backing_is_handle_locked(handle) && handle->bytes == bytes &&
	    !is_mapped_locked(ptr, bytes))
		err = fk_map_locked(span, ptr, handle);
	if (!err && !handle->control->address)
		handle->control->address = ptr;
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* Are there mappings from its first to its last byte, and none beyond? */
static bool is_whole_locked(CUdeviceptr ptr, size_t bytes)
{
	CUdeviceptr at = ptr;

	while (at < ptr + bytes) {
		struct fk_mapping *mapping = fk_mapping_find_locked(at);

		if (!mapping || mapping->base != at)
			return false;
		at += mapping->bytes;
	}
	return at == ptr + bytes;
}

static CUresult unmap_locked(CUdeviceptr ptr, size_t bytes)
{
	struct fk_span *span;
	CUdeviceptr at;

	do {
		span = reserved_locked(ptr, bytes);
		if (!span || !is_whole_locked(ptr, bytes))
			return FK_INVALID_VALUE;
	} while (fk_pin_waited_locked(&span->pin));
	for (at = ptr; at < ptr + bytes;) {
		struct fk_mapping *mapping = fk_mapping_find_locked(at);

		at += mapping->bytes;
		fk_unmap_locked(mapping);
	}
	return FK_OK;
}

FK_DEFINE(cuMemUnmap, 10020, cuMemUnmap, FK_INIT, CUdeviceptr ptr, size_t bytes)
{
	CUresult err;

	FK_ENTER(cuMemUnmap);
	pthread_mutex_lock(&memory_lock);
	err = unmap_locked(ptr, bytes);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* ---- Access ---- */

static CUresult check_access_locked(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc)
{
	CUdeviceptr at = ptr;

	if (desc->location.type != FK_DEVICE || (desc->flags != 0 && desc->flags != FK_READ &&
						 desc->flags != (FK_READ | FK_WRITE)))
		return FK_INVALID_VALUE;
	if (!fk_device(desc->location.id))
		return FK_INVALID_DEVICE;
	for (; at < ptr + bytes; at += fk_mapping_find_locked(at)->bytes)
		if (!fk_device_peers(fk_device(desc->location.id)->index,
				     fk_mapping_find_locked(at)->backing->control->device_index))
			return FK_INVALID_DEVICE;
	return FK_OK;
}

static CUresult set_access_locked(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc,
				  size_t count)
{
	CUresult err = reserved_locked(ptr, bytes) && is_whole_locked(ptr, bytes) ?
		FK_OK : FK_INVALID_VALUE;
	CUdeviceptr at;

	for (size_t i = 0; i < count && !err; i++)
		err = check_access_locked(ptr, bytes, &desc[i]);
	if (err)
		return err;
	for (at = ptr; at < ptr + bytes;) {
		struct fk_mapping *mapping = fk_mapping_find_locked(at);

		for (size_t i = 0; i < count; i++)
			mapping->access[desc[i].location.id] = desc[i].flags;
		at += mapping->bytes;
	}
	return FK_OK;
}

FK_DEFINE(cuMemSetAccess, 10020, cuMemSetAccess, FK_WORK, CUdeviceptr ptr, size_t bytes,
	  const CUmemAccessDesc *desc, size_t count)
{
	CUresult err;

	FK_ENTER(cuMemSetAccess);
	if (!desc || !count)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	err = set_access_locked(ptr, bytes, desc, count);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuMemGetAccess, 10020, cuMemGetAccess, FK_WORK, unsigned long long *ret_flags,
	  const CUmemLocation *location, CUdeviceptr ptr)
{
	struct fk_mapping *mapping;

	FK_ENTER(cuMemGetAccess);
	if (!ret_flags || !location || location->type != FK_DEVICE || !fk_device(location->id))
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	mapping = fk_mapping_find_locked(ptr);
	if (mapping)
		*ret_flags = mapping->access[location->id];
	pthread_mutex_unlock(&memory_lock);
	return mapping ? FK_OK : FK_INVALID_VALUE;
}
