// SPDX-License-Identifier: MIT
/*
 * Legacy IPC of memory: a handle names an allocation of a process that lives. Rules 9 to 28.
 * Guesses about a real driver are switches, see README.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

typedef struct { char reserved[64]; } CUipcMemHandle;

struct handle {
	uint32_t magic;
	uint32_t index;			/* of the export */
	struct fk_name name;		/* of the block's memory */
	uint64_t generation;		/* of the allocation (rule 11) */
};
#define HANDLE_MAGIC 0x6d697061u

_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "a handle has 64 bytes");

static CUresult get_locked(CUdeviceptr ptr, struct handle *ret_handle)
{
	struct fk_mapping *mapping = fk_mapping_find_locked(ptr);
	struct fk_alloc *alloc;
	int index;

	if (!mapping || mapping->span->kind != FK_SPAN_BLOCK || mapping->span->managed)
		return FK_INVALID_VALUE;
	alloc = fk_alloc_find_locked(mapping->span, ptr);
	if (!alloc)
		return FK_INVALID_VALUE;
	index = fk_export_locked(mapping->backing->control, mapping->span, alloc);
	if (index < 0)
		return FK_OUT_OF_MEMORY;
	if (!fk_name_file(mapping->backing->fd, &ret_handle->name))
		return FK_MAP_FAILED;
	ret_handle->magic = HANDLE_MAGIC;
	ret_handle->index = index;
	ret_handle->generation = alloc->generation;
	return FK_OK;
}

FK_DEFINE(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle, FK_CONTEXT, CUipcMemHandle *ret_handle,
	  CUdeviceptr ptr)
{
	CUipcMemHandle bytes = { { 0 } };
	struct handle handle = { 0 };
	CUresult err;

	FK_ENTER(cuIpcGetMemHandle);
	if (!ret_handle)
		return FK_INVALID_VALUE;
	if (!fk_device_attribute(fk_device_current(), 125))
		return FK_NOT_SUPPORTED;
	pthread_mutex_lock(&memory_lock);
	err = get_locked(ptr, &handle);
	pthread_mutex_unlock(&memory_lock);
	if (err)
		return err;
	memcpy(&bytes, &handle, sizeof(handle));
	*ret_handle = bytes;
	return FK_OK;
}

/* ---- Opening ---- */

static bool of_other_user(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return !stat(path, &st) && st.st_uid != geteuid();
}

static CUresult check(const struct handle *handle, unsigned int flags)
{
	const struct fk_process *owner = &handle->name.owner;

	if (flags != 1 && !fk_option_is("IPC_FLAGS", "any", "1"))
		return FK_INVALID_VALUE;
	if (handle->magic != HANDLE_MAGIC || handle->index >= FK_MAX_EXPORTS)
		return fk_option_number("GARBAGE", FK_INVALID_VALUE);
	if (owner->pid_namespace != fk_self()->pid_namespace || fk_process_is_self(owner))
		return FK_INVALID_CONTEXT;
	if (of_other_user(owner->pid))
		return fk_option_number("OTHER_USER", FK_INVALID_CONTEXT);
	return FK_OK;
}

static bool same_memory(const struct fk_mapping *mapping, const struct fk_name *name)
{
	struct fk_name have;

	return fk_name_file(mapping->backing->fd, &have) && have.inode == name->inode &&
		have.device == name->device &&
		!memcmp(&mapping->backing->control->owner, &name->owner, sizeof(name->owner));
}

/*
 * Searches the open ones: is this one open, and is its exporter's device that of another context?
 */
static CUresult find_open_locked(const struct handle *handle, struct fk_context *context,
				 int device_index, struct fk_mapping **ret_mapping)
{
	struct fk_span *span = NULL;

	*ret_mapping = NULL;
	while ((span = fk_span_next_locked(span))) {
		struct fk_mapping *mapping = fk_mapping_find_locked(span->base);

		if (span->kind != FK_SPAN_IMPORT || span->context->device != context->device)
			continue;
		if (span->context != context &&
		    mapping->backing->control->device_index == device_index &&
		    !memcmp(&mapping->backing->control->owner, &handle->name.owner,
			    sizeof(handle->name.owner)))
			return fk_option_number("SECOND_CONTEXT", FK_INVALID_CONTEXT);
		if (span->context == context && same_memory(mapping, &handle->name))
			*ret_mapping = mapping;
	}
	return FK_OK;
}

static CUresult check_peer_locked(struct fk_context *context, int device_index)
{
	uint32_t peers = context->peers;
	struct fk_span *span = NULL;

	if (!fk_device_peers(context->device->index, device_index))
		return fk_option_number("NO_PEER", FK_PEER_ACCESS_UNSUPPORTED);
	if (device_index == context->device->index)
		return FK_OK;
	/*
	 * Peer access that opening enables counts as much as access that a program enables (rule
	 * 28).
	 */
	peers |= 1u << device_index;
	while ((span = fk_span_next_locked(span)))
		if (span->kind == FK_SPAN_IMPORT && span->context == context)
			peers |= 1u << fk_mapping_find_locked(span->base)->
				backing->control->device_index;
	peers &= ~(1u << context->device->index);
	return __builtin_popcount(peers) > fk_option_number("MAX_PEERS", 8) ?
		FK_TOO_MANY_PEERS : FK_OK;
}

