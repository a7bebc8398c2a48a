// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request evict, by which the pool's owner or an administrator ends other clients, or drains
 * the pool, so that nobody may join it. This file checks the caller's right; leave.c ends clients.
 * Here is also the request grant, by which a writer lets other clients hold its slots, or slots
 * that it forwards, and by which a client becomes a writer.
 */
#include "xk.h"

/* The caller asks why its client was ended. Mostly the client has ended before. */
static int xk_evict_why(const struct xk_client *client, struct xmem_evict_request *request)
{
	if (client->mm != current->mm)
		return -EPERM;
	/* pairs with xk_set_ended */
	request->reason = smp_load_acquire(&client->ended) ? client->reason : XMEM_REASON_NONE;
	return 0;
}

/* May this client evict others? */
static int xk_evict_permit(const struct xk_client *client)
{
	int err = xk_client_check(client);

	if (err)
		return err;
	return xk_access_administers(client->pool) ? 0 : -EPERM;
}

static int xk_evict(struct xk_client *me, const struct xmem_evict_request *request)
{
	struct xk_client *client;
	bool first;

	client = xk_client_of(me->pool, xm_index(request->client, me->pool->host.map.clients));
	if (!client)
		return -ESTALE;
	first = xk_client_evict(client, request->incarnation, request->reason);
	xk_client_put(client);
	if (!first)
		return -ESTALE;
	xk_end_wait(me->pool);
	return 0;
}

/*
 * Evict all clients except those of the caller's own process. Nobody joins meanwhile, because the
 * pool is drained.
 */
static u32 xk_evict_others(const struct xk_client *me)
{
	struct xk_pool *pool = me->pool;
	struct xk_client *client;
	u32 c, evicted = 0;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_client_of(pool, c);
		if (!client)
			continue;
		if (client->mm != me->mm)
			evicted += xk_client_evict(client, 0, XMEM_REASON_DRAINED);
		xk_client_put(client);
	}
	return evicted;
}

static int xk_drain(struct xk_client *me, struct xmem_evict_request *request)
{
	int err = xk_client_lock(me);

	if (err)
		return err;
	xk_pool_close(me->pool);
	mutex_unlock(&me->pool->lock);
	if (request->op == XMEM_OP_DRAIN)
		return 0;
	request->evicted = xk_evict_others(me);
	if (request->evicted)
		xk_end_wait(me->pool);
	return 0;
}

int xk_evict_begin(struct xk_call *call)
{
	struct xmem_evict_request *request = &call->u.evict;
	struct xk_client *me = call->client;
	int err;

	if (!me)
		return -ENOTCONN;
	err = request->op == XMEM_OP_WHY ? 0 : xk_evict_permit(me);
	if (!err)
		err = xm_evict_check(&me->pool->host.map, me->id, request);
	if (err)
		return err;
	switch (request->op) {
	case XMEM_OP_EVICT:
		return xk_evict(me, request);
	case XMEM_OP_WHY:
		return xk_evict_why(me, request);
	}
	return xk_drain(me, request);
}

int xk_grant_begin(struct xk_call *call)
{
	const struct xmem_grant_request *request = &call->u.grant;
	struct xk_client *client = call->client;
	struct xm_host *host = &client->pool->host;
	bool new = false;
	int err = xk_client_lock(client);

	if (err)
		return err;
	if (request->op != XMEM_OP_WRITER)
		err = xm_host_grant(host, client->id, request);
	else
		err = xm_host_writer(host, client->id, request, &new);
	if (new)
		WRITE_ONCE(client->role, XMEM_ROLE_WRITER);
	mutex_unlock(&client->pool->lock);
	if (new) {
		xk_wake(client->pool, XMEM_WAIT_CLIENTS, 0);
		xk_wake_newcomers(client->pool);
	}
	return err;
}
