/* SPDX-License-Identifier: MIT */
/* Slots for one content, of files that were attached: attach.c. */
#ifndef XMEM_ATTACH_H
#define XMEM_ATTACH_H

#include "private.h"

/* Detach those that nobody uses any more. Returns how many. Under no lock. */
u32 xl_attached_sweep_all(struct xmem_pool *pool);

static inline u32 xl_attached_sweep(struct xmem_pool *pool)
{
	return unlikely(xm_load(&pool->owned.attached)) ? xl_attached_sweep_all(pool) : 0;
}

/* The same, and wait for a moment until the host has detached them, and earlier ones. */
void xl_attached_settle(struct xmem_pool *pool);

/*
 * A place in the ring for what will be published, for those that do not take a slot of this
 * client. 0, or -EAGAIN, noted: the ring is full. @what: the call's name.
 */
int xl_promise(struct xmem_pool *pool, const char *what);
void xl_break_promise(struct xmem_pool *pool);

/*
 * What xmem_attach_fd and xmem_attach_cuda share, under pool->slow: attach, for which other slots
 * for one content may go (0 or -errno, not noted); make the slot the caller's (0 or -errno, noted,
 * and then it is detached); and, under no lock, hand it out.
 */
int xl_attach_request(struct xmem_pool *pool, struct xmem_attach_request *request);
int xl_attach_take(struct xmem_pool *pool, u16 slot, struct xl_mapping *mapping);
struct xmem_buffer *xl_attach_hand_out(struct xmem_buffer *buffer, u32 slot, u64 bytes, u32 mode);

/* Detach the slot of a buffer that is not published. */
void xl_attached_give_up(struct xmem_pool *pool, u32 slot);

#endif
