/* SPDX-License-Identifier: MIT */
/*
 * Copying into a buffer that is being written, for programs that cannot hand the buffer itself
 * over: to another pool, or to keep what they hold for longer than its writer can spare it. And
 * contents as memory that only their reader changes. A part of xmem.h, whose rules for errors,
 * handles and threads hold here too.
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
 * Each of them may be in memory of the CPU or of a GPU. The copy is complete when this returns.
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
 *	-EIO, -ENOMEM, -EMFILE, -ENOTCONN, -EINTR  as xmem_data
 *	with a GPU also as xmem_copy_to_device
 * Threads: one thread at a time writes a buffer. Since: 0.4.
 */
int xmem_copy(struct xmem_buffer *to, struct xmem_buffer *from);

/*
 * Copy memory of this process into a buffer, of the CPU or of a GPU, the way xmem_copy does it.
 * @to: as in xmem_copy. The rest of it, the length of its contents, and its metadata stay.
 * @offset: bytes from xmem_data_mut to the first one that is written.
 * @from: @bytes bytes, no part of @to; may be NULL if there are none.
 * Returns: 0, or -ERANGE (they reach beyond xmem_capacity()), -EPERM, -EINVAL, -ENOMEM;
 *	on a GPU as xmem_copy_to_cuda.
 * Threads: as xmem_copy. Since: 0.4.
 */
int xmem_copy_bytes(struct xmem_buffer *to, size_t offset, const void *from, size_t bytes);

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
 * Contents that others change all the same, as they can those of shared buffers and of some
 * attached files, may show that here, or not.
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
