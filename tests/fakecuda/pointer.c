// SPDX-License-Identifier: MIT
/*
 * Properties of an address. cuMemGetAddressRange returns the range of the block, and an importer
 * gets the block (rule 10). With FAKECUDA_RANGE=allocation both are about the allocation.
 */
#include <string.h>

#include "memory.h"
#include "vmm.h"

enum {
	CONTEXT = 1, MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, SYNC_MEMOPS = 6, BUFFER_ID,
	IS_MANAGED, ORDINAL, LEGACY_IPC_CAPABLE, RANGE_START, RANGE_SIZE, MAPPED, HANDLE_TYPES,
	RDMA_CAPABLE, ACCESS, POOL, MAPPING_SIZE, MAPPING_BASE, BLOCK_ID, DECOMPRESS, LAST,
};

enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

static CUresult range_locked(CUdeviceptr ptr, CUdeviceptr *ret_base, size_t *ret_bytes)
{
	struct fk_mapping *mapping = fk_mapping_find_locked(ptr);
	enum fk_span_kind kind = mapping ? mapping->span->kind : FK_SPAN_BLOCK;
	bool pieces = kind == FK_SPAN_BLOCK || kind == FK_SPAN_POOL;

	if (!mapping)
		return fk_host_registered_locked(ptr, ret_base, ret_bytes) ? FK_OK : FK_NOT_FOUND;
	if (pieces && !fk_piece_find_locked(mapping->span, ptr, ret_base, ret_bytes))
		return FK_NOT_FOUND;
	if (kind == FK_SPAN_POOL || (pieces && fk_option_is("RANGE", "allocation", "block")))
		return FK_OK;
	*ret_base = mapping->base;
	*ret_bytes = mapping->bytes;
	return FK_OK;
}

FK_DEFINE(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2, FK_CONTEXT, CUdeviceptr *ret_base,
	  size_t *ret_bytes, CUdeviceptr ptr)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	CUresult err;

	FK_ENTER(cuMemGetAddressRange_v2);
	pthread_mutex_lock(&memory_lock);
	err = range_locked(ptr, &base, &bytes);
	pthread_mutex_unlock(&memory_lock);
	if (!err && ret_base)
		*ret_base = base;
	if (!err && ret_bytes)
		*ret_bytes = bytes;
	return err;
}

#define GIVE(type, value) (*(type *)data = (value))

static struct fk_device *device_of(const struct fk_mapping *mapping)
{
	if (mapping->span->context)
		return mapping->span->context->device;
	return fk_device_by_index(mapping->backing->control->device_index);
}

static CUresult host_attribute_locked(void *data, int attribute, CUdeviceptr ptr)
{
	struct fk_context *context = fk_context_current();
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (!fk_host_registered_locked(ptr, &base, &bytes))
		return FK_INVALID_VALUE;
	switch (attribute) {
	case CONTEXT: GIVE(void *, context); break;
	case MEMORY_TYPE: GIVE(unsigned int, TYPE_HOST); break;
	case DEVICE_POINTER: case HOST_POINTER: GIVE(CUdeviceptr, ptr); break;
	case RANGE_START: case MAPPING_BASE: GIVE(CUdeviceptr, base); break;
	case RANGE_SIZE: case MAPPING_SIZE: GIVE(size_t, bytes); break;
	case ORDINAL: GIVE(int, context ? context->device->ordinal : 0); break;
	case MAPPED: GIVE(bool, true); break;
	case IS_MANAGED: case LEGACY_IPC_CAPABLE: case SYNC_MEMOPS: case RDMA_CAPABLE:
		GIVE(bool, false);
		break;
	case HANDLE_TYPES: GIVE(uint64_t, 0); break;
	case POOL: GIVE(void *, NULL); break;
	case BUFFER_ID: case BLOCK_ID: GIVE(uint64_t, base); break;
	default: return FK_INVALID_VALUE;
	}
	return FK_OK;
}

