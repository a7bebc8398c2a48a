// SPDX-License-Identifier: MIT
/*
 * Wake-ups of clients that sleep on a waiters word in the pool's pages.
 */
#include "lib/host/futex.h"
#include "daemon.h"

void xd_wake(u32 *waiters)
{
	if (xm_disarm(waiters))
		xm_futex_wake_all(waiters);
}

/*
 * Wake whatever the word says: its last waker may have died between disarming the word and waking.
 */
static void wake_anyhow(u32 *waiters)
{
	xm_disarm(waiters);
	xm_futex_wake_all(waiters);
}

void xd_pool_wake_owners(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	for (c = 0; c < map->clients; c++)
		xd_wake(&xm_client_row(map, c)->slots_waiters);
}

void xd_wake_rings(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	for (c = 0; c < map->clients; c++)
		xd_wake(&xm_client_row(map, c)->ring_waiters);
}

void xd_wake_everybody(struct xd_pool *pool)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	wake_anyhow(&map->pool->clients_waiters);
	for (c = 0; c < map->clients; c++) {
		struct xmem_client_row *row = xm_client_row(map, c);

		if (!xm_load(&row->incarnation))
			continue;
		wake_anyhow(&row->ring_waiters);
		wake_anyhow(&row->slots_waiters);
	}
}