static CUresult map_locked(struct fk_backing *backing, struct fk_context *context,
			   struct fk_mapping **ret_mapping)
{
	struct fk_span *span = fk_span_create_locked(backing->bytes, FK_BLOCK_BYTES, 0,
						     backing->control->address, FK_SPAN_IMPORT);
	CUresult err = span ? fk_map_locked(span, span->base, backing) : FK_MAP_FAILED;

	if (err) {
		if (span)
			fk_span_free_locked(span);
		return err;
	}
	span->context = context;
	*ret_mapping = fk_mapping_find_locked(span->base);
	(*ret_mapping)->access[context->device->ordinal] = FK_READ | FK_WRITE;
	return FK_OK;
}

static size_t offset_of(const struct fk_control *control, unsigned int index)
{
	return fk_option_is("RANGE", "allocation", "block") ? control->exports[index].offset : 0;
}

static CUresult open_file_locked(int fd, const struct handle *handle, CUdeviceptr *ret_ptr)
{
	struct fk_backing *backing = fk_backing_open_locked(fd);
	struct fk_context *context = fk_context_current();
	struct fk_mapping *mapping = NULL;
	struct fk_control *control;
	CUresult err = FK_OK;
	size_t offset;
	bool fresh;

	if (!backing)
		return FK_INVALID_HANDLE;
	control = backing->control;
	err = find_open_locked(handle, context, control->device_index, &mapping);
	if (!err)
		err = check_peer_locked(context, control->device_index);
	if (!err && mapping && fk_option_is("REOPEN", "208", "count"))
		err = FK_ALREADY_MAPPED;
	fresh = !mapping;
	if (!err && fresh)
		err = map_locked(backing, context, &mapping);
	if (!err) {
		control = mapping->backing->control;
		offset = offset_of(control, handle->index);
		err = fk_opened_add_locked(mapping->span, control, handle->index,
					   handle->generation, offset);
		if (err == FK_INVALID_HANDLE)
			err = fk_option_number("GONE", FK_INVALID_HANDLE);
		*ret_ptr = err ? *ret_ptr : mapping->base + offset;
		if (err && fresh)
			fk_span_free_locked(mapping->span);
	}
	fk_backing_put_locked(backing);
	return err;
}

static CUresult open_handle(CUdeviceptr *ret_ptr, const CUipcMemHandle *bytes, unsigned int flags)
{
	struct handle handle;
	CUresult err;
	int fd;

	if (!ret_ptr)
		return FK_INVALID_VALUE;
	memcpy(&handle, bytes, sizeof(handle));
	err = check(&handle, flags);
	if (err)
		return err;
	fd = fk_name_open(&handle.name);
	if (fd < 0)
		return fk_option_number("GONE", FK_INVALID_HANDLE);
	pthread_mutex_lock(&memory_lock);
	err = open_file_locked(fd, &handle, ret_ptr);
	pthread_mutex_unlock(&memory_lock);
	close(fd);
	return err;
}

FK_DEFINE(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2, FK_CONTEXT | FK_UNSAFE,
	  CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags)
{
	FK_ENTER(cuIpcOpenMemHandle_v2);
	return open_handle(ret_ptr, &handle, flags);
}

FK_DEFINE(cuIpcOpenMemHandle, 4010, cuIpcOpenMemHandle, FK_CONTEXT | FK_UNSAFE,
	  CUdeviceptr *ret_ptr, CUipcMemHandle handle, unsigned int flags)
{
	FK_ENTER(cuIpcOpenMemHandle);
	return open_handle(ret_ptr, &handle, flags);
}

/* ---- Closing ---- */

static CUresult close_locked(CUdeviceptr ptr)
{
	struct fk_span *span;

	do {
		span = fk_span_find_locked(ptr);
		if (!span || span->kind != FK_SPAN_IMPORT)
			return FK_INVALID_VALUE;
	} while (fk_pin_waited_locked(&span->pin));
	if (!fk_opened_remove_locked(span, ptr - span->base))
		return FK_INVALID_VALUE;
	if (!fk_opened_count_locked(span))
		fk_span_free_locked(span);
	return FK_OK;
}

FK_DEFINE(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle, FK_CONTEXT | FK_UNSAFE,
	  CUdeviceptr ptr)
{
	CUresult err;

	FK_ENTER(cuIpcCloseMemHandle);
	fk_stream_drain_all();		/* rule 21 */
	usleep(fk_option_number("CLOSE_MS", 0) * 1000);
	pthread_mutex_lock(&memory_lock);
	err = close_locked(ptr);
	pthread_mutex_unlock(&memory_lock);
	return err;
}
