// SPDX-License-Identifier: MIT
/*
 * The limits of this host, which serves one user, and the limit by which a connection was last
 * refused: the request `quota`.
 */
#include <errno.h>
#include <unistd.h>

#include "daemon.h"

int xd_refuse(struct xd_daemon *daemon, u32 quota, u64 used, u64 most)
{
	daemon->refusal = (struct xd_refusal){
		.any = true, .quota = quota, .used = used, .most = most,
	};
	return -EDQUOT;
}

u32 xd_connections_of(const struct xd_daemon *daemon, pid_t pid)
{
	const struct xd_connection *other;
	u32 count = 0;

	for (other = daemon->connections; other; other = other->next)
		count += other->pid == pid;
	return count;
}

bool xd_quota_reached(const struct xd_daemon *daemon)
{
	return daemon->payload_count >= daemon->limits.payloads ||
	       daemon->poll_count >= daemon->limits.polls;
}

/* If -EDQUOT names no limit, the daemon itself has no descriptor left. */
void xd_quota_note(struct xd_daemon *daemon, struct xd_connection *from, int err)
{
	const u64 most = daemon->limits.descriptors;

	if (err == -EDQUOT && !daemon->refusal.any)
		xd_refuse(daemon, XMEM_QUOTA_DESCRIPTORS, most, most);
	if (daemon->refusal.any)
		from->refusal = daemon->refusal;
	daemon->refusal.any = false;
}

/* The limit @quota as it is now. false: there is none of that number. */
static bool look(const struct xd_daemon *daemon, const struct xd_connection *from, u32 quota,
		 struct xd_refusal *ret)
{
	const struct xd_limits *limits = &daemon->limits;
	const struct xd_pool *pool = from->pool;

	*ret = (struct xd_refusal){ .any = true, .quota = quota };
	switch (quota) {
	case XMEM_QUOTA_USER_POOLS:
		ret->used = daemon->pool_count;
		ret->most = limits->pools;
		return true;
	case XMEM_QUOTA_USER_FILES:
		ret->used = daemon->payload_count;
		ret->most = limits->payloads;
		return true;
	case XMEM_QUOTA_CONNECTIONS:
		ret->used = daemon->connection_count;
		ret->most = limits->connections;
		return true;
	case XMEM_QUOTA_PROCESS_CONNECTIONS:
		ret->used = xd_connections_of(daemon, from->pid);
		ret->most = limits->per_process;
		return true;
	case XMEM_QUOTA_POLLS:
		ret->used = daemon->poll_count;
		ret->most = limits->polls;
		return true;
	case XMEM_QUOTA_POOL_FILES:
		ret->used = pool ? pool->payload_count : 0;
		ret->most = XD_MAX_PAYLOADS;
		return pool;
	case XMEM_QUOTA_CLIENT_POLLS:
		ret->used = from->poll_count;
		ret->most = limits->polls_of_one;
		return pool;
	}
	return false;
}

static void answer(struct xmem_quota_request *request, const struct xd_refusal *of)
{
	static const struct {
		u32 quota, scope;
		const char *name;
	} words[] = {
		{ XMEM_QUOTA_USER_POOLS, XMEM_QUOTA_OF_USER, "pools" },
		{ XMEM_QUOTA_USER_FILES, XMEM_QUOTA_OF_USER, "payload files" },
		{ XMEM_QUOTA_CONNECTIONS, XMEM_QUOTA_OF_HOST, "connections" },
		{ XMEM_QUOTA_POLLS, XMEM_QUOTA_OF_HOST, "descriptors to poll" },
		{ XMEM_QUOTA_DESCRIPTORS, XMEM_QUOTA_OF_HOST, "descriptors" },
		{ XMEM_QUOTA_PROCESS_CONNECTIONS, XMEM_QUOTA_OF_HOST, "connections, process" },
		{ XMEM_QUOTA_POOL_CLIENTS, XMEM_QUOTA_OF_POOL, "clients" },
		{ XMEM_QUOTA_POOL_FILES, XMEM_QUOTA_OF_POOL, "payload files" },
		{ XMEM_QUOTA_POOL_DEVICES, XMEM_QUOTA_OF_POOL, "devices" },
		{ XMEM_QUOTA_CLIENT_POLLS, XMEM_QUOTA_OF_CLIENT, "descriptors to poll" },
	};
	size_t i;

	request->quota = of->quota;
	request->used = of->used;
	request->most = of->most;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (words[i].quota == of->quota)
			xm_quota_is(request, words[i].scope, words[i].name);
	if (request->scope == XMEM_QUOTA_OF_USER)
		request->uid = geteuid();
}

static int answer_refused(const struct xd_connection *from, struct xmem_quota_request *request)
{
	if (request->quota)
		return -EINVAL;
	if (!from->refusal.any)
		return -ENOENT;
	answer(request, &from->refusal);
	request->wanted = from->refusal.used + 1;
	return 0;
}

int xd_quota(struct xd_call *call)
{
	struct xmem_quota_request *request = &call->request.quota;
	const struct xd_pool *pool = call->from->pool;
	struct xd_refusal now;

	if (request->flags & XMEM_QUOTA_REFUSED)
		return answer_refused(call->from, request);
	for (; request->quota <= XMEM_QUOTA_CLIENT_POLLS; request->quota++) {
		if (pool && xm_host_quota(&pool->host, request))
			return 0;
		if (look(call->daemon, call->from, request->quota, &now)) {
			answer(request, &now);
			return 0;
		}
	}
	return -ENOENT;
}
