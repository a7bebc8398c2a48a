/* SPDX-License-Identifier: MIT */
/*
 * Writing a buffer and publishing it, and forwarding received buffers. A part of xmem.h, whose
 * general rules apply.
 */
#ifndef XMEM_API_PUBLISH_H
#define XMEM_API_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;
struct CUstream_st;

/*
 * Acquire a buffer to write into: the smallest free one that is large enough, or a new one.
 * @bytes: bytes that the contents will have, which xmem_size() gives; 0: any buffer, the whole of
 *	it.
 * @timeout_ns: nanoseconds to wait for a buffer.
 *
 * If no buffer is free, a writer makes one as far as demand_bytes of struct xmem_pool_options
 * allows. Otherwise the call takes the oldest publication that no client holds. Subscribers for
 * which the writer does not wait lose it. The writer waits for the others within the pool's
 * wait_bound_ns. If a subscriber uses XMEM_SUBSCRIBE_WAITS, the buffers that are acquired
 * and the publications that it has yet to receive are together at most ring_entries.
 *
 * Returns: the buffer, or NULL:
 *	EAGAIN	none is free, and the timeout is 0; or none that large can be made because all slots
 *		of the pool are in use, and this writer has some of them
 *	ETIMEDOUT  none became free in time; the message names the clients that hold them, and says
 *		whether the system refuses memory for another one
 *	ENOSPC	no buffer is that large, and none may be made; or a slot is worn out: preallocate
 *		other buffers. Also at once if this writer has no slots and waiting cannot bring
 *		any; the message names the owners
 *	ENOMEM, EDQUOT, EFBIG, EMFILE  none is that large, and it cannot be made: as
 *		xmem_preallocate
 *	EPERM	this client is a reader
 *	EINVAL, ECANCELED, EINTR
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns);

/*
 * Get the bytes of a buffer that can be written, xmem_capacity() bytes. They still have the bytes
 * of an earlier publication. After xmem_get_mut they begin at the contents, and offsets in
 * xmem_publish and the copies count from there.
 * Returns: their address, or NULL: EPERM (the buffer is held for reading, or its memory was
 * attached), EMEDIUMTYPE (it is on a GPU: xmem_cuda_ptr_mut), ENOMEM.
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.1.
 */
void *xmem_data_mut(struct xmem_buffer *buffer);

#define XMEM_PUBLISH_KEEP	(1u << 0)	/* keep the handle, for reading */
#define XMEM_PUBLISH_CLIENT	(1u << 1)	/* to the subscriber `client` alone */

/* All fields but size may be 0. */
struct xmem_publish_options {
	size_t size;			/* sizeof(struct xmem_publish_options) */
	uint32_t flags;			/* XMEM_PUBLISH_* */
	uint32_t client;		/* with XMEM_PUBLISH_CLIENT: the subscriber's id, which its
					 * xmem_pool_client returns; else 0 */
	uint64_t timestamp_ns;		/* of CLOCK_MONOTONIC; 0: none, or that of a held buffer */
	uint64_t offset;		/* bytes before the contents: from xmem_data_mut on, or in
					 * a held buffer from its beginning on (struct
					 * xmem_metadata) */
	uint64_t length;		/* bytes of contents, up to the capacity, or a part of held
					 * contents; 0: up to their end, with offset 0 all */
	int64_t timeout_ns;		/* nanoseconds to wait: see xmem_publish */
	struct CUstream_st *stream;	/* the stream that has yet to write the contents (stream.h);
					 * NULL: they are complete */
};

/*
 * Publish a buffer to the subscribers of this client.
 * @buffer: one that is being written; or one that is held for reading, of any client, which is
 *	*forwarded*: nothing is copied, and subscribers receive this buffer, with its token and
 *	metadata, and this client as the publisher.
 * @options: NULL stands for options that are all zero. The contents then have the length that was
 *	acquired; those of a held buffer, or after xmem_get_mut, are unchanged.
 * @ret_token: the token of these contents, for xmem_get; may be NULL.
 *
 * An acquired buffer is published at once. A held buffer waits up to timeout_ns for room in the
 * ring if a subscriber uses XMEM_SUBSCRIBE_WAITS, and no longer than wait_bound_ns of this client's
 * pool. A buffer from xmem_get_mut waits for the host's answer.
 *
 * The contents stay while a client holds them, or a subscriber for which the writer waits has yet
 * to receive them. For other subscribers, and with `keep` of struct xmem_pool_options, they stay
 * until an acquire needs the buffer. A program that passes tokens on in its own way keeps the
 * handle (XMEM_PUBLISH_KEEP) until the other side has got the buffer.
 *
 * Returns: 0, and the handle is gone unless it is kept; or
 *	-EINVAL	an unknown flag, a client without its flag or that no client of the pool can have, a
 *		negative timeout, or a size below the minimum
 *	-ERANGE	offset and length reach beyond xmem_capacity(), or beyond the contents that are held
 *	-ENOENT	that client does not exist, or does not subscribe to this one
 *	-EPERM	this client is a reader; or a stream is given, and the buffer is held for reading
 *		(if it is in memory of the CPU, EMEDIUMTYPE)
 *	-EOVERFLOW  XMEM_PUBLISH_KEEP, and this client has 2^28 handles of the buffer
 *	-EAGAIN	the ring has no room, and timeout_ns is 0; -ETIMEDOUT it had none in time
 *	-ECANCELED, -EINTR  xmem_cancel, xmem_pool_close or a signal handler ended that wait
 *	-EINTR	after xmem_get_mut: a signal handler ran before the host had answered. Publish the
 *		buffer again, or release it: no client knows the token yet
 *	-EAGAIN, -ETIMEDOUT, -EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after
 *		xmem_get_mut of memory of a GPU: as xmem_wait_contents
 *	-EMEDIUMTYPE, -ENODEV, -ENOMEM, -EINVAL, -EIO, -EINTR, -ECANCELED  with a stream: see
 *		stream.h
 *	-E2BIG
 * Ownership: after an error the buffer is the caller's as before.
 * Threads: any, but no other call may use this handle meanwhile. Since: 0.1.
 */
int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		 uint64_t *ret_token);

/*
 * Take a publication of this client back: no subscriber receives it any more, and none loses
 * anything by it.
 * @token: the token from xmem_publish; or a slot (XMEM_SLOT).
 *
 * A writer can take its own buffer back only while no client holds it, this one included, it has no
 * claims, and no subscriber has yet to receive it from a client that forwarded it. Contents that
 * this client has forwarded, or written in place (payload.h), leave its ring; clients that have
 * received them keep them.
 *
 * Returns: 0; or -EBUSY: a client has it; -ESTALE: it is gone already, or the token belongs to
 * another pool; -EINVAL: there is no such slot; -EPERM: it is another client's, and not in this
 * client's ring; or this client is a reader. Threads: any. Since: 0.4.
 */
int xmem_retract(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
