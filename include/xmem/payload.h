/* SPDX-License-Identifier: MIT */
/*
 * Payloads that xmem_preallocate does not make: existing files, and files that all writers can
 * write. A part of xmem.h, whose general rules apply.
 */
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
 * Make a buffer of a file with existing contents, without copying them.
 * @fd: a memfd, in ordinary or huge pages, without holes, that is sealed with F_SEAL_SHRINK,
 *	F_SEAL_GROW and F_SEAL_WRITE or F_SEAL_FUTURE_WRITE; or, where the kernel is the host, a
 *	dma-buf. It stays the caller's.
 * @offset: bytes of the file before the contents; a multiple of 64.
 * @length: bytes of contents; 0: up to the end of the file.
 * @flags: must be 0.
 *
 * The buffer is published or released like one from xmem_acquire, and its metadata can be written,
 * but xmem_data_mut fails with EPERM. It has these contents only: when no client holds them or can
 * receive them, the pool gives the file up. If F_SEAL_FUTURE_WRITE is the only seal against
 * writing, a process that mapped the file writable before can still change the contents. The
 * exporter of a dma-buf, and every process that has a descriptor of it, can change the contents
 * too, and the exporter can end readers by SIGBUS.
 *
 * Returns: the buffer, or NULL, and then nothing has changed:
 *	EINVAL	offset is not a multiple of 64, or a flag has no meaning
 *	EPERM	this client is a reader
 *	EBADF	the descriptor is not open
 *	EMEDIUMTYPE  the file is not a memfd, nor a dma-buf in a pool of the kernel's
 *	ENOEXEC	the memfd lacks seals; the message names them
 *	EACCES	the descriptor is not open for reading, or only names the file (O_PATH)
 *	ERANGE	the contents reach beyond the end of the file, or the file has holes
 *	EBUSY	a process has a write lease of the file (F_SETLEASE), or runs it as a program
 *	ENOSPC	the pool has no slot left
 *	EAGAIN	the ring is full of publications that subscribers with XMEM_SUBSCRIBE_WAITS have yet
 *		to receive, as xmem_acquire says it
 *	EIO	the file cannot be mapped
 *	EDQUOT, ENOMEM, EMFILE, ENFILE, EINTR
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.4.
 */
struct xmem_buffer *xmem_attach_fd(struct xmem_pool *pool, int fd, uint64_t offset,
				   uint64_t length, uint32_t flags);

/*
 * Write received contents in place: their only holder becomes their writer.
 * @buffer: held for reading, in memory that any client has made ahead or on demand without
 *	XMEM_MEMORY_SEALED.
 *
 * Afterwards the buffer is like one from xmem_acquire that has contents and metadata. The whole
 * file is mapped for writing here. xmem_publish publishes the next contents under a new token, in
 * this client's ring; the old token is stale at once. xmem_release without xmem_publish discards
 * the contents, and so does the end of this process. The buffer then goes back to its owner, as it
 * does when the published contents are no longer used.
 *
 * Returns: 0, or an error, and then the buffer is held for reading as before:
 *	-EBUSY	another client holds these contents or has yet to receive them, this client has
 *		another handle of them, or they have claims; or, for a moment, the owner is
 *		publishing them or a lagging subscriber finds out that older contents are gone
 *	-EOPNOTSUPP  the buffer is sealed, or in memory that a program has attached, or in memory of
 *		a GPU that is exported by IPC handles (XMEM_MEMORY_LEGACY); the message says which
 *	-EPERM	this client is a reader, or the buffer is being written
 *	-EAGAIN	the ring is full, as xmem_attach_fd says it; or the owner keeps scanning the buffer
 *	-ENOSPC	the buffer has used up its numbers of contents until its owner acquires it, which is
 *		rare (one in millions of contents)
 *	-ENOMEM, -EMFILE, -EINTR
 * Ownership: ends in xmem_publish or xmem_release. Threads: any, but no other thread may use the
 * handle meanwhile. Since: 0.4.
 */
int xmem_get_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
