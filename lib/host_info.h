/* SPDX-License-Identifier: MIT */
/* What is known of pools without joining them: host_info.c. */
#ifndef XMEM_HOST_INFO_H
#define XMEM_HOST_INFO_H

#include "private.h"

/* The pool of that name, as it is now; false: there is none. No error is noted. */
bool xl_pool_find(const char *name, struct xmem_pool_entry *ret);

/* Which limit has made the host of @link say EDQUOT to a join? It asks the host. */
const char *xl_limit_reached(const struct xmem_link *link);

#endif
