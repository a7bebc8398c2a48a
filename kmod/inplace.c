// SPDX-License-Identifier: GPL-2.0-only
/*
 * Request upgrade: a client that alone holds a slot of a shared payload writes it in place.
 * core/upgrade.c says how; here is who is told when that ends.
 */
#include "xk.h"

/* Under pool->lock: the slot may be to be had, by its owner or, if that has ended, for good. */
static void xk_upgrade_ended(struct xk_pool *pool, u32 slot)
{
	u32 owner = xm_slot_row(&pool->host.map, slot)->owner;

	if (owner < pool->host.map.clients)
		xk_wake(pool, XMEM_WAIT_SLOTS, owner);
	else
		xk_reclaim_slot(pool, slot);
}

int xk_upgrade_begin(struct xk_call *call)
{
	struct xmem_upgrade_request *request = &call->u.upgrade;
	struct xk_client *client = call->client;
	int err = xk_client_lock(client);

	if (err)
		return err;
	err = xm_host_upgrade(&client->pool->host, client->id, request);
	if (!err && request->flags)
		xk_upgrade_ended(client->pool,
				 xm_index(request->slot, client->pool->host.map.slots));
	mutex_unlock(&client->pool->lock);
	return err;
}

/* A caller that did not get the new generation does not know that it may write. */
void xk_upgrade_finish(struct xk_call *call, int err)
{
	struct xmem_upgrade_request *request = &call->u.upgrade;

	if (!err || request->flags)
		return;
	request->flags = XMEM_UPGRADE_CANCEL;
	xk_upgrade_begin(call);
}
