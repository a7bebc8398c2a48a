/* SPDX-License-Identifier: MIT */
/* Joining a pool: options.c, owner.c, join.c; and what it means that a host refused: refused.c. */
#ifndef XMEM_JOIN_H
#define XMEM_JOIN_H

#include "lib/private.h"

/*
 * The caller's name and options, checked, into the request; and the options, with zeros for what
 * a shorter struct lacks, into *ret. 0, or an error, noted.
 */
int xl_join_name(const char *name, struct xmem_join_request *request);
int xl_join_options(const struct xmem_pool_options *options, struct xmem_pool_options *ret,
		    struct xmem_join_request *request);

/* The user that stands before the colon in a name. 0, or an error, noted. */
int xl_join_owner(const char *name, size_t length, struct xmem_join_request *request);

/*
 * Note why the host of @link, which was asked, does not let this client in, or make the pool as
 * it is wanted: -ENOENT, -EACCES, -EPERM, -EOPNOTSUPP. Returns @err.
 */
int xl_join_refused(int err, const struct xmem_link *link, const struct xmem_join_request *request);

/*
 * "pool 'camera'", "pool 'camera' of user 1000", as messages call it; it may lie in @space.
 */
#define XL_POOL_BYTES	(XMEM_NAME_BYTES + 40)
const char *xl_join_names(const struct xmem_join_request *request, char space[XL_POOL_BYTES]);

/*
 * Reach a host and join, until @deadline_ns; ~0: a daemon may be started, too. 0 or an error,
 * noted, such as -ETIMEDOUT; then nothing is left open.
 */
int xl_join(struct xmem_link *link, struct xmem_join_request *request, u64 deadline_ns);

/*
 * Note what it means that joining, or what comes after it, failed with @err. Returns @err.
 */
int xl_join_failed(int err, const struct xmem_link *link, const struct xmem_join_request *request);

#endif
