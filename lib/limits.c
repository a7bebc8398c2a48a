// SPDX-License-Identifier: MIT
/*
 * The host's limits: what is in use of each, and, when the host has said EDQUOT, which of them it
 * was, in words.
 */
#include <stdio.h>
#include <string.h>

#include "host/wire.h"
#include "host_info.h"
#include "limits.h"
#include "reach.h"
#include "request.h"
#include "structs.h"
#include "wait.h"

_Static_assert(XMEM_LIMIT_OF_USER == (int)XMEM_QUOTA_OF_USER &&
	       XMEM_LIMIT_OF_HOST == (int)XMEM_QUOTA_OF_HOST &&
	       XMEM_LIMIT_OF_POOL == (int)XMEM_QUOTA_OF_POOL &&
	       XMEM_LIMIT_OF_CLIENT == (int)XMEM_QUOTA_OF_CLIENT, "scopes");

/* What is limited. A newer host has limits that are not in here: then its name has to do. */
static const struct words {
	u32 quota;
	const char *what;
	bool bytes;
} words[] = {
	{ XMEM_QUOTA_USER_POOLS, "pools", false },
	{ XMEM_QUOTA_USER_CLIENTS, "clients", false },
	{ XMEM_QUOTA_USER_SLOTS, "slots with buffers", false },
	{ XMEM_QUOTA_USER_GROUPS, "groups of slots", false },
	{ XMEM_QUOTA_USER_FILES, "payload files", false },
	{ XMEM_QUOTA_USER_FILE_BYTES, "bytes of payload files", true },
	{ XMEM_QUOTA_USER_PAGE_BYTES, "bytes of metadata", true },
	{ XMEM_QUOTA_USER_MAPPINGS, "mappings of metadata", false },
	{ XMEM_QUOTA_SHARE_POOLS, "pools", false },
	{ XMEM_QUOTA_SHARE_PAGE_BYTES, "bytes of metadata", true },
	{ XMEM_QUOTA_SHARE_CLIENTS, "clients in another user's pool", false },
	{ XMEM_QUOTA_SHARE_GROUPS, "groups of slots in another user's pool", false },
	{ XMEM_QUOTA_SHARE_FILES, "payload files in another user's pool", false },
	{ XMEM_QUOTA_POOLS, "pools", false },
	{ XMEM_QUOTA_PAGE_BYTES, "bytes of metadata", true },
	{ XMEM_QUOTA_CONNECTIONS, "connections", false },
	{ XMEM_QUOTA_POLLS, "descriptors to poll", false },
	{ XMEM_QUOTA_DESCRIPTORS, "descriptors of its own", false },
	{ XMEM_QUOTA_PROCESS_CONNECTIONS, "connections of this process", false },
	{ XMEM_QUOTA_POOL_CLIENTS, "clients", false },
	{ XMEM_QUOTA_POOL_SLOTS, "slots with buffers", false },
	{ XMEM_QUOTA_POOL_GROUPS, "groups of slots", false },
	{ XMEM_QUOTA_POOL_FILES, "payload files", false },
	{ XMEM_QUOTA_POOL_DEVICE_FILES, "allocations on GPUs", false },
	{ XMEM_QUOTA_POOL_PAGE_BYTES, "bytes of metadata", true },
	{ XMEM_QUOTA_POOL_DEVICES, "GPUs", false },
	{ XMEM_QUOTA_CLIENT_MAPPINGS, "mappings of metadata", false },
	{ XMEM_QUOTA_CLIENT_POLLS, "descriptors to poll", false },
	{ XMEM_QUOTA_CLIENT_LIMBO, "bytes of what ended clients have left", true },
};

static const struct words *words_of(u32 quota)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i].quota == quota)
			return &words[i];
	return NULL;
}

/* ---- what was refused ---- */

/* Who has too much: one of the users, all of them, a pool, a client. */
static void put_who(const struct xmem_quota_request *r, bool kernel, char *ret, size_t bytes)
{
	switch (r->scope) {
	case XMEM_QUOTA_OF_USER:
		if (r->level)
			snprintf(ret, bytes, "with all users of its user namespace, user %u has",
				 r->uid);
		else
			snprintf(ret, bytes, "user %u has", r->uid);
		break;
	case XMEM_QUOTA_OF_POOL:
		snprintf(ret, bytes, "the pool has");
		break;
	case XMEM_QUOTA_OF_CLIENT:
		snprintf(ret, bytes, "this client has");
		break;
	default:
		snprintf(ret, bytes, kernel ? "all users together have" : "the host has");
	}
}

