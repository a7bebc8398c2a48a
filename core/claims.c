// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Claims: references that are set aside for clients yet unknown. Their number is in the slot's row,
 * above the first generation of its tenancy, so a get of a slot without claims pays nothing for
 * them. The host adds and voids claims (claims_request.c, claims_end.c). In the daemon's pools
 * clients take them, and owners add them, without the host; so every change of the number is a
 * compare-and-swap.
 *
 *   add n       count the slot in `claimed`, if it had no claims; claims + n, full barrier; without
 *               claims before, look at the state word as a get does: claims - n, if it is not LIVE
 *   take        only with a hold: claims - 1, or -ERANGE if there are none
 *   count in    add n, one of which is the client's own; its hold says "not forgotten"
 *   forget      its hold says "forgotten", and the handle's reference is dropped
 *   release     take the client's own claim, if it has one and has not forgotten it
 *   add alone   an owner, with a hold (I10): from no claims and another generation than these
 *               contents have, to n claims and the generation of these contents
 *
 * The models are tests/model/counted.pml and tests/model/alone.pml.
 */
#include "host.h"

int xm_look(const struct xm_map *map, u64 token)
{
	u32 slot = xm_token_slot(token);
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	u64 first = xm_first_generation(xm_load(&xm_slot_row(map, slot)->generation_first));

	if (!xm_in_tenancy(xm_generation(token), first) ||
	    xm_generation(word) != xm_generation(token))
		return -ESTALE;
	if (xm_state(word) == XMEM_SLOT_LIVE)
		return 0;
	return xm_state(word) == XMEM_SLOT_SCANNING ? -EAGAIN : -ESTALE;
}

int xm_may_hold(const struct xm_map *map, u32 me, u64 token)
{
	u32 slot = xm_token_slot(token);
	const struct xmem_slot_row *row = xm_slot_row(map, slot);

	/* Check the tenancy first: in another tenancy the group may have had another owner. */
	if (!xm_in_tenancy(xm_generation(token),
			   xm_first_generation(xm_load_acquire(&row->generation_first))))
		return -ESTALE;
	if (!xm_holds_count(map, me, slot))
		return -EACCES;
	xm_full_barrier();
	return 0;
}

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

int xm_claim_alone(const struct xm_map *map, u32 me, u64 token, u32 count)
{
	u32 slot = xm_token_slot(token);
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 generation = xm_generation(token), before = xm_load(&row->generation_first);

	if (!xm_any_claims(map) || xm_load(&row->owner) != me ||
	    !(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT) || xm_look(map, token))
		return -EAGAIN;
	/* A word with claims is no generation of the tenancy. */
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

u64 xm_make_live(const struct xm_own *own)
{
	u64 word = xm_load(&own->word->state);

	xm_store(&own->word->position, 0);
	XM_STEP(XM_STEP_CLAIM_POSITION);
	xm_store_release(&own->word->state, word - XMEM_SLOT_WRITING + XMEM_SLOT_LIVE);
	XM_STEP(XM_STEP_CLAIM_LIVE);
	return (word & ~0xffffULL) | own->slot;
}
