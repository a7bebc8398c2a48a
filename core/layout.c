// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The layout of a pool: where each part of its pages begins, what the header
 * says of it, and how a mapping of it becomes a struct xm_map.
 */
#include "host.h"

#define ROUND_UP(n, to)	(((n) + (to) - 1) / (to) * (to))

static bool xm_good_name(const __u8 *name)
{
	u32 i;

	for (i = 0; i < XMEM_NAME_BYTES; i++) {
		__u8 c = name[i];

		if (!c)
			return true;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || (c == '.' && i)))
			return false;
	}
	return false;	/* no NUL */
}

int xm_host_layout(const struct xmem_join_request *join, u64 page, struct xmem_pool_header *header)
{
	u64 slots = join->slots ? ROUND_UP((u64)join->slots, XMEM_GROUP_SLOTS) : 1024;
	u64 clients = join->clients ? join->clients : 64;
	u64 ring = join->ring_entries ? join->ring_entries : 64;
	u32 i;

	if (slots > XMEM_MAX_SLOTS || clients > XMEM_MAX_CLIENTS || !xm_good_name(join->name) ||
	    ring < 4 || ring > XMEM_MAX_RING || ring & (ring - 1))
		return -EINVAL;
	*header = (struct xmem_pool_header){
		.magic = XMEM_MAGIC, .abi = XMEM_ABI,
		.slots = slots, .clients = clients, .ring_entries = ring,
	};
	header->clients_offset = sizeof(*header);
	header->slots_offset = header->clients_offset + clients * sizeof(struct xmem_client_row);
	header->slots_offset = ROUND_UP(header->slots_offset, 64);
	header->groups_offset = ROUND_UP(header->slots_offset + slots * sizeof(struct xmem_slot_row), page);
	header->group_stride = ROUND_UP(sizeof(struct xmem_group), page);
	header->areas_offset = header->groups_offset + slots / XMEM_GROUP_SLOTS * header->group_stride;
	header->ring_offset = clients * sizeof(struct xmem_cursor);
	header->holds_offset = header->ring_offset + sizeof(struct xmem_ring) + ring * sizeof(struct xmem_entry);
	header->area_stride = ROUND_UP(header->holds_offset + 16 * 256 + slots * sizeof(u32), page);
	header->total_bytes = header->areas_offset + clients * header->area_stride;
	for (i = 0; i < XMEM_NAME_BYTES; i++)
		header->name[i] = join->name[i];
	return 0;
}

static void xm_map_pool(struct xm_map *map, struct xmem_pool_header *pool)
{
	map->pool = pool;
	map->client = (struct xmem_client_row *)((char *)pool + pool->clients_offset);
	map->row = (struct xmem_slot_row *)((char *)pool + pool->slots_offset);
	map->clients = pool->clients;
	map->slots = pool->slots;
	map->ring_mask = pool->ring_entries - 1;
	map->groups = pool->slots / XMEM_GROUP_SLOTS;
	map->ring_offset = pool->ring_offset;
	map->holds_offset = pool->holds_offset;
}

void xm_map_init(struct xm_map *map, void *base)
{
	struct xmem_pool_header *pool = base;
	u32 i;

	xm_map_pool(map, pool);
	for (i = 0; i < map->clients; i++)
		map->area[i] = (char *)base + pool->areas_offset + i * pool->area_stride;
	for (i = 0; i < map->groups; i++)
		map->group[i] = (struct xmem_group *)((char *)base + pool->groups_offset + i * pool->group_stride);
}

void xm_host_init(struct xm_host *host, struct xmem_pool_header *pool)
{
	u32 i;

	xm_map_pool(&host->map, pool);
	host->incarnations = 0;
	for (i = 0; i < host->map.slots; i++) {
		xm_slot_row(&host->map, i)->owner = XMEM_OWNER_NONE;
		xm_slot_row(&host->map, i)->tenant = XMEM_OWNER_NONE;
		xm_slot_row(&host->map, i)->generation_first = XM_NO_GENERATIONS;
	}
	for (i = 0; i < host->map.groups; i++)
		host->group_owner[i] = XMEM_OWNER_NONE;
}
