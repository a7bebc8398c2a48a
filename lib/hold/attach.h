/* SPDX-License-Identifier: MIT */
/* The steps that xmem_attach_fd and xmem_attach_cuda have in common: attach.c. */
#ifndef XMEM_ATTACH_H
#define XMEM_ATTACH_H

#include "lib/own/once.h"

/*
 * Make an attached slot this client's. 0 or -errno, noted; after an error the slot is detached.
 * Under pool->slow.
 */
int xl_attach_take(struct xmem_pool *pool, u16 slot, struct xl_mapping *mapping);

/* Let @buffer be the handle of the slot. Under no lock. */
struct xmem_buffer *xl_attach_hand_out(struct xmem_buffer *buffer, u32 slot, u64 bytes, u32 mode);

#endif
