// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Claims that an owner adds without the host (I10). claims.c describes all claims. */
#include "protocol.h"

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
