/* SPDX-License-Identifier: MIT */
/* Functions that read a pool's pages, for the slow paths of the library. */
#ifndef XMEM_PAGES_H
#define XMEM_PAGES_H

#include "core/limbo.h"
#include "core/policy.h"
#include "lib/private.h"

/* How often does @client hold @slot? 0 if its holds do not count there. */
static inline u32 xl_holds(const struct xm_map *map, u32 client, u32 slot)
{
	if (!xm_holds_count(map, client, slot))
		return 0;
	return xm_holds_of(map, client, slot, xm_hold(map, client, slot));
}

/* Does @client keep this slot of an ended owner: held, or not received yet? (pool/info.c) */
bool xl_keeps(const struct xm_map *map, u32 client, u32 slot);

static inline u64 xl_holds_of_slot(const struct xm_map *map, u32 slot)
{
	u64 holds = 0;
	u32 c;

	for (c = 0; c < map->clients; c++)
		holds += xl_holds(map, c, slot);
	return holds;
}

/*
 * How many publications in @publisher's ring has @client not received yet? Both clients write their
 * own positions, and may go on meanwhile. The result is at most what the ring can have.
 */
static inline u64 xl_behind(const struct xm_map *map, u32 client, u32 publisher)
{
	u64 cursor = xm_load_acquire(xm_cursor(map, client, publisher));
	u64 tail = xm_load_acquire(&xm_ring(map, publisher)->tail);

	if (cursor >= tail)
		return 0;
	return tail - cursor <= map->ring_mask ? tail - cursor : (u64)map->ring_mask + 1;
}

/* How many clients follow @publisher? */
static inline u32 xl_count_subscribers(const struct xm_map *map, u32 publisher)
{
	u32 count = 0, c;

	for (c = 0; c < map->clients; c++)
		count += xm_is_subscriber(map, publisher, c);
	return count;
}

#endif
