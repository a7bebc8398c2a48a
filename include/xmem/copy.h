/* SPDX-License-Identifier: MIT */
/*
 * Copies between buffers, and between a buffer and memory of this process: to another pool, to or
 * from a GPU, or to keep contents for longer than their writer can spare the buffer. And contents
 * as memory that only their reader changes. A part of xmem.h, whose rules for errors, handles and
 * threads hold here too.
 *
 * Each buffer may be in memory of the CPU or of a GPU. The target is from xmem_acquire or
 * xmem_acquire_cuda, or made writable by xmem_get_mut. The source is any other buffer: of one
 * that is being written the whole capacity can be read.
 *
 * Without a stream (NULL) a copy is complete when the call returns. Otherwise the copy is in the
 * stream, a CUstream or cudaStream_t of the GPU that is written to, or else of the one that is read
 * from, and complete when the stream has got so far. The default stream is CU_STREAM_LEGACY,
 * (CUstream)1. Until then
 *
 *  - memory of the CPU is the caller's to keep as it is, and so is a buffer there: one that is
 *    written is neither published nor released, one that is read is dropped by xmem_release_on.
 *  - a buffer of a GPU that is read is dropped by xmem_release_on of that stream.
 *  - a buffer of a GPU that is being written may be published or released in any way. A client that
 *    receives it waits for the copies, and so does a stream that is given to xmem_publish or to
 *    a later copy. Its memory is neither written again nor given back before they have run.
 *
 * The stream may be destroyed. Copies are ordered as xmem_wait_on says (stream.h). Where a copy
 * cannot be put into the stream the calling thread waits for the stream, and copies: between two
 * buffers on the CPU (the stream is one of GPU 0 then), between two GPUs that cannot copy directly,
 * into or out of a GPU's buffer from xmem_get_mut, and where the stream cannot say how far it has
 * got. That wait ends with EINTR or ECANCELED, and then nothing has been copied. Where memory of
 * the CPU is not pinned (cuMemHostAlloc, cuMemHostRegister) the driver may wait for the stream in
 * the call; no signal and no xmem_cancel ends that, nor a copy that the driver is making.
 *
 * A copy on a stream with a buffer that is being written is not captured into a graph, which could
 * run when the buffer is long another one: capture one of the driver's with xmem_cuda_ptr_mut.
 */
#ifndef XMEM_COPY_H
#define XMEM_COPY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_buffer;
struct CUstream_st;		/* CUstream and cudaStream_t point to it */

/*
 * Copy the contents and the metadata of one buffer to another one, which may be of another pool.
 * @to: its contents, from xmem_data_mut on, are as long as those of @from after this, also if more
 *	or less was acquired, so that xmem_publish without options publishes just them. The time of
 *	publication is not copied: xmem_publish takes it.
 *
 * Large contents are stored past the cache, as they would not stay in it, where that is faster.
 *
 * Returns: 0, or
 *	-ERANGE	the contents are longer than xmem_capacity() of @to
 *	-EPERM	@to is not being written, or is from xmem_attach_fd or xmem_attach_cuda
 *	-EINVAL	NULL, or both are the same handle
 *	-EIO, -ENOMEM, -EMFILE, -ENOTCONN, -EINTR  as xmem_data
 *	with a GPU also as xmem_cuda_ptr; after -EIO, -ENOMEM or -EPERM on a stream the copy may
 *	yet run
 * Threads: one thread at a time writes a buffer. Since: 0.4.
 */
int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from, struct CUstream_st *stream);

/*
 * Copy a part of one buffer to another one. The rest of @to, the length of its contents, and its
 * metadata stay.
 * @to_offset: bytes from xmem_data_mut or xmem_cuda_ptr_mut to the first one that is written.
 * @from_offset: bytes of the contents before the first one that is copied.
 * Returns: as xmem_copy; -ERANGE: the part reaches beyond xmem_capacity() of @to, or beyond the
 * contents of @from. Threads: as xmem_copy. Since: 0.5.
 */
int xmem_copy_range(struct xmem_buffer *to, size_t to_offset, struct xmem_buffer *from,
		    size_t from_offset, size_t bytes, struct CUstream_st *stream);

/*
 * Copy memory of this process into a buffer. The rest of @to stays, as in xmem_copy_range.
 * @from: @bytes bytes, also of @to itself; may be NULL if there are none.
 * Returns, Threads: as xmem_copy_range. Since: 0.5.
 */
int xmem_copy_from_host(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes,
			struct CUstream_st *stream);

/*
 * Copy contents of a buffer to memory of this process.
 * @to: room for @bytes bytes; may be NULL if there are none.
 * Returns: as xmem_copy_range. Threads: any. Since: 0.5.
 */
int xmem_copy_to_host(void *to, struct xmem_buffer *from, size_t offset, size_t bytes,
		      struct CUstream_st *stream);

/*
 * Copy the contents and the metadata of a buffer to a new one of the same pool, which is being
 * written then. The copy is complete when this returns, and @from stays as it is.
 * @device_id: this process's number of a GPU, or XMEM_CPU.
 * @timeout_ns: nanoseconds to wait for a buffer.
 * Returns: the new buffer, or NULL, and then none was acquired: as xmem_acquire or
 * xmem_acquire_cuda, and as xmem_copy. Ownership: ends in xmem_publish or xmem_release.
 * Threads: any. Since: 0.5.
 */
struct xmem_buffer *xmem_copy_to(struct xmem_buffer *from, int device_id, int64_t timeout_ns);

/*
 * Get the contents of a buffer as memory that the caller may write, and nobody else sees: for
 * programs that may store into what they only should read.
 * @buffer: held for reading.
 *
 * It shows the contents, xmem_size() bytes. Stores there are seen by this handle alone: another
 * one, of the same contents too, has memory of its own, and xmem_data goes on to show what was
 * published. Where the kernel can do it nothing is copied but the pages in which something is
 * stored, when it is; they are memory of this process. Contents of up to 64 kB, those in huge pages
 * of the system's pool, and dma-bufs are copied as a whole.
 *
 * Other processes can change shared buffers and some attached files. Such changes may or may not
 * appear here.
 *
 * Memory that is dropped stays mapped for the next handle of the same place in the pool, as mapping
 * takes long: up to 256 MiB and 1024 mappings in a process, of which the oldest go first. It takes
 * address space (RLIMIT_AS, RLIMIT_DATA, and the system's commit limit) and no memory, and goes
 * when the library needs room for a mapping, with xmem_collect of its pool, and with its payload.
 * Contents longer than 256 MiB are mapped each time. But a program that locks its memory (mlockall)
 * has a copy of all that it may write, also of what is kept so. It must not change the protection
 * of this memory (mprotect), which another handle may have later.
 *
 * Returns: the same memory each time that it is called for this handle; or NULL:
 *	EPERM	the buffer is still being written
 *	EMEDIUMTYPE, EIO  as xmem_data
 *	ENOMEM	also: the limit of locked memory is reached
 *	EMFILE
 *	ENOTCONN  the host has gone, and the contents are not mapped yet; else they are copied then
 *	EINTR	a signal handler ran before the host had answered, which is asked when something is
 *		to be mapped
 * Ownership: the library's. It is there until the handle is dropped, or xmem_get_mut has made it
 * writable. Stores are lost then.
 * Threads: any. Since: 0.5.
 */
void *xmem_data_private(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
