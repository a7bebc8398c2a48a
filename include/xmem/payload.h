/* SPDX-License-Identifier: MIT */
/*
 * Payloads of other kinds than those that xmem_preallocate makes: files that somebody else has
 * made, and files that all writers can write. A part of xmem.h, whose rules for errors, handles,
 * threads and structs hold here too.
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
 * Make a buffer of a file whose contents are there already, without copying them.
 * @fd: a memfd, in ordinary or huge pages, that is sealed with F_SEAL_SHRINK, F_SEAL_GROW and
 *	F_SEAL_WRITE or F_SEAL_FUTURE_WRITE, and that has no holes; or where the kernel is the
 *	host a dma-buf. It stays the caller's.
 * @offset: bytes of the file before the contents; a multiple of 64.
 * @length: bytes of contents; 0: up to the end of the file.
 * @flags: must be 0.
 *
 * The buffer is published or released, as one from xmem_acquire is; its metadata can be written.
 * xmem_data shows the contents and xmem_data_mut refuses (EPERM). It is for one content: once
 * nobody can receive it and nobody holds it, the pool lets go of the file, and no acquire gets the
 * buffer. This writer finds that out when it calls this function, xmem_pool_stat, xmem_collect,
 * xmem_retract, or an xmem_acquire or xmem_publish that does not find a free buffer at once.
 *
 * All that holds for other buffers holds for this one, with one exception. If the file is sealed
 * with F_SEAL_FUTURE_WRITE alone, whoever mapped it writable before can still change contents
 * that others hold. XMEM_BUFFER_CONSTANT of struct xmem_buffer_info says where nobody can.
 *
 * A dma-buf is a lesser thing (XMEM_BUFFER_DMABUF). No client of the pool can write it through
 * what it gets here, but its exporter, and every process that has a descriptor of it, can; and an
 * exporter that takes the memory away makes readers end by SIGBUS. The publisher of a dma-buf has
 * waited for the device and, on machines whose devices do not see the caches, called
 * DMA_BUF_IOCTL_SYNC.
 *
 * If the pool or the host has no room for a further file, publications of attached files that
 * subscribers may lose are taken away from them, the oldest first.
 *
 * Returns: the buffer, or NULL, and then nothing has changed:
 *	EINVAL	offset is not a multiple of 64, or a flag has no meaning
 *	EPERM	this client is a reader
 *	EBADF	the descriptor is not open
 *	EMEDIUMTYPE  the file is not a memfd, nor a dma-buf in a pool of the kernel's
 *	ENOEXEC	the memfd lacks seals; the message names them
 *	EACCES	the descriptor is not open for reading, or only names the file (O_PATH)
 *	ERANGE	the contents reach beyond the end of the file, or the file has holes
 *	EBUSY	somebody has a lease of the file (F_SETLEASE), or is running it as a program
 *	ENOSPC	the pool has no slot left
 *	EDQUOT	a limit of the host is reached
 *	EAGAIN	the ring is full of what subscribers with XMEM_SUBSCRIBE_WAITS have yet to
 *		receive, as xmem_acquire says it
 *	EIO	the file cannot be mapped
 *	ENOMEM, EMFILE, ENFILE, EINTR
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.4.
 */
struct xmem_buffer *xmem_attach_fd(struct xmem_pool *pool, int fd, uint64_t offset,
				   uint64_t length, uint32_t flags);

/*
 * Write received contents in place: their only holder becomes their writer.
 * @buffer: held for reading, of what any client of the pool has made ahead or on demand, unless it
 *	said XMEM_MEMORY_SEALED. Until now this process has its file mapped for reading only, unless
 *	it has made it: a stray store is a SIGSEGV. From now on the whole file is mapped for writing
 *	here.
 *
 * From then on the buffer is as one from xmem_acquire whose contents and metadata are there:
 * xmem_data_mut and xmem_metadata_mut give them, and xmem_publish publishes the next
 * contents of the same buffer, in the ring of this client, under a new token. Without options
 * they are where they were. If they are a part of the buffer, what lies before them is not this
 * client's to write: xmem_data_mut and xmem_capacity begin at the contents, and the offsets of
 * xmem_publish and the copies count from there. The old token is stale at once.
 * xmem_release without xmem_publish throws the contents away, and so does the end of this process.
 * The buffer then goes back to its owner, and also once nobody uses what was published.
 *
 * Returns: 0, or an error, and then the buffer is held for reading as before:
 *	-EBUSY	another client holds these contents or has yet to receive them, or this client has
 *		another handle of them, or references of them are set aside (claims.h); or, for a
 *		moment, the owner is in the last step of publishing them, or a subscriber that lags
 *		is finding out that older contents of the buffer are gone
 *	-EOPNOTSUPP  the buffer is sealed, or of memory that a program has attached, or of a GPU
 *		that exports memory by IPC handles (XMEM_MEMORY_LEGACY); the message says which
 *	-EPERM	this client is a reader, or the buffer is being written
 *	-EAGAIN	the ring is full, as xmem_attach_fd says it; or the owner keeps scanning the buffer
 *	-ENOSPC	the buffer has used up its numbers of contents until its owner acquires it; this
 *		is rare (one in millions of contents)
 *	-ENOMEM, -EMFILE, -EINTR
 *
 * In memory of a GPU a stream may have yet to write the contents. This does not wait for them, but
 * xmem_publish and xmem_set_ref_count do. They fail as xmem_wait_contents does (stream.h), and
 * leave the buffer as it was. If the process that was to write them has ended (EOWNERDEAD), it can
 * only be released.
 *
 * Several writers fill ranges of one buffer by turns. Each one fills its range, calls
 * xmem_set_ref_count with 1, takes the token, calls xmem_forget, and sends the token to the next
 * one. That calls xmem_get and xmem_get_mut, and goes on. The last one publishes. If one is killed
 * in its turn the buffer goes back to its owner.
 *
 * Ownership: ends in xmem_publish or xmem_release. Threads: no other thread uses the handle
 * meanwhile. Since: 0.4.
 */
int xmem_get_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
