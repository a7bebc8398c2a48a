// SPDX-License-Identifier: MIT
/*
 * Joins a pool again. A child cannot use the handle that it has inherited (base/fork.c). But it has
 * a copy of the pool's struct, in which the options are with which the pool was opened.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/structs.h"
#include "lib/base/uncancelled.h"
#include "lib/follow/wait.h"
#include "lib/host/request.h"
#include "lib/private.h"

/*
 * The options for the pool as it is now. Its owner may have changed mode and group since it was
 * opened.
 */
static struct xmem_pool_options as_it_is(const struct xmem_pool_options *options)
{
	struct xmem_pool_options there = *options;

	there.flags &= ~(XMEM_OPEN_EXCLUSIVE | XMEM_OPEN_GROUP);
	there.mode = there.gid = 0;
	return there;
}

/* If the pool has ended, it is made again with the first options. */
static struct xmem_pool *join_by_name(const char *name, const struct xmem_pool_options *options)
{
	struct xmem_pool_options there = as_it_is(options), new = *options;
	struct xmem_pool *pool;
	struct xl_error before;

	there.flags |= XMEM_OPEN_EXISTING;
	xl_error_save(&before);
	pool = xmem_pool_open(name, &there);
	if (pool || options->flags & XMEM_OPEN_EXISTING || xl_last_error() != -ENOENT)
		return pool;
	new.flags &= ~XMEM_OPEN_EXCLUSIVE;
	pool = xmem_pool_open(name, &new);
	if (pool)
		xl_error_restore(&before);
	return pool;
}

/* Join by the inherited descriptor, or by the name. */
static struct xmem_pool *join_again(const struct xl_opening *opening)
{
	struct xmem_pool_options options = as_it_is(&opening->options);
	char name[XMEM_NAME_BYTES + 12];

	if (opening->fd >= 0) {
		options.flags |= XMEM_OPEN_FD;
		options.fd = opening->fd;
		return xmem_pool_open(NULL, &options);
	}
	if (!*opening->name && options.flags & XMEM_OPEN_INHERIT) {
		xl_fail_fast(EBADF, "the handle has been closed, and the "
				    "descriptor of the pool with it");
		return NULL;
	}
	if (!*opening->name) {
		xl_fail_fast(EOPNOTSUPP,
			     "an anonymous pool is joined by a descriptor: open "
			     "it with XMEM_OPEN_INHERIT");
		return NULL;
	}
	if (opening->owner == ~0U) {
		xl_fail_fast(EOPNOTSUPP,
			     "the pool's user has no number in this user "
			     "namespace, so it cannot be named: open it with XMEM_OPEN_INHERIT");
		return NULL;
	}
	/* The name includes the user, because this process may have become another user's. */
	snprintf(name, sizeof(name), "%u:%s", opening->owner, opening->name);
	return join_by_name(name, &opening->options);
}

XMEM_API struct xmem_pool *xmem_pool_reopen(struct xmem_pool *pool)
{
	XL_CALL;
	XL_USE(pool);

	if (pool && (xl_is_open(pool) || xl_is_forked(pool)))
		return join_again(&pool->opening);
	if (pool)
		xl_fail_not_alive(pool);
	else
		xl_fail_fast(EINVAL, "no pool");
	return NULL;
}
