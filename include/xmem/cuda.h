/* SPDX-License-Identifier: MIT */
/*
 * Buffers in the memory of GPUs of NVIDIA and AMD. A part of xmem.h, whose general rules apply.
 *
 * A program that calls these functions needs no header of CUDA's and is not linked with the driver:
 * the library opens libcuda.so.1, or the file in XMEM_CUDA_DRIVER (docs/environment.md), at the
 * first call that needs the driver. If NVIDIA's driver is not there or has no GPU, the library
 * opens AMD's HIP, libamdhip64.so. Then "the driver" in this header is HIP, whose streams,
 * addresses and numbers of errors take the place of CUDA's (docs/cuda.md: "AMD GPUs"). Without a
 * driver or a GPU these functions fail with ENODEV, and the message gives the reason. A process
 * tries to start the driver once: if the start fails, all later calls give its error until the
 * process ends.
 *
 * A child that is forked after its parent has used the driver cannot use the driver (ECHILD). Call
 * no function of this library, not even xmem_release, in a host function (cuLaunchHostFunc) or
 * another callback of the driver's. xmem_release_on drops a handle from a stream (stream.h).
 *
 * Each function that calls the driver can also fail with
 *	ESHUTDOWN  the driver has been torn down, because the process is ending
 *	EOPNOTSUPP  the driver or the GPU lacks a feature, which the message names
 *	EPERM		the call is made in a callback of the driver's, or a stream is captured
 * and each function that waits for contents that a stream has yet to write also with
 *	ECANCELED  xmem_cancel, or xmem_pool_close while it waits
 *	EINTR		a signal
 *	EOWNERDEAD  the process that wrote the contents ended before they were complete
 *	ENOTCONN  the host has ended, and it is unknown if the contents will be complete
 *	EIO		the contents will never be complete: this process writes them and its GPU
 *		fails, or their writer gave a wrong order
 */
#ifndef XMEM_CUDA_H
#define XMEM_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;
struct CUstream_st;		/* CUstream, cudaStream_t and hipStream_t (cast it) point to it */

/* ---- the driver and its devices ---- */

/* The driver, as this process finds it. */
struct xmem_cuda_info {
	size_t size;			/* in: sizeof the struct; out: valid bytes */
	uint32_t version;		/* of CUDA or HIP: 1000 * major + 10 * minor */
	uint32_t devices;		/* that this process sees; at least 1 */
	char file[256];			/* the library, as it was found; cut if it is longer */
	uint32_t hip;			/* 1: the driver is AMD's HIP; 0: it is NVIDIA's */
	uint32_t reserved;
};

/*
 * Find the driver, and get its properties.
 * @ret_info: set its size field.
 * Returns: 0, or
 *	-ENODEV	there is no driver or no GPU, or the driver is too old, is the toolkit's stub
 *		library, or does not match the kernel's: the message gives the reason
 *	-ECHILD	this process was forked from one that had used the driver
 *	-EIO, -ENOMEM  the driver does not start or does not describe its devices; the message has
 *		the driver's result
 *	-EINVAL
 * Threads: any; the first call of a process takes as long as the driver takes to start. Since: 0.5.
 */
int xmem_cuda_query(struct xmem_cuda_info *ret_info);

/* The features of a device, with this driver. */
#define XMEM_CUDA_CAN_EXPORT		(1u << 0)	/* memory as descriptors (cuMemCreate) */
#define XMEM_CUDA_CAN_IPC		(1u << 1)	/* legacy handles of memory (cuMemAlloc) */
#define XMEM_CUDA_CAN_EXPORT_POOL	(1u << 2)	/* memory pools as descriptors */
#define XMEM_CUDA_CAN_MEMOPS		(1u << 3)	/* streams write and wait for 64 bits */
#define XMEM_CUDA_CAN_REGISTER		(1u << 4)	/* it uses registered CPU memory, */
#define XMEM_CUDA_CAN_REGISTER_READ_ONLY (1u << 5)	/* it reads read-only CPU memory, and */
#define XMEM_CUDA_CAN_HOST_ATOMICS	(1u << 6)	/* it changes CPU memory atomically */
/* MPS serves this process: the GPU changes between processes without a delay of 140 us. */
#define XMEM_CUDA_CAN_MPS		(1u << 7)

