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

/*
 * Acquire a buffer to write into, one that nobody uses any more, or a new one.
 * @bytes: how many bytes the contents will have; any larger buffer will do, and
 *	xmem_size() of the buffer is @bytes. 0: any buffer, the whole of it.
 * @timeout_ns: nanoseconds to wait for one.
 *
 * The buffer is the smallest that is large enough and free. If none is free, this takes the
 * oldest publication of the smallest such size away that no client holds, from subscribers that
 * have not received it and that the writer need not wait for, or from what it keeps (`keep` of
 * struct xmem_pool_options). Those that lag by more than half of the buffers of that size and more
 * than is kept (or by ring_entries, if that is less) lose all that is older than that at once, also
 * what others hold. It waits for the other subscribers within the pool's wait_bound_ns; then they
 * lose the oldest too, until they receive again. If a subscriber uses XMEM_SUBSCRIBE_WAITS, at most
 * ring_entries buffers may be acquired and unpublished.
 *
 * A writer that does not preallocate makes buffers on demand, as far as demand_bytes of its options
 * allows it: xmem/memory.h says how. Only then are larger buffers taken, and publications of those
 * that may lose them.
 *
 * Returns: the buffer, or NULL:
 *	EAGAIN	none is free, and the timeout is 0; also if none that large can be made because
 *		all slots of the pool are in use, and this writer has some of them
 *	ETIMEDOUT  none became free in time; the message names the clients that hold them, and
 *		says if the system refuses memory for another one
 *	ENOSPC	no buffer is that large, and it may not be made; or a slot is worn out:
 *		preallocate (others). At once, whatever the timeout is, also if this writer has no
 *		slots and gets none by waiting. That is so if each group is a living writer's,
 *		which keeps it until it ends, or an ended writer's that comes free only if this
 *		client itself receives or releases buffers. The message names the owners. A
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
 * here: in xmem_publish, xmem_send, xmem_copy and xmem_copy_bytes.
 * Returns: their address, or NULL: EPERM (the buffer is not from xmem_acquire), EMEDIUMTYPE (it is
 *	on a GPU: xmem_cuda_ptr_mut), ENOMEM.
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.1.
 */
void *xmem_data_mut(struct xmem_buffer *buffer);

#define XMEM_PUBLISH_KEEP	(1u << 0)	/* keep the handle, for reading */

/* All fields but size may be 0. */
struct xmem_publish_options {
	size_t size;			/* sizeof(struct xmem_publish_options) */
	uint32_t flags;			/* XMEM_PUBLISH_* */
	uint32_t reserved;		/* must be 0 */
	uint64_t timestamp_ns;		/* of CLOCK_MONOTONIC; 0: none */
	uint64_t offset;		/* bytes of the buffer before the contents, counted from
					 * xmem_data_mut */
	uint64_t length;		/* bytes of contents, which may reach up to the capacity;
					 * 0: up to the end of what was acquired */
};

/*
 * Publish a buffer to the subscribers of this client. This never waits, but if xmem_get_mut has
 * made the buffer writable: for the host's answer, and in memory of a GPU until the contents that
 * were there are complete.
 * @options: NULL is as all zero: the contents are as long as was acquired, or after xmem_get_mut
 *	where they were.
 * @ret_token: the name of these contents, for xmem_get; may be NULL.
 *
 * If buffers were acquired before a subscriber with XMEM_SUBSCRIBE_WAITS came, publishing
 * them may overwrite what it has yet to receive, as the ring has ring_entries places. It then
 * loses the oldest, and is waited for again once it receives.
 *
 * The contents stay as long as a subscriber that the writer waits for has yet to receive them
 * or a client holds them; for other subscribers, and with `keep` of struct xmem_pool_options, they
 * stay until an acquire needs the buffer.
 * A program that passes the token on in a way of its own keeps the handle
 * (XMEM_PUBLISH_KEEP) until the other side has got the buffer.
 *
 * Returns: 0, and the handle is gone unless it is kept; or
 *	-EINVAL	an unknown flag, a reserved field that is not 0, or a size below the minimum
 *	-E2BIG	as xmem_pool_open
 *	-EPERM	the buffer is not from xmem_acquire
 *	-ERANGE	offset and length reach beyond xmem_capacity()
 *	-EOVERFLOW  XMEM_PUBLISH_KEEP, and this client has 2^28 handles of the buffer
 *	-EINTR	after xmem_get_mut: a signal handler ran before the host had answered. Publish it
 *		again, or release it: nobody knows the token yet
 *	-EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after xmem_get_mut of memory
 *		of a GPU: as xmem_wait_contents (xmem/stream.h)
 * Ownership: after an error the buffer is the caller's as before.
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.1.
 */
