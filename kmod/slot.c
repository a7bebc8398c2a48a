// SPDX-License-Identifier: GPL-2.0-only
/*
 * The requests of one slot: resolve (make a SCANNING slot LIVE), collect (reap it), renew (give it
 * a new tenancy). attach.c has detach.
 */
#include <linux/random.h>

#include "xk.h"

/* Read the state word of a slot that the caller holds and believes to be SCANNING. */
static int xk_resolve_look(struct xk_client *client, const struct xmem_slot_request *request,
			   u64 *word)
{
	const struct xm_map *map = &client->pool->host.map;
	int err = xk_client_lock(client);
	u32 slot;

	if (err)
		return err;
	slot = xm_index(request->slot, map->slots);
	if (request->slot >= map->slots || !map->group[slot / XMEM_GROUP_SLOTS]) {
		err = -EINVAL;
	} else if (!(xm_load(xm_hold(map, client->id, slot)) & XM_HOLD_COUNT)) {
		err = -EPERM;
	} else {
		*word = xm_load_acquire(&xm_slot(map, slot)->state);
		if (xm_generation(*word) != request->generation)
			err = -ESTALE;
	}
	mutex_unlock(&client->pool->lock);
	return err;
}

int xk_resolve_begin(struct xk_call *call)
{
	u64 word;
	int err = xk_resolve_look(call->client, &call->u.slot, &word);

	if (err)
		return err;
	if (xm_state(word) != XMEM_SLOT_SCANNING)
		return -EAGAIN;
	/* Without the pause a holder could keep a living owner from ever finishing a scan. */
	err = xk_pause();
	if (err)
		return err;
	err = xk_client_lock(call->client);
	if (err)
		return err;
	err = xm_host_resolve(&call->client->pool->host, call->client->id, call->u.slot.slot,
			      word);
	mutex_unlock(&call->client->pool->lock);
	return err;
}

/*
 * collect takes no lock and waits for nothing, because a client that drops the last hold of a slot
 * without an owner does so in the middle of its own work.
 *
 * A client that may not hold slots of that group has dropped nothing that kept the slot, so there
 * is nothing to do. A client that could once hold them still can, as long as it lives and these
 * contents last (core/holders.c).
 */
int xk_collect_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	const struct xm_map *map = &client->pool->host.map;
	u32 slot = call->u.slot.slot;

	if (call->u.slot.generation || slot >= map->slots)
		return -EINVAL;
	slot = xm_index(slot, map->slots);
	if (xm_holds_count(map, client->id, slot))
		xk_reclaim_later(client->pool, slot);
	return 0;
}

static int xk_renew(struct xk_client *client, struct xmem_slot_request *request)
{
	int err = xk_client_lock(client);

	if (err)
		return err;
	xk_clock_set(client->pool);
	err = xm_host_renew(&client->pool->host, client->id, get_random_u64(), request);
	mutex_unlock(&client->pool->lock);
	return err;
}

/*
 * Every call uses up one of the slot's 2^24 tenancies, as an attach does. So a slot has a clock: a
 * call in the same millisecond as another one, from any thread, waits for the next millisecond.
 */
int xk_renew_begin(struct xk_call *call)
{
	int err;

	while ((err = xk_renew(call->client, &call->u.slot)) == -EALREADY) {
		err = xk_pause();
		if (err)
			return err;
	}
	return err;
}
