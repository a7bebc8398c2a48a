// SPDX-License-Identifier: MIT
/*
 * Ending other clients, and closing a pool. Every client belongs to the daemon's user, so each
 * counts as its pool's owner. But a client has all pages mapped, and nobody can take them away from
 * a live process. So evictions are refused (EOPNOTSUPP); the user can kill the process instead.
 */
#include "daemon.h"

int xd_evict_serve(struct xd_call *call)
{
	struct xmem_evict_request *request = &call->request.evict;
	const struct xd_connection *from = call->from;
	int err;

	if (!from->pool)
		return -ENOTCONN;
	err = xm_evict_check(&from->pool->host.map, from->client, request);
	if (err || request->op == XMEM_OP_WHY)	/* Clients are never evicted here. */
		return err;
	if (request->op != XMEM_OP_DRAIN)
		return -EOPNOTSUPP;
	from->pool->drained = true;
	return 0;
}

/* All clients are of one user, so a client already has whatever is granted to it. */
int xd_grant_serve(struct xd_call *call)
{
	const struct xmem_grant_request *request = &call->request.grant;
	struct xd_connection *from = call->from;
	const struct xm_host *host = &from->pool->host;
	bool new = false;
	int err;

	if (request->op != XMEM_OP_WRITER)
		return xm_host_grant(host, from->client, request);
	err = xm_host_writer(host, from->client, request, &new);
	if (new) {
		from->role = XMEM_ROLE_WRITER;
		xd_wake(&host->map.pool->clients_waiters);
		xd_wake_rings(from->pool);
	}
	return err;
}
