/* SPDX-License-Identifier: MIT */
/*
 * Buffers in the memory of GPUs of NVIDIA and AMD. A part of xmem.h.
 *
 * "The driver" is NVIDIA's libcuda.so.1 or, if that or its GPU is not there, AMD's HIP. The library
 * opens it at the first call that needs it. GPUs have the numbers that they have for CUDA or HIP in
 * this process. Call no function of this library in a callback of the driver (cuLaunchHostFunc),
 * not even xmem_release. To drop a handle from a stream, use xmem_release_on (stream.h).
 *
 * Each function that calls the driver can also fail with
 *	ENODEV	there is no driver, or this process sees no such GPU; the message says why
 *	ECHILD	this process was forked from one that had used the driver (xmem_cuda(7))
 *	ESHUTDOWN  the driver has been torn down, because the process is ending
 *	EOPNOTSUPP  the driver or the GPU lacks a feature, which the message names
 *	EPERM	the call is made in a callback of the driver's, or a stream is captured
 *	EIO	the driver failed; xmem_get_last_error has its result
 * and each function that waits for contents that a stream has yet to write also with
 *	ECANCELED, EINTR, ENOTCONN  the wait ended early; the contents may still become complete
 *	EOWNERDEAD  the process that wrote them ended before they were complete
 *	EIO	they never become complete: this process's GPU failed, or their metadata are wrong
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
 * Find the driver, and get its properties. The first call of a process starts the driver.
 * Returns: 0, or -ENODEV: also: the driver is too old, is the toolkit's stub library, or does not
 * match the kernel's; -ECHILD; -EIO, -ENOMEM: the driver does not start, or does not describe its
 * devices; -EINVAL. Since: 0.5.
 */
int xmem_cuda_query(struct xmem_cuda_info *ret_info);

/* The features of a device, with this driver. */
#define XMEM_CUDA_CAN_EXPORT		(1u << 0)	/* memory as descriptors (cuMemCreate) */
#define XMEM_CUDA_CAN_IPC		(1u << 1)	/* legacy handles of memory (cuMemAlloc) */
#define XMEM_CUDA_CAN_EXPORT_POOL	(1u << 2)	/* memory pools as descriptors */
#define XMEM_CUDA_CAN_MEMOPS		(1u << 3)	/* streams can write and await 64 bits */
#define XMEM_CUDA_CAN_REGISTER		(1u << 4)	/* it uses registered CPU memory */
#define XMEM_CUDA_CAN_REGISTER_READ_ONLY (1u << 5)	/* it uses read-only CPU memory too */
#define XMEM_CUDA_CAN_HOST_ATOMICS	(1u << 6)	/* it changes CPU memory atomically */
#define XMEM_CUDA_CAN_MPS		(1u << 7)	/* MPS serves this process */

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
 * Get the properties of @device, 0 to devices - 1 of struct xmem_cuda_info. It makes no context.
 * Returns: 0; -ENODEV: also if there is no such device; others as xmem_cuda_query. Since: 0.5.
 */
int xmem_cuda_device_query(int device, struct xmem_cuda_device_info *ret_info);

/* ---- making buffers ---- */

/*
 * Acquire a buffer on the GPU @device to write into, as xmem_acquire does in memory of the CPU.
 * Readers get its memory only if `memory` of struct xmem_pool_options has XMEM_MEMORY_READERS.
 * Returns: the buffer, or NULL: as xmem_acquire; ENOSPC: also: this writer has no buffers on that
 * GPU, and makes none; ENOMEM, ENODEV, EOPNOTSUPP, EMEDIUMTYPE, ECHILD, EIO: as xmem_preallocate.
 * Ownership: ends in xmem_publish or xmem_release. Since: 0.5.
 */
struct xmem_buffer *xmem_acquire_cuda(struct xmem_pool *pool, size_t bytes, int device,
				      int64_t timeout_ns);

/*
 * Make a buffer of existing memory of a GPU, without copying it. It is published or released like a
 * buffer from xmem_attach_fd, and never gets other contents.
 * @ptr: from cudaMalloc or cuMemAlloc, or from cuMemCreate or a memory pool that exports
 *	descriptors; it lies a multiple of 64 bytes into its allocation. The memory stays
 *	the caller's.
 * @bytes: of contents. Other processes get the whole allocation.
 * @flags: 0 or XMEM_MEMORY_READERS.
 * @done: NULL, or called once with @user when no client can use the memory any more. Until then,
 *	do not free the memory or change it. @done must return, and must call no function of this
 *	pool.
 * Returns: the buffer, or NULL: EINVAL: a number is 0, or an address is not aligned; EMEDIUMTYPE:
 * @ptr is no memory of a GPU that other processes can get; ERANGE: the contents reach beyond the
 * allocation; EPERM, ENOSPC, EDQUOT, EAGAIN, ENOMEM, EMFILE, EINTR: as xmem_attach_fd; ENODEV,
 * ECHILD, EIO: as xmem_preallocate. Ownership: ends in xmem_publish or xmem_release. Since: 0.5.
 */
struct xmem_buffer *xmem_attach_cuda(struct xmem_pool *pool, void *ptr, size_t bytes,
				     uint32_t flags, void (*done)(void *user), void *user);

/* ---- looking at contents ---- */

/*
 * Get the contents of a buffer, xmem_size() bytes, for use on its GPU. Returns: the device address,
 * or NULL: EMEDIUMTYPE: the contents are in memory of the CPU (xmem_data); EACCES: this client is a
 * reader, and the memory is not XMEM_MEMORY_READERS; EOWNERDEAD: also: the memory has gone with its
 * owner; EINVAL: the driver refuses the owner's handle; ENODEV, ENOMEM, EMFILE, EINTR, EIO,
 * ENOTCONN, ECHILD. Ownership: valid until the handle of the buffer is dropped. Since: 0.5.
 */
const void *xmem_cuda_ptr(struct xmem_buffer *buffer);

/*
 * Get the memory of a buffer on a GPU that is being written, xmem_capacity() bytes. Returns: the
 * device address, or NULL: EPERM (the buffer is not being written, or is from xmem_attach_cuda),
 * and as xmem_cuda_ptr. Ownership: valid until the buffer is published or released. Since: 0.5.
 */
void *xmem_cuda_ptr_mut(struct xmem_buffer *buffer);

/*
 * Let the GPU @device, too, use the address of a buffer (xmem_cuda_ptr, xmem_cuda_ptr_mut). Without
 * access, a kernel on that GPU that uses the address makes its context unusable.
 * Returns: 0: work in the primary context of @device can use the address; or -EXDEV: @device cannot
 * use it (xmem_copy_to needs no access); -EUSERS: the driver has as many peers of @device as it can
 * have; -ENODEV; others as xmem_cuda_ptr, which it calls. Since: 0.5.
 */
int xmem_cuda_peer(struct xmem_buffer *buffer, int device);

/*
 * Get the number of the GPU that a buffer is on. Returns: the number, or -EMEDIUMTYPE (the contents
 * are in memory of the CPU), -ENODEV, -EINVAL, -EBADF, -ECHILD. Since: 0.5.
 */
int xmem_cuda_device(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
