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

/* Has the get that made this handle taken a claim, for which the handle stands? */
bool xl_took_claim(const struct xmem_buffer *buffer);

#endif
