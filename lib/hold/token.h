/* SPDX-License-Identifier: MIT */
/* Which contents a number names, and whether a hold on them is good: token.c. */
#ifndef XMEM_HOLD_TOKEN_H
#define XMEM_HOLD_TOKEN_H

#include "lib/private.h"

/*
 * xm_get has not returned 0, or xm_receive_hold has returned -EINPROGRESS, which is -EAGAIN here:
 * find out whether the hold is good (0), or drop it (an error, not noted). It may ask the host,
 * which takes 1 ms, and again as long as the owner goes on scanning, at most 64 times.
 */
int xl_hold_resolved(struct xmem_pool *pool, u64 token, int err);

/*
 * The token that @number is, or for XMEM_SLOT that of the contents in this slot. 0: an error,
 * noted. @what: the call.
 */
u64 xl_token_of(struct xmem_pool *pool, u64 number, const char *what);

#endif
