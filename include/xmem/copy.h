/* SPDX-License-Identifier: MIT */
/*
 * Copies between buffers, and between a buffer and memory of this process. A part of xmem.h, whose
 * general rules apply.
 *
 * Each buffer may be in memory of the CPU or of a GPU. The target is from xmem_acquire or
 * xmem_acquire_cuda, or made writable by xmem_get_mut. The source is any other buffer; if it is
 * being written, its whole capacity can be read.
 *
 * With the stream NULL a copy is complete when the call returns. Otherwise it is work in the
 * stream, which is a CUstream or cudaStream_t of the target's GPU or, if the target is in memory of
 * the CPU, of the source's GPU. The default stream is CU_STREAM_LEGACY, (CUstream)1. Until the
 * stream has done the copy
 *	do not change memory of the CPU that is the source, or use such memory that is the target
 *	neither publish nor release a target buffer in memory of the CPU
 *	drop a source buffer by xmem_release_on with that stream
 *	a target buffer in memory of a GPU may be published or released in any way
 * The program may destroy the stream earlier. Copies are ordered as xmem_wait_on says (stream.h). A
 * stream that is captured into a graph takes no copy (-EPERM, stream.h).
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
 * @to: afterwards its contents begin at xmem_data_mut, and have the length of the contents of
 *	@from, whatever length was acquired. xmem_publish without options publishes them. The time
 *	of publication is not copied.
 *
 * Returns: 0, or
 *	-ERANGE	the contents are longer than xmem_capacity() of @to
 *	-EPERM	@to is not being written, or is from xmem_attach_fd or xmem_attach_cuda
 *	-EINVAL	NULL, or both are one handle
 *	-EIO, -ENOMEM, -EMFILE, -ENOTCONN, -EINTR  as xmem_data
 *	with a GPU also as xmem_cuda_ptr
 * Threads: one thread at a time writes a buffer. Since: 0.4.
 */
int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from, struct CUstream_st *stream);

/*
 * Copy a part of one buffer to another one. The rest of @to, the length of its contents, and its
 * metadata stay.
 * @to_offset: bytes from xmem_data_mut or xmem_cuda_ptr_mut to the first written byte.
 * @from_offset: bytes of the contents before the first copied byte.
 * Returns: as xmem_copy; -ERANGE: the part reaches beyond xmem_capacity() of @to, or beyond the
 * contents of @from. Threads: as xmem_copy. Since: 0.5.
 */
int xmem_copy_range(struct xmem_buffer *to, size_t to_offset, struct xmem_buffer *from,
		    size_t from_offset, size_t bytes, struct CUstream_st *stream);

/*
 * Copy memory of this process into a buffer. The rest of @to stays, as in xmem_copy_range.
 * @from: @bytes bytes, which may lie in @to itself; may be NULL if @bytes is 0.
 * Returns, Threads: as xmem_copy_range. Since: 0.5.
 */
int xmem_copy_from_host(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes,
			struct CUstream_st *stream);

/*
 * Copy contents of a buffer to memory of this process.
 * @to: room for @bytes bytes; may be NULL if @bytes is 0.
 * Returns: as xmem_copy_range. Threads: any. Since: 0.5.
 */
int xmem_copy_to_host(void *to, struct xmem_buffer *from, size_t offset, size_t bytes,
		      struct CUstream_st *stream);

/*
 * Copy the contents and the metadata of a buffer to a new one of its pool, which is then being
 * written. The copy is complete when this returns.
 * @device_id: this process's number of a GPU, or XMEM_CPU.
 * @timeout_ns: nanoseconds to wait for a buffer.
 * Returns: the new buffer, or NULL, and then none was acquired: as xmem_acquire or
 * xmem_acquire_cuda, and as xmem_copy. Ownership: ends in xmem_publish or xmem_release.
 * Threads: any. Since: 0.5.
 */
struct xmem_buffer *xmem_copy_to(struct xmem_buffer *from, int device_id, int64_t timeout_ns);

/*
 * Get the contents as memory that the caller may write, and that only this handle shows:
 * xmem_size() bytes. Stores do not change what xmem_data or another handle shows. Where the kernel
 * can do it, only pages with stores are copied.
 * @buffer: held for reading.
 *
 * Other processes can change shared buffers and some attached files; such changes may or may not
 * appear here. A program that locks its memory (mlockall) has a copy of everything. The program
 * must not change the protection of this memory (mprotect).
 *
 * Returns: one address for all calls with this handle; or NULL: EPERM: the buffer is being written;
 * EMEDIUMTYPE, EIO: as xmem_data; ENOMEM: also: the limit of locked memory is reached; ENOTCONN:
 * the host has gone, and the contents are not mapped yet; EMFILE, EINTR.
 * Ownership: the library's, until the handle is dropped or xmem_get_mut has made it writable; then
 * the stores are lost. Threads: any. Since: 0.5.
 */
void *xmem_data_private(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
