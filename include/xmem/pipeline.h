/* SPDX-License-Identifier: MIT */
/*
 * libxmem: pipelines. A stage passes on what it has received, without copying it. <xmem.h>
 * includes this file.
 */
#ifndef XMEM_PIPELINE_H
#define XMEM_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_buffer;
struct xmem_pool;
struct xmem_publish_options;

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
