/* SPDX-License-Identifier: MIT */
/* Writing a buffer and publishing it, and forwarding received buffers. A part of xmem.h. */
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
 * Acquire a buffer to write into: the smallest free one that is large enough, or a new one
 * (demand_bytes of struct xmem_pool_options), or that of the oldest publication that no client
 * holds. Subscribers that have yet to receive that publication lose it. For those with
 * XMEM_SUBSCRIBE_WAITS the writer waits first, up to wait_bound_ns.
 * @bytes: bytes that the contents will have; 0: any buffer will do, and all of it is contents.
 * Returns: the buffer, or NULL:
 *	EAGAIN	none is free, and the timeout is 0; or all slots of the pool are in use
 *	ETIMEDOUT  none became free in time; the message names the clients that hold them
 *	ENOSPC	none is that large, and none may be made; or this writer cannot get a slot
 *	ENOMEM, EDQUOT, EFBIG, EMFILE  none that large can be made: as xmem_preallocate
 *	EPERM, EINVAL, ECANCELED, EINTR
 * Ownership: ends in xmem_publish or xmem_release. Since: 0.1.
 */
struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns);

/*
 * Get the memory of a buffer that is being written, xmem_capacity() bytes, which still has earlier
 * contents. Returns: their address, or NULL: EPERM (the buffer is held for reading, or
 * its memory was attached), EMEDIUMTYPE (it is on a GPU: xmem_cuda_ptr_mut), ENOMEM. Ownership:
 * valid until the buffer is published or released. Since: 0.1.
 */
void *xmem_data_mut(struct xmem_buffer *buffer);

#define XMEM_PUBLISH_KEEP	(1u << 0)	/* keep the handle, for reading */
#define XMEM_PUBLISH_CLIENT	(1u << 1)	/* to the subscriber `client` alone */

/* How xmem_publish publishes a buffer. */
struct xmem_publish_options {
	size_t size;			/* sizeof(struct xmem_publish_options) */
	uint32_t flags;			/* XMEM_PUBLISH_* */
	uint32_t client;		/* with XMEM_PUBLISH_CLIENT: the subscriber's id; else 0 */
	uint64_t timestamp_ns;		/* of CLOCK_MONOTONIC; 0: none, or unchanged if forwarded */
	uint64_t offset;		/* bytes before the contents in the buffer */
	uint64_t length;		/* bytes of contents; 0: all contents from `offset` on */
	int64_t timeout_ns;		/* nanoseconds to wait: see xmem_publish */
	struct CUstream_st *stream;	/* its work writes the contents (stream.h); NULL: none */
};

/*
 * Publish a buffer to the subscribers of this client. The contents stay while a client holds them,
 * or while the writer waits for a subscriber to receive them. After that they stay until an acquire
 * needs the buffer.
 * @buffer: being written; or held for reading, and then *forwarded*: nothing is copied, and
 *	subscribers receive this buffer, with its token and metadata, from this client.
 * @ret_token: the token of these contents, for xmem_get; may be NULL.
 * Returns: 0, and the handle is gone unless it is kept; or
 *	-EINVAL	also: no client can have that id, or `client` is set without XMEM_PUBLISH_CLIENT
 *	-ERANGE	offset and length reach beyond xmem_capacity(), or beyond the contents that are held
 *	-ENOENT	that client does not exist, or does not subscribe to this one
 *	-EPERM	also: a stream is given, and the buffer is held for reading
 *	-EAGAIN, -ETIMEDOUT, -ECANCELED, -EINTR  the ring has no room for a held buffer
 *	-EINTR	after xmem_get_mut: publish the buffer again, or release it
 *	-EAGAIN, -ETIMEDOUT, -EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after
 *		xmem_get_mut of memory of a GPU: as xmem_wait_contents
 *	-EMEDIUMTYPE, -ENODEV, -ENOMEM, -EINVAL, -EIO, -EINTR, -ECANCELED  with a stream: stream.h
 *	-EOVERFLOW, -E2BIG
 * Threads: no other call may use this handle meanwhile. Since: 0.1.
 */
int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		 uint64_t *ret_token);

/*
 * Take a publication of this client back: no subscriber receives it any more, and none counts
 * it as lost. A buffer that this client owns must have no handle in any client and no claim, and
 * no subscriber may have yet to receive it from a client that forwarded it.
 * @token: the token from xmem_publish, or XMEM_SLOT.
 * Returns: 0; or -EBUSY: a client has it; -ESTALE: it is gone already, or the token belongs to
 * another pool; -EINVAL: there is no such slot; -EPERM: also: it is another client's. Since: 0.4.
 */
int xmem_retract(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
