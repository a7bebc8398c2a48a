/* SPDX-License-Identifier: MIT */
/* Which contents a number names, and whether a hold on them is good: token.c. */
#ifndef XMEM_HOLD_TOKEN_H
#define XMEM_HOLD_TOKEN_H

#include "lib/private.h"

/*
 * xm_get has not returned 0, or xm_receive_hold has returned -EINPROGRESS, for which the caller
 * passes -EAGAIN. Find out whether the hold is good (0), or drop it (an error, not noted). This may
 * ask the host, which takes 1 ms, and repeat that while the owner goes on scanning, at most 64
 * times.
 */
int xl_hold_resolve(struct xmem_pool *pool, u64 token, int err);

/*
 * The token that @number is, or for XMEM_SLOT the token of the contents in that slot. 0: an error,
 * noted. @what: the call.
 */
u64 xl_token_of(struct xmem_pool *pool, u64 number, const char *what);

#endif
