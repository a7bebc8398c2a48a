/* SPDX-License-Identifier: MIT */
/* Joining a pool: options.c, owner.c, join.c; and messages about access: refused.c. */
#ifndef XMEM_JOIN_H
#define XMEM_JOIN_H

#include "lib/private.h"

/*
 * Check the caller's name and options, and put them into the request. *ret gets the options, with
 * zeros for fields that a shorter struct lacks. 0, or an error, noted.
 */
int xl_join_name(const char *name, struct xmem_join_request *request);
int xl_join_options(const struct xmem_pool_options *options, struct xmem_pool_options *ret,
		    struct xmem_join_request *request);

/* Put the user before the colon of a name into the request. 0, or an error, noted. */
int xl_join_owner(const char *name, size_t length, struct xmem_join_request *request);

/*
 * Fail because the host of @link does not let this client in, or does not make the pool as it is
 * wanted: -ENOENT, -EACCES, -EPERM, -EOPNOTSUPP. Returns @err.
 */
int xl_join_refused(int err, const struct xmem_link *link, const struct xmem_join_request *request);

/* The pool in messages: "pool 'camera'", or "pool 'camera' of user 1000". It may lie in @space. */
#define XL_POOL_BYTES	(XMEM_NAME_BYTES + 40)
const char *xl_join_names(const struct xmem_join_request *request, char space[XL_POOL_BYTES]);

/*
 * Reach a host and join, until @deadline_ns. With ~0 there is no deadline, and a daemon may be
 * started. 0 or an error, noted, such as -ETIMEDOUT; then nothing is left open.
 */
int xl_join(struct xmem_link *link, struct xmem_join_request *request, u64 deadline_ns);

/* Fail with a message for the error @err of a join, or of a step after it. Returns @err. */
int xl_join_failed(int err, const struct xmem_link *link, const struct xmem_join_request *request);

#endif
