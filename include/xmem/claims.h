/* SPDX-License-Identifier: MIT */
/*
 * Claims: passing a buffer to a known number of clients. A part of xmem.h.
 *
 * A *claim* is a reference that is set aside for a client that is not known yet. The sender calls
 * xmem_set_ref_count and xmem_forget, and sends the token in its own way. Each consumer calls
 * xmem_get, which takes a claim if there is one, and later xmem_release. The last release frees the
 * buffer, even if the sender has ended. xmem_receive and xmem_clone take no claims. All claims of a
 * buffer end together (xmem_claims(7)). All clients can take claims, so they must trust each other.
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
 * Set how many references a buffer has. One is this handle's, which xmem_release drops, and which
 * xmem_forget leaves to the next client. The others become claims, for clients that will take them.
 * @buffer: held for reading; or being written and complete, and then held from this call on.
 * @count: this handle's reference and all claims, earlier ones too, together: 1 to 65535.
 * @timeout_ns: the least time that all claims of the buffer last; they end at most a second
 *	later. 0: 10 seconds; XMEM_FOREVER: as long as the owner lives. Only the owner may set more
 *	than 60 seconds. A further call can only extend the time.
 * Returns: 0, or -ERANGE: a wrong count; -EPERM: only the owner may set this timeout;
 * -EINVAL, -EOVERFLOW, -ENOMEM; -EINTR; -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN as
 * xmem_wait_contents, after xmem_get_mut of memory of a GPU. Threads: no other call may use this
 * handle meanwhile. Since: 0.4.
 */
int xmem_set_ref_count(struct xmem_buffer *buffer, uint32_t count, int64_t timeout_ns);

/*
 * Make @more claims of a held buffer, at least 1, beside those that it has. @timeout_ns is as in
 * xmem_set_ref_count. Returns: 0, or -ERANGE: @more is 0, or there would be more than 65535;
 * -EPERM: the buffer is being written, or is another client's and the timeout is too long; -EINTR,
 * -EINVAL, -ENOMEM. Since: 0.4.
 */
int xmem_offer(struct xmem_buffer *buffer, uint32_t more, int64_t timeout_ns);

/*
 * Drop the handle of a buffer and leave its reference to the next client that gets the buffer. The
 * reference becomes a claim, which lasts for the timeout of xmem_set_ref_count, or without that for
 * 10 seconds. Send the token after this call (xmem_claims(7)).
 * Returns: 0, and the handle is gone; or -EPERM: the buffer is being written; -ERANGE: there are
 * 65535 claims; -EINTR, -ENOMEM. Threads: no other call may use this handle meanwhile. Since: 0.4.
 */
int xmem_forget(struct xmem_buffer *buffer);

/*
 * Make one more claim of contents that are held or have claims. It lasts at least 10 seconds.
 * Returns: 0, or -ERANGE: there are 65535; -ESTALE, -EINVAL, -EAGAIN, -EACCES: as xmem_get;
 * -ENOMEM, -EINTR. Since: 0.4.
 */
int xmem_add_ref(struct xmem_pool *pool, uint64_t token);

/*
 * Drop one claim, for a consumer that does not want the buffer. Returns: 0, or -ERANGE: there is no
 * claim; -ESTALE, -EINVAL, -EAGAIN, -EOVERFLOW: as xmem_get; -ENOMEM, -EINTR. Since: 0.4.
 */
int xmem_drop_ref(struct xmem_pool *pool, uint64_t token);

/*
 * Count the claims of contents. Other clients can change the number at any time. Returns: how many,
 * 0 to 65535, or -ESTALE, -EINVAL, -EBADF, -ECHILD, -ENOTCONN: as xmem_add_ref. Since: 0.5.
 */
int xmem_claims(struct xmem_pool *pool, uint64_t token);

/*
 * End all claims of a buffer before their time. Clients that hold the buffer keep it. Returns: 0,
 * or -ENOENT: the buffer has no claims; -EPERM: the claims are other clients'; -ESTALE, -EINVAL: as
 * xmem_get; -EINTR: the claims may end even so; -ENOMEM. Since: 0.4.
 */
int xmem_void_claims(struct xmem_pool *pool, uint64_t token);

#ifdef __cplusplus
}
#endif
#endif
