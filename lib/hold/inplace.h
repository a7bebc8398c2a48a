/* SPDX-License-Identifier: MIT */
/* Buffers that their only holder writes in place: inplace.c. */
#ifndef XMEM_INPLACE_H
#define XMEM_INPLACE_H

#include "lib/private.h"

/*
 * The state of such a buffer until it is published. Until then another client owns its slot and its
 * metadata.
 */
struct xl_upgrade {
	struct xmem_metadata metadata;
	u64 generation;
	bool given_up;			/* a request to publish it was given up, and may still be
					 * served */
};

/*
 * Publish the buffer in this client's ring, for @addressee alone if that is not 0. Then the handle
 * holds it for reading. 0 or -errno, noted.
 */
int xl_upgrade_publish(struct xmem_buffer *buffer, struct xm_publication *what, u64 addressee);

/*
 * Wait until the contents are complete, and begin writing anew if a request that was given up has
 * published them. To be called before a token is made of upgrade->generation, which this may
 * change. 0 or -errno, noted.
 */
int xl_upgrade_wait_until_complete(struct xmem_buffer *buffer);

/* Make the contents LIVE without an entry in a ring. 0 or -errno, noted; the mode stays. */
int xl_upgrade_make_live(struct xmem_buffer *buffer);

/* Give the buffer up without publishing it: the contents are gone. Puts the hold. */
void xl_upgrade_give_up(struct xmem_buffer *buffer);

/*
 * Let this client's subscribers hold @slot, which may be another user's. To be called before this
 * client forwards a slot that it holds, or writes it in place in order to forward it. 0 or -errno,
 * noted.
 */
int xl_register_stage(struct xmem_pool *pool, u32 slot);

/*
 * Forward contents for which an entry of the ring is reserved (forward.c). @addressee: as in
 * xl_upgrade_publish.
 */
void xl_forward_reserved(struct xmem_pool *pool, const struct xm_publication *what,
			 u64 addressee);

#endif