static CUresult device_attribute_locked(void *data, int attribute, CUdeviceptr ptr)
{
	struct fk_span *span = fk_span_find_locked(ptr);
	struct fk_mapping *mapping = fk_mapping_find_locked(ptr);
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (!span || (span->kind != FK_SPAN_RESERVED && !mapping))
		return FK_INVALID_VALUE;
	if (attribute == MAPPED) {
		GIVE(bool, mapping != NULL);
		return FK_OK;
	}
	if (attribute == RANGE_START || attribute == RANGE_SIZE) {
		if (span->kind == FK_SPAN_RESERVED) {
			base = span->base;
			bytes = span->bytes;
		} else if (range_locked(ptr, &base, &bytes)) {
			return FK_INVALID_VALUE;
		}
		if (attribute == RANGE_START)
			GIVE(CUdeviceptr, base);
		else
			GIVE(size_t, bytes);
		return FK_OK;
	}
	if (!mapping || range_locked(ptr, &base, &bytes))
		return FK_INVALID_VALUE;
	switch (attribute) {
	case CONTEXT: GIVE(void *, span->context); break;
	case MEMORY_TYPE: GIVE(unsigned int, TYPE_DEVICE); break;
	case DEVICE_POINTER: GIVE(CUdeviceptr, ptr); break;
	case BUFFER_ID: GIVE(uint64_t, span->id); break;
	case ORDINAL: GIVE(int, device_of(mapping)->ordinal); break;
	case LEGACY_IPC_CAPABLE:
		GIVE(bool, span->kind == FK_SPAN_BLOCK && !span->managed);
		break;
	case IS_MANAGED: GIVE(bool, span->managed); break;
	case SYNC_MEMOPS: case RDMA_CAPABLE: case DECOMPRESS:
		GIVE(bool, false);
		break;
	case HANDLE_TYPES: GIVE(uint64_t, mapping->backing->control->handle_types); break;
	case ACCESS:
		GIVE(unsigned int, fk_context_current() ?
		     mapping->access[fk_device_current()->ordinal] : 0);
		break;
	case POOL: GIVE(void *, span->pool); break;
	case MAPPING_SIZE: GIVE(size_t, mapping->bytes); break;
	case MAPPING_BASE: GIVE(CUdeviceptr, mapping->base); break;
	case BLOCK_ID: GIVE(uint64_t, (uintptr_t)mapping->backing); break;
	default: return FK_INVALID_VALUE;	/* HOST_POINTER among them */
	}
	return FK_OK;
}

static CUresult get_locked(void *data, int attribute, CUdeviceptr ptr)
{
	if (attribute < CONTEXT || attribute >= LAST)
		return FK_INVALID_VALUE;
	return fk_memory_is_device(ptr) ? device_attribute_locked(data, attribute, ptr) :
		host_attribute_locked(data, attribute, ptr);
}

FK_DEFINE(cuPointerGetAttribute, 4000, cuPointerGetAttribute, FK_WORK, void *data, int attribute,
	  CUdeviceptr ptr)
{
	CUresult err;

	FK_ENTER(cuPointerGetAttribute);
	if (!data)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	err = get_locked(data, attribute, ptr);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

/* How many bytes an attribute has. An attribute that does not apply to an address becomes zeros. */
static size_t attribute_bytes(int attribute)
{
	switch (attribute) {
	case SYNC_MEMOPS: case IS_MANAGED: case LEGACY_IPC_CAPABLE: case MAPPED:
	case RDMA_CAPABLE: case DECOMPRESS:
		return sizeof(bool);
	case MEMORY_TYPE: case ORDINAL: case ACCESS:
		return sizeof(int);
	default:
		return sizeof(uint64_t);
	}
}

FK_DEFINE(cuPointerGetAttributes, 7000, cuPointerGetAttributes, FK_WORK, unsigned int count,
	  const int *attributes, void **data, CUdeviceptr ptr)
{
	FK_ENTER(cuPointerGetAttributes);
	if (!count || !attributes || !data)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	for (unsigned int i = 0; i < count; i++) {
		if (!get_locked(data[i], attributes[i], ptr))
			continue;
		memset(data[i], 0, attribute_bytes(attributes[i]));
		if (attributes[i] == ORDINAL)
			*(int *)data[i] = -2;
	}
	pthread_mutex_unlock(&memory_lock);
	return FK_OK;
}

FK_DEFINE(cuPointerSetAttribute, 6000, cuPointerSetAttribute, FK_WORK, const void *data,
	  int attribute, CUdeviceptr ptr)
{
	FK_ENTER(cuPointerSetAttribute);
	return data && attribute == SYNC_MEMOPS && fk_memory_is_device(ptr) ?
		FK_OK : FK_INVALID_VALUE;
}
