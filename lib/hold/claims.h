/* SPDX-License-Identifier: MIT */
/* The functions that a get and the claims have in common: buffer.c, claims.c. */
#ifndef XL_CLAIMS_H
#define XL_CLAIMS_H

#include "lib/private.h"

/*
 * Take one claim of contents that this client holds. 0; -ERANGE: there is none; or -errno. Not
 * noted.
 */
int xl_claim_take(struct xmem_pool *pool, u64 token);

/*
 * Drop the reference of a counted handle (XL_CLAIMS), unless all references are taken. To be called
 * before the handle is dropped.
 */
void xl_claim_drop(struct xmem_buffer *buffer);

/* Has the get that made this handle taken a claim, for which the handle stands? */
bool xl_took_claim(const struct xmem_buffer *buffer);

#endif
