/* SPDX-License-Identifier: MIT */
/* Why no buffer is free, in words: holders.c. */
#ifndef XMEM_OWN_HOLDERS_H
#define XMEM_OWN_HOLDERS_H

#include "lib/private.h"

/*
 * Note the error that no buffer of @bytes is free, with the clients that have them. @error: EAGAIN
 * or ETIMEDOUT. The message of EAGAIN is made when it is read, and names the clients that have the
 * buffers then. Returns -@error. Under owned.lock.
 */
int xl_fail_no_buffer(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
		      int error);
/* Note the error that a forward finds no room in the ring. Returns -@error. */
int xl_fail_no_room(struct xmem_pool *pool, int error);

#endif
