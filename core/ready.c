// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Ready words after their owner's end: its GPU may go on writing them until its process has exited.
 * After that nobody waits for them any more. A group whose words may still be written after its
 * owner's end is *late*.
 */
#include "host.h"

/* ---- the words of one group ---- */

/* Are the contents of the i-th slot of @group incomplete, by what their owner says? */
static bool xm_is_incomplete(const struct xm_map *map, void *group, u32 i)
{
	const struct xmem_metadata *metadata = (void *)((char *)group + map->metadata_offset +
							i * map->metadata_stride);
	const u64 *ready = (void *)((char *)group + map->ready_offset);
	u64 value = xm_load(&metadata->order_value);

	return value && xm_load(&metadata->order_kind) != XMEM_ORDER_NONE &&
	       xm_load_acquire(&ready[i]) - value > ~0ULL >> 1;
}

bool xm_ready_used(const struct xm_map *map, u32 g)
{
	u32 s;

	for (s = g * XMEM_GROUP_SLOTS; s < (g + 1) * XMEM_GROUP_SLOTS; s++)
		if (xm_slot_row(map, s)->traits & XMEM_TRAIT_CUDA)
			return true;
	return false;
}

/*
 * The metadata are no proof: the owner may have given a stream another value to wait for. So the
 * word becomes larger than any value, whether the contents are complete or not.
 */
static void xm_end_word(const struct xm_map *map, void *group, u32 i)
{
	u64 *ready = (void *)((char *)group + map->ready_offset);

	xm_store_release(&ready[i], xm_is_incomplete(map, group, i) ? XMEM_READY_ENDED :
								     XMEM_READY_OVER);
}

void xm_ready_end(const struct xm_map *map, void *group)
{
	u32 i;

	for (i = 0; i < XMEM_GROUP_SLOTS; i++)
		xm_end_word(map, group, i);
}

void xm_ready_end_old(const struct xm_map *map, u32 g, void *old)
{
	void *group = map->group[g];
	u64 *ready = (void *)((char *)group + map->ready_offset);
	u32 i;

	for (i = 0; i < XMEM_GROUP_SLOTS; i++) {
		if (!xm_is_incomplete(map, old, i) && xm_is_incomplete(map, group, i))
			xm_store_release(&ready[i], XMEM_READY_OVER);
		xm_end_word(map, old, i);
	}
}

/* ---- late groups ---- */

/*
 * This does not depend on whether anybody can receive the contents: a copy may still be reading a
 * slot that is being written or was released, and no other client may get the word before that is
 * over.
 */
bool xm_mark_late(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	bool incomplete = false;
	u32 g, i;

	for (g = 0; g < map->groups; g++) {
		if (host->group_owner[g] != client || !xm_ready_used(map, g))
			continue;
		host->late_owner[g] = client + 1;
		for (i = 0; i < XMEM_GROUP_SLOTS; i++)
			incomplete |= xm_slot_row(map, g * XMEM_GROUP_SLOTS + i)->traits &
				      XMEM_TRAIT_CUDA &&
				      xm_is_incomplete(map, map->group[g], i);
	}
	return incomplete;
}

void xm_clear_late(struct xm_host *host, u32 client)
{
	u32 g;

	for (g = 0; g < host->map.groups; g++) {
		if (host->late_owner[g] != client + 1)
			continue;
		host->late_owner[g] = 0;
		xm_ready_end(&host->map, host->map.group[g]);
	}
}

void xm_ready_end_all(struct xm_host *host)
{
	u32 g;

	for (g = 0; g < host->map.groups; g++)
		if (host->late_owner[g])
			xm_ready_end(&host->map, host->map.group[g]);
}
