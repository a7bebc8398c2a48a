/* SPDX-License-Identifier: MIT */
/* Naming those that hold all buffers: holders.c. */
#ifndef XMEM_HOLDERS_H
#define XMEM_HOLDERS_H

#include "private.h"

/*
 * Note that no buffer of @bytes is free, and who has them. @error: EAGAIN or ETIMEDOUT;
 * where looking would take long, EAGAIN names nobody who holds. Returns -@error. Under owned.lock.
 */
int xl_fail_no_buffer(struct xmem_pool *pool, const struct xl_chain *chain, u64 bytes,
		      int error);
/*
 * The GPU @ordinal, whose number in the pool is @device (0: it has none), has too little memory
 * left for @bytes: say what the pool has there, and who holds it. -ENOMEM, noted.
 */
int xl_fail_gpu_full(struct xmem_pool *pool, u32 device, int ordinal, u64 bytes);
/* The pool has too few slots for @count new buffers: name the clients that have them. -ENOSPC. */
int xl_fail_too_few_slots(struct xmem_pool *pool, u32 count);
/*
 * This writer has no slots, and others have all: say who. -ENOSPC, noted. Under no lock, or any.
 */
int xl_fail_no_slots(struct xmem_pool *pool);
/* Why a forward finds no room in the ring. */
int xl_fail_no_room(struct xmem_pool *pool, int error);

#endif
