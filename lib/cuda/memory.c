// SPDX-License-Identifier: MIT
/*
 * Memory of GPUs in this process: making, opening, finding and freeing it. take.c takes over memory
 * of the program. Every call of the driver may fail; then the effects of earlier calls are undone
 * in reverse order.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/base/uncancelled.h"
#include "lib/cuda/memory.h"
#include "lib/cuda/own.h"
#include "lib/cuda/register.h"

/* Memory without users that the driver failed to free. */
static struct xl_memory *stuck;		/* under the register's lock; atomic */
static u64 stuck_bytes;			/* and of lost memory; atomic */

/* ---- memory behind a descriptor ---- */

static CUmemAllocationProp shape_of(const struct xl_gpu *gpu)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, gpu->device },
	};
}

/* Map @allocation at a new address, for reading and writing. 0, or -errno, noted. */
static int map(struct xl_memory *memory, CUmemGenericAllocationHandle allocation)
{
	const CUmemAccessDesc access = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, memory->gpu->device },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	const struct xl_cuda *cuda = xl_cuda();
	u64 bytes = memory->bytes;
	CUdeviceptr at = 0;
	CUresult result;

	result = cuda->mem_address_reserve(&at, bytes, 0, 0, 0);
	if (result)
		return xl_cuda_fail(result, "GPU %d: reserve addresses for %llu bytes",
				    memory->gpu->ordinal, (unsigned long long)bytes);
	result = cuda->mem_map(at, bytes, 0, allocation, 0);
	if (result)
		goto out_free;
	result = cuda->mem_set_access(at, bytes, &access, 1);
	if (result)
		goto out_unmap;
	memory->address = at;
	xl_memory_share(memory);
	return 0;

out_unmap:
	cuda->mem_unmap(at, bytes);
out_free:
	cuda->mem_address_free(at, bytes);
	return xl_cuda_fail(result, "GPU %d: map %llu bytes", memory->gpu->ordinal,
			    (unsigned long long)bytes);
}

/*
 * Returns whether the memory has gone. If it cannot be unmapped, its addresses stay reserved, so
 * that they do not name other memory.
 */
static bool unmap(const struct xl_memory *memory)
{
	if (!xl_cuda_freed(xl_cuda()->mem_unmap(memory->address, memory->bytes)))
		return false;
	xl_cuda()->mem_address_free(memory->address, memory->bytes);
	return true;
}

/* Make a descriptor for other processes. A forked child does not keep it. Or -errno, noted. */
int xl_memory_export(CUmemGenericAllocationHandle allocation)
{
	CUresult result;
	int fd = -1;

	xl_fork_lock();
	result = xl_cuda()->mem_export(&fd, allocation,
				       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (!result)
		fcntl(xl_file_record(fd), F_SETFD, FD_CLOEXEC);
	xl_fork_unlock();
	return result ? xl_cuda_fail(result, "export memory of a GPU as a descriptor") : fd;
}

/* Choose a name that no other allocation has. 0, or -errno, noted. */
int xl_memory_make_name(struct xl_memory *memory)
{
	if (getrandom(memory->handle, sizeof(memory->handle), 0) == sizeof(memory->handle))
		return 0;
	return xl_fail(EAGAIN, "the system has no random numbers to name memory of a GPU");
}

/*
 * The driver's attributes promise descriptors, but a call for one says that a value is wrong. No
 * value of ours is, so this driver has none; WSL2's answers so. Returns -EOPNOTSUPP, noted.
 */
static int no_descriptor(const struct xl_memory *memory)
{
	xl_cuda_result = CUDA_ERROR_INVALID_VALUE;
	return xl_fail(EOPNOTSUPP, "GPU %d: the driver makes no memory that has a descriptor: "
		       "%s (1)", memory->gpu->ordinal, xl_cuda_name(CUDA_ERROR_INVALID_VALUE));
}

static int make_file(struct xl_memory *memory, int *ret_fd)
{
	CUmemAllocationProp shape = shape_of(memory->gpu);
	const struct xl_cuda *cuda = xl_cuda();
	CUmemGenericAllocationHandle allocation;
	int err = xl_memory_make_name(memory), fd;
	CUresult result;

	if (err)
		return err;
	result = cuda->mem_create(&allocation, memory->bytes, &shape, 0);
	if (result == CUDA_ERROR_INVALID_VALUE)
		return no_descriptor(memory);
	if (result)
		return xl_cuda_fail(result, "GPU %d: allocate %llu bytes", memory->gpu->ordinal,
				    (unsigned long long)memory->bytes);
	fd = xl_memory_export(allocation);
	if (fd == -EINVAL && xl_cuda_result == CUDA_ERROR_INVALID_VALUE)
		fd = no_descriptor(memory);
	err = fd < 0 ? fd : map(memory, allocation);
	if (err && fd >= 0)
		xl_file_close(fd);
	cuda->mem_release(allocation);		/* the mapping and the descriptor keep the memory */
	if (!err)
		*ret_fd = fd;
	return err;
}

static int open_file(struct xl_memory *memory, int fd)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUmemGenericAllocationHandle allocation;
	CUresult result;
	int err;

	result = cuda->mem_import(&allocation, (void *)(uintptr_t)fd,
				  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (result)
		return xl_cuda_fail(result, "GPU %d: open memory of another process by its "
				    "descriptor", memory->gpu->ordinal);
	err = map(memory, allocation);
	cuda->mem_release(allocation);
	return err;
}

/* ---- memory behind a handle; the device's context is current ---- */

static int make_handle(struct xl_memory *memory)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUipcMemHandle handle;
	CUdeviceptr at;
	CUresult result = cuda->mem_alloc(&at, memory->bytes);

	if (result)
		return xl_cuda_fail(result, "GPU %d: allocate %llu bytes", memory->gpu->ordinal,
				    (unsigned long long)memory->bytes);
	result = cuda->ipc_get_mem_handle(&handle, at);
	if (result) {
		cuda->mem_free(at);
		return xl_cuda_fail(result, "GPU %d: a handle of memory for other processes",
				    memory->gpu->ordinal);
	}
	memcpy(memory->handle, &handle, sizeof(handle));
	memory->address = at;
	return 0;
}

