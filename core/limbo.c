// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Limbo, counted: limbo.h. */
#include "limbo.h"

/* The owner of @slot, if it lives and has looked in vain for a buffer; or XMEM_OWNER_NONE. */
static u32 xm_wanting_owner(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);

	if (owner >= map->clients || !map->group[slot / XMEM_GROUP_SLOTS])
		return XMEM_OWNER_NONE;
	owner = xm_index(owner, map->clients);
	if (!map->area[owner] || !xm_load(&xm_ring(map, owner)->limbo_ns))
		return XMEM_OWNER_NONE;
	return owner;
}

static bool xm_others_hold(const struct xm_map *map, u32 owner, u32 slot)
{
	u32 c;

	for (c = 0; c < map->clients; c++)
		if (c != owner && map->area[c] && xm_holds_count(map, c, slot) &&
		    xm_load_acquire(xm_hold(map, c, slot)) & XM_HOLD_COUNT)
			return true;
	return false;
}

/* @passed: of the owner, see xm_passed. */
static bool xm_is_kept(const struct xm_map *map, u32 owner, u32 slot, u64 passed)
{
	const struct xmem_slot_word *word = xm_slot(map, slot);
	u32 state = xm_state(xm_load_acquire(&word->state));

	if (state != XMEM_SLOT_LIVE && state != XMEM_SLOT_SCANNING)
		return false;
	return !xm_in_flight(map, xm_load(&xm_ring(map, owner)->tail), passed,
			     xm_load(&word->position)) &&
	       xm_others_hold(map, owner, slot);
}

bool xm_is_overdue(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_wanting_owner(map, slot), culprit;

	return owner != XMEM_OWNER_NONE &&
	       xm_is_kept(map, owner, slot, xm_passed(map, owner, &culprit));
}

static void xm_earlier(u64 *ns, u64 other)
{
	if (other && (!*ns || other < *ns))
		*ns = other;
}

void xm_limbo_count(const struct xm_map *map, struct xm_limbo *ret)
{
	u32 s, owner, before = XMEM_OWNER_NONE, culprit;
	u64 passed = 0;

	*ret = (struct xm_limbo){ .ended = 0 };
	for (s = 0; s < map->slots; s++) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);

		if (xm_load(&row->owner) == XMEM_OWNER_HOST) {
			ret->ended++;
			ret->ended_bytes += xm_load(&row->length);
			continue;
		}
		owner = xm_wanting_owner(map, s);
		if (owner == XMEM_OWNER_NONE)
			continue;
		if (owner != before)
			passed = xm_passed(map, owner, &culprit);
		before = owner;
		if (!xm_is_kept(map, owner, s, passed))
			continue;
		ret->overdue++;
		ret->overdue_bytes += xm_load(&row->length);
		xm_earlier(&ret->overdue_ns, xm_load(&xm_ring(map, owner)->limbo_ns));
	}
	if (ret->ended)
		ret->ended_ns = xm_load(&map->pool->limbo_ns);
}
