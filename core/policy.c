// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The owner's policy; policy.h says what it decides. */
#include "policy.h"

bool xm_is_demoted(const struct xm_map *map, u32 owner, u32 client, u64 cursor)
{
	const struct xmem_cursor *note = xm_cursor_of(map, owner, client);

	return xm_load(&note->demoted_incarnation) ==
		       xm_load(&xm_client_row(map, client)->incarnation) &&
	       xm_load(&note->demoted_at) == cursor;
}

/* ---- subscribers ---- */

bool xm_next_client(const struct xm_map *map, u64 *words, u32 *ret)
{
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		while (words[i]) {
			u32 c = i * 64 + __builtin_ctzll(words[i]);

			words[i] &= words[i] - 1;
			if (c < map->clients && map->area[c]) {
				*ret = c;
				return true;
			}
		}
	}
	return false;
}

void xm_subscribers(const struct xm_map *map, u32 owner, bool waits, u64 *ret)
{
	const struct xmem_client_row *row = xm_client_row(map, owner);
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		ret[i] = xm_load_acquire(&row->subscribers[i]);
		if (waits && ret[i])
			ret[i] &= xm_load_acquire(&row->waits[i]);
	}
}

void xm_read_waited(const struct xm_map *map, u32 owner, struct xm_waited *ret)
{
	u64 words[XMEM_CLIENT_WORDS], cursor;
	u32 c;

	*ret = (struct xm_waited){ .tail = xm_load(&xm_ring(map, owner)->tail) };
	ret->evictable = ret->tail;
	xm_full_barrier();	/* pairs with subscribe: bit, full barrier, cursor = tail */
	xm_subscribers(map, owner, true, words);
	while (xm_next_client(map, words, &c)) {
		cursor = xm_load_acquire(xm_cursor(map, c, owner));
		if (cursor < ret->tail && xm_is_demoted(map, owner, c, cursor)) {
			ret->demoted++;
			continue;
		}
		ret->count++;
		ret->lagging += cursor < ret->tail;
		if (cursor < ret->evictable)
			ret->evictable = cursor;
	}
}

u64 xm_passed(const struct xm_map *map, u32 owner, u32 *ret_culprit)
{
	u64 passed = xm_load(&xm_ring(map, owner)->tail), words[XMEM_CLIENT_WORDS], cursor;
	u32 c;

	*ret_culprit = XMEM_OWNER_NONE;
	xm_full_barrier();	/* pairs with subscribe: bit, full barrier, cursor = tail */
	xm_subscribers(map, owner, false, words);
	while (xm_next_client(map, words, &c)) {
		cursor = xm_load_acquire(xm_cursor(map, c, owner));
		if (cursor < passed) {
			passed = cursor;
			*ret_culprit = c;
		}
	}
	return passed;
}

/* ---- slots ---- */

bool xm_others_hold(const struct xm_map *map, u32 me, u32 slot)
{
	u32 c;

	for (c = 0; c < map->clients; c++)
		if (c != me && map->area[c] && xm_holds_count(map, c, slot) &&
		    xm_load_acquire(xm_hold(map, c, slot)) & XM_HOLD_COUNT)
			return true;
	return false;
}

u32 xm_spare_slots(const struct xm_map *map, u32 owner, u32 group)
{
	u32 slot = group * XMEM_GROUP_SLOTS, end = slot + XMEM_GROUP_SLOTS, count = 0;
	u32 whose = xm_load(&xm_slot_row(map, slot)->group_owner) - 1;
	bool left = whose == XMEM_OWNER_LEFT && xm_is_counted(map, owner);

	if (whose != owner && whose != XMEM_OWNER_NONE && !left)
		return 0;
	for (; slot < end; slot++) {
		const struct xmem_slot_row *row = xm_slot_row(map, slot);
		u32 has = xm_load_acquire(&row->owner);

		/* An older host does not write the owner of a group. */
		if (has != XMEM_OWNER_NONE && whose == XMEM_OWNER_NONE && has != owner)
			return 0;
		count += has == XMEM_OWNER_NONE && !xm_worn_out(row);
	}
	return count;
}