static int open_handle(struct xl_memory *memory)
{
	CUipcMemHandle handle;
	CUdeviceptr at;
	CUresult result;

	memcpy(&handle, memory->handle, sizeof(handle));
	result = xl_cuda()->ipc_open_mem_handle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	if (result == CUDA_ERROR_INVALID_CONTEXT)
		return xl_cuda_fail(result, "GPU %d: open memory of another process by its "
				    "handle; both processes must be in one PID namespace, or "
				    "the owner must export descriptors (XMEM_MEMORY_CUDA "
				    "without XMEM_MEMORY_LEGACY)", memory->gpu->ordinal);
	if (result)
		return xl_cuda_fail(result, "GPU %d: open memory of another process by its handle",
				    memory->gpu->ordinal);
	memory->address = at;
	return 0;
}

/* ---- memory of a memory pool; the device's context is current ---- */

static int open_pool(struct xl_memory *memory, int fd)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr at;
	CUresult result;

	result = cuda->mem_pool_import(&pool, (void *)(uintptr_t)fd,
				       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result)
		return xl_cuda_fail(result, "GPU %d: open a memory pool of another process",
				    memory->gpu->ordinal);
	memcpy(&data, memory->handle, sizeof(data));
	result = cuda->mem_pool_import_pointer(&at, pool, &data);
	if (result) {
		cuda->mem_pool_destroy(pool);
		return xl_cuda_fail(result, "GPU %d: open a pointer into a memory pool of another "
				    "process", memory->gpu->ordinal);
	}
	memory->pool = pool;
	memory->address = at;
	xl_memory_share(memory);
	return 0;
}

/* ---- all kinds ---- */

u64 xl_memory_bytes(const struct xl_gpu *gpu, u64 bytes)
{
	u64 unit = gpu->granularity > XL_MEMORY_BLOCK ? gpu->granularity : XL_MEMORY_BLOCK;

	return (bytes + unit - 1) / unit * unit;
}

int xl_memory_free_bytes(struct xl_gpu *gpu, u64 *ret)
{
	struct xl_gpu_scope scope;
	size_t left, all;
	CUresult result;
	int err = xl_gpu_enter(gpu, &scope);

	if (err)
		return err;
	result = xl_cuda()->mem_get_info(&left, &all);
	xl_gpu_leave(&scope);
	if (result)
		return xl_cuda_fail(result, "GPU %d: ask how much memory is free", gpu->ordinal);
	*ret = left;
	return 0;
}

