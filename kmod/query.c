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
	u64 used, most;

	xm_host_query(request);
	xk_payer_quota(call->payer, false, XMEM_QUOTA_USER_FILES, &used, &most);
	request->max_payloads = min_t(u64, most, U32_MAX);
	xk_payer_quota(call->payer, true, XMEM_QUOTA_USER_POOLS, &used, &most);
	request->max_pools = min_t(u64, most, U32_MAX);
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
	if (hlist_unhashed_lockless(&pool->named))	/* it has lost its name to another pool */
		memset(request->name, 0, sizeof(request->name));
	xk_pool_put(pool);
	return 0;
}

/* ---- limits ---- */

/* A limit of the pool that the file has joined. false: it has no such limit. */
static bool xk_quota_of_pool(const struct xk_client *client, struct xmem_quota_request *request)
{
	if (request->quota != XMEM_QUOTA_CLIENT_MAPPINGS)
		return xm_host_quota(&client->pool->host, request);
	request->used = READ_ONCE(client->maps);
	request->most = xk_most_maps(client->pool);
	xm_quota_is(request, XMEM_QUOTA_OF_CLIENT, xk_quota_name(request->quota));
	return true;
}

static bool xk_quota(const struct xk_call *call, struct xmem_quota_request *request)
{
	u32 quota = request->quota;
	bool all = quota == XMEM_QUOTA_POOLS || quota == XMEM_QUOTA_PAGE_BYTES;
	kuid_t uid;

	if (quota >= XK_USER_QUOTAS && !all)
		return call->client && xk_quota_of_pool(call->client, request);
	if (!xk_quota_name(quota))
		return false;
	xm_quota_is(request, all ? XMEM_QUOTA_OF_HOST : XMEM_QUOTA_OF_USER, xk_quota_name(quota));
	if (all)
		quota = quota == XMEM_QUOTA_POOLS ? XMEM_QUOTA_USER_POOLS :
			XMEM_QUOTA_USER_PAGE_BYTES;
	uid = xk_payer_quota(call->payer, all, xm_index(quota, XK_USER_QUOTAS), &request->used,
			     &request->most);
	if (!all)
		request->uid = from_kuid_munged(current_user_ns(), uid);
	return true;
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
