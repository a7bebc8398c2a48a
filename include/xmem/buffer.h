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

#define XMEM_CPU	(-1)	/* where the number of a GPU stands: the CPU's memory */

/*
 * Get the contents, xmem_size() bytes, which do not change while the buffer is held.
 * Returns: their address, or NULL: EMEDIUMTYPE (they are on a GPU: xmem_cuda_ptr or
 *	xmem_copy_to_host), EIO (the publisher gave a wrong place, or they cannot be mapped),
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
 * In place of a token: the contents that are in a slot now. Two clients mean these
 * contents by it only as long as somebody holds them, or they have claims.
 */
#define XMEM_SLOT(number)	(0xffffffffffff0000ULL | (number))

/*
 * Get the buffer that a token names, and hold it, for reading.
 * @token: from xmem_publish or xmem_token of any client of this pool, or XMEM_SLOT(xmem_slot(...)).
 *	No token is 0.
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

#define XMEM_BUFFER_SHARED	(1u << 0)	/* xmem_get_mut can write it */
#define XMEM_BUFFER_CONSTANT	(1u << 1)	/* nobody can write this file any more */
#define XMEM_BUFFER_HUGE	(1u << 2)	/* it is in huge pages (hugetlb) */
#define XMEM_BUFFER_ATTACHED	(1u << 3)	/* from xmem_attach_fd or xmem_attach_cuda */
#define XMEM_BUFFER_DMABUF	(1u << 4)	/* a dma-buf: see xmem_attach_fd */
#define XMEM_BUFFER_CUDA	(1u << 5)	/* in memory of a GPU: xmem/cuda.h */
#define XMEM_BUFFER_MORTAL	(1u << 6)	/* CUDA: the memory ends with its owner */
#define XMEM_BUFFER_READERS	(1u << 7)	/* CUDA: readers get it: XMEM_MEMORY_READERS */
#define XMEM_BUFFER_CLAIMED	(1u << 31)	/* the xmem_get that made this handle has taken a
						 * reference that was set aside (claims.h) */

/* A handle of a buffer. While the buffer is written, this client is the publisher. */
struct xmem_buffer_info {
	size_t size;			/* in: sizeof(struct xmem_buffer_info); out: valid bytes */
	uint32_t flags;			/* XMEM_BUFFER_*, also bits that later versions define */
	uint32_t slot;			/* xmem_slot */
	uint64_t token;			/* xmem_token: 0 while the buffer is written */
	uint64_t sequence;		/* number of the publication, which its publisher counts
					 * from 0; 0 while the buffer is written, and if it was
					 * got by its token */
	uint64_t timestamp_ns;		/* that the publisher gave, of CLOCK_MONOTONIC; 0: none, or
					 * the buffer is written or was got by its token */
	uint64_t bytes;			/* xmem_size */
	uint64_t capacity;		/* xmem_capacity */
	uint32_t publisher;		/* client id; XMEM_NOBODY: the buffer was got by its token,
					 * and its publisher has ended long ago */
	char label[16];			/* of the publisher, NUL-terminated; empty: it has none, or
					 * it has ended and its label is forgotten */
	uint32_t reserved;
};

/*
 * Get what is known of a buffer: one that is being written, also in place or of attached memory, or
 * one that is held, on the CPU or a GPU. This asks nobody and maps nothing.
 * @ret_info: its size field is set. Unchanged after an error.
 * Publications of different publishers have sequence numbers of their own. The publisher of a
 * buffer that was received is the client whose ring it came from. If the buffer was got by its
 * token, it is the owner, also of contents that another client wrote in place (payload.h).
 * The label of a publisher that has ended is known for what was received, until a subscription of
 * this pool handle follows a later client with the same id.
 * Returns: 0, -EINVAL (also: the size field is smaller than itself), -EBADF, -ECHILD.
 * Threads: any. Since: 0.5.
 */
int xmem_buffer_stat(struct xmem_buffer *buffer, struct xmem_buffer_info *ret_info);

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
 * Returns: the metadata, or NULL: EPERM (the buffer is held for reading).
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.2.
 */
struct xmem_metadata *xmem_metadata_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
