// SPDX-License-Identifier: GPL-2.0-only
/* Requests: subscribe and unsubscribe. */
#include "xk.h"

int xk_subscribe_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	int err = xk_client_lock_mapped(client);

	if (err)
		return err;
	err = xm_host_subscribe(&client->pool->host, client->id, &call->u.subscribe);
	if (!err)
		client->follows[call->u.subscribe.publisher / 64] |= 1ULL << call->u.subscribe.publisher % 64;
	mutex_unlock(&client->pool->lock);
	/* Our cursor stood at 0 for a moment and pinned all: who looked just then may sleep. */
	if (!err)
		xk_wake(client->pool, XMEM_WAIT_SLOTS, call->u.subscribe.publisher);
	return err;
}

/* Once more for poll: a publisher that is followed no longer is not looked at. */
static void xk_unfollow(struct xk_client *client, u32 publisher)
{
	const struct xm_map *map = &client->pool->host.map;

	if (publisher >= map->clients)
		return;
	publisher = xm_index(publisher, map->clients);
	if (!xm_bit(xm_client_row(map, publisher)->subscribers, client->id))
		client->follows[publisher / 64] &= ~(1ULL << publisher % 64);
}

static int xk_unsubscribe(struct xk_client *client, const struct xmem_unsubscribe_request *request)
{
	struct xk_pool *pool = client->pool;
	int err = xk_client_lock(client);

	if (err)
		return err;
	err = xm_host_unsubscribe(&pool->host, client->id, request);
	xk_unfollow(client, request->publisher);
	/* It may have been the last that a dead publisher's ring was kept for. */
	if (!err && xm_client_row(&pool->host.map, request->publisher)->state == XMEM_CLIENT_ZOMBIE)
		xk_reap(pool);
	mutex_unlock(&pool->lock);
	if (!err)
		xk_wake(pool, XMEM_WAIT_SLOTS, request->publisher);
	return err;
}

int xk_unsubscribe_begin(struct xk_call *call)
{
	return xk_unsubscribe(call->client, &call->u.unsubscribe);
}

void xk_subscribe_finish(struct xk_call *call, int err)
{
	struct xmem_unsubscribe_request undo = { .publisher = call->u.subscribe.publisher };

	if (err)
		xk_unsubscribe(call->client, &undo);
}
