/* SPDX-License-Identifier: MIT */
/*
 * Copying into a buffer that is being written, for programs that cannot hand the buffer itself
 * over: to another pool, or to keep what they hold for longer than its writer can spare it. A part
 * of xmem.h, whose rules for errors, handles and threads hold here too.
 */
#ifndef XMEM_COPY_H
#define XMEM_COPY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_buffer;

/*
 * Copy the contents and the metadata of one buffer to another one, which may be of another pool.
 * Each of them may be in memory of the CPU or of a GPU. What is copied is there when this returns.
 * @to: from xmem_acquire or xmem_acquire_cuda, or made writable by xmem_get_mut. Its contents, from
 *	xmem_data_mut on, are as long as those of @from after this, also if more or less was
 *	acquired, so that xmem_publish without options publishes just them. The time of publication
 *	is not copied: xmem_publish takes it.
 * @from: any other buffer.
 *
 * Large contents are stored past the cache, as they would not stay in it, where that is faster.
 *
 * Returns: 0, or
 *	-ERANGE	the contents are longer than xmem_capacity() of @to
 *	-EPERM	@to is not being written, or is from xmem_attach_fd
 *	-EINVAL	NULL, or both are the same handle
 *	-EIO, -ENOMEM, -EMFILE, -EINTR  as xmem_data
 *	with a GPU also as xmem_copy_to_device
 * Threads: one thread at a time writes a buffer. Since: 0.4.
 */
int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from);

/*
 * Copy memory of this process into a buffer, of the CPU or of a GPU, the way xmem_copy does it.
 * @to: as in xmem_copy. What else is in it, how long its contents are, and its metadata stay.
 * @offset: bytes from xmem_data_mut to the first one that is written.
 * @from: @bytes bytes, no part of @to; may be NULL if there are none.
 * Returns: 0, or -ERANGE (they reach beyond xmem_capacity()), -EPERM, -EINVAL, -ENOMEM;
 *	on a GPU as xmem_copy_to_cuda.
 * Threads: as xmem_copy. Since: 0.4.
 */
int xmem_copy_bytes(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
