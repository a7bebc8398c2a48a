// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* An owner demotes subscribers, and finds out whether it can attach slots. See policy.h. */
#include "policy.h"

u32 xm_demote(const struct xm_map *map, u32 owner, u64 place)
{
	u64 words[XMEM_CLIENT_WORDS], cursor;
	u32 c, count = 0;

	xm_subscribers(map, owner, true, words);
	while (xm_next_client(map, words, &c)) {
		struct xmem_cursor *note = xm_demotion(map, owner, c);

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
