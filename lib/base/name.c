// SPDX-License-Identifier: MIT
/* The name of a pool in messages. */
#include <stdio.h>

#include "lib/private.h"

const char *xl_pool_name(const struct xmem_pool *pool, char *ret, size_t bytes)
{
	const char *name = (const char *)pool->map.pool->name;

	if (!*name)
		return "the anonymous pool";
	snprintf(ret, bytes, "pool %.*s", XMEM_NAME_BYTES, name);
	return ret;
}
