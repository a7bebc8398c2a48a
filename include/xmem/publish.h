/* SPDX-License-Identifier: MIT */
/*
 * Writing a buffer and publishing it, and passing on what was received. A part of xmem.h, whose
 * rules for errors, handles, threads and structs hold here too.
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
 * Acquire a buffer to write into, one that nobody uses any more, or a new one.
 * @bytes: how many bytes the contents will have; any larger buffer will do, and
 *	xmem_size() of the buffer is @bytes. 0: any buffer, the whole of it.
 * @timeout_ns: nanoseconds to wait for one.
 *
 * The buffer is the smallest that is large enough and free. If none is free, this takes the oldest
 * publication that no client holds among the smallest buffers that are large enough. Subscribers
 * that have not received it, and for which the writer need not wait, lose it. What `keep` of struct
 * xmem_pool_options keeps can be taken, too. A subscriber that lags by more than `keep` and by more
 * than half of the buffers of that size (or by ring_entries, if that is less) loses at once all
 * that is older, also what others hold. The writer waits for the other subscribers within the
 * pool's wait_bound_ns; then they lose the oldest publication until they receive again. If a
 * subscriber uses XMEM_SUBSCRIBE_WAITS, at most ring_entries buffers may be acquired and
 * unpublished.
 *
 * A writer makes buffers on demand as far as demand_bytes of its options allows it (memory.h). With
 * the default, 0, that ends with its first xmem_preallocate. Larger buffers, and publications of
 * subscribers that may lose them, are taken only when none can be made.
 *
 * Returns: the buffer, or NULL:
 *	EAGAIN	none is free, and the timeout is 0; also if none that large can be made because
 *		all slots of the pool are in use, and this writer has some of them
 *	ETIMEDOUT  none became free in time; the message names the clients that hold them, and
 *		says if the system refuses memory for another one
 *	ENOSPC	no buffer is that large, and it may not be made; or a slot is worn out:
 *		preallocate (others). At once, whatever the timeout is, also if this writer has no
 *		slots and gets none by waiting. Waiting cannot help if each group of slots
 *		belongs to a living writer, or to an ended writer whose group comes free only
 *		when this client itself receives or releases. The message names the owners. A
 *		program that polls is told when a group has come free
 *	ENOMEM, EDQUOT, EFBIG, EMFILE  none is that large, and it cannot be made; as
 *		xmem_preallocate
 *	EPERM	this client is a reader
 *	EINVAL	the timeout is negative
 *	ECANCELED  xmem_cancel, or xmem_pool_close while this call waits
 *	EINTR
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns);

/*
 * Get what can be written of a buffer that is being written, xmem_capacity() bytes. That is the
 * whole buffer, in which what an earlier publication left is still there; or after xmem_get_mut the
 * contents and what is behind them, and then all that is said in bytes of the buffer counts from
 * here: in xmem_publish and the copies.
 * Returns: their address, or NULL: EPERM (the buffer is held for reading, or its memory was
 *	attached), EMEDIUMTYPE (it is on a GPU: xmem_cuda_ptr_mut), ENOMEM.
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.1.
 */
void *xmem_data_mut(struct xmem_buffer *buffer);

#define XMEM_PUBLISH_KEEP	(1u << 0)	/* keep the handle, for reading */
#define XMEM_PUBLISH_CLIENT	(1u << 1)	/* to the subscriber `client` alone */

/* All fields but size may be 0. */
struct xmem_publish_options {
	size_t size;			/* sizeof(struct xmem_publish_options) */
	uint32_t flags;			/* XMEM_PUBLISH_* */
	uint32_t client;		/* with XMEM_PUBLISH_CLIENT: its id, which xmem_pool_client
					 * says there; else 0 */
	uint64_t timestamp_ns;		/* of CLOCK_MONOTONIC; 0: none, or what a buffer that is
					 * held has already */
	uint64_t offset;		/* bytes of the buffer before the contents, counted from
					 * xmem_data_mut, or in a buffer that is held from its
					 * beginning, as in struct xmem_metadata */
	uint64_t length;		/* bytes of contents; 0: up to their end. Contents that are
					 * written may reach up to the capacity; of held ones
					 * this is a part, and with offset 0 all */
	int64_t timeout_ns;		/* nanoseconds to wait: see xmem_publish */
	struct CUstream_st *stream;	/* the stream that has yet to write the contents (stream.h);
					 * NULL: they are complete */
};

