/* SPDX-License-Identifier: MIT */
/* What is known of pools without joining them: host_info.c. */
#ifndef XMEM_HOST_INFO_H
#define XMEM_HOST_INFO_H

#include "private.h"

/*
 * Make one request of the host that would be used, on a connection of its own. 0 or -errno, and
 * nothing is noted; *link says which host it was.
 */
int xl_ask_host(struct xmem_link *link, unsigned int request, void *argument);

/*
 * The pool that a join asks for by name, as it is now; false: there is none that the caller may
 * join. No error is noted.
 */
bool xl_pool_find(const struct xmem_join_request *join, struct xmem_pool_entry *ret);

/* Which limit has made the host of @link say EDQUOT to a join? It asks the host. */
const char *xl_limit_reached(const struct xmem_link *link);

#endif
