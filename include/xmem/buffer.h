/* SPDX-License-Identifier: MIT */
/*
 * Buffers: their contents, their tokens, and what is known of them. A part of xmem.h, whose rules
 * for errors, handles, threads and structs hold here too.
 */
#ifndef XMEM_API_BUFFER_H
#define XMEM_API_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;

/*
 * Get the contents, xmem_size() bytes, which do not change while the buffer is held.
 * Returns: their address, or NULL: EMEDIUMTYPE (they are on a GPU: xmem_cuda_ptr or
 *	xmem_copy_to_cpu), EIO (the publisher gave a wrong place, or they cannot be mapped),
 *	ENOMEM, EMFILE, ENOTCONN (the host has gone, and they are not mapped yet), EINTR.
 * Ownership: valid until the handle of the buffer is dropped. Threads: any. Since: 0.1.
 */
const void *xmem_data(struct xmem_buffer *buffer);

/*
 * Get the number of bytes of contents; while the buffer is written, as many as were
 * acquired, or copied into it by xmem_copy.
 * Returns: the number; 0 for NULL. Threads: any. Since: 0.1.
 */
size_t xmem_size(struct xmem_buffer *buffer);

/*
 * Drop the handle of a buffer. A buffer that was acquired and not published is given up.
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.1.
 */
void xmem_release(struct xmem_buffer *buffer);

/* ---- tokens ---- */

/*
 * Get the token of a buffer, which names its contents for ever.
 * Returns: the token; 0 for NULL and while the buffer is written. Threads: any. Since: 0.1.
 */
uint64_t xmem_token(struct xmem_buffer *buffer);

/*
 * Get the buffer that a token names, and hold it, for reading.
 * @token: from xmem_publish or xmem_token of any client of this pool. No token is below 65536: such
 *	a number, here and wherever a token is taken, is a slot's (xmem_slot) and stands for what is
 *	in that slot now. These are the same contents on both sides only as long as somebody holds
 *	them or they have claims.
 * If references are set aside (claims.h), it takes one.
 * Returns: the buffer, or NULL:
 *	ESTALE	those contents are gone, or the token belongs to another pool; or the slot has
 *		none: its buffer is free, or it is being written
 *	EINVAL	there is no such slot
 *	EAGAIN	the owner keeps scanning the buffer; retry
 *	EACCES	the buffer is another user's, neither the pool nor its owner is of this user, and
 *		this client has not subscribed to a client that publishes or forwards it, nor has
 *		its owner let it in (xmem_pool_grant): its hold would not count
 *	EOVERFLOW  this client has 2^28 handles of the buffer
 * Ownership: the caller calls xmem_release. Threads: any, but not while another one closes @pool
 * (xmem_pool_close). Since: 0.1.
 */
struct xmem_buffer *xmem_get(struct xmem_pool *pool, uint64_t token);

/*
 * Make another handle of a buffer, for reading.
 * Returns: the handle, or NULL: EPERM (the buffer is being written), EOVERFLOW (this client
 * has 2^28 handles of the buffer).
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_clone(struct xmem_buffer *buffer);

/* ---- more about a buffer ---- */

/*
 * Get the number of the slot that a buffer has in its pool, also while it is being written. The
 * lower 16 bits of a token are this number.
 * Returns: the number, from 0 to slots - 1 of struct xmem_pool_info, or -EINVAL (NULL), -EBADF,
 * -ECHILD. Threads: any. Since: 0.5.
 */
int xmem_slot(struct xmem_buffer *buffer);

/*
 * Get the number of bytes of the whole buffer, of which the contents are a part. After xmem_get_mut
 * it is how many there are from the contents on, for those can be written.
 * Returns: the number; 0 for NULL. Threads: any. Since: 0.2.
 */
size_t xmem_capacity(struct xmem_buffer *buffer);

/*
 * Get the number of the publication, which its publisher counts from 0.
 * Returns: the number; 0 if the buffer was neither received nor kept when it was published.
 * Threads: any. Since: 0.1.
 */
uint64_t xmem_sequence(struct xmem_buffer *buffer);

/*
 * Get the client id of the publisher. Publications of different publishers have sequence numbers
 * of their own.
 * Contents that were written in place (payload.h), and were got by their token and not received,
 * count as the publication of the buffer's owner.
 * Returns: the id of the client that published these contents, or has the buffer to write into;
 * -ENOENT: the buffer was not received, and its publisher has ended long ago; -EINVAL, -ECHILD.
 * Threads: any. Since: 0.3.
 */
int xmem_publisher(struct xmem_buffer *buffer);

/*
 * Get the label of the publisher: the name that the program that published these contents gives
 * itself.
 * @ret_label: at most 15 characters and a NUL.
 * Returns: 0; -ENOENT: the publisher has ended and its label is not known any more. Of what was
 * received it is known for as long as the subscription follows no later client with the same id;
 * -EINVAL, -ECHILD, -EBADF. Threads: any. Since: 0.4.
 */
int xmem_publisher_label(struct xmem_buffer *buffer, char ret_label[16]);

/*
 * Get the time that the publisher gave.
 * Returns: nanoseconds of CLOCK_MONOTONIC; 0 if there is none. Threads: any. Since: 0.1.
 */
uint64_t xmem_timestamp_ns(struct xmem_buffer *buffer);

/*
 * Get where the metadata lies, to read a few fields of it without a copy. The publisher can write
 * anything into it, at any time. If you do not trust it, call xmem_metadata_view (tensor.h).
 * Returns: the address, or NULL. Ownership: valid until the handle is dropped; after xmem_get_mut
 * until the buffer is published or its references are counted.
 * Threads: any. Since: 0.2.
 */
const struct xmem_metadata *xmem_metadata_ptr(struct xmem_buffer *buffer);

/*
 * Get the metadata of a buffer that is being written. It still has the values of an earlier
 * publication.
 * Returns: the metadata, or NULL: EPERM (the buffer is not from xmem_acquire).
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.2.
 */
struct xmem_metadata *xmem_metadata_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