/* One device, as this process sees it. */
struct xmem_cuda_device_info {
	size_t size;			/* in: sizeof the struct; out: valid bytes */
	int32_t device_id;		/* its ordinal in this process */
	uint32_t can;			/* XMEM_CUDA_CAN_* */
	uint64_t bytes;			/* of its memory */
	uint64_t granularity;		/* of exported memory; 0: it cannot be exported */
	uint32_t capability;		/* compute capability: 10 * major + minor */
	uint32_t reserved;
	uint8_t uuid[16];		/* equal in all processes */
	char name[128];			/* NUL-terminated */
};

/*
 * Get the properties of a device. This makes no context.
 * @device: from 0 to devices - 1 of struct xmem_cuda_info.
 * @ret_info: set its size field.
 * Returns: 0; -ENODEV: also if there is no such device; others as xmem_cuda_query. Threads: any.
 * Since: 0.5.
 */
int xmem_cuda_device_query(int device, struct xmem_cuda_device_info *ret_info);

/* ---- making buffers ---- */

/*
 * Acquire a buffer on a GPU to write into, as xmem_acquire does for memory of the CPU. If none is
 * free, a buffer is made, as far as demand_bytes of struct xmem_pool_options allows on each GPU.
 * Readers get the memory of this buffer only if the option `memory` has XMEM_MEMORY_READERS.
 * @bytes: bytes that the contents will have; 0: any buffer on that GPU, the whole of it.
 * @device: this process's number of the GPU.
 * @timeout_ns: nanoseconds to wait for a buffer.
 * Returns: the buffer, or NULL: as xmem_acquire, and
 *	ENOSPC	also: this writer has no buffers on that GPU, and `bytes` is 0, or the writer makes
 *		no buffers on demand: xmem_preallocate makes some
 *	ENOMEM, ENODEV, EOPNOTSUPP, EMEDIUMTYPE, ECHILD, EIO  as xmem_preallocate
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.5.
 */
struct xmem_buffer *xmem_acquire_cuda(struct xmem_pool *pool, size_t bytes, int device,
				      int64_t timeout_ns);

/*
 * Make a buffer of existing memory of a GPU, without copying it.
 * @ptr: an address in a GPU's memory, which is a multiple of 64 bytes behind the beginning of its
 *	allocation. The allocation is from cudaMalloc or cuMemAlloc; or it is from cuMemCreate or a
 *	memory pool of CUDA's, and its handle type is POSIX file descriptor. The memory stays the
 *	caller's. Neither free it nor change the contents before @done is called.
 * @bytes: bytes of contents. Other processes get the whole allocation.
 * @flags: 0 or XMEM_MEMORY_READERS.
 * @done: called once, when no client holds the contents or can receive them, and no process has the
 *	memory open; NULL: nothing is called. @done is not called after an error, or if the host has
 *	ended before. @done may free the memory; it must return, and must call no function of this
 *	pool.
 * @user: passed to @done.
 *
 * Small allocations of cudaMalloc or cuMemAlloc share blocks of 2 MiB, and other processes get
 * whole blocks: free no allocation in the block before @done is called. Publish or release the
 * buffer like a buffer from xmem_attach_fd. The buffer never gets other contents, and
 * xmem_cuda_ptr_mut refuses it. Memory of cuMemCreate outlives this process; all other
 * memory ends for other processes with this client's xmem_pool_close (XMEM_BUFFER_MORTAL).
 *
 * Returns: the buffer, or NULL, and then nothing has changed:
 *	EINVAL	a number is 0, an address is not aligned, or a flag has no meaning
 *	EMEDIUMTYPE  @ptr is no memory of a GPU, or none that other processes can get; the message
 *		has the remedy
 *	ERANGE	the contents reach beyond the allocation
 *	EPERM, ENOSPC, EDQUOT, EAGAIN, ENOMEM, EMFILE, EINTR  as xmem_attach_fd
 *	ENODEV, ECHILD, EIO  as xmem_preallocate
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.5.
 */
