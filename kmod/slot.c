// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request `slot`: resolve (make a SCANNING slot LIVE), collect (ask for the reaping of a slot),
 * renew (give a slot a new range of generations). Detaching is in attach.c.
 */
#include <linux/random.h>

#include "xk.h"

/* Read the state word of a slot that the caller holds and believes to be SCANNING. */
static int xk_resolve_look(struct xk_client *client, const struct xmem_slot_request *request,
			   u64 *word)
{
	const struct xm_map *map = &client->pool->host.map;
	int err = xk_client_lock(client);
	u32 slot = xm_index(request->slot, map->slots);

	if (err)
		return err;
	if (!map->group[slot / XMEM_GROUP_SLOTS]) {
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

static int xk_resolve(struct xk_client *client, const struct xmem_slot_request *request)
{
	u64 word;
	int err = xk_resolve_look(client, request, &word);

	if (err)
		return err;
	if (xm_state(word) != XMEM_SLOT_SCANNING)
		return -EAGAIN;
	/* Without the pause a holder could keep a living owner from ever finishing a scan. */
	err = xk_pause();
	if (err)
		return err;
	err = xk_client_lock(client);
	if (err)
		return err;
	err = xm_host_resolve(&client->pool->host, client->id, request->slot, word);
	mutex_unlock(&client->pool->lock);
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
static int xk_collect(struct xk_client *client, const struct xmem_slot_request *request)
{
	const struct xm_map *map = &client->pool->host.map;
	u32 slot = xm_index(request->slot, map->slots);

	if (xm_holds_count(map, client->id, slot))
		xk_reclaim_later(client->pool, slot);
	return 0;
}

static int xk_renew_once(struct xk_client *client, struct xmem_slot_request *request)
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
static int xk_renew(struct xk_client *client, struct xmem_slot_request *request)
{
	int err;

	while ((err = xk_renew_once(client, request)) == -EALREADY) {
		err = xk_pause();
		if (err)
			return err;
	}
	return err;
}

int xk_slot_begin(struct xk_call *call)
{
	struct xmem_slot_request *request = &call->u.slot;
	int err = xm_slot_check(&call->client->pool->host.map, request);

	if (err)
		return err;
	switch (request->op) {
	case XMEM_OP_RESOLVE:
		return xk_resolve(call->client, request);
	case XMEM_OP_COLLECT:
		return xk_collect(call->client, request);
	case XMEM_OP_RENEW:
		return xk_renew(call->client, request);
	}
	return xk_detach(call->client, request);
}
