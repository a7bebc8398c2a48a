/* SPDX-License-Identifier: MIT */
/* Buffers of existing files, and writing in place. A part of xmem.h. */
#ifndef XMEM_PAYLOADS_H
#define XMEM_PAYLOADS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;

/*
 * Make a buffer of a file with existing contents, without copying them. It is published or released
 * like one from xmem_acquire, but xmem_data_mut fails with EPERM. The pool gives the file up when
 * no client holds the contents or can receive them.
 * @fd: a memfd without holes that is sealed with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE or
 *	F_SEAL_FUTURE_WRITE; or, where the kernel is the host, a dma-buf. It stays the caller's.
 * @offset: bytes of the file before the contents; a multiple of 64.
 * @length: bytes of contents; 0: up to the end of the file.
 * @flags: must be 0.
 * Returns: the buffer, or NULL:
 *	EINVAL	also: offset is not a multiple of 64
 *	EBADF	the descriptor is not open
 *	EMEDIUMTYPE  the file is neither a memfd nor, where the kernel is the host, a dma-buf
 *	ENOEXEC	the memfd lacks seals; the message names them
 *	EACCES	the descriptor is not open for reading, or only names the file (O_PATH)
 *	ERANGE	the contents reach beyond the end of the file, or the file has holes
 *	EBUSY	a process has a write lease of the file (F_SETLEASE), or runs it as a program
 *	ENOSPC	the pool has no slot left
 *	EAGAIN	the ring is full of publications that subscribers have yet to receive
 *	EIO	the file cannot be mapped
 *	EPERM, EDQUOT, ENOMEM, EMFILE, ENFILE, EINTR
 * Ownership: ends in xmem_publish or xmem_release. Since: 0.4.
 */
struct xmem_buffer *xmem_attach_fd(struct xmem_pool *pool, int fd, uint64_t offset,
				   uint64_t length, uint32_t flags);

/*
 * Write received contents in place: their only holder becomes their writer. Then the buffer is like
 * one from xmem_acquire with contents and metadata. xmem_publish publishes the next contents under
 * a new token; the old token is stale at once. xmem_release discards the contents.
 * @buffer: held for reading; made by xmem_preallocate or on demand, without XMEM_MEMORY_SEALED.
 * Returns: 0, or -EBUSY: not the only holder, or the contents have claims, or a client has yet to
 * receive them; -EOPNOTSUPP: the buffer is sealed, attached, or memory of a GPU with
 * XMEM_MEMORY_LEGACY; -EPERM: also: the buffer is being written; -EAGAIN: the ring is full, as in
 * xmem_attach_fd, or the buffer's owner is checking if it is used; -ENOSPC: the buffer has no
 * token left until its owner acquires it; -ENOMEM, -EMFILE, -EINTR. Ownership: ends in xmem_publish
 * or xmem_release. Threads: no other call may use this handle meanwhile. Since: 0.4.
 */
int xmem_get_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
