// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request upgrade: the only client that holds a slot of a shared payload writes it in place.
 * core/upgrade.c has the protocol; this file wakes the clients that wait for its end.
 */
#include "xk.h"

/*
 * Under pool->lock: the slot may be free now, for its owner or, if the owner has ended, for good.
 * true: the caller waits until it is reaped.
 */
static bool xk_upgrade_ended(struct xk_pool *pool, u32 slot)
{
	u32 owner = xm_slot_row(&pool->host.map, slot)->owner;

	if (owner >= pool->host.map.clients)
		return xk_reclaim_slot(pool, slot);
	xk_wake(pool, XMEM_WAIT_SLOTS, owner);
	return false;
}

/*
 * Under pool->lock: is it a slot of an ended client of which some clients still see an old page?
 * They could get contents that are being written, or miss those that have been.
 */
static bool xk_is_moving(const struct xk_pool *pool, u32 slot)
{
	const struct xm_map *map = &pool->host.map;

	return slot < map->slots && test_bit(xm_index(slot, map->slots) / XMEM_GROUP_SLOTS,
					     pool->moving);
}

/* Under pool->upgrade_lock. -EINPROGRESS: the slot is moving. *ret_reap: see xk_upgrade_ended. */
static int xk_upgrade_once(struct xk_client *client, struct xmem_upgrade_request *request,
			   bool *ret_reap)
{
	struct xk_pool *pool = client->pool;
	int err = xk_client_lock(client);

	if (err)
		return err;
	err = xk_is_moving(pool, request->slot) ? -EINPROGRESS :
		xm_host_upgrade(&pool->host, client->id, request);
	if (!err && request->flags)
		*ret_reap = xk_upgrade_ended(pool, xm_index(request->slot, pool->host.map.slots));
	mutex_unlock(&pool->lock);
	return err;
}

/*
 * Clients can make a look at their rings slow. So only one upgrade at a time competes with other
 * requests for the pool's lock, however many are sent (P4). It waits for end_work without that
 * place, so it delays no other upgrade. A group moves once for each of its writers, so the loop
 * mostly waits once.
 */
static int xk_upgrade(struct xk_client *client, struct xmem_upgrade_request *request,
		      bool *ret_reap)
{
	struct xk_pool *pool = client->pool;
	int err;

	do {
		if (mutex_lock_killable(&pool->upgrade_lock))
			return -EINTR;
		err = xk_upgrade_once(client, request, ret_reap);
		mutex_unlock(&pool->upgrade_lock);
	} while (err == -EINPROGRESS && !xk_end_wait(pool));
	return err == -EINPROGRESS ? -EINTR : err;
}

int xk_upgrade_begin(struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;
	bool reap = false;
	int err = xk_upgrade(call->client, &call->u.upgrade, &reap);

	if (reap)
		xk_end_wait(pool);
	return err;
}