int xl_memory_make(struct xl_gpu *gpu, enum xl_memory_kind kind, u64 bytes,
		   struct xl_memory **ret, int *ret_fd)
{
	struct xl_memory *memory = xl_memory_new(gpu, kind, xl_memory_bytes(gpu, bytes));
	struct xl_gpu_scope scope;
	int err;

	if (!memory)
		return -ENOMEM;
	xl_memory_retry();
	*ret_fd = -1;
	memory->made = true;
	err = xl_gpu_enter(gpu, &scope);
	if (err)
		goto out_free;
	err = kind == XL_MEMORY_FILE ? make_file(memory, ret_fd) : make_handle(memory);
	xl_gpu_leave(&scope);
	if (err)
		goto out_free;
	xl_register_lock();
	xl_register_add(memory);
	xl_register_unlock();
	*ret = memory;
	return 0;

out_free:
	free(memory);
	return err;
}

static int open_kind(struct xl_memory *memory, int fd)
{
	switch (memory->kind) {
	case XL_MEMORY_FILE:	return open_file(memory, fd);
	case XL_MEMORY_HANDLE:	return open_handle(memory);
	case XL_MEMORY_POOL:	break;
	}
	return open_pool(memory, fd);
}

/* The register has the memory as changing. 0 or -errno, noted. */
static int open_new(struct xl_memory *memory, int fd)
{
	struct xl_gpu_scope scope;
	int err = xl_gpu_enter(memory->gpu, &scope);

	if (err)
		return err;
	err = open_kind(memory, fd);
	xl_gpu_leave(&scope);
	return err;
}

int xl_memory_open(struct xl_gpu *gpu, const struct xl_memory_name *name, int fd,
		   struct xl_memory **ret)
{
	struct xl_memory *memory = xl_memory_new(gpu, name->kind, name->bytes);
	int err;

	if (!memory)
		return -ENOMEM;
	memcpy(memory->handle, name->handle, sizeof(memory->handle));
	*ret = xl_register_find_or_add(memory);
	if (*ret) {
		free(memory);
		return 0;
	}
	err = open_new(memory, fd);
	xl_register_changed(memory, !err);
	*ret = memory;
	if (err)
		free(memory);
	return err;
}

/* The result of freeing or closing memory. */
enum fate {
	GONE,
	STUCK,		/* the memory is still there, and freeing it may be tried again */
	LOST,		/* the memory is still there, until the process ends */
};

/*
 * Free or close memory by its address. This is tried only once, because after an error the address
 * may be that of other memory.
 */
static enum fate free_by_address(const struct xl_memory *memory)
{
	const struct xl_cuda *cuda = xl_cuda();
	CUresult result;

	if (memory->kind == XL_MEMORY_HANDLE && !memory->made)
		result = cuda->ipc_close_mem_handle(memory->address);
	else
		result = cuda->mem_free(memory->address);
	if (memory->kind == XL_MEMORY_POOL)
		cuda->mem_pool_destroy(memory->pool);
	return xl_cuda_freed(result) ? GONE : LOST;
}

/* Free it or close it. Memory that the program handed over is left alone. */
static enum fate free_memory(const struct xl_memory *memory)
{
	struct xl_gpu_scope scope;
	enum fate fate;
	int err;
	XL_UNCANCELLED;

	if (memory->taken)
		return GONE;
	err = xl_gpu_enter(memory->gpu, &scope);
	if (err == -ESHUTDOWN || err == -ECHILD)
		return GONE;			/* there is no driver, or none for this process */
	if (memory->kind == XL_MEMORY_FILE)	/* it needs no context */
		fate = unmap(memory) ? GONE : STUCK;
	else
		fate = err ? STUCK : free_by_address(memory);
	if (!err)
		xl_gpu_leave(&scope);
	return fate;
}

/* The driver has failed to free the memory: it may be tried again. */
static void keep_stuck(struct xl_memory *memory)
{
	xl_register_lock();
	memory->next = stuck;
	__atomic_store_n(&stuck, memory, __ATOMIC_RELAXED);
	xl_register_unlock();
}

/* Count memory that was not freed. Memory of others that is lost takes nothing of ours. */
static void count_kept(const struct xl_memory *memory, enum fate fate)
{
	if (fate == STUCK || (fate == LOST && memory->made))
		__atomic_fetch_add(&stuck_bytes, memory->bytes, __ATOMIC_RELAXED);
}

