// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reaping: what ended clients have left is freed when nobody has it any more: payloads of
 * slots, groups of slots, and with the rings the clients. leave.c ends a client.
 */
#include "xk.h"
#include "trace.h"

static void xk_remove_group(struct xk_pool *pool, u32 group)
{
	struct xk_chunk *chunk;

	pool->host.map.group[group] = NULL;
	chunk = xk_chunk_take(pool, &pool->group[group]);
	xk_zap_groups(pool, group, group);
	xk_chunk_free(pool, chunk);
}

static void xk_remove_client(struct xk_pool *pool, u32 id)
{
	struct xk_client *client = pool->client[id];
	struct xk_chunk *chunk;

	trace_xmem_client_bury(pool->number, id, client->incarnation);
	pool->host.map.area[id] = NULL;
	chunk = xk_chunk_take(pool, &pool->area[id]);
	xk_zap_area(pool, id);
	xk_chunk_free(pool, chunk);
	pool->client[id] = NULL;
	/* Nobody finds them here any more, so they hear of the end now. */
	RCU_INIT_POINTER(pool->pollers[id], NULL);
	xk_pollers_wake(client->pollers, XK_POLL_ALL);
	xk_client_put(client);
}

/* If the slot is the host's and nobody holds it, its payload goes. true: it was freed. */
static bool xk_free_slot(struct xk_pool *pool, u32 slot)
{
	u32 payload;

	if (xm_slot_row(&pool->host.map, slot)->owner != XMEM_OWNER_HOST)
		return false;
	payload = xm_host_reclaim(&pool->host, slot);
	if (!payload)
		return false;
	trace_xmem_reclaim(pool->number, slot, payload);
	xk_payload_drop_slots(pool, payload, 1);
	return true;
}

static bool xk_bury_zombies(struct xk_pool *pool)
{
	bool any = false;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		if (!xm_host_bury(&pool->host, c))
			continue;
		xk_remove_client(pool, c);
		any = true;
	}
	return any;
}

/* Reaps one slot, after a holder has put its last hold. true: it was freed. */
bool xk_reclaim_slot(struct xk_pool *pool, u32 slot)
{
	u32 group = slot / XMEM_GROUP_SLOTS;

	lockdep_assert_held(&pool->lock);
	if (!xk_free_slot(pool, slot))
		return false;
	if (xm_host_idle_group(&pool->host, group))
		xk_remove_group(pool, group);
	/* A ring that goes frees the slots that only it kept: its subscribers skipped them. */
	if (xk_bury_zombies(pool))
		xk_reap(pool);
	else
		xk_sysfs_sync(pool);
	return true;
}

/* Reaps all that ended clients have left and nobody has any more. */
void xk_reap(struct xk_pool *pool)
{
	u32 s, g;

	lockdep_assert_held(&pool->lock);
	for (s = 0; s < pool->host.map.slots; s++) {
		xk_free_slot(pool, s);
		if (s % XMEM_GROUP_SLOTS == XMEM_GROUP_SLOTS - 1)
			cond_resched();
	}
	for (g = 0; g < pool->host.map.groups; g++)
		if (xm_host_idle_group(&pool->host, g) && pool->group[g])
			xk_remove_group(pool, g);
	xk_bury_zombies(pool);
	xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
	xk_sysfs_sync(pool);
}

/* Nobody uses the pool, so zombies and slots that are held go too. */
void xk_empty_pool(struct xk_pool *pool)
{
	struct xm_map *map = &pool->host.map;
	u32 i;

	for (i = 0; i < map->groups; i++)
		if (pool->group[i])
			xk_remove_group(pool, i);
	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		xm_store(&map->pool->counted[i], 0);
	for (i = 0; i < map->clients; i++) {
		xm_store(&xm_client_row(map, i)->state, XMEM_CLIENT_NONE);
		if (pool->client[i])
			xk_remove_client(pool, i);
	}
	for (i = 0; i < map->slots; i++)
		xm_store(&xm_slot_row(map, i)->owner, XMEM_OWNER_NONE);
	xk_payload_drop_all(pool);
	pool->dead = true;
	xk_sysfs_sync(pool);
}
