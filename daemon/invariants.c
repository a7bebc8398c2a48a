// SPDX-License-Identifier: MIT
/*
 * The check of a pool's words for XMEMD_CHECK; core/check.c has the invariants.
 */
#include <stdio.h>
#include <stdlib.h>

#include "daemon.h"

void xd_pool_check(const struct xd_pool *pool)
{
	const char *wrong;

	if (!pool->daemon->check)
		return;
	wrong = xm_host_is_valid(&pool->host);
	if (!wrong)
		wrong = xd_cuda_is_valid(pool);
	if (!wrong)
		return;
	fprintf(stderr, "xmemd: pool '%s': %s\n", pool->name, wrong);
	abort();
}