static void retry(struct xl_memory *list)
{
	struct xl_memory *memory;
	enum fate fate;

	while ((memory = list)) {
		list = memory->next;
		fate = free_memory(memory);
		if (fate == STUCK) {
			keep_stuck(memory);
			continue;
		}
		__atomic_fetch_sub(&stuck_bytes, memory->bytes, __ATOMIC_RELAXED);
		count_kept(memory, fate);
		free(memory);
	}
}

void xl_memory_retry(void)
{
	struct xl_memory *list;
	struct xl_error error;

	if (likely(!__atomic_load_n(&stuck, __ATOMIC_RELAXED)))
		return;
	xl_register_lock();
	list = stuck;
	__atomic_store_n(&stuck, NULL, __ATOMIC_RELAXED);
	xl_register_unlock();
	xl_error_save(&error);
	retry(list);
	xl_error_restore(&error);
}

u64 xl_memory_stuck(void)
{
	return __atomic_load_n(&stuck_bytes, __ATOMIC_RELAXED);
}

/*
 * Find other memory of the program in the same block of the driver, or NULL. An allocation that is
 * larger than a block is a block of its own. Its parts do not wait for each other, because the
 * program knows that they are one allocation. Under the lock.
 */
static struct xl_memory *find_mate(const struct xl_memory *memory)
{
	struct xl_memory *other;

	for (other = xl_register_first(); other; other = other->next)
		if (other->taken && other->kind == XL_MEMORY_HANDLE && other->gpu == memory->gpu &&
		    !memcmp(other->handle, memory->handle, sizeof(memory->handle)))
			return other;
	return NULL;
}

/*
 * Two attachments may lie in one block of the driver. A process that has one of them open has the
 * whole block open. So the first attachment whose users have gone waits for the other. Under the
 * lock.
 */
static bool waits_for_mate(struct xl_memory *memory)
{
	bool may = memory->taken && memory->kind == XL_MEMORY_HANDLE &&
		   memory->bytes <= XL_MEMORY_BLOCK;
	struct xl_memory *mate = may ? find_mate(memory) : NULL, *last = memory;

	if (!mate)
		return false;
	while (last->mates)
		last = last->mates;
	last->mates = mate->mates;
	mate->mates = memory;
	return true;
}

/*
 * Call the program's `done`. In it the program may free the memory, so the memory's context is
 * current.
 */
static void call_done(const struct xl_memory *memory)
{
	XL_CALL_PROGRAM;
	struct xl_gpu_scope scope;
	struct xl_error error;
	int err;

	if (!memory->done)
		return;
	xl_error_save(&error);
	err = xl_gpu_enter(memory->gpu, &scope);
	xl_error_restore(&error);	/* so `done` sees the program's last error */
	memory->done(memory->user);
	if (!err)
		xl_gpu_leave(&scope);
	xl_error_restore(&error);
}

/* Under no lock. */
static void give_back(struct xl_memory *list)
{
	struct xl_memory *memory;

	while ((memory = list)) {
		list = memory->mates;
		xl_own_park();
		call_done(memory);
		free(memory);
	}
}

/* Is it memory of another process, which frees the memory when we report that we have closed it? */
static bool is_opened_by_name(const struct xl_memory *memory)
{
	return !memory->made && !memory->taken && memory->kind != XL_MEMORY_FILE;
}

/*
 * Drop one user. Returns whether it was the last one, and the memory is to be freed. While the
 * memory of another process is closed, no thread may open it once more: not all drivers count the
 * openings. A second import of a descriptor has another address, so it need not wait.
 */
static bool drop_user(struct xl_memory *memory)
{
	bool frees = false;

	xl_register_lock();
	if (!--memory->users) {
		memory->changing = is_opened_by_name(memory);
		if (!memory->changing)
			xl_register_remove(memory);
		frees = !waits_for_mate(memory);
	}
	xl_register_unlock();
	return frees;
}

bool xl_memory_put(struct xl_memory *memory)
{
	bool named = is_opened_by_name(memory);
	struct xl_error error;
	enum fate fate;

	xl_own_park();
	xl_memory_retry();
	if (!drop_user(memory))
		return true;
	xl_error_save(&error);		/* that there is no driver any more is no error */
	fate = free_memory(memory);
	xl_error_restore(&error);
	if (named)
		xl_register_changed(memory, false);
	count_kept(memory, fate);
	if (fate == STUCK)
		keep_stuck(memory);
	else
		give_back(memory);
	return fate == GONE || !named;
}
