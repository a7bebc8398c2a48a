/* SPDX-License-Identifier: MIT */
/* Why no buffer is free, in words: holders.c. */
#ifndef XMEM_OWN_HOLDERS_H
#define XMEM_OWN_HOLDERS_H

#include "lib/private.h"

/*
 * Note that no buffer of @bytes is free, and who has them. @error: EAGAIN or ETIMEDOUT;
 * where looking would take long, EAGAIN names nobody who holds. Returns -@error. Under owned.lock.
 */
int xl_fail_no_buffer(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
		      int error);
/* Why a forward finds no room in the ring. */
int xl_fail_no_room(struct xmem_pool *pool, int error);

#endif
