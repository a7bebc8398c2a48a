// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The invariants of the words that only the host writes, as code. Unit tests, fuzzers, the daemon
 * with XMEMD_CHECK and the module with XMEM_DEBUG check them here.
 */
#include "host.h"

/* Are all subscribers of @publisher among @holders? */
static bool xm_followers_are_in(const struct xmem_client_row *publisher, const u64 *holders)
{
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		if (xm_load(&publisher->subscribers[i]) & ~xm_load(&holders[i]))
			return false;
	return true;
}

/*
 * A subscriber of a client may hold what that client owns, and what it has said it forwards. In a
 * pool of one user every client may hold everything.
 */
static const char *xm_followers_are_valid(const struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	const struct xmem_client_row *row = xm_client_row(map, client);
	u32 g;

	if (row->state != XMEM_CLIENT_ALIVE)
		return NULL;
	if (!xm_followers_are_in(row, row->holders))
		return "a subscriber may not hold what its publisher owns";
	for (g = 0; g < map->groups; g++) {
		const struct xmem_group_row *group = xm_group_row(map, g);

		if (host->group_owner[g] != XMEM_OWNER_NONE && xm_bit(group->stages, client) &&
		    !xm_followers_are_in(row, group->holders))
			return "a subscriber may not hold what its publisher forwards";
	}
	return NULL;
}

/* A client that is counted may hold everything; a client that does not exist may hold nothing. */
static const char *xm_holders_are_valid(const struct xm_host *host)
{
	const struct xm_map *map = &host->map;
	const char *wrong = NULL;
	u32 g, c, owner;

	for (g = 0; g < map->groups; g++) {
		const struct xmem_group_row *row = xm_group_row(map, g);

		owner = host->group_owner[g];
		for (c = 0; c < map->clients; c++) {
			bool in = xm_bit(row->holders, c);

			if (in && xm_client_row(map, c)->state == XMEM_CLIENT_NONE)
				return "a client that is not there may hold something";
			if (in && owner == XMEM_OWNER_NONE)
				return "a client may hold slots of a group without an owner";
			if (!in && owner != XMEM_OWNER_NONE && xm_bit(map->pool->counted, c))
				return "a client that is counted may not hold everything";
			if (owner < map->clients &&
			    in != xm_bit(xm_client_row(map, owner)->holders, c))
				return "an owner and its group have different holders";
		}
	}
	for (c = 0; c < map->clients && !wrong; c++)
		wrong = xm_followers_are_valid(host, c);
	return wrong;
}

const char *xm_host_is_valid(const struct xm_host *host)
{
	const struct xm_map *map = &host->map;
	u32 c, s, timed = 0;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		if (row->state > XMEM_CLIENT_ZOMBIE)
			return "a client's state is unknown";
		if (xm_bit(map->pool->counted, c) && row->state == XMEM_CLIENT_NONE)
			return "a client that is not there is counted";
		if (row->state != XMEM_CLIENT_NONE && !map->area[c])
			return "a client has no area";
		if (xm_host_is_quarantined(host, c) && row->state != XMEM_CLIENT_ZOMBIE)
			return "a client is in quarantine and has not ended";
		if (row->incarnation > host->incarnations)
			return "a client has an incarnation that was never given";
		for (s = 0; row->state != XMEM_CLIENT_NONE && s < map->clients; s++)
			if (xm_bit(row->subscribers, s) &&
			    xm_client_row(map, s)->state != XMEM_CLIENT_ALIVE)
				return "a subscriber is not alive";
	}
	for (s = 0; s < map->slots; s++) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);
		u32 group_owner = host->group_owner[s / XMEM_GROUP_SLOTS];

		if (row->owner == XMEM_OWNER_NONE ? row->payload != 0 : row->payload == 0)
			return "a slot's owner and payload disagree";
		if (row->owner != XMEM_OWNER_NONE && row->owner != group_owner &&
		    !(row->owner == XMEM_OWNER_HOST && group_owner < map->clients))
			return "a slot's owner is not its group's";
		if (row->owner == XMEM_OWNER_HOST && !xm_has_limbo(host, s / XMEM_GROUP_SLOTS))
			return "the host owns a slot in a group without limbo";
		if (!(s % XMEM_GROUP_SLOTS) && xm_limbo_is_stale(host, s / XMEM_GROUP_SLOTS))
			return "a group without limbo has a time of limbo";
		if (!(s % XMEM_GROUP_SLOTS) &&
		    row->group_owner != xm_host_shown_owner(host, s / XMEM_GROUP_SLOTS) + 1)
			return "a row shows a wrong owner of its group";
		if (row->owner < XMEM_OWNER_HOST &&
		    (row->owner >= map->clients ||
		     xm_client_row(map, row->owner)->state != XMEM_CLIENT_ALIVE))
			return "a slot's owner is not alive";
		if ((row->owner == XMEM_OWNER_NONE) != (row->generation_first == XM_NO_GENERATIONS))
			return "a slot's owner and generations disagree";
		if (xm_claims_of(map, s) &&
		    (!host->claims || !(xm_bit(host->claims->listed, s) || host->claims->alone)))
			return "a slot has claims that nobody has added";
		timed += host->claims && xm_bit(host->claims->listed, s) &&
			 host->claims->slot[s].deadline_ns != ~0ULL;
		if (row->upgrader &&
		    (row->owner == XMEM_OWNER_NONE || !(row->traits & XMEM_TRAIT_SHARED) ||
		     row->upgrader > map->clients ||
		     (xm_client_row(map, row->upgrader - 1)->state != XMEM_CLIENT_ALIVE &&
		      !xm_host_is_quarantined(host, row->upgrader - 1))))
			return "a slot has a wrong upgrader";
		if (!(row->traits & XMEM_TRAIT_CUDA) != !xm_device(row->traits) ||
		    xm_device(row->traits) > XMEM_MAX_DEVICES)
			return "a slot is in memory of a GPU, and has no row in the device table";
		if (row->traits & (XMEM_TRAIT_HANDLE | XMEM_TRAIT_READERS) &&
		    !(row->traits & XMEM_TRAIT_CUDA))
			return "a slot in memory of the CPU has traits of memory of a GPU";
		if (row->tenant != XMEM_OWNER_NONE &&
		    (row->tenant >= map->clients ||
		     xm_client_row(map, row->tenant)->state == XMEM_CLIENT_NONE))
			return "a slot's tenant is not a client any more";
		if (row->tenant != XMEM_OWNER_NONE &&
		    row->tenant != host->group_tenant[s / XMEM_GROUP_SLOTS])
			return "a slot's tenant is not its group's";
	}
	for (c = 1; c <= XMEM_MAX_DEVICES; c++)
		if (xm_device_row(map, c)->closing_bytes > xm_device_row(map, c)->bytes)
			return "more memory of a device is closing than there is";
	if (map->pool->claimed != (host->claims ? host->claims->count + host->claims->alone : 0))
		return "the number of slots with claims is wrong";
	if (host->claims && host->claims->timed != timed)
		return "the number of slots whose claims have a deadline is wrong";
	return xm_holders_are_valid(host);
}
