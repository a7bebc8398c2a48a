// SPDX-License-Identifier: MIT
/*
 * What is in a pool, read from its pages.
 */
#include "private.h"

static u64 holds_of(const struct xm_map *map, u32 slot)
{
	u64 holds = 0;
	u32 c;

	for (c = 0; c < map->clients; c++)
		if (xm_bit(map->pool->counted, c))
			holds += xm_load(xm_hold(map, c, slot)) & XM_HOLD_COUNT;
	return holds;
}

static void stat_slot(const struct xm_map *map, u32 slot, struct xmem_pool_info *stat)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);
	u64 holds = holds_of(map, slot);

	stat->holds += holds;
	stat->held += holds != 0;
	if (owner == XMEM_OWNER_NONE)
		return;
	stat->attached++;
	stat->bytes += xm_slot_row(map, slot)->length;
	stat->limbo += owner == XMEM_OWNER_HOST;
	switch (xm_state(xm_load(&xm_slot(map, slot)->state))) {
	case XMEM_SLOT_FREE:	stat->free++; break;
	case XMEM_SLOT_WRITING:	stat->writing++; break;
	default:		stat->live++; break;
	}
}

XMEM_API int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_stat)
{
	struct xmem_pool_info stat = { .size = sizeof(stat) };
	u32 i;

	if (!pool || !ret_stat || ret_stat->size != sizeof(stat))
		return xl_fail_fast(
			EINVAL,
			"xmem_pool_stat: no pool, or size is not sizeof(struct xmem_pool_info)");
	if (!xl_alive(pool))
		return xl_fail_forked();
	stat.slots = pool->map.slots;
	for (i = 0; i < pool->map.slots; i++)
		stat_slot(&pool->map, i, &stat);
	for (i = 0; i < pool->map.clients; i++) {
		stat.clients += xm_load(&xm_client_row(&pool->map, i)->state) == XMEM_CLIENT_ALIVE;
		stat.zombies += xm_load(&xm_client_row(&pool->map, i)->state) == XMEM_CLIENT_ZOMBIE;
	}
	*ret_stat = stat;
	return 0;
}
