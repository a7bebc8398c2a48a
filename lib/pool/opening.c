// SPDX-License-Identifier: MIT
/* Stores how a pool was opened, for xmem_pool_reopen (reopen.c). */
#include <string.h>
#include <unistd.h>

#include "lib/base/structs.h"
#include "lib/base/uncancelled.h"
#include "lib/host/request.h"
#include "lib/private.h"

/*
 * Make the descriptor for children. It is not among the recorded files, so it stays open in a
 * child.
 */
static int make_heirloom(struct xmem_pool *pool)
{
	struct xmem_pool_fd_request request = { .size = sizeof(request) };
	int err = xl_request(pool, XMEM_IOC_POOL_FD, &request);

	if (err)
		return err;
	xl_file_forget(request.fd);
	pool->opening.fd = request.fd;
	return 0;
}

int xl_opening_save(struct xmem_pool *pool, const struct xmem_pool_options *options)
{
	struct xl_opening *opening = &pool->opening;

	xl_options_take("xmem_pool_options", options, &opening->options, sizeof(opening->options));
	opening->options.size = sizeof(opening->options);
	opening->options.flags &= ~XMEM_OPEN_FD;	/* the caller may close the descriptor */
	opening->options.fd = 0;
	if (opening->options.label) {
		strncpy(opening->label, opening->options.label, sizeof(opening->label) - 1);
		opening->options.label = opening->label;
	}
	/* With xmemd, other processes can write the pages, so the last byte must stay 0. */
	memcpy(opening->name, (const char *)pool->map.pool->name, sizeof(opening->name) - 1);
	opening->owner = pool->link.join.owner_uid;
	opening->fd = -1;
	return opening->options.flags & XMEM_OPEN_INHERIT ? make_heirloom(pool) : 0;
}

void xl_opening_drop(struct xmem_pool *pool)
{
	int fd = __atomic_exchange_n(&pool->opening.fd, -1, __ATOMIC_RELAXED);
	XL_UNCANCELLED;

	if (fd >= 0)
		close(fd);
}
