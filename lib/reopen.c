// SPDX-License-Identifier: MIT
/*
 * Joining a pool anew. A child cannot use what it has inherited (fork.c), but the struct of the
 * pool is its own copy, so what was asked for when the pool was opened is still there.
 */
#include <string.h>

#include "private.h"
#include "structs.h"

void xl_origin_note(struct xmem_pool *pool, const struct xmem_pool_options *options, bool by_fd)
{
	struct xl_origin *origin = &pool->origin;

	xl_options_take("xmem_pool_options", options, &origin->options, sizeof(origin->options));
	origin->options.size = sizeof(origin->options);
	if (origin->options.label) {
		strncpy(origin->label, origin->options.label, sizeof(origin->label) - 1);
		origin->options.label = origin->label;
	}
	/* Others may write the pages where xmemd is the host, so the last byte stays 0. */
	memcpy(origin->name, (const char *)pool->map.pool->name, sizeof(origin->name) - 1);
	origin->by_fd = by_fd;
}

XMEM_API struct xmem_pool *xmem_pool_reopen(struct xmem_pool *pool)
{
	struct xmem_pool_options options;

	if (!pool) {
		xl_fail_fast(EINVAL, "xmem_pool_reopen: no pool");
		return NULL;
	}
	if (pool->process == XL_NO_PROCESS) {
		xl_fail_not_alive(pool);
		return NULL;
	}
	if (!*pool->origin.name) {
		xl_fail_fast(EOPNOTSUPP,
			     "xmem_pool_reopen: an anonymous pool can be joined by a descriptor "
			     "only: call xmem_pool_fd before the fork, and xmem_pool_open_fd in "
			     "the child");
		return NULL;
	}
	options = pool->origin.options;
	options.flags &= ~XMEM_OPEN_EXCLUSIVE;
	/* Who joined by a descriptor joined on purpose, whoever has made the pool. */
	if (pool->origin.by_fd)
		options.flags |= XMEM_OPEN_FOREIGN;
	return xmem_pool_open(pool->origin.name, &options);
}
