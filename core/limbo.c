// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Counting limbo; see limbo.h. */
#include "limbo.h"

u32 xm_wanting_owner(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);

	if (owner >= map->clients || !map->group[slot / XMEM_GROUP_SLOTS])
		return XMEM_OWNER_NONE;
	owner = xm_index(owner, map->clients);
	if (!map->area[owner] || !xm_load(&xm_ring(map, owner)->limbo_ns))
		return XMEM_OWNER_NONE;
	return owner;
}

bool xm_is_kept(const struct xm_map *map, u32 owner, u32 slot, u64 passed)
{
	const struct xmem_slot_word *word = xm_slot(map, slot);
	u32 state = xm_state(xm_load_acquire(&word->state));

	if (state != XMEM_SLOT_LIVE && state != XMEM_SLOT_SCANNING)
		return false;
	return !xm_in_flight(map, xm_load(&xm_ring(map, owner)->tail), passed,
			     xm_load(&word->position)) &&
	       xm_others_hold(map, owner, slot);
}

void xm_limbo_count_overdue(const struct xm_map *map, u32 group, struct xm_limbo *sum)
{
	u32 i, owner, before = XMEM_OWNER_NONE, culprit;
	u64 passed = 0, since;

	for (i = 0; i < XMEM_GROUP_SLOTS; i++) {
		u32 slot = group * XMEM_GROUP_SLOTS + i;

		owner = xm_wanting_owner(map, slot);
		if (owner == XMEM_OWNER_NONE)
			continue;
		if (owner != before)
			passed = xm_passed(map, owner, &culprit);
		before = owner;
		if (!xm_is_kept(map, owner, slot, passed))
			continue;
		sum->overdue++;
		sum->overdue_bytes += xm_load(&xm_slot_row(map, slot)->length);
		since = xm_load(&xm_ring(map, owner)->limbo_ns);
		if (since && (!sum->overdue_ns || since < sum->overdue_ns))
			sum->overdue_ns = since;
	}
}

void xm_limbo_count_ended(const struct xm_map *map, struct xm_limbo *sum)
{
	u32 s;

	for (s = 0; s < map->slots; s++) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);

		if (xm_load(&row->owner) != XMEM_OWNER_HOST)
			continue;
		sum->ended++;
		sum->ended_bytes += xm_load(&row->length);
	}
	if (sum->ended)
		sum->ended_ns = xm_load(&map->pool->limbo_ns);
}
