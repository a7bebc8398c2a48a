// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that need no join: query, which tells what the module knows and allows, and
 * pools, which lists the pools one by one.
 */
#include <linux/cred.h>
#include <linux/string.h>

#include "xk.h"

int xk_query_begin(struct xk_call *call)
{
	struct xmem_query_request *request = &call->u.query;

	xm_host_query(request);
	request->max_payloads = READ_ONCE(xk_max_payloads);
	request->max_pools = READ_ONCE(xk_max_pools);
	request->pools = xk_pools_count();
	strscpy_pad(request->version, XK_VERSION, sizeof(request->version));
	return 0;
}

/* What it reads stays as long as the pool's struct, also where the pool ends meanwhile. */
int xk_pools_begin(struct xk_call *call)
{
	struct xmem_pools_request *request = &call->u.pools;
	struct xk_pool *pool = xk_pool_after(request->number);
	kgid_t gid;

	if (!pool)
		return -ENOENT;
	xk_access_of(pool, &gid, &request->mode);
	request->number = pool->serial;
	request->owner_uid = from_kuid(current_user_ns(), pool->owner);
	request->gid = from_kgid(current_user_ns(), gid);
	request->roles = xk_access_roles(pool);
	xm_host_describe(&pool->host, request);
	xk_pool_put(pool);
	return 0;
}
