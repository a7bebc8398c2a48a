// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owners demote subscribers and count slots that they may attach (policy.h). In the daemon's pools
 * they add claims to their own contents (I10).
 */
#include "policy.h"

u32 xm_demote(const struct xm_map *map, u32 owner, u64 place)
{
	u64 words[XMEM_CLIENT_WORDS], cursor;
	u32 c, count = 0;

	xm_subscribers(map, owner, true, words);
	while (xm_next_client(map, words, &c)) {
		struct xmem_cursor *note = xm_cursor_of(map, owner, c);

		cursor = xm_load_acquire(xm_cursor(map, c, owner));
		if (cursor >= place || xm_is_demoted(map, owner, c, cursor))
			continue;
		xm_store(&note->demoted_at, cursor);
		xm_store_release(&note->demoted_incarnation,
				 xm_load(&xm_client_row(map, c)->incarnation));
		count++;
	}
	return count;
}

bool xm_has_slots(const struct xm_map *map, u32 owner, u32 count)
{
	u32 g, spare, whose, own = 0, left = 0, most = 0;

	for (g = 0; g < map->groups && own + most < count && own + left < count; g++) {
		spare = xm_spare_slots(map, owner, g);
		whose = xm_load(&xm_slot_row(map, g * XMEM_GROUP_SLOTS)->group_owner) - 1;
		if (whose == owner)
			own += spare;
		else if (whose == XMEM_OWNER_LEFT)
			left += spare;
		else if (spare > most)
			most = spare;
	}
	return own + most >= count || own + left >= count;
}

int xm_claim_alone(const struct xm_map *map, u32 me, u64 token, u32 count)
{
	u32 slot = xm_token_slot(token);
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 generation = xm_generation(token), before = xm_load(&row->generation_first);

	if (!xm_any_claims(map) || xm_load(&row->owner) != me ||
	    !(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT) || xm_look(map, token))
		return -EAGAIN;
	/* A word that counts claims is in no tenancy: its upper bits are not 0. */
	if (before == generation || !xm_in_tenancy(generation, before))
		return -EAGAIN;
	if (!xm_cas_full(&row->generation_first, before,
			 generation | (u64)count << XMEM_CLAIMS_SHIFT))
		return -EAGAIN;
	XM_STEP(XM_STEP_CLAIM_ALONE);
	if (!xm_look(map, token))
		return 0;
	/* Another thread may be about to write the slot in place, with this very hold. */
	while (count && !xm_claim_take(map, slot, generation, 1))
		count--;
	return -EAGAIN;
}
