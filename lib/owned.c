// SPDX-License-Identifier: MIT
/*
 * The slots that this client owns: their lists are made here, and a buffer that was
 * acquired but not published is given up here. Lists and rules: owned.h.
 */
#include <stdlib.h>

#include "handle.h"
#include "owned.h"
#include "request.h"

int xl_owned_init(struct xmem_pool *pool, u64 wait_bound_ns)
{
	struct xl_owned *owned = &pool->owned;
	u32 i;

	owned->slot = calloc(pool->map.slots, sizeof(*owned->slot));
	if (!owned->slot)
		return -ENOMEM;
	for (i = 0; i < pool->map.slots; i++)
		owned->slot[i].index = i;
	for (i = 0; i < XL_LISTS; i++)
		owned->list[i].last = &owned->list[i].first;
	owned->wait_bound_ns = wait_bound_ns;
	return 0;
}

/* Free the slot of a buffer that was acquired but is not published. */
void xl_owned_give_up(struct xmem_pool *pool, u32 slot)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	xm_give_up(&pool->map, slot);
	xl_queue_add(&owned->list[XL_LIST_FREE], &owned->slot[slot]);
	owned->out--;
	xl_unlock(&owned->lock);
	xl_owned_wake(pool);
}
