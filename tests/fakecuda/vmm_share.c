// SPDX-License-Identifier: MIT
/*
 * Virtual memory for other processes: a descriptor of the memory's own file. A process that has it
 * may import it, without the exporter's help, if it sees the device (rules 26, 36-38, 41). The
 * descriptor is itself a reference to the memory.
 */
#include <unistd.h>

#include "memory.h"
#include "vmm.h"

FK_DEFINE(cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle, FK_WORK,
	  void *ret_handle, struct fk_backing *handle, unsigned int type,
	  unsigned long long flags)
{
	CUresult err = FK_INVALID_VALUE;
	int fd;

	FK_ENTER(cuMemExportToShareableHandle);
	if (!ret_handle || flags)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	if (!fk_backing_is_handle_locked(handle)) {
		err = FK_INVALID_VALUE;
	} else if (type != FK_POSIX_FD || !(handle->control->handle_types & type)) {
		err = fk_option_number("EXPORT_TYPE", FK_INVALID_VALUE);
	} else {
		fd = fk_backing_export(handle);
		err = fd < 0 ? FK_OPERATING_SYSTEM : FK_OK;
		if (!err)
			*(int *)ret_handle = fd;
	}
	pthread_mutex_unlock(&memory_lock);
	return err;
}

static CUresult import_locked(int fd, struct fk_backing **ret_handle)
{
	struct fk_backing *backing = fk_backing_open_locked(fd);

	if (!backing)
		return fk_option_number("BAD_FD", FK_INVALID_VALUE);
	if (backing->control->kind != FK_VMM) {
		fk_backing_put_locked(backing);
		return fk_option_number("BAD_FD", FK_INVALID_VALUE);
	}
	if (!fk_device_by_index(backing->control->device_index)) {
		fk_backing_put_locked(backing);
		return FK_INVALID_DEVICE;
	}
	*ret_handle = backing;
	return FK_OK;
}

FK_DEFINE(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle, FK_WORK,
	  struct fk_backing **ret_handle, void *os_handle, unsigned int type)
{
	CUresult err;

	FK_ENTER(cuMemImportFromShareableHandle);
	if (!ret_handle || type != FK_POSIX_FD)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	err = import_locked((int)(intptr_t)os_handle, ret_handle);
	pthread_mutex_unlock(&memory_lock);
	return err;
}

FK_DEFINE(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle, FK_WORK,
	  struct fk_backing **ret_handle, void *ptr)
{
	struct fk_mapping *mapping;

	FK_ENTER(cuMemRetainAllocationHandle);
	if (!ret_handle)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	mapping = fk_mapping_find_locked((uintptr_t)ptr);
	if (mapping && mapping->span->kind == FK_SPAN_RESERVED) {
		mapping->backing->handles++;
		*ret_handle = mapping->backing;
	} else {
		mapping = NULL;
	}
	pthread_mutex_unlock(&memory_lock);
	return mapping ? FK_OK : FK_INVALID_VALUE;
}

FK_DEFINE(cuMemGetAllocationPropertiesFromHandle, 10020, cuMemGetAllocationPropertiesFromHandle,
	  FK_WORK, CUmemAllocationProp *ret_prop, struct fk_backing *handle)
{
	struct fk_device *device = NULL;

	FK_ENTER(cuMemGetAllocationPropertiesFromHandle);
	if (!ret_prop)
		return FK_INVALID_VALUE;
	pthread_mutex_lock(&memory_lock);
	if (fk_backing_is_handle_locked(handle))
		device = fk_device_by_index(handle->control->device_index);
	if (device)
		*ret_prop = (CUmemAllocationProp) {
			.type = 1, .handle_types = handle->control->handle_types,
			.location = { FK_DEVICE, device->ordinal },
		};
	pthread_mutex_unlock(&memory_lock);
	return device ? FK_OK : FK_INVALID_VALUE;
}

/* dma-buf: attribute 124 says that this device has none. */
FK_DEFINE(cuMemGetHandleForAddressRange, 11070, cuMemGetHandleForAddressRange, FK_WORK,
	  void *ret_handle, CUdeviceptr ptr, size_t bytes, int type, unsigned long long flags)
{
	FK_ENTER(cuMemGetHandleForAddressRange);
	return ret_handle && bytes ? FK_NOT_SUPPORTED : FK_INVALID_VALUE;
}
