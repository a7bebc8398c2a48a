/* SPDX-License-Identifier: MIT */
/* Buffers: their contents, tokens and properties. A part of xmem.h, whose general rules apply. */
#ifndef XMEM_API_BUFFER_H
#define XMEM_API_BUFFER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;
struct xmem_buffer;

#define XMEM_CPU	(-1)	/* in place of the number of a GPU: the CPU's memory */

/*
 * Get the contents, xmem_size() bytes, which do not change while the buffer is held.
 * Returns: their address, or NULL: EMEDIUMTYPE (they are on a GPU: xmem_cuda_ptr), EIO (the
 * publisher gave a wrong offset, or they cannot be mapped), ENOMEM, EMFILE, ENOTCONN, EINTR.
 * Ownership: valid until the handle of the buffer is dropped. Since: 0.1.
 */
const void *xmem_data(struct xmem_buffer *buffer);

/* Get the number of bytes of contents. Returns: the number; 0 for NULL. Since: 0.1. */
size_t xmem_size(struct xmem_buffer *buffer);

/*
 * Drop the handle of a buffer. A buffer that was acquired and not published is given up.
 * Threads: no other call may use this handle meanwhile. Since: 0.1.
 */
void xmem_release(struct xmem_buffer *buffer);

/* ---- tokens: a token names the contents of a buffer for ever, and is never 0 ---- */

/* Get the token of a buffer. Returns: the token; 0 while it is being written. Since: 0.1. */
uint64_t xmem_token(struct xmem_buffer *buffer);

/* In place of a token: whichever contents the slot has at the time of the call. */
#define XMEM_SLOT(number)	(0xffffffffffff0000ULL | (number))

/*
 * Get the buffer that a token names, and hold it for reading. If the buffer has claims (claims.h),
 * the call takes one.
 * Returns: the buffer, or NULL: ESTALE: those contents are gone, or the token is of another pool;
 * EINVAL: there is no such slot; EAGAIN: its owner is checking if it is used, so retry; EACCES: the
 * owner is another user's client, and has not let this one in (xmem_pool_grant); EOVERFLOW.
 * Ownership: the caller calls xmem_release. Threads: not while one closes @pool. Since: 0.1.
 */
struct xmem_buffer *xmem_get(struct xmem_pool *pool, uint64_t token);

/*
 * Make another handle of a buffer, for reading. Returns: the handle, or NULL: EPERM (the buffer is
 * being written), EOVERFLOW. Ownership: the caller calls xmem_release. Since: 0.1.
 */
struct xmem_buffer *xmem_clone(struct xmem_buffer *buffer);

/* ---- more about a buffer ---- */

/*
 * Get the number of a buffer's slot, the lower 16 bits of its token, even before it has a token.
 * Returns: the number, or -EINVAL, -EBADF, -ECHILD. Since: 0.5.
 */
int xmem_slot(struct xmem_buffer *buffer);

/* Get the number of bytes of the whole buffer. Returns: the number; 0 for NULL. Since: 0.2. */
size_t xmem_capacity(struct xmem_buffer *buffer);

#define XMEM_BUFFER_SHARED	(1u << 0)	/* xmem_get_mut can make it writable */
#define XMEM_BUFFER_CONSTANT	(1u << 1)	/* nobody can change its memory any more */
#define XMEM_BUFFER_HUGE	(1u << 2)	/* it is in huge pages (hugetlb) */
#define XMEM_BUFFER_ATTACHED	(1u << 3)	/* from xmem_attach_fd or xmem_attach_cuda */
#define XMEM_BUFFER_DMABUF	(1u << 4)	/* a dma-buf: see xmem_attach_fd */
#define XMEM_BUFFER_CUDA	(1u << 5)	/* in memory of a GPU: xmem/cuda.h */
#define XMEM_BUFFER_MORTAL	(1u << 6)	/* CUDA: the memory ends with its owner */
#define XMEM_BUFFER_READERS	(1u << 7)	/* CUDA: readers get it: XMEM_MEMORY_READERS */
#define XMEM_BUFFER_CLAIMED	(1u << 31)	/* xmem_get took a claim for this handle */

/* The properties of a buffer. While it is being written, this client is the publisher. */
struct xmem_buffer_info {
	size_t size;			/* in: sizeof(struct xmem_buffer_info); out: valid bytes */
	uint32_t flags;			/* XMEM_BUFFER_*, also bits that later versions define */
	uint32_t slot;			/* xmem_slot */
	uint64_t token;			/* xmem_token: 0 while it is being written */
	uint64_t sequence;		/* per publisher, from 0; 0: unpublished or from xmem_get */
	uint64_t timestamp_ns;		/* CLOCK_MONOTONIC; 0: none, unpublished or from xmem_get */
	uint64_t bytes;			/* xmem_size */
	uint64_t capacity;		/* xmem_capacity */
	uint32_t publisher;		/* client id; XMEM_NOBODY: it has ended long ago */
	char label[16];			/* of the publisher, NUL-terminated; empty: not known */
	uint32_t reserved;
};

/*
 * Get the properties of a buffer that is held or being written. The call does not ask the host, and
 * maps nothing. Returns: 0, -EINVAL, -EBADF, -ECHILD. Since: 0.5.
 */
int xmem_buffer_stat(struct xmem_buffer *buffer, struct xmem_buffer_info *ret_info);

/*
 * Get the address of the metadata. The publisher can write to it at any time; xmem_metadata_view
 * (tensor.h) gets a copy that does not change. Returns: the address, or NULL.
 * Ownership: valid until the handle is dropped; after xmem_get_mut only while the buffer is being
 * written. Since: 0.2.
 */
const struct xmem_metadata *xmem_metadata_ptr(struct xmem_buffer *buffer);

/*
 * Get the metadata of a buffer that is being written, with the values of an earlier publication.
 * Returns: the metadata, or NULL: EPERM (the buffer is held for reading).
 * Ownership: valid until the buffer is published or released. Since: 0.2.
 */
struct xmem_metadata *xmem_metadata_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