/*
 * Publish a buffer to the subscribers of this client.
 * @buffer: one that is being written (xmem_acquire, xmem_attach_fd, xmem_get_mut and so on), or
 *	one that is held for reading (xmem_receive, xmem_get, xmem_clone, or kept when it was
 *	published), of any client. A held buffer is *forwarded*: nothing is copied, and the
 *	subscribers receive this buffer with its token and metadata, and this client as publisher.
 * @options: NULL is as all zero. The contents are as long as was acquired; after xmem_get_mut, and
 *	of what is held, they are where they were.
 * @ret_token: the name of these contents, for xmem_get; may be NULL.
 *
 * An acquired buffer is published at once. A held buffer waits up to timeout_ns for room in the
 * ring, if a subscriber with XMEM_SUBSCRIBE_WAITS makes it wait, and no longer than wait_bound_ns
 * of this client's pool. A buffer from xmem_get_mut waits for the host's answer. If it is in memory
 * of a GPU, this call waits without limit until the earlier contents are complete; with
 * XMEM_PUBLISH_CLIENT it waits up to timeout_ns.
 *
 * If buffers were acquired before a subscriber with XMEM_SUBSCRIBE_WAITS came, publishing
 * them may overwrite what it has yet to receive, as the ring has ring_entries places. It then
 * loses the oldest, and is waited for again once it receives.
 *
 * The contents stay as long as a subscriber that the writer waits for has yet to receive them
 * or a client holds them; for other subscribers, and with `keep` of struct xmem_pool_options, they
 * stay until an acquire needs the buffer. Forwarded contents stay also after the end of this
 * client, and of the writer that owns the buffer. If the owner needs a forwarded buffer and has no
 * other, the owner takes it at once from the subscribers that this client does not wait for, and
 * from the other subscribers after wait_bound_ns of this client's pool.
 * A program that passes the token on in a way of its own keeps the handle
 * (XMEM_PUBLISH_KEEP) until the other side has got the buffer.
 *
 * With XMEM_PUBLISH_CLIENT the other subscribers skip the publication, and lose nothing by it. But
 * a subscriber that the ring overtakes before it has skipped it counts it as lost. If the one
 * subscriber ends, or follows this client no longer, nobody receives it.
 *
 * Returns: 0, and the handle is gone unless it is kept; or
 *	-EINVAL	an unknown flag, a client without its flag or that no client of the pool can have,
 *		a negative timeout, or a size below the minimum
 *	-E2BIG	as xmem_pool_open
 *	-ERANGE	offset and length reach beyond xmem_capacity(), or beyond the contents that are held
 *	-ENOENT	that client is not there, or does not follow this one
 *	-EPERM	this client is a reader; or a stream, and the buffer is held for reading (if it is
 *		in memory of the CPU, EMEDIUMTYPE)
 *	-EOVERFLOW  XMEM_PUBLISH_KEEP, and this client has 2^28 handles of the buffer
 *	-EAGAIN	the ring has no room, and timeout_ns is 0; -ETIMEDOUT  it had none in time
 *	-ECANCELED, -EINTR  xmem_cancel, xmem_pool_close or a signal handler has ended that wait
 *	-EINTR	after xmem_get_mut: a signal handler ran before the host had answered. Publish it
 *		again, or release it: nobody knows the token yet
 *	-EAGAIN, -ETIMEDOUT, -EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after
 *		xmem_get_mut of memory of a GPU: as xmem_wait_contents (stream.h)
 *	-EMEDIUMTYPE, -ENODEV, -ENOMEM, -EINVAL, -EIO, -EINTR, -ECANCELED  with a stream: stream.h
 * Ownership: after an error the buffer is the caller's as before.
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.1.
 */
int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		 uint64_t *ret_token);

/*
 * Take a publication of this client back, so that nobody receives it any more. Subscribers pass it
 * and lose nothing by it.
 * @token: the token that xmem_publish gave; or a slot (xmem_get).
 *
 * A writer can take back its own buffer only as long as nobody has it: no client holds it, this one
 * included, no references of it are set aside (claims.h), and nobody has forwarded it to
 * subscribers that have yet to receive it. Contents that this client has forwarded, or has written
 * in place (payload.h), are taken out of its ring; a client that has received them keeps them.
 *
 * Returns: 0, and a buffer of this client's own is free for xmem_acquire, and the file of one from
 * xmem_attach_fd is gone; or
 *	-EBUSY	somebody has it
 *	-ESTALE	it is gone already, or the token belongs to another pool
 *	-EINVAL	there is no such slot
 *	-EPERM	it is another client's, and this one's ring does not have it; or this client is
 *		a reader
 * Threads: any. Since: 0.4.
 */
int xmem_retract(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
