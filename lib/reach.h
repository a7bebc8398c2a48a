/* SPDX-License-Identifier: MIT */
/* Reaching a host: reach.c. */
#ifndef XMEM_REACH_H
#define XMEM_REACH_H

#include "private.h"

/* Is XMEM_BACKEND something that can be meant? 0, or -EINVAL, noted. */
int xl_check_environment(void);

/*
 * A connection to the host that is to be used, not joined. @start: start a daemon if none
 * runs. 0 or -errno; then nothing is left open, and link->backend is the one that failed.
 */
int xl_reach(struct xmem_link *link, bool start);

/*
 * What an error of xl_reach means, in words, which may lie in @space; NULL: it has no
 * meaning of its own.
 */
#define XL_HINT_BYTES	200
const char *xl_reach_hint(int err, const struct xmem_link *link, char space[XL_HINT_BYTES]);

#endif
