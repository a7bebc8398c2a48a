/* SPDX-License-Identifier: MIT */
/* Choosing a host and connecting to it: reach.c. */
#ifndef XMEM_REACH_H
#define XMEM_REACH_H

#include "lib/private.h"

/* Has XMEM_BACKEND a known value? 0, or -EINVAL, noted. */
int xl_check_environment(void);

/* The path of the kernel's device: XMEM_DEVICE if that is set and not empty. */
const char *xl_device(void);

#define XL_MAX_TRIES	5	/* a daemon that is about to end may drop a new connection */

/*
 * Connect to the host that is to be used, without joining a pool. @start: start a daemon if none
 * runs. 0 or -errno; then nothing is left open, and link->backend is the one that failed.
 */
int xl_reach(struct xmem_link *link, bool start);

/*
 * A message for an error of xl_reach; it may lie in @space. NULL: the error needs no explanation of
 * its own.
 */
#define XL_HINT_BYTES	340
const char *xl_reach_hint(int err, const struct xmem_link *link, char space[XL_HINT_BYTES]);

/* A message that no host runs, when none was to be started; it may lie in @space. */
const char *xl_nothing_runs(const struct xmem_link *link, char space[XL_HINT_BYTES]);

#endif
