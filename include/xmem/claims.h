/* SPDX-License-Identifier: MIT */
/*
 * Claims: handing buffers over by count. A part of xmem.h, whose rules for errors, handles,
 * threads and structs hold here too.
 *
 * A program that does not publish to subscribers, but passes tokens on in a way of its own, says
 * how many consumers there will be, and forgets the buffer:
 *
 *	struct xmem_buffer *buffer = xmem_acquire(pool, bytes, XMEM_FOREVER);
 *	uint64_t token;
 *
 *	fill(xmem_data_mut(buffer));
 *	xmem_set_ref_count(buffer, 2, 0);
 *	token = xmem_token(buffer);
 *	xmem_forget(buffer);
 *	send_to_both(token);
 *
 * Each consumer calls xmem_get with the token, looks, and calls xmem_release. The buffer is free
 * with the second release, also if this program has ended long before. It may send the token before
 * it forgets the buffer, too; but the reference of its handle is its own until then, and goes with
 * it if it is killed in between.
 *
 * A *claim* is a reference that is set aside for a client yet unknown. xmem_get takes one if there
 * are any, and its hold then stands for it: so when a consumer ends, its reference goes with it.
 * xmem_receive and xmem_clone take none. The claims of a buffer end, all at once, when their time
 * has passed; and when all clients that set some aside have ended, and at most the buffer's owner
 * is left to take them. When the owner has ended, those that are left last for 60 seconds more at
 * most. Then the buffer is free as soon as nobody holds it.
 *
 * A signal handler may end a call that sets claims aside (EINTR). Nothing has changed then, unless
 * the daemon has been asked and does not answer within a tenth of a second, as when it is stopped.
 * Then the claims that it has yet to set aside are withdrawn. A claim that somebody takes just
 * before the withdrawal stays taken. Older claims keep the new time at which they end. The kernel
 * is never late.
 *
 * Claims have no names. Every client of the pool may take those that are there, and set others
 * aside, as it may get every buffer: hand over by count among programs that mean well.
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
 * Say how many references a buffer is to have: that of this handle, and claims for the others.
 * @buffer: from xmem_acquire, xmem_attach_fd or xmem_get_mut, whose contents are complete now: as
 *	many bytes as were acquired, which nobody changes any more. The handle stays, for reading.
 *	It is published to nobody. Or one that is held for reading.
 * @count: references in all, 1 to 65535. Claims that there were are counted in. One of them is this
 *	handle's own: xmem_release drops it, and so do xmem_publish if the handle goes, and the
 *	end of this process; xmem_forget leaves it to the next client that gets the buffer. If
 *	others take as many as there are, it is among them, and then the handle goes without one, as
 *	it does when the claims have ended. To drop it asks the host, for 1 second at most (xmem.h,
 *	"Time").
 * @timeout_ns: how long claims last; 0: 10 seconds; XMEM_FOREVER: without end, as long as the
 *	buffer's owner lives, which alone may ask for that, and so for more than 60 seconds. If
 *	there were claims, the time that ends later counts.
 * Returns: 0, or an error, and then nothing has changed:
 *	-EBUSY	another handle that this client has of the buffer is counted in
 *	-ERANGE	@count is 0, or more than 65535
 *	-EINVAL	the timeout is negative
 *	-EPERM	the timeout is longer than 60 seconds, and the buffer is another client's
 *	-EOVERFLOW  this client has 2^28 handles of the buffer
 *	-ENOMEM
 *	-EINTR	a signal handler ran (see above)
 *	-EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after xmem_get_mut of memory
 *		of a GPU, for whose contents it waits: as xmem_wait_contents (stream.h)
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.4.
 */
int xmem_set_ref_count(struct xmem_buffer *buffer, uint32_t count, int64_t timeout_ns);

/*
 * Set further references of a held buffer aside.
 * @more: how many, at least 1.
 * @timeout_ns: as in xmem_set_ref_count: 0: 10 seconds; more than 60 seconds, and XMEM_FOREVER, are
 *	for the writer that owns the buffer. If there were claims, the time that ends later counts,
 *	for all of them.
 * Returns: 0, or an error, and then nothing has changed:
 *	-ERANGE	@more is 0, or there would be more than 65535
 *	-EINVAL	the timeout is negative
 *	-EPERM	the buffer is still being written; or the timeout is longer than 60 seconds, and
 *		the buffer is another client's
 *	-ENOMEM
 *	-EINTR	a signal handler ran (see above)
 * Threads: any. Since: 0.4.
 */
int xmem_offer(struct xmem_buffer *buffer, uint32_t more, int64_t timeout_ns);

/*
 * Drop the handle of a buffer without dropping its reference, which whoever gets the buffer next
 * takes over. If xmem_set_ref_count has not counted this handle in, it becomes a claim, for
 * 10 seconds at least.
 * Returns: 0, and the handle is gone; or an error, and the handle is the caller's as before:
 *	-EPERM	the buffer is still being written: xmem_release gives it up
 *	-ERANGE	there are 65535 claims
 *	-ENOMEM
 *	-EINTR	as xmem_offer
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.4.
 */
int xmem_forget(struct xmem_buffer *buffer);

/*
 * Set one more reference aside, without a handle, for 10 seconds at least.
 * @token: of contents that somebody holds, or that have claims; or a slot (xmem_get).
 * Returns: 0, or an error, and then nothing has changed:
 *	-ERANGE	there are 65535 already
 *	-ESTALE, -EINVAL, -EAGAIN, -EACCES  as xmem_get
 *	-ENOMEM
 *	-EINTR	as xmem_offer
 * Threads: any. Since: 0.4.
 */
int xmem_add_ref(struct xmem_pool *pool, uint64_t token);

/*
 * Drop one reference that is set aside, without a handle: for a consumer that does not want the
 * buffer any more.
 * @token: or a slot.
 * Returns: 0, or an error, and then nothing has changed:
 *	-ERANGE	no reference is set aside
 *	-ESTALE, -EINVAL, -EAGAIN, -EOVERFLOW  as xmem_get
 *	-ENOMEM, -EINTR
 * Threads: any. Since: 0.4.
 */
int xmem_drop_ref(struct xmem_pool *pool, uint64_t token);

/*
 * How many references are set aside for contents? The pages say it, and nobody is asked. While it
 * is 0, xmem_get takes none. Others may take and add some at any time. Those of what the caller
 * holds go when somebody takes them, and all at once when they end (see above), or are voided.
 * @token: of contents that are there, held or not; or a slot.
 * Returns: how many, 0 to 65535, or an error:
 *	-ESTALE, -EINVAL, -EBADF, -ECHILD, -ENOTCONN  as xmem_add_ref
 * Threads: any. Since: 0.5.
 */
int xmem_claims(struct xmem_pool *pool, uint64_t token);

/*
 * Void all claims of a buffer, before their time: for a supervisor that knows that nobody comes
 * for them any more. Those who hold the buffer keep it.
 * @token: or a slot.
 * Returns: 0, or an error:
 *	-ENOENT	it has no claims
 *	-ESTALE, -EINVAL  as xmem_get
 *	-EPERM	where the kernel is the host: this client neither owns the buffer nor has set any
 *		of its claims aside, and its user has not made the pool and may not administrate
 *	-EINTR	a signal handler ran before the host had answered; it may void them even so
 *	-ENOMEM
 * Threads: any. Since: 0.4.
 */
int xmem_void_claims(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