int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		 uint64_t *ret_token);

/* ---- pipelines ---- */

/*
 * Publish contents that this client holds once more, to its own subscribers. Nothing is copied:
 * they receive the same buffer, with the same token and metadata, and this client as publisher.
 * @buffer: from xmem_receive, xmem_get or xmem_clone, or kept when it was published; of any
 *	client, also this one.
 * @options: NULL is as all zero: the same contents, and the time that they have. offset and length
 *	choose a part of them; offset counts from the beginning of the whole buffer, as that of the
 *	contents in struct xmem_metadata does.
 * @timeout_ns: nanoseconds to wait for room in the ring. Only subscribers with
 *	XMEM_SUBSCRIBE_WAITS make this wait, within the wait_bound_ns of this client's pool.
 * @ret_token: as in xmem_publish; may be NULL.
 *
 * The contents stay for the subscribers as if the handle had been kept, also after the end of
 * this client and of the writer that owns the buffer. When the owner needs the buffer and has
 * nothing else, it takes it from those subscribers that this client does not wait for; and
 * from the others once it has waited for as long as wait_bound_ns of this client's pool says.
 *
 * Returns: 0, and the handle is gone unless XMEM_PUBLISH_KEEP keeps it; or
 *	-EAGAIN	the ring has no room, and the timeout is 0
 *	-ETIMEDOUT  it had none in time
 *	-EPERM	this client is a reader; or the buffer is still being written: publish it
 *	-EINVAL	an unknown flag, a reserved field that is not 0, a size below the minimum, or a
 *		negative timeout
 *	-E2BIG	as xmem_pool_open
 *	-ERANGE	offset and length reach beyond the contents
 *	-ECANCELED  xmem_cancel, or xmem_pool_close while this call waits
 *	-EINTR
 * Ownership: after an error the buffer is the caller's as before. Threads: any, but no other call
 * uses this handle of a buffer meanwhile. Since: 0.4.
 */
int xmem_forward(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		 int64_t timeout_ns, uint64_t *ret_token);

/*
 * Publish to one subscriber of this client alone. The others pass it and lose nothing by it, but a
 * subscriber that the ring overtakes before it has passed the publication counts that as lost.
 * @buffer: from xmem_acquire, or held for reading as in xmem_forward.
 * @client: its id: that of xmem_pool_client there.
 * @options, @ret_token: as in xmem_publish for a buffer from xmem_acquire, else as in xmem_forward.
 * @timeout_ns: as in xmem_forward; for a buffer from xmem_acquire this never waits, and for one
 *	from xmem_get_mut only as payload.h says it.
 *
 * If the subscriber ends, or follows this client no longer, nobody receives it.
 *
 * Returns: as xmem_publish or xmem_forward, and
 *	-ENOENT	that client is not there, or does not follow this one
 *	-EINVAL	no client of the pool can have that id
 * Ownership: after an error the buffer is the caller's as before. Threads: any, but no other call
 * uses this handle of a buffer meanwhile. Since: 0.4.
 */
int xmem_send(struct xmem_buffer *buffer, uint32_t client,
	      const struct xmem_publish_options *options, int64_t timeout_ns,
	      uint64_t *ret_token);

/*
 * Take a publication of this client back, so that nobody receives it any more. Subscribers pass it
 * and lose nothing by it.
 * @token: the token that xmem_publish, xmem_send or xmem_forward gave.
 *
 * Its own buffer a writer can take back only as long as nobody has it: no client holds it, this one
 * included, no references of it are set aside (claims.h), and nobody has forwarded it to
 * subscribers that have yet to receive it. Contents that this client has forwarded, or has written
 * in place (payload.h), are taken out of its ring; a client that has received them keeps them.
 *
 * Returns: 0, and a buffer of this client's own is free for xmem_acquire, and the file of one from
 * xmem_attach_fd is gone; or
 *	-EBUSY	somebody has it
 *	-ESTALE	it is gone already, or the token belongs to another pool
 *	-EPERM	it is another client's, and this one's ring does not have it; or this client is
 *		a reader
 * Threads: any. Since: 0.4.
 */
int xmem_retract(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