/* Where there is more to be had. */
static void put_how(const struct xmem_quota_request *r, bool kernel, char *ret, size_t bytes)
{
	const char *name = (const char *)r->name;

	*ret = 0;
	if (kernel && strstr(name, "max_"))
		snprintf(ret, bytes, "; root raises it in /sys/module/xmem/parameters/%.*s",
			 (int)sizeof(r->name), name);
	else if (r->quota == XMEM_QUOTA_USER_POOLS && r->most < XM_MOST_POOLS)
		snprintf(ret, bytes, "; xmemd serves one pool for each %d descriptors that whoever "
				     "starts it may have, and %d from %d on (ulimit -Hn)",
			 XM_POOL_DESCRIPTORS, XM_MOST_POOLS, XM_POOL_DESCRIPTORS * XM_MOST_POOLS);
	else if (!kernel && (r->quota == XMEM_QUOTA_USER_FILES ||
			     r->quota == XMEM_QUOTA_CLIENT_POLLS ||
			     r->scope == XMEM_QUOTA_OF_HOST))
		snprintf(ret, bytes, "%s; it grows with the descriptors of xmemd, which are those "
				     "of whoever starts it (ulimit -Hn)",
			 r->quota == XMEM_QUOTA_CONNECTIONS ||
			 r->quota == XMEM_QUOTA_PROCESS_CONNECTIONS ?
			 "; close pools that are not used" : "");
}

static void describe(const struct xmem_quota_request *r, bool kernel, char space[XL_LIMIT_BYTES])
{
	const struct words *of = words_of(r->quota);
	const bool pools = r->quota == XMEM_QUOTA_USER_POOLS || r->quota == XMEM_QUOTA_POOLS;
	char who[80], how[160], name[sizeof(r->name) + 1], more[48] = "";

	snprintf(name, sizeof(name), "%.*s", (int)sizeof(r->name), (const char *)r->name);
	put_who(r, kernel, who, sizeof(who));
	put_how(r, kernel, how, sizeof(how));
	if (r->wanted > r->used + 1)
		snprintf(more, sizeof(more), ", and this would be %llu",
			 (unsigned long long)r->wanted);
	snprintf(space, XL_LIMIT_BYTES, "%s as many %s as %s may have: %llu of %llu%s%s%s", who,
		 of ? of->what : name, kernel && r->scope == XMEM_QUOTA_OF_HOST ? "they" : "it",
		 (unsigned long long)r->used, (unsigned long long)r->most, more,
		 kernel && pools ? ", with those that have ended and whose files are open" : "",
		 how);
}

void xl_limit_note(struct xmem_link *link)
{
	struct xmem_quota_request request = {
		.size = sizeof(request), .flags = XMEM_QUOTA_REFUSED,
	};

	if (!link->refused.size && link->file >= 0 &&
	    !link->backend->request_until(link, XMEM_IOC_QUOTA, &request, xl_deadline(XL_HOST_NS)))
		link->refused = request;
}

const char *xl_limit_refused(const struct xmem_link *link, char space[XL_LIMIT_BYTES])
{
	struct xmem_link asked = *link;		/* only closing and mapping change one */

	xl_limit_note(&asked);
	if (!asked.refused.size)
		return NULL;
	describe(&asked.refused, link->backend == &xmem_backend_kmod, space);
	return space;
}

const char *xl_host_error(const struct xmem_pool *pool, int err, char space[XL_LIMIT_BYTES])
{
	const char *limit = err == -EDQUOT ? xl_limit_refused(&pool->link, space) : NULL;

	return limit ? limit : xl_request_error(err);
}

/* ---- the API ---- */

static void fill(const struct xmem_quota_request *r, struct xmem_limit_info *ret)
{
	const struct words *of = words_of(r->quota);

	*ret = (struct xmem_limit_info){
		.size = sizeof(*ret),
		.number = r->quota,
		.scope = r->scope,
		.uid = r->uid,
		.in_bytes = of && of->bytes,
		.used = r->used,
		.most = r->most,
	};
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)sizeof(r->name),
		 (const char *)r->name);
	snprintf(ret->what, sizeof(ret->what), "%s", of ? of->what : ret->name);
}

/* Of the host, on a connection for this, or of the pool. 0, or -errno, noted. */
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
