// SPDX-License-Identifier: MIT
/*
 * Freeing the rings, ids, slots and groups that only ended clients have used. core/reclaim.c says
 * when nobody uses a slot any more.
 */
#include <fcntl.h>
#include <string.h>

#include "daemon.h"

/* ---- rings and ids ---- */

/* Replace pages by fresh ones, because the old pages may still be pinned. */
static void replace_pages(struct xd_pool *pool, void *at, u64 bytes)
{
	if (fallocate(pool->pages, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (char *)at - pool->base, bytes))
		memset(at, 0, bytes);
}

/* true: slots that were in flight in the client's ring may be free now. */
static bool bury(struct xd_pool *pool, u32 client)
{
	enum xm_buried buried = xm_host_bury(&pool->host, client);

	if (buried != XM_BURIED)
		return buried == XM_BURIED_RING;
	replace_pages(pool, pool->host.map.area[client], pool->layout.area_stride);
	return true;
}

/* Bury all rings that can be. true: there were some. */
static bool bury_all(struct xd_pool *pool)
{
	bool any = false;
	u32 i;

	for (i = 0; i < pool->host.map.clients; i++)
		any |= bury(pool, i);
	return any;
}

/* ---- slots and groups ---- */

/* As xm_host_sweep. The payload of a freed slot has one slot less. */
static int sweep_step(struct xd_pool *pool, struct xm_sweep *sweep)
{
	u64 payload;
	int slot = xm_host_sweep(&pool->host, sweep, &payload);

	if (slot >= 0)
		xd_payload_put(pool, payload, 1);
	return slot;
}

/* Free the suspected slots that nobody uses. true: there were some. */
static bool sweep(struct xd_pool *pool)
{
	struct xm_sweep sweep = { .stage = 0 };
	bool any = false;
	int slot;

	while ((slot = sweep_step(pool, &sweep)) != -ENOENT)
		any |= slot >= 0;
	return any;
}

/* Free a group. Any writer may be waiting for its slots. */
static void free_group(struct xd_pool *pool, u32 group)
{
	if (!xm_host_idle_group(&pool->host, group))
		return;
	xm_host_give_group(&pool->host, group, XMEM_OWNER_NONE);
	replace_pages(pool, pool->host.map.group[group], pool->layout.group_stride);
	xd_pool_wake_owners(pool);
}

/* ---- all of it ---- */

/*
 * Rings come first, because a slot may be in flight in a ring that nobody follows any more. They
 * come again after each sweep, because a subscriber may have received the rest of a ring during it.
 * That subscriber asks the daemon to look at the slot that it puts. But if the sweep has already
 * freed the slot, the daemon does not look, and nobody asks for the ring again.
 */
void xd_reap_begin(struct xd_pool *pool)
{
	pool->reap = (struct xd_reap){ .stage = XD_REAP_CLIENTS };
}

static void begin_stage(struct xd_pool *pool, int stage)
{
	pool->reap.stage = stage;
	pool->reap.at = 0;
	if (stage != XD_REAP_SLOTS)
		return;
	pool->reap.more = false;
	pool->reap.swept = true;
	pool->reap.sweep = (struct xm_sweep){ .stage = 0 };
	xm_host_suspect_all(&pool->host);
}

bool xd_reap_step(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	struct xd_reap *reap = &pool->reap;
	int slot;

	if (reap->stage == XD_REAP_CLIENTS && reap->at < map->clients) {
		reap->more |= bury(pool, reap->at++);
		reap->gone |= reap->more;
	} else if (reap->stage == XD_REAP_CLIENTS) {
		begin_stage(pool, reap->more || !reap->swept ? XD_REAP_SLOTS : XD_REAP_GROUPS);
	} else if (reap->stage == XD_REAP_SLOTS) {
		slot = sweep_step(pool, &reap->sweep);
		reap->gone |= slot >= 0;
		if (slot == -ENOENT)
			begin_stage(pool, XD_REAP_CLIENTS);
	} else if (reap->at < map->groups) {
		free_group(pool, reap->at++);
	} else {
		reap->stage = XD_REAP_NOT;
		if (reap->gone) {
			xd_wake(&map->pool->clients_waiters);
			xd_pool_wake_owners(pool);
		}
	}
	return reap->stage;
}

void xd_pool_reap(struct xd_pool *pool)
{
	if (xd_pool_has_ends(pool))
		return;
	xd_reap_begin(pool);
	while (xd_reap_step(pool))
		;
}

/* ---- one slot ---- */

/* A ring has gone: ids and slots may be free now, and other writers may get its group. */
static void buried(struct xd_pool *pool)
{
	xd_wake(&pool->host.map.pool->clients_waiters);
	xd_pool_wake_owners(pool);
	xd_pool_reap(pool);
}

/*
 * The put can have freed only this slot. But a subscriber may have received the ring of the slot's
 * publisher to its end. Then other slots are free as well, so the pool is reaped, once for each
 * ring.
 */
void xd_pool_collect(struct xd_pool *pool, u32 slot)
{
	const struct xm_map *map = &pool->host.map;
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u32 tenant = row->tenant;
	bool any;

	if (row->owner != XMEM_OWNER_HOST || xd_pool_has_ends(pool))
		return;
	if (tenant < map->clients && bury(pool, tenant)) {
		buried(pool);
		return;
	}
	xm_host_suspect(&pool->host, slot);
	any = sweep(pool);
	free_group(pool, slot / XMEM_GROUP_SLOTS);
	if (any)
		xd_pool_wake_owners(pool);	/* they may get slots of a group that was left */
	/*
	 * Another subscriber may have received the rest of a ring during the sweep: see
	 * xd_reap_begin.
	 */
	if (any && bury_all(pool))
		buried(pool);
}
