/* SPDX-License-Identifier: MIT */
/* Buffers that their only holder writes in place: inplace.c. */
#ifndef XMEM_INPLACE_H
#define XMEM_INPLACE_H

#include "lib/private.h"

/* What such a buffer will be. Its slot and its metadata are others' until it is published. */
struct xl_upgrade {
	struct xmem_metadata metadata;
	u64 generation;
	bool given_up;			/* a request to publish it, which may be served yet */
};

/*
 * Publish it in this client's ring, for @addressee alone if that is not 0; then it is held for
 * reading. 0 or -errno, noted.
 */
int xl_upgrade_publish(struct xmem_buffer *buffer, struct xm_publication *what, u64 addressee);

/*
 * Before a token is made of upgrade->generation: it may be another one now. Contents that a stream
 * has yet to write there are waited for. 0 or -errno, noted.
 */
int xl_upgrade_settle(struct xmem_buffer *buffer);

/* The contents are complete, but published to nobody. 0 or -errno, noted; the mode stays. */
int xl_upgrade_live(struct xmem_buffer *buffer);

/* It is not published: the contents are gone. Puts the hold. */
void xl_upgrade_give_up(struct xmem_buffer *buffer);

/*
 * This client holds @slot and is about to forward it, or to write it in place and then to do so:
 * its subscribers may be other users', and have to be let hold it first. 0 or -errno, noted.
 */
int xl_stage(struct xmem_pool *pool, u32 slot);

/* Forward what a place in the ring is promised for (forward.c). @addressee: as above. */
void xl_forward_promised(struct xmem_pool *pool, const struct xm_publication *what,
			 u64 addressee);

#endif
