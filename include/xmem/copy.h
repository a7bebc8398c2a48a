/* SPDX-License-Identifier: MIT */
/*
 * Copies between buffers, and between a buffer and memory of this process. A part of xmem.h.
 *
 * Each buffer may be in memory of the CPU or of a GPU. The target is from xmem_acquire or
 * xmem_acquire_cuda, or made writable by xmem_get_mut. The source is any other buffer; if it is
 * being written, its whole capacity can be read.
 *
 * With the stream NULL a copy is complete when the call returns. Otherwise it is work in the stream
 * (stream.h) of the target's GPU or, if the target is in memory of the CPU, of the source's GPU.
 * Until the stream has done the copy, drop the source only by xmem_release_on, and do not change it
 * if it is in memory of the CPU. Do not use, publish or release a target in memory of the CPU
 * either. A target on a GPU may be published or released at once.
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
 * Then the contents of @to begin at xmem_data_mut and are as long as those of @from.
 * Returns: 0, or -ERANGE: the contents are longer than xmem_capacity() of @to; -EPERM: @to is not
 * being written or is of attached memory, or a graph captures the stream; -EINVAL: also: both are
 * one handle; -EIO, -ENOMEM, -EMFILE, -ENOTCONN, -EINTR: as xmem_data; with a GPU also as
 * xmem_cuda_ptr. Threads: one thread at a time writes a buffer. Since: 0.4.
 */
int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from, struct CUstream_st *stream);

/*
 * Copy a part of one buffer to another one. The rest of @to, the length of its contents, and its
 * metadata stay. @to_offset counts bytes from xmem_data_mut or xmem_cuda_ptr_mut on, and
 * @from_offset from the beginning of the contents.
 * Returns: as xmem_copy; -ERANGE: the part reaches beyond xmem_capacity() of @to, or beyond the
 * contents of @from. Threads: as xmem_copy. Since: 0.5.
 */
int xmem_copy_range(struct xmem_buffer *to, size_t to_offset, struct xmem_buffer *from,
		    size_t from_offset, size_t bytes, struct CUstream_st *stream);

/*
 * Copy memory of this process, which may lie in @to itself, into a buffer. The rest of @to stays.
 * @from may be NULL if @bytes is 0. Returns, Threads: as xmem_copy_range. Since: 0.5.
 */
int xmem_copy_from_host(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes,
			struct CUstream_st *stream);

/*
 * Copy contents of a buffer to memory of this process. @to may be NULL if @bytes is 0. Returns: as
 * xmem_copy_range. Since: 0.5.
 */
int xmem_copy_to_host(void *to, struct xmem_buffer *from, size_t offset, size_t bytes,
		      struct CUstream_st *stream);

/*
 * Acquire a buffer of the same pool, on the GPU @device_id or XMEM_CPU, and copy the contents and
 * metadata into it. It is then being written, and the copy is complete when the call returns.
 * Returns: the new buffer, or NULL: as xmem_acquire or xmem_acquire_cuda, and as xmem_copy.
 * Ownership: ends in xmem_publish or xmem_release. Since: 0.5.
 */
struct xmem_buffer *xmem_copy_to(struct xmem_buffer *from, int device_id, int64_t timeout_ns);

/*
 * Get a private view of the contents of a held buffer, xmem_size() bytes. The caller may write to
 * it: only this view shows the stores, and the contents do not change. Do not change the protection
 * of its memory.
 * Returns: one address for all calls with this handle; or NULL: EPERM: the buffer is being written;
 * EMEDIUMTYPE, EIO: as xmem_data; ENOMEM: also: the limit of locked memory is reached; ENOTCONN,
 * EMFILE, EINTR. Ownership: the library's, until the handle is dropped or xmem_get_mut makes the
 * buffer writable; then the stores are lost. Since: 0.5.
 */
void *xmem_data_private(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
