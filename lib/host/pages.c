// SPDX-License-Identifier: MIT
/* Reads a pool's pages for the slow paths of the library: pages.h. */
#include "lib/host/pages.h"

bool xl_keeps(const struct xm_map *map, u32 client, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u32 tenant = xm_load(&row->tenant);
	u64 cursor, position;

	if (xm_load(&row->owner) != XMEM_OWNER_HOST)
		return false;
	if (xl_holds(map, client, slot))
		return true;
	if (tenant >= map->clients || !xm_bit(xm_client_row(map, tenant)->subscribers, client))
		return false;
	cursor = xm_load_acquire(xm_cursor(map, client, tenant));
	position = xm_load(&xm_slot(map, slot)->position);
	return position > cursor && position < XMEM_POSITION_IN_HAND;
}
