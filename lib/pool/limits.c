// SPDX-License-Identifier: MIT
/* The host's limits, and how much of each is used. */
#include <stdio.h>

#include "lib/base/calls.h"
#include "lib/base/structs.h"
#include "lib/host/quota.h"
#include "lib/host/reach.h"
#include "lib/host/request.h"
#include "lib/pool/host_info.h"

_Static_assert(XMEM_LIMIT_OF_USER == (int)XMEM_QUOTA_OF_USER &&
	       XMEM_LIMIT_OF_HOST == (int)XMEM_QUOTA_OF_HOST &&
	       XMEM_LIMIT_OF_POOL == (int)XMEM_QUOTA_OF_POOL &&
	       XMEM_LIMIT_OF_CLIENT == (int)XMEM_QUOTA_OF_CLIENT, "scopes");

static void fill(const struct xmem_quota_request *r, struct xmem_limit_info *ret)
{
	bool in_bytes;
	const char *what = xl_limit_what(r, &in_bytes);

	*ret = (struct xmem_limit_info){
		.size = sizeof(*ret),
		.number = r->quota,
		.scope = r->scope,
		.uid = r->uid,
		.in_bytes = in_bytes,
		.used = r->used,
		.most = r->most,
	};
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)sizeof(r->name),
		 (const char *)r->name);
	snprintf(ret->what, sizeof(ret->what), "%s", what ? what : ret->name);
}

/*
 * Ask about the limits of the pool, or, on a connection of its own, of the host. 0, or -errno,
 * noted.
 */
static int ask_for(struct xmem_pool *pool, struct xmem_quota_request *request)
{
	struct xmem_link link;
	int err;

	if (pool) {
		err = xl_request(pool, XMEM_IOC_QUOTA, request);
		if (err && err != -ENOENT)
			return xl_fail(-err, "ask for limits: %s", xl_request_error(err));
	} else {
		err = xl_check_environment();
		if (err)
			return err;
		err = xl_ask_host(&link, XMEM_IOC_QUOTA, request);
		if (err == -ENODEV)
			return xl_fail_fast(ENOENT, "there are no limits: no host is running");
		if (err && err != -ENOENT)
			return xl_ask_failed("ask the host for its limits", err, &link);
	}
	return err ? xl_fail_fast(ENOENT, "there are no more limits") : 0;
}

XMEM_API int xmem_limit_next(struct xmem_pool *pool, uint32_t number,
			     struct xmem_limit_info *ret_info)
{
	XL_CALL;
	struct xmem_quota_request request = { .size = sizeof(request), .quota = number };
	struct xmem_limit_info info;
	int err;
	XL_USE(pool);

	err = xl_answer_check("xmem_limit_info", ret_info);
	if (!err && pool && !xl_is_open(pool))
		err = xl_fail_not_alive(pool);
	if (!err)
		err = ask_for(pool, &request);
	if (err)
		return err;
	fill(&request, &info);
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}
