/* SPDX-License-Identifier: MIT */
/*
 * Claims: handing buffers over by count. A part of xmem.h, whose general rules apply.
 *
 * A *claim* is a reference that is set aside for a client that is not known yet. Claims are for
 * programs that pass tokens on in their own way, without subscribers:
 *
 *	xmem_set_ref_count(buffer, 2, 0);
 *	token = xmem_token(buffer);
 *	xmem_forget(buffer);
 *	send_to_both(token);
 *
 * Each consumer calls xmem_get with the token, and later xmem_release. The second release frees the
 * buffer, even if the sender has ended.
 *
 * xmem_get takes a claim if there is one, and the new handle stands for that claim: if the consumer
 * ends, its reference ends too. xmem_receive and xmem_clone take no claims. All claims of a buffer
 * end together: when their time has passed, or when all clients that set some aside have ended and
 * no other client than the buffer's owner can take them. After the owner's end they last at most 60
 * seconds more. Every client of the pool can take claims and set further ones aside, so the
 * programs have to trust each other.
 */
#ifndef XMEM_CLAIMS_H
#define XMEM_CLAIMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;

/*
 * Set how many references a buffer has. One is this handle's, which is *counted in*. The others are
 * for clients that will take them. All of them are claims, and xmem_claims counts them.
 * @buffer: held for reading; or being written, with complete contents of the length that was
 *	acquired. Such a buffer is held for reading afterwards, and is published to nobody.
 * @count: references in all, 1 to 65535. Existing claims are counted in.
 * @timeout_ns: how long the claims last, in nanoseconds; 0: 10 seconds; XMEM_FOREVER: as long as
 *	the buffer's owner lives. Only the owner may set more than 60 seconds. If there were claims,
 *	all of them end at the later time.
 * xmem_release drops the reference of this handle, and xmem_forget leaves it to the next client.
 * Returns: 0, or an error, and then nothing has changed:
 *	-EBUSY	another handle that this client has of the buffer is counted in
 *	-ERANGE	@count is 0 or more than 65535
 *	-EPERM	the timeout is longer than 60 seconds, and the buffer is another client's
 *	-EINTR	a signal handler ran (xmem_claims(7))
 *	-EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after xmem_get_mut of memory
 *		of a GPU, for whose contents it waits: as xmem_wait_contents
 *	-EINVAL, -EOVERFLOW, -ENOMEM
 * Threads: any, but no other call may use this handle meanwhile. Since: 0.4.
 */
int xmem_set_ref_count(struct xmem_buffer *buffer, uint32_t count, int64_t timeout_ns);

/*
 * Set further references of a held buffer aside.
 * @more: how many, at least 1.
 * @timeout_ns: as in xmem_set_ref_count; the later end counts for all claims of the buffer.
 * Returns: 0, or an error, and then nothing has changed:
 *	-ERANGE	@more is 0, or there would be more than 65535
 *	-EPERM	the buffer is being written; or the timeout is longer than 60 seconds, and the
 *		buffer is another client's
 *	-EINTR	a signal handler ran (xmem_claims(7))
 *	-EINVAL, -ENOMEM
 * Threads: any. Since: 0.4.
 */
int xmem_offer(struct xmem_buffer *buffer, uint32_t more, int64_t timeout_ns);

/*
 * Drop the handle of a buffer and leave its reference to the next client that gets the buffer. If
 * xmem_set_ref_count has not counted this handle in, the reference becomes a claim, for at least 10
 * seconds.
 * Returns: 0, and the handle is gone; or an error, and the handle is the caller's as before:
 * -EPERM: the buffer is being written: xmem_release gives it up; -ERANGE: there are 65535 claims;
 * -EINTR: as xmem_offer; -ENOMEM.
 * Threads: any, but no other call may use this handle meanwhile. Since: 0.4.
 */
int xmem_forget(struct xmem_buffer *buffer);

/*
 * Set one more reference aside without a handle, for at least 10 seconds.
 * @token: of contents that are held or have claims; or a slot (XMEM_SLOT).
 * Returns: 0, or an error, and then nothing has changed: -ERANGE: there are 65535 already; -ESTALE,
 * -EINVAL, -EAGAIN, -EACCES: as xmem_get; -ENOMEM; -EINTR: as xmem_offer.
 * Threads: any. Since: 0.4.
 */
int xmem_add_ref(struct xmem_pool *pool, uint64_t token);

/*
 * Drop one claim without a handle: for a consumer that does not want the buffer any more.
 * @token: of the contents, or a slot (XMEM_SLOT).
 * Returns: 0, or an error, and then nothing has changed: -ERANGE: there is no claim; -ESTALE,
 * -EINVAL, -EAGAIN, -EOVERFLOW: as xmem_get; -ENOMEM, -EINTR. Threads: any. Since: 0.4.
 */
int xmem_drop_ref(struct xmem_pool *pool, uint64_t token);

/*
 * Count the claims of contents. The call reads the shared pages and asks no other process. Other
 * clients can take and add claims at any time.
 * @token: of contents that exist, held or not; or a slot (XMEM_SLOT).
 * Returns: how many, 0 to 65535, or an error: -ESTALE, -EINVAL, -EBADF, -ECHILD, -ENOTCONN: as
 * xmem_add_ref. Threads: any. Since: 0.5.
 */
int xmem_claims(struct xmem_pool *pool, uint64_t token);

/*
 * End all claims of a buffer before their time: for a supervisor that knows that no client will
 * take them. Clients that hold the buffer keep it.
 * @token: of the contents, or a slot (XMEM_SLOT).
 * Returns: 0, or an error:
 *	-ENOENT	the buffer has no claims
 *	-ESTALE, -EINVAL  as xmem_get
 *	-EPERM	where the kernel is the host: this client neither owns the buffer nor has set any of
 *		its claims aside, and its user neither made the pool nor may administrate
 *	-EINTR	a signal handler ran before the host had answered; the claims may end even so
 *	-ENOMEM
 * Threads: any. Since: 0.4.
 */
int xmem_void_claims(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
