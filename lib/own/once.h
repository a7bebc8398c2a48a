/* SPDX-License-Identifier: MIT */
/* Slots for one content: once.c. */
#ifndef XMEM_OWN_ONCE_H
#define XMEM_OWN_ONCE_H

#include "lib/private.h"

/*
 * Detach the slots for one content that no client uses any more. Returns how many. Under no lock.
 */
u32 xl_attached_sweep_all(struct xmem_pool *pool);

static inline u32 xl_attached_sweep(struct xmem_pool *pool)
{
	return unlikely(xm_load(&pool->owned.attached)) ? xl_attached_sweep_all(pool) : 0;
}

/*
 * Detach unused slots, and wait briefly until the host has served this and earlier detach requests.
 */
void xl_attached_drain(struct xmem_pool *pool);

/*
 * Ask the host for a slot for one content. Idle files are dropped, and slots for one content
 * evicted, to get one. 0 or -errno, not noted. Under pool->slow.
 */
int xl_attach_request(struct xmem_pool *pool, struct xmem_attach_request *request);

/* Detach slots that are FREE and in no list. The requests are posted, so there is no result. */
void xl_once_detach(struct xmem_pool *pool, const u16 *slot, u32 count);

/* Detach the slot of a buffer that is not published. */
void xl_attached_give_up(struct xmem_pool *pool, u32 slot);

#endif
