// SPDX-License-Identifier: MIT
/* Messages about limits of the host, for requests that fail with EDQUOT. */
#include <stdio.h>
#include <string.h>

#include "lib/host/quota.h"
#include "lib/host/request.h"
#include "lib/host/wire.h"

/* The words for what each limit limits. A newer host may have others, which go by their names. */
static const struct words {
	u32 quota;
	const char *what;
	bool bytes;
} words[] = {
	{ XMEM_QUOTA_USER_POOLS, "pools", false },
	{ XMEM_QUOTA_USER_FILES, "payload files", false },
	{ XMEM_QUOTA_USER_FILE_BYTES, "bytes of payload files", true },
	{ XMEM_QUOTA_USER_PAGE_BYTES, "bytes of metadata", true },
	{ XMEM_QUOTA_SHARE_PAGE_BYTES, "bytes of metadata", true },
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
	{ XMEM_QUOTA_POOL_DEVICES, "GPUs", false },
	{ XMEM_QUOTA_CLIENT_MAPPINGS, "mappings of metadata", false },
	{ XMEM_QUOTA_CLIENT_POLLS, "descriptors to poll", false },
};

static const struct words *words_of(u32 quota)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i].quota == quota)
			return &words[i];
	return NULL;
}

const char *xl_limit_what(const struct xmem_quota_request *r, bool *ret_bytes)
{
	const struct words *of = words_of(r->quota);

	*ret_bytes = of && of->bytes;
	return of ? of->what : NULL;
}

/* ---- what was refused ---- */

/* The subject of the sentence: a user, all users, a pool or a client. */
static void print_subject(const struct xmem_quota_request *r, bool kernel, char *ret, size_t bytes)
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

/* How to get more. */
static void print_remedy(const struct xmem_quota_request *r, bool kernel, char *ret, size_t bytes)
{
	const char *name = (const char *)r->name;

	*ret = 0;
	if (kernel && strstr(name, "max_"))
		snprintf(ret, bytes, "; root raises it in /sys/module/xmem/parameters/%.*s",
			 (int)sizeof(r->name), name);
	else if (r->quota == XMEM_QUOTA_USER_POOLS && r->most < XM_MOST_POOLS)
		snprintf(ret, bytes, "; xmemd serves one pool for each %d descriptors that the "
				     "process which starts it may have, and %d from %d on "
				     "(ulimit -Hn)",
			 XM_POOL_DESCRIPTORS, XM_MOST_POOLS, XM_POOL_DESCRIPTORS * XM_MOST_POOLS);
	else if (!kernel && (r->quota == XMEM_QUOTA_USER_FILES ||
			     r->quota == XMEM_QUOTA_CLIENT_POLLS ||
			     r->scope == XMEM_QUOTA_OF_HOST))
		snprintf(ret, bytes, "%s; it grows with the number of descriptors that xmemd may "
				     "have, which is that of the process that starts it "
				     "(ulimit -Hn)",
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
	print_subject(r, kernel, who, sizeof(who));
	print_remedy(r, kernel, how, sizeof(how));
	if (r->wanted > r->used + 1)
		snprintf(more, sizeof(more), ", and this would be %llu",
			 (unsigned long long)r->wanted);
	snprintf(space, XL_LIMIT_BYTES, "%s as many %s as %s may have: %llu of %llu%s%s%s", who,
		 of ? of->what : name, kernel && r->scope == XMEM_QUOTA_OF_HOST ? "they" : "it",
		 (unsigned long long)r->used, (unsigned long long)r->most, more,
		 kernel && pools ? ", with those that are still ending" : "",
		 how);
}

void xl_limit_save(struct xmem_link *link)
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

	xl_limit_save(&asked);
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
