// SPDX-License-Identifier: MIT
/*
 * Joining a pool only to look at it.
 */
#include <errno.h>

#include "cli.h"

/* Opening a pool would start a daemon, which would then say that it has no such pool. */
static bool host_is_there(const char *name)
{
	struct xmem_host_info host = { .size = sizeof(host) };
	int err = xmem_host_query(&host);

	if (err == -ENODEV)
		cli_fail("there is no pool '%s': no host is running", name);
	else if (err)
		cli_fail_xmem();
	return !err;
}

struct xmem_pool *cli_open(const char *name)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .flags = XMEM_OPEN_EXISTING | XMEM_OPEN_FOREIGN,
		.label = "xmem",
	};
	struct xmem_pool *pool;

	if (!host_is_there(name))
		return NULL;
	pool = xmem_pool_open(name, &options);
	if (!pool)
		cli_fail_xmem();
	return pool;
}
