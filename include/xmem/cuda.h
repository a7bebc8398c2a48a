/* SPDX-License-Identifier: MIT */
/*
 * Buffers in the memory of NVIDIA's GPUs. A part of xmem.h, whose rules for errors, handles and
 * threads hold here too. It needs no header of CUDA's, and a program that calls these functions is
 * not linked with the driver: the library opens libcuda.so.1, or what XMEM_CUDA_DRIVER names (see
 * docs/environment.md), when it is first needed. Where there is no driver or no GPU, these
 * functions fail with ENODEV and say why, and all others work.
 *
 * After fork the child makes no call of the driver that its parent has used, because the driver
 * does not serve such a child: these functions fail with ECHILD. A child that is to use GPUs has
 * to be started by exec, or forked before its parent uses CUDA.
 * Any other child, too, is to be forked before that or to call exec at once. Until then it keeps
 * the driver's files of its parent open: if the parent ends, what it has put on the GPU may go on,
 * although the host takes it for over and gives the parent's buffers to others.
 *
 * No function of the library is called in a host function of the program's (cuLaunchHostFunc) or
 * in another callback of the driver's, where the driver allows no call. Not only those of this file
 * call it: xmem_release, xmem_publish, xmem_pool_stat and others close or free memory of GPUs that
 * is not used any more. Where a stream is to drop a handle, xmem_release_on (stream.h) does so.
 *
 * The driver is looked for and started once in a process. If that fails, all later calls give the
 * same error until the process ends, also where the cause has gone meanwhile.
 *
 * Each function that calls the driver can also fail with
 *	ESHUTDOWN	the driver has been torn down, because the process is ending
 *	EOPNOTSUPP	the driver or the GPU lacks what is needed; the message says what
 *	EPERM		the driver is called in one of its callbacks, or a stream is captured
 * and each that waits for contents that a stream has yet to write also with
 *	ECANCELED	xmem_cancel, or xmem_pool_close while it waits
 *	EINTR		a signal
 *	EOWNERDEAD	the process that wrote the contents has ended before they were complete
 *	ENOTCONN	the host has ended, and nobody knows whether they will be
 *	EIO		they never will be: this process writes them, and its GPU fails; or what
 *			their writer says of them is no order
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
struct CUstream_st;		/* CUstream and cudaStream_t point to it */

/* ---- the driver and its devices ---- */

/* The driver, as this process finds it. */
struct xmem_cuda_info {
	size_t size;			/* in: sizeof the struct; out: valid bytes */
	uint32_t version;		/* of CUDA: 1000 * major + 10 * minor */
	uint32_t devices;		/* that this process sees; at least 1 */
	char file[256];			/* the library, as it was found; cut if it is longer */
};

/*
 * Find the driver, and get what it is.
 * @ret_info: its size field is set.
 * Returns: 0, or
 *	-ENODEV	there is no driver or no GPU, or the driver is too old, is the toolkit's stub
 *		library, or does not match the kernel's: the message says which
 *	-ECHILD	this process was forked from one that had used the driver
 *	-EINVAL	the size field is smaller than itself
 *	-EIO, -ENOMEM  the driver does not start or does not describe its devices; the message
 *		has its result
 * No later call of this process looks again after an error.
 * Threads: any; the first call of a process takes as long as the driver takes to start.
 * Since: 0.5.
 */
int xmem_cuda_query(struct xmem_cuda_info *ret_info);

/* The features of a device, with this driver. */
#define XMEM_CUDA_CAN_EXPORT		(1u << 0)	/* memory as descriptors (cuMemCreate) */
#define XMEM_CUDA_CAN_IPC		(1u << 1)	/* legacy handles of memory (cuMemAlloc) */
#define XMEM_CUDA_CAN_EXPORT_POOL	(1u << 2)	/* memory pools as descriptors */
#define XMEM_CUDA_CAN_MEMOPS		(1u << 3)	/* streams write and wait for 64 bits */
#define XMEM_CUDA_CAN_REGISTER		(1u << 4)	/* host memory is registered, */
#define XMEM_CUDA_CAN_REGISTER_READ_ONLY (1u << 5)	/* also if it is read-only, */
#define XMEM_CUDA_CAN_HOST_ATOMICS	(1u << 6)	/* and changed atomically */

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
 * Get what is known of a device. No context is made for that.
 * @device: from 0 to devices - 1 of struct xmem_cuda_info.
 * @ret_info: its size field is set.
 * Returns: 0; -ENODEV: also if there is no such device; others as xmem_cuda_query.
 * Threads: any. Since: 0.5.
 */
int xmem_cuda_device_query(int device, struct xmem_cuda_device_info *ret_info);

/* ---- making buffers ---- */

/*
 * Acquire a buffer on a GPU to write into, as xmem_acquire does for memory of the CPU.
 * @bytes: how many bytes the contents will have; 0: any buffer on that GPU, the whole of it.
 * @device: this process's number of the GPU.
 * @timeout_ns: nanoseconds to wait for one.
 *
 * The descriptor of xmem_pool_poll_fd is writable when an acquire finds a buffer where the last one
 * looked.
 *
 * Returns: the buffer, or NULL: as xmem_acquire, and
 *	ENOSPC	also: this writer has no buffers on that GPU: xmem_preallocate makes some
 *	ENODEV, ECHILD, EIO  as xmem_preallocate
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.5.
 */
