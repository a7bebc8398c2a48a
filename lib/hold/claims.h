/* SPDX-License-Identifier: MIT */
/* What a get and the claims share: buffer.c, claims.c. */
#ifndef XL_CLAIMS_H
#define XL_CLAIMS_H

#include "lib/private.h"

/* Take one claim of what this client holds. 0; -ERANGE: there is none; or -errno. Not noted. */
int xl_claim_take(struct xmem_pool *pool, u64 token);

/* Drop the reference of a counted handle (XL_CLAIMS), before the handle, unless all are taken. */
void xl_claim_drop(struct xmem_buffer *buffer);

/* Has the get that made this handle taken a claim, for which it stands? */
bool xl_took_claim(const struct xmem_buffer *buffer);

#endif
