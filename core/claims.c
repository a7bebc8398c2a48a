// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Claims: references that are set aside for clients yet unknown. Their number is in the slot's row,
 * above the first generation of its tenancy, so a get of a slot without claims pays nothing for
 * them. The host adds and voids claims (claims_host.c). In the daemon's pools clients take them,
 * and owners add them, without the host; so every change of the number is a compare-and-swap.
 *
 *   add n       count the slot in `claimed`, if it had no claims; claims + n, full barrier; without
 *               claims before, look at the state word as a get does: claims - n, if it is not LIVE
 *   take        only with a hold: claims - 1, or -ERANGE if there are none
 *   forget      add 1, and drop the handle's hold
 *   add alone   an owner, with a hold (I10): from no claims and another generation than these
 *               contents have, to n claims and the generation of these contents
 *
 * The models are tests/model/claims.pml and tests/model/alone.pml.
 */
#include "host.h"

u64 xm_group_claimed(const struct xm_map *map, u32 group, u64 among)
{
	u64 claimed = 0;

	if (!xm_any_claims(map))
		return 0;
	for (; among; among &= among - 1) {
		u32 i = __builtin_ctzll(among);

		if (xm_claims_of(map, group * XMEM_GROUP_SLOTS + i))
			claimed |= 1ULL << i;
	}
	return claimed;
}

int xm_claim_take(const struct xm_map *map, u32 slot, u64 last, u32 count)
{
	u64 *word = &xm_slot_row(map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		if (xm_claims(before) < count || xm_first_generation(before) > last)
			return -ERANGE;
	} while (!xm_cas_full(word, before, before - ((u64)count << XMEM_CLAIMS_SHIFT)));
	return 0;
}
