// SPDX-License-Identifier: MIT
/*
 * Takes over memory that the program has made, for other processes: finds its GPU, its allocation,
 * and a mechanism by which other processes can get it. The cheapest mechanism is tried first: the
 * driver's handles, then descriptors, then pools.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cuda/hip.h"
#include "lib/cuda/register.h"

/* The allocation that has an address. */
struct found {
	CUdeviceptr base;
	size_t bytes;
};

/*
 * Get one attribute of an address. *ret is 0 if the address has none, or if this driver does not
 * know the attribute. 0, or -errno, noted: the driver has failed, so nothing is known of the
 * address.
 */
static int attribute(CUpointer_attribute what, u64 at, u64 *ret)
{
	CUresult result;

	*ret = 0;
	result = xl_cuda()->pointer_get_attribute(ret, what, at);
	if (!result)
		return 0;
	*ret = 0;
	if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED)
		return 0;
	return xl_cuda_fail(result, "ask the driver what 0x%llx is",
			    (unsigned long long)at);
}

/* The GPU that has the memory. NULL, noted: none has it. */
static struct xl_gpu *gpu_of(u64 at)
{
	u64 type, ordinal, managed;

	if (xl_cuda_need("attaching memory") ||
	    attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at, &type) ||
	    attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at, &ordinal) ||
	    attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, at, &managed))
		return NULL;
	if (type != CU_MEMORYTYPE_DEVICE) {
		xl_fail(EMEDIUMTYPE, "0x%llx is no address of a GPU's memory; for "
			"memory of the CPU, use xmem_attach_fd or xmem_copy",
			(unsigned long long)at);
		return NULL;
	}
	if (!managed)
		return xl_gpu((int)ordinal);
	xl_fail(EMEDIUMTYPE, "0x%llx is managed memory, which no other process can "
		"get; copy it into a buffer from xmem_acquire_cuda", (unsigned long long)at);
	return NULL;
}

static int find_range(u64 at, u64 bytes, struct found *found)
{
	CUresult result = xl_cuda()->mem_get_address_range(&found->base, &found->bytes, at);

	if (result)
		return xl_cuda_fail(result, "find the allocation of 0x%llx",
				    (unsigned long long)at);
	if (at >= found->base && at - found->base <= found->bytes &&
	    bytes <= found->bytes - (at - found->base))
		return 0;
	return xl_fail(ERANGE, "%llu bytes at 0x%llx reach beyond the allocation, "
		       "which has %zu bytes from 0x%llx on", (unsigned long long)bytes,
		       (unsigned long long)at, found->bytes, (unsigned long long)found->base);
}

/* ---- the mechanisms; the device's context is current ---- */

static int cannot_share(const struct xl_memory *memory, bool made_in_steps)
{
	static const char *const remedies[] = {
		"allocate it by cudaMalloc, or by cuMemCreate with the handle type POSIX file "
		"descriptor",
		"it was made by cuMemCreate without the handle type POSIX file descriptor, which "
		"must be requested when it is made",
	};

	return xl_fail(EMEDIUMTYPE, "other processes cannot get the memory at 0x%llx: "
		       "%s; or copy it into a buffer from xmem_acquire_cuda",
		       (unsigned long long)memory->address,
		       xl_hip ? "allocate it by hipMalloc" : remedies[made_in_steps]);
}

/*
 * A handle always stands for the whole block, so it can be asked for at any address of the block.
 * The first address of the block may belong to no allocation any more.
 */
static int by_handle(struct xl_memory *memory, u64 at)
{
	CUipcMemHandle handle;
	CUresult result = xl_cuda()->ipc_get_mem_handle(&handle, memory->address);

	if ((result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE) &&
	    at != memory->address)
		result = xl_cuda()->ipc_get_mem_handle(&handle, at);
	/* Nothing had said that it has a handle. */
	if (xl_hip && result == CUDA_ERROR_INVALID_VALUE) {
		xl_cuda_result = result;
		return cannot_share(memory, false);
	}
	if (result)
		return xl_cuda_fail(result, "a handle for other processes");
	memcpy(memory->handle, &handle, sizeof(handle));
	return 0;
}

/*
 * Memory that is attached already keeps its name, so that other processes open it once. Under the
 * lock.
 */
static bool take_name(struct xl_memory *memory)
{
	const struct xl_memory *other;

	for (other = xl_register_first(); other; other = other->next) {
		if (!other->taken || other->kind != memory->kind || other->gpu != memory->gpu ||
		    other->address != memory->address || other->bytes != memory->bytes)
			continue;
		memcpy(memory->handle, other->handle, sizeof(memory->handle));
		return true;
	}
	return false;
}

