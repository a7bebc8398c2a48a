// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The words that a client looks at after it has taken a hold (I1). */
#include "protocol.h"

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
