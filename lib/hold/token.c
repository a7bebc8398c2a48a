// SPDX-License-Identifier: MIT
/* Tokens: which contents a number names, and whether a hold on them is good. */
#include "lib/base/handle.h"
#include "lib/hold/token.h"
#include "lib/host/request.h"
#include "lib/payload/payload.h"

#define LOOKS		200	/* looks at a state word in SCANNING before the host is asked */

#define RESOLVES	64 /* requests to the host; each fails only while the owner makes
			    * progress */

/*
 * The hold was taken while the owner scanned the slot. If the owner goes on, the state word tells
 * the result of the scan. If the owner is stopped, the host resolves the slot, which takes 1 ms.
 */
static int look_again(struct xmem_pool *pool, u64 token)
{
	int err = -EAGAIN, asked, looks;

	for (asked = 0; asked < RESOLVES; asked++) {
		for (looks = 0; looks < LOOKS && err == -EAGAIN; looks++)
			err = xm_look(&pool->map, token);
		if (err != -EAGAIN)
			return err;
		err = xl_resolve(pool, token);
		if (err && err != -EAGAIN && err != -ESTALE)
			return err;
		err = xm_look(&pool->map, token);
	}
	return err;
}

int xl_hold_resolve(struct xmem_pool *pool, u64 token, int err)
{
	if (err == -EAGAIN)
		err = look_again(pool, token);
	if (err)
		xl_do(pool, xm_put(&pool->map, pool->me, xm_token_slot(token)));
	return err;
}

/*
 * The token of the contents in a slot; 0: it has no contents. The generation must be one of the
 * slot's tenancy.
 */
static u64 token_in(const struct xm_map *map, u32 slot)
{
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state), generation = xm_generation(word);
	u64 first = xm_first_generation(xm_load(&xm_slot_row(map, slot)->generation_first));

	if ((xm_state(word) != XMEM_SLOT_LIVE && xm_state(word) != XMEM_SLOT_SCANNING) ||
	    !xm_in_tenancy(generation, first))
		return 0;
	return xm_token(generation, slot);
}

u64 xl_token_of(struct xmem_pool *pool, u64 number, const char *what)
{
	u32 slot = xm_token_slot(number);
	u64 token;

	if (!number)
		xl_fail(ESTALE, "%s: 0 is no token", what);
	if (number < XMEM_SLOT(0))
		return number;
	if (slot >= pool->map.slots) {
		xl_fail(EINVAL, "%s: there is no slot %u: the pool has %u", what, slot,
			pool->map.slots);
		return 0;
	}
	token = token_in(&pool->map, slot);
	if (!token)
		xl_fail(ESTALE, "%s: there is nothing in slot %u: its buffer is free, or it is "
				"being written", what, slot);
	return token;
}
