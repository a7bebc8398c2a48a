/* SPDX-License-Identifier: MIT */
/* Reaching a host: reach.c. */
#ifndef XMEM_REACH_H
#define XMEM_REACH_H

#include "lib/private.h"

/* Is XMEM_BACKEND something that can be meant? 0, or -EINVAL, noted. */
int xl_check_environment(void);

/* The path of the kernel's device: XMEM_DEVICE if that is set and not empty. */
const char *xl_device(void);

#define XL_MAX_TRIES	5	/* a daemon about to leave for lack of work may drop a newcomer */

/*
 * A connection to the host that is to be used, not joined. @start: start a daemon if none
 * runs. 0 or -errno; then nothing is left open, and link->backend is the one that failed.
 */
int xl_reach(struct xmem_link *link, bool start);

/*
 * What an error of xl_reach means, in words, which may lie in @space; NULL: it has no
 * meaning of its own.
 */
#define XL_HINT_BYTES	340
const char *xl_reach_hint(int err, const struct xmem_link *link, char space[XL_HINT_BYTES]);

/* Which hosts were tried when none runs, and none was to be started; it may lie in @space. */
const char *xl_nothing_runs(const struct xmem_link *link, char space[XL_HINT_BYTES]);

#endif
