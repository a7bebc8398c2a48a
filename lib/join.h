/* SPDX-License-Identifier: MIT */
/* Joining a pool: join.c. */
#ifndef XMEM_JOIN_H
#define XMEM_JOIN_H

#include "private.h"

/* Is XMEM_BACKEND something that can be meant? 0, or -EINVAL, noted. */
int xl_check_environment(void);

/* The caller's options, checked, into the request. 0, or -EINVAL, noted. */
int xl_join_options(const struct xmem_pool_options *options, struct xmem_join_request *request);

/* Reach a host and join. 0 or -errno; then nothing is left open. */
int xl_join(struct xmem_link *link, struct xmem_join_request *request);

/* What a refusal means, in words. */
const char *xl_join_hint(int err);

#endif
