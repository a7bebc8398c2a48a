// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The layout of a pool: where each part of its pages begins, and what the header says about it.
 */
#include "access.h"
#include "host.h"

#define ROUND_UP(n, to)	(((n) + (to) - 1) / (to) * (to))

void xm_layout_place(struct xmem_pool_header *header, u64 page)
{
	u64 slots = header->slots, clients = header->clients, end;

	header->clients_offset = sizeof(*header);
	end = header->clients_offset + clients * header->client_row_stride;
	header->slots_offset = ROUND_UP(end, 64);
	end = header->slots_offset + slots * header->slot_row_stride;
	header->devices_offset = ROUND_UP(end, 64);
	end = header->devices_offset + header->devices * (u64)header->devices_stride;
	header->group_rows_offset = ROUND_UP(end, 64);
	end = header->group_rows_offset + slots / XMEM_GROUP_SLOTS * sizeof(struct xmem_group_row);
	header->groups_offset = ROUND_UP(end, page);

	/*
	 * The state words have 4 KiB to themselves: a client that reads another owner's reads no
	 * metadata.
	 */
	header->ready_offset = sizeof(struct xmem_group);
	end = header->ready_offset + XMEM_GROUP_SLOTS * sizeof(u64);
	header->metadata_offset = ROUND_UP(end, 4096);
	end = header->metadata_offset + XMEM_GROUP_SLOTS * (u64)header->metadata_stride;
	header->group_stride = ROUND_UP(end, page);
	header->areas_offset = header->groups_offset +
			       slots / XMEM_GROUP_SLOTS * header->group_stride;

	header->ring_offset = clients * header->cursor_stride;
	header->entries_offset = header->ring_offset + sizeof(struct xmem_ring);
	header->holds_offset = header->entries_offset +
			       header->ring_entries * (u64)header->entry_stride;
	end = header->holds_offset + 16 * 256 + slots * sizeof(u32);
	header->area_stride = ROUND_UP(end, page);
	header->total_bytes = header->areas_offset + clients * header->area_stride;
}

int xm_host_layout(const struct xmem_join_request *join, u64 page, struct xmem_pool_header *header)
{
	u64 slots = join->slots ? ROUND_UP((u64)join->slots, XMEM_GROUP_SLOTS) : 1024;
	u64 clients = join->clients ? join->clients : 64;
	u64 ring = join->ring_entries ? join->ring_entries : 64;
	u32 i;

	if (slots > XMEM_MAX_SLOTS || clients > XMEM_MAX_CLIENTS || !xm_join_names_well(join) ||
	    ring < 4 || ring > XMEM_MAX_RING || ring & (ring - 1))
		return -EINVAL;
	*header = (struct xmem_pool_header){
		.magic = XMEM_MAGIC, .abi = XMEM_ABI,
		.slots = slots, .clients = clients, .ring_entries = ring,
		.devices = XMEM_MAX_DEVICES,
	};
	header->devices_stride = sizeof(struct xmem_device_row);
	header->client_row_stride = sizeof(struct xmem_client_row);
	header->slot_row_stride = sizeof(struct xmem_slot_row);
	header->cursor_stride = sizeof(struct xmem_cursor);
	header->entry_stride = sizeof(struct xmem_entry);
	header->metadata_stride = sizeof(struct xmem_metadata);
	xm_layout_place(header, page);
	for (i = 0; i < XMEM_NAME_BYTES; i++)
		header->name[i] = join->name[i];
	return 0;
}

void xm_set_bit(u64 *words, u32 bit, bool on)
{
	if (xm_bit(words, bit) != on)
		xm_store_release(&words[bit / 64], xm_load(&words[bit / 64]) ^ 1ULL << bit % 64);
}

void xm_map_pool(struct xm_map *map, void *base, const struct xmem_pool_header *pool)
{
	map->pool = base;
	map->client_rows = (char *)base + pool->clients_offset;
	map->slot_rows = (char *)base + pool->slots_offset;
	map->clients = pool->clients;
	map->slots = pool->slots;
	map->ring_mask = pool->ring_entries - 1;
	map->groups = pool->slots / XMEM_GROUP_SLOTS;
	map->client_row_stride = pool->client_row_stride;
	map->slot_row_stride = pool->slot_row_stride;
	map->cursor_stride = pool->cursor_stride;
	map->entry_stride = pool->entry_stride;
	map->metadata_stride = pool->metadata_stride;
	map->metadata_offset = pool->metadata_offset;
	map->ready_offset = pool->ready_offset;
	map->device_rows = (char *)base + pool->devices_offset;
	map->device_row_stride = pool->devices_stride;
	map->group_rows = (void *)((char *)base + pool->group_rows_offset);
	map->ring_offset = pool->ring_offset;
	map->entries_offset = pool->entries_offset;
	map->holds_offset = pool->holds_offset;
}

int xm_host_fits(const struct xm_map *map, const struct xmem_join_request *join)
{
	return join->slots > map->slots || join->clients > map->clients ||
	       join->ring_entries > map->ring_mask + 1 ? -ERANGE : 0;
}

void xm_host_init(struct xm_host *host, struct xmem_pool_header *pool)
{
	u32 i;

	xm_map_pool(&host->map, pool, pool);
	host->incarnations = 0;
	host->last_payload = XM_PAYLOAD_BEFORE;
	host->first_tenancies = 0;
	host->map.pool->host = XMEM_HOST_ALIVE;
	for (i = 0; i < host->map.slots; i++) {
		xm_slot_row(&host->map, i)->owner = XMEM_OWNER_NONE;
		xm_slot_row(&host->map, i)->tenant = XMEM_OWNER_NONE;
		xm_slot_row(&host->map, i)->generation_first = XM_NO_GENERATIONS;
	}
	for (i = 0; i < host->map.groups; i++)
		host->group_owner[i] = host->group_tenant[i] = XMEM_OWNER_NONE;
}
