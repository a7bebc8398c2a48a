// SPDX-License-Identifier: GPL-2.0-only
/*
 * The requests that need no join: query, which tells what the module knows and allows; pools, which
 * lists the pools one by one; and quota, which tells how much of a limit is in use.
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

/* Everything that it reads stays as long as the pool's struct, even if the pool ends meanwhile. */
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

/* ---- limits ---- */

static u64 xk_no_limit(u64 most, u64 none)
{
	return most == none ? U64_MAX : most;
}

/* A limit of the pool that the file has joined. false: it has no such limit. */
static bool xk_quota_of_pool(const struct xk_client *client, struct xmem_quota_request *request)
{
	const struct xk_pool *pool = client->pool;

	if (xm_host_quota(&pool->host, request))
		return true;
	switch (request->quota) {
	case XMEM_QUOTA_POOL_FILES:
		request->used = READ_ONCE(pool->payload_count);
		request->most = xk_no_limit(READ_ONCE(xk_max_payloads), UINT_MAX);
		break;
	case XMEM_QUOTA_POOL_DEVICE_FILES:
		request->used = xk_payload_devices(pool);
		request->most = xk_no_limit(READ_ONCE(xk_max_device_files), UINT_MAX);
		break;
	case XMEM_QUOTA_POOL_PAGE_BYTES:
		request->used = (u64)atomic_long_read(&pool->pages) << PAGE_SHIFT;
		request->most = xk_no_limit(READ_ONCE(xk_max_pool_bytes), ULONG_MAX);
		break;
	case XMEM_QUOTA_CLIENT_MAPPINGS:
		request->used = READ_ONCE(client->maps);
		request->most = xk_most_maps(pool);
		break;
	default:
		return false;
	}
	xm_quota_is(request, request->quota >= XMEM_QUOTA_CLIENT_MAPPINGS ? XMEM_QUOTA_OF_CLIENT :
		    XMEM_QUOTA_OF_POOL, xk_quota_name(request->quota));
	return true;
}

static bool xk_quota(const struct xk_call *call, struct xmem_quota_request *request)
{
	u32 quota = request->quota;

	if (quota < XK_USER_QUOTAS) {
		quota = xm_index(quota, XK_USER_QUOTAS);
		xm_quota_is(request, XMEM_QUOTA_OF_USER, xk_quota_name(quota));
		request->uid = from_kuid_munged(current_user_ns(), xk_payer_uid(call->payer, 0));
		request->used = xk_user_used(call->payer, quota);
		request->most = xk_user_most(quota);
		return true;
	}
	if (quota == XMEM_QUOTA_POOLS || quota == XMEM_QUOTA_PAGE_BYTES) {
		xm_quota_is(request, XMEM_QUOTA_OF_HOST, xk_quota_name(quota));
		xk_host_quota(quota, &request->used, &request->most);
		return true;
	}
	return call->client && xk_quota_of_pool(call->client, request);
}

static u32 xk_scope_of(u32 quota)
{
	if (quota >= XMEM_QUOTA_CLIENT_MAPPINGS)
		return XMEM_QUOTA_OF_CLIENT;
	if (quota >= XMEM_QUOTA_POOL_CLIENTS)
		return XMEM_QUOTA_OF_POOL;
	return quota >= XMEM_QUOTA_POOLS ? XMEM_QUOTA_OF_HOST : XMEM_QUOTA_OF_USER;
}

/* Fill in the last refusal, with the numbers of that moment. */
static int xk_quota_refused(struct xk_payer *payer, struct xmem_quota_request *request)
{
	struct xk_refusal refusal;

	if (request->quota)
		return -EINVAL;
	xk_refused(payer, &refusal);
	if (!refusal.any)
		return -ENOENT;
	request->quota = refusal.quota;
	xm_quota_is(request, xk_scope_of(refusal.quota), xk_quota_name(refusal.quota));
	if (request->scope == XMEM_QUOTA_OF_USER)
		request->uid = from_kuid_munged(current_user_ns(),
						xk_payer_uid(payer, refusal.level));
	request->level = refusal.level;
	request->used = refusal.used;
	request->most = refusal.most;
	request->wanted = refusal.wanted;
	return 0;
}

/* The capacities of the pool, and their use, are host words, which are read without a lock. */
int xk_quota_begin(struct xk_call *call)
{
	struct xmem_quota_request *request = &call->u.quota;

	if (request->flags & XMEM_QUOTA_REFUSED)
		return xk_quota_refused(call->payer, request);
	for (; request->quota < XK_QUOTAS; request->quota++)
		if (xk_quota(call, request))
			return 0;
	return -ENOENT;
}
