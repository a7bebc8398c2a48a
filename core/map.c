// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A mapping of the pages as a struct xm_map. A client does not trust the header that it reads. */
#include "host.h"

/* Is there room from @from to @to for @count items of @stride bytes, each at least @least long? */
static bool xm_room(u64 from, u64 to, u64 count, u64 stride, u64 least)
{
	return stride >= least && from <= to && stride <= (to - from) / count;
}

/*
 * Can every word be changed atomically where it is, and does every mapping consist of whole pages?
 */
static bool xm_aligned(const struct xmem_pool_header *pool)
{
	u64 words = pool->clients_offset | pool->slots_offset | pool->client_row_stride |
		    pool->slot_row_stride | pool->cursor_stride | pool->entry_stride |
		    pool->metadata_stride | pool->metadata_offset | pool->ring_offset |
		    pool->entries_offset | pool->holds_offset | pool->ready_offset |
		    pool->devices_offset | pool->devices_stride |
		    pool->group_rows_offset;
	u64 pages = pool->groups_offset | pool->group_stride | pool->areas_offset |
		    pool->area_stride;

	return !(words % sizeof(u64)) && !(pages % 4096);
}

int xm_layout_check(const struct xmem_pool_header *pool, u64 bytes)
{
	u64 groups = pool->slots / XMEM_GROUP_SLOTS, holds = 16 * 256 + pool->slots * sizeof(u32);

	if (bytes < sizeof(*pool) || pool->magic != XMEM_MAGIC || pool->total_bytes != bytes ||
	    pool->abi < XMEM_ABI_OLDEST || pool->incompat & ~XMEM_INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	if (!groups || pool->slots % XMEM_GROUP_SLOTS || pool->slots > XMEM_MAX_SLOTS ||
	    !pool->clients || pool->clients > XMEM_MAX_CLIENTS || !pool->ring_entries ||
	    pool->devices != XMEM_MAX_DEVICES ||
	    pool->ring_entries > XMEM_MAX_RING || pool->ring_entries & (pool->ring_entries - 1))
		return -EPROTONOSUPPORT;
	if (pool->clients_offset < sizeof(*pool) || !xm_aligned(pool))
		return -EPROTONOSUPPORT;
	if (!xm_room(pool->clients_offset, pool->slots_offset, pool->clients,
		     pool->client_row_stride, sizeof(struct xmem_client_row)) ||
	    !xm_room(pool->slots_offset, pool->devices_offset, pool->slots,
		     pool->slot_row_stride, sizeof(struct xmem_slot_row)) ||
	    !xm_room(pool->devices_offset, pool->group_rows_offset, XMEM_MAX_DEVICES,
		     pool->devices_stride, sizeof(struct xmem_device_row)) ||
	    !xm_room(pool->group_rows_offset, pool->groups_offset, groups,
		     sizeof(struct xmem_group_row), sizeof(struct xmem_group_row)) ||
	    !xm_room(pool->groups_offset, pool->areas_offset, groups,
		     pool->group_stride, sizeof(struct xmem_group)) ||
	    !xm_room(0, pool->ready_offset, 1,
		     sizeof(struct xmem_group), sizeof(struct xmem_group)) ||
	    !xm_room(pool->ready_offset, pool->metadata_offset, XMEM_GROUP_SLOTS,
		     sizeof(u64), sizeof(u64)) ||
	    !xm_room(pool->metadata_offset, pool->group_stride, XMEM_GROUP_SLOTS,
		     pool->metadata_stride, sizeof(struct xmem_metadata)) ||
	    !xm_room(pool->areas_offset, bytes, pool->clients, pool->area_stride, holds))
		return -EPROTONOSUPPORT;
	if (!xm_room(0, pool->ring_offset, pool->clients,
		     pool->cursor_stride, sizeof(struct xmem_cursor)) ||
	    !xm_room(pool->ring_offset, pool->entries_offset, 1,
		     sizeof(struct xmem_ring), sizeof(struct xmem_ring)) ||
	    !xm_room(pool->entries_offset, pool->holds_offset, pool->ring_entries,
		     pool->entry_stride, sizeof(struct xmem_entry)) ||
	    !xm_room(pool->holds_offset, pool->area_stride, 1, holds, holds))
		return -EPROTONOSUPPORT;
	return 0;
}

void xm_map_init(struct xm_map *map, void *base, const struct xmem_pool_header *pool)
{
	u32 i;

	xm_map_pool(map, base, pool);
	for (i = 0; i < map->clients; i++)
		map->area[i] = (char *)base + pool->areas_offset + i * pool->area_stride;
	for (i = 0; i < map->groups; i++)
		map->group[i] = (void *)((char *)base + pool->groups_offset +
					 i * pool->group_stride);
}

int xm_map_take(struct xm_map *map, void *base, u64 bytes, u32 client,
		struct xmem_pool_header *ret_header)
{
	int err;

	if (bytes < sizeof(*ret_header))
		return -EPROTONOSUPPORT;
	*ret_header = *(struct xmem_pool_header *)base;
	err = xm_layout_check(ret_header, bytes);
	if (err)
		return err;
	if (client >= ret_header->clients)
		return -EPROTONOSUPPORT;
	xm_map_init(map, base, ret_header);
	return 0;
}