static int by_descriptor(struct xl_memory *memory, CUmemGenericAllocationHandle allocation,
			 int *ret_fd)
{
	bool named;
	int fd, err;

	xl_register_lock();
	named = take_name(memory);
	xl_register_unlock();
	err = named ? 0 : xl_memory_make_name(memory);
	fd = err ? err : xl_memory_export(allocation);
	*ret_fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

/* The driver's error may mean that this pool was not made for other processes. */
static int pool_failed(CUresult result, u64 at)
{
	if (result != CUDA_ERROR_INVALID_VALUE && result != CUDA_ERROR_NOT_SUPPORTED)
		return xl_cuda_fail(result, "export the memory pool of 0x%llx",
				    (unsigned long long)at);
	xl_cuda_result = result;
	return xl_fail(EMEDIUMTYPE, "0x%llx is in a memory pool that cannot be "
		       "exported, such as the default one (%s, %d); allocate it from a pool with "
		       "the handle type POSIX file descriptor, or copy it into a buffer from "
		       "xmem_acquire_cuda", (unsigned long long)at, xl_cuda_name(result), result);
}

static int by_pool(struct xl_memory *memory, CUmemoryPool pool, int *ret_fd)
{
	CUmemPoolPtrExportData data;
	CUresult result;
	int fd = -1;

	xl_fork_lock();
	result = xl_cuda()->mem_pool_export(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0);
	if (!result)
		fcntl(xl_file_record(fd), F_SETFD, FD_CLOEXEC);
	xl_fork_unlock();
	if (result)
		return pool_failed(result, memory->address);
	result = xl_cuda()->mem_pool_export_pointer(&data, memory->address);
	if (result) {
		xl_file_close(fd);
		return xl_cuda_fail(result, "export a pointer into a memory pool");
	}
	memcpy(memory->handle, &data, sizeof(data));
	*ret_fd = fd;
	return 0;
}

/* Memory of cuMemCreate; all other memory cannot be shared. */
static int by_allocation(struct xl_memory *memory, u64 at, int *ret_fd)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUmemGenericAllocationHandle allocation;
	CUresult result;
	u64 types;
	int err = attribute(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, at, &types);

	if (err)
		return err;
	if (!xl_cuda_has(XL_CUDA_VMM))
		return cannot_share(memory, false);
	result = cuda->mem_retain_allocation_handle(&allocation, (void *)at);
	if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED)
		return cannot_share(memory, false);
	if (result)
		return xl_cuda_fail(result, "get the allocation of 0x%llx",
				    (unsigned long long)at);
	memory->kind = XL_MEMORY_FILE;
	err = types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ?
	      by_descriptor(memory, allocation, ret_fd) : cannot_share(memory, true);
	cuda->mem_release(allocation);
	return err;
}

/*
 * Find the mechanism and the name. 0, or -errno, noted. @at is the program's address. The driver is
 * asked about it and not about the block's first address, whose allocation may have been freed.
 */
static int export(struct xl_memory *memory, u64 at, int *ret_fd)
{
	u64 legacy, pool;
	int err = attribute(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, at, &legacy);

	if (err)
		return err;
	if (memory->gpu->can.ipc && legacy)
		return by_handle(memory, at);
	err = attribute(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at, &pool);
	if (err)
		return err;
	if (!pool || !xl_cuda_has(XL_CUDA_POOL))
		return by_allocation(memory, at, ret_fd);
	memory->kind = XL_MEMORY_POOL;
	return by_pool(memory, (CUmemoryPool)pool, ret_fd);
}

/* pre: the device's context is current. */
static int take(struct xl_gpu *gpu, u64 at, u64 bytes, struct xl_memory **ret, int *ret_fd)
{
	struct found found = { .base = 0 };
	struct xl_memory *memory;
	int err = find_range(at, bytes, &found);

	if (err)
		return err;
	memory = xl_memory_new(gpu, XL_MEMORY_HANDLE, found.bytes);
	if (!memory)
		return -ENOMEM;
	memory->taken = true;
	memory->address = found.base;
	err = export(memory, at, ret_fd);
	if (err) {
		free(memory);
		return err;
	}
	*ret = memory;
	return 0;
}

int xl_memory_take(void *at, u64 bytes, struct xl_memory **ret, u64 *ret_offset, int *ret_fd)
{
	struct xl_gpu *gpu = gpu_of((u64)at);
	struct xl_gpu_scope scope;
	int err;

	*ret_fd = -1;
	if (!gpu)
		return xl_last_error();
	err = xl_gpu_enter(gpu, &scope);
	if (err)
		return err;
	err = take(gpu, (u64)at, bytes, ret, ret_fd);
	xl_gpu_leave(&scope);
	if (err)
		return err;
	*ret_offset = (u64)at - (*ret)->address;
	xl_register_lock();
	xl_register_add(*ret);
	xl_register_unlock();
	return 0;
}
