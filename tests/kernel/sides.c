// SPDX-License-Identifier: MIT
/* The two pools of the program `ends`. */
#include "sides.h"

struct raw kept;

const char *keeps(void *argument)
{
	struct side *side = argument;
	struct xmem_join_request join = raw_joining("", XMEM_ROLE_WRITER);

	join.slots = side->slots;
	join.clients = side->clients;
	SAME(become(VICTIM), 0);
	SAME(raw_start(&kept, &join), 0);
	side->shared->pool_fd = pool_descriptor(&kept);
	WANT(side->shared->pool_fd >= 0);
	side->shared->number = pool_number(&kept);
	return NULL;
}

const char *start_side(struct side *side, const char *(*keep)(void *))
{
	side->shared = shared_memory(sizeof(*side->shared));
	WANT(side->shared);
	GOES_WELL(kid_start(&side->keeper, keep, side));
	side->pool_fd = take_descriptor(&side->keeper, side->shared->pool_fd);
	WANT(side->pool_fd >= 0);
	return NULL;
}

const char *start_sides(struct side sides[2], unsigned int slots, unsigned int clients)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sides[i] = (struct side){ .slots = slots, .clients = clients, .loaded = i };
		GOES_WELL(start_side(&sides[i], keeps));
	}
	return NULL;
}
