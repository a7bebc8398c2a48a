// SPDX-License-Identifier: MIT
/*
 * xmem backend, xmem version: information about this installation.
 */
#include <stdio.h>

#include "cli.h"

/* The host that programs get here: an anonymous pool is made for a moment. */
int cli_backend(const struct cli_arguments *arguments)
{
	struct xmem_pool *pool;

	cli_ask();
	pool = xmem_pool_open(NULL, NULL);
	cli_answered();
	if (!pool)
		return cli_fail_xmem();
	puts(xmem_pool_backend(pool));
	xmem_pool_close(pool);
	return CLI_DONE;
}

int cli_version(const struct cli_arguments *arguments)
{
	puts("xmem " XMEM_VERSION);
	return CLI_DONE;
}
