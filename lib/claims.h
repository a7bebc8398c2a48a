/* SPDX-License-Identifier: MIT */
/* What a get and the claims share: buffer.c, claims.c. */
#ifndef XL_CLAIMS_H
#define XL_CLAIMS_H

#include "private.h"

/* Take one claim of what this client holds. 0; -ERANGE: there is none; or -errno. Not noted. */
int xl_claim_take(struct xmem_pool *pool, u64 token);

/* Drop the reference of a counted handle (XL_CLAIMS), before the handle, unless all are taken. */
void xl_claim_drop(struct xmem_buffer *buffer);

/* The thread's hold is taken and not certain: 0, or an error and the hold is dropped. */
int xl_hold_resolved(struct xmem_pool *pool, u64 token, int err);

/* The same, and make the handle. @must: only if there is a claim (ERANGE). */
struct xmem_buffer *xl_get_slow(struct xmem_pool *pool, u64 token, int err, bool must);

/* Note why a get by slot failed. Returns NULL. */
struct xmem_buffer *xl_get_failed(struct xmem_pool *pool, int err);

#endif