struct xmem_buffer *xmem_acquire_cuda(struct xmem_pool *pool, size_t bytes, int device,
				      int64_t timeout_ns);

/*
 * Make a buffer of memory of a GPU that is there already, without copying it.
 * @ptr: an address of a GPU's memory, a multiple of 64 bytes behind the beginning of its
 *	allocation: from cudaMalloc or cuMemAlloc; from cuMemCreate with the handle type POSIX file
 *	descriptor; or from a memory pool with that handle type. It stays the caller's, who does
 *	not free it and does not change the contents before @done is called. Memory of cudaMalloc or
 *	cuMemAlloc may share a block of 2 MB with other allocations of this process, and others have
 *	the whole block open: none of those is to be freed before @done either. Attached memory of
 *	one such block is given back together, when the last of it is no longer used. Parts of any
 *	other allocation are given back one by one; the allocation is not to be freed before the
 *	last of them.
 * @bytes: bytes of contents. Others get the whole allocation, as CUDA knows no other way, and the
 *	whole of a block that it shares.
 * @flags: 0 or XMEM_MEMORY_READERS.
 * @done: called once, when nobody can receive or holds the contents any more and nobody has the
 *	memory open; NULL: nobody wants to know. After an error it is not called. The thread that
 *	finds it out calls it, in a call of any function for this pool, at the latest in a later
 *	one of xmem_pool_stat, xmem_collect, xmem_attach_cuda or xmem_pool_close. If a
 *	stream drops the last handle of a pool that is closed (xmem_release_on), a thread of the
 *	library's calls it, but not once exit has begun. In any thread the GPU's primary context is
 *	current meanwhile. It may free the memory; it must return, and calls no function of this
 *	pool. Closing the pool while others have the memory open leaves a client that is "closing"
 *	in the pool, which any other pool handle of this process looks after: @done is called after
 *	they have closed it. If the pool is full, or the host is stopped, that client joins later.
 *	If the host ends before that, @done is not called and the memory stays. It stays as well
 *	while a process lives whose driver has failed to close it.
 *
 * The buffer is published or released, as one from xmem_attach_fd is: it is for one content, and
 * xmem_cuda_ptr_mut refuses. Memory of cuMemCreate outlives this process; all other memory ends for
 * others with this client, that is at its xmem_pool_close already (XMEM_BUFFER_MORTAL).
 *
 * An allocation that is attached several times counts each time, by its whole length and the whole
 * of a block that it shares, in what xmem_pool_stat and xmem_pool_device_info say of bytes. If
 * @ptr is what xmem_cuda_ptr gives for a buffer of another pool, that buffer is held until @done is
 * called: the library does not know that the two have to do with each other.
 *
 * Returns: the buffer, or NULL, and then nothing has changed:
 *	EINVAL	a number is 0, an address is not aligned, or a flag has no meaning
 *	EMEDIUMTYPE  it is no memory of a GPU, or none that other processes can get; the message
 *		says what to do
 *	ERANGE	the contents reach beyond the allocation
 *	EPERM, ENOSPC, EDQUOT, EAGAIN, ENOMEM, EMFILE, EINTR  as xmem_attach_fd
 *	ENODEV, ECHILD, EIO  as xmem_preallocate
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.5.
 */
struct xmem_buffer *xmem_attach_cuda(struct xmem_pool *pool, void *ptr, size_t bytes,
				     uint32_t flags, void (*done)(void *user), void *user);

/* ---- looking at contents ---- */

/*
 * Get the contents of a buffer on a GPU, xmem_size() bytes, for use on that GPU.
 *
 * The first call for an allocation opens it, which takes the driver about a millisecond; later ones
 * call neither the driver nor the host, and take no lock. So a process that only passes a buffer on
 * needs no GPU. An open allocation is closed after its owner has given it back.
 *
 * Returns: the device address, or NULL:
 *	EMEDIUMTYPE  the contents are in memory of the CPU: xmem_data
 *	EACCES	this client is a reader, and the owner lets only writers have it
 *		(XMEM_MEMORY_READERS)
 *	EOWNERDEAD  the owner has ended or closed its pool, and the memory went by the driver's IPC
 *		handles or is of a memory pool; or the contents never became complete, because
 *		their writer has ended before. So a call can fail after another has succeeded, also
 *		when a stream was told to wait: an address that has been given stays valid
 *	EINVAL	the driver refuses what it got of the owner, perhaps for lack of descriptors
 *	ENODEV	there is no driver, or this process does not see that GPU; the message has its UUID
 *	ENOMEM, EMFILE, EINTR, EIO, ENOTCONN, ECHILD
 * Ownership: valid until the handle of the buffer is dropped. Threads: any. Since: 0.5.
 */
const void *xmem_cuda_ptr(struct xmem_buffer *buffer);

/*
 * Get what can be written of a buffer on a GPU, xmem_capacity() bytes, as xmem_data_mut does.
 * Returns: the device address, or NULL: EPERM (the buffer is not being written, or is from
 *	xmem_attach_cuda), and as xmem_cuda_ptr.
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.5.
 */
void *xmem_cuda_ptr_mut(struct xmem_buffer *buffer);

/*
 * On which GPU is a buffer?
 * Returns: this process's number of the GPU, or -EMEDIUMTYPE (the contents are in memory of the
 *	CPU), -ENODEV (there is no driver, or this process does not see that GPU), -EINVAL,
 *	-EBADF, -ECHILD. Threads: any. Since: 0.5.
 */
int xmem_cuda_device(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
