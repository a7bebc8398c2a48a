// SPDX-License-Identifier: MIT
/*
 * Joining a pool anew. A child cannot use what it has inherited (fork.c), but the struct of the
 * pool is its own copy, so what was asked for when the pool was opened is still there.
 */
#include <string.h>
#include <unistd.h>

#include "private.h"
#include "request.h"
#include "structs.h"
#include "uncancelled.h"

/* It is not among the noted files, so it stays open in a child. */
static int make_heirloom(struct xmem_pool *pool)
{
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	int err = xl_request(pool, XMEM_IOC_POOL_FD, &request);

	if (err)
		return err;
	xl_file_forget(request.fd);
	pool->origin.fd = request.fd;
	return 0;
}

int xl_origin_note(struct xmem_pool *pool, const struct xmem_pool_options *options, bool by_fd)
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
	origin->fd = -1;
	return origin->options.flags & XMEM_OPEN_INHERIT ? make_heirloom(pool) : 0;
}

void xl_origin_drop(struct xmem_pool *pool)
{
	int fd = __atomic_exchange_n(&pool->origin.fd, -1, __ATOMIC_RELAXED);
	XL_UNCANCELLED;

	if (fd >= 0)
		close(fd);
}

/* By which name or descriptor can it be joined? */
static struct xmem_pool *join_again(const struct xl_origin *origin)
{
	struct xmem_pool_options options = origin->options;

	options.flags &= ~XMEM_OPEN_EXCLUSIVE;
	if (origin->fd >= 0)
		return xmem_pool_open_fd(origin->fd, &options);
	if (!*origin->name) {
		xl_fail_fast(EOPNOTSUPP,
			     "xmem_pool_reopen: an anonymous pool is joined by a descriptor: open "
			     "it with XMEM_OPEN_INHERIT");
		return NULL;
	}
	/* Who joined by a descriptor joined on purpose, whoever has made the pool. */
	if (origin->by_fd)
		options.flags |= XMEM_OPEN_FOREIGN;
	return xmem_pool_open(origin->name, &options);
}

XMEM_API struct xmem_pool *xmem_pool_reopen(struct xmem_pool *pool)
{
	if (pool && pool->process != XL_NO_PROCESS)
		return join_again(&pool->origin);
	if (pool)
		xl_fail_not_alive(pool);
	else
		xl_fail_fast(EINVAL, "xmem_pool_reopen: no pool");
	return NULL;
}