struct xmem_buffer *xmem_attach_cuda(struct xmem_pool *pool, void *ptr, size_t bytes,
				     uint32_t flags, void (*done)(void *user), void *user);

/* ---- looking at contents ---- */

/*
 * Get the contents of a buffer on a GPU, xmem_size() bytes, for use on that GPU; xmem_cuda_peer
 * reports if another GPU can use the address. The first call for an allocation opens the
 * allocation, which takes the driver about a millisecond.
 * Returns: the device address, or NULL:
 *	EMEDIUMTYPE  the contents are in memory of the CPU: xmem_data
 *	EACCES	this client is a reader, and the owner gives the memory to writers only: the owner
 *		made the buffer without XMEM_MEMORY_READERS
 *	EOWNERDEAD  the owner has ended or closed its pool, and the memory has gone with it,
 *		because it was shared by an IPC handle or is of a memory pool of CUDA's; or the
 *		writer of the contents ended before they were complete
 *	EINVAL	the driver refuses the owner's handle, perhaps for lack of file descriptors
 *	ENODEV	there is no driver, or this process does not see that GPU; the message has its UUID
 *	ENOMEM, EMFILE, EINTR, EIO, ENOTCONN, ECHILD
 * Ownership: valid until the handle of the buffer is dropped. Threads: any. Since: 0.5.
 */
const void *xmem_cuda_ptr(struct xmem_buffer *buffer);

/*
 * Get the bytes of a buffer on a GPU that can be written, xmem_capacity() bytes, like
 * xmem_data_mut.
 * Returns: the device address, or NULL: EPERM (the buffer is not being written, or is from
 * xmem_attach_cuda), and as xmem_cuda_ptr.
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.5.
 */
void *xmem_cuda_ptr_mut(struct xmem_buffer *buffer);

/*
 * Let another GPU of this process use the address of a buffer (xmem_cuda_ptr, xmem_cuda_ptr_mut).
 * A kernel that uses the address on a GPU without access loses its context.
 * @device: this process's number of the GPU that is going to use the address.
 *
 * Memory that is shared by descriptor, or is of a memory pool of CUDA's, is open to all peers of
 * its GPU. For such memory the call changes nothing. Memory that is shared by IPC handle is not
 * open to peers. For such memory the call makes the primary context of @device if there is none,
 * which takes memory on @device. Then it gives that context access to all memory of the primary
 * context of the buffer's GPU (cuCtxEnablePeerAccess).
 * Returns: 0: work in the primary context of @device can use the address; @device is the buffer's
 * own GPU, or a peer. Or:
 *	-EXDEV	@device cannot use the address: the GPUs are no peers, or the program has attached
 *		the memory without access for @device. The message names both GPUs. xmem_copy_to
 *		needs no access
 *	-EUSERS	the driver has as many peers of @device as it can have
 *	-ENODEV	also: there is no GPU @device
 *	others as xmem_cuda_ptr, which it calls
 * Threads: any. Since: 0.5.
 */
int xmem_cuda_peer(struct xmem_buffer *buffer, int device);

/*
 * Get the number of the GPU that a buffer is on.
 * Returns: this process's number of the GPU, or -EMEDIUMTYPE (the contents are in memory of the
 * CPU), -ENODEV (there is no driver, or this process does not see that GPU), -EINVAL, -EBADF,
 * -ECHILD. Threads: any. Since: 0.5.
 */
int xmem_cuda_device(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
