// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The end of claims: the host voids claims whose deadline has passed, and claims that ended clients
 * have left to nobody.
 */
#include "claims.h"

#define LOOKS	XMEM_GROUP_SLOTS	/* slots between which no other request is served */

/* The next slot in the list from *at on, which is moved past it. -ENOENT: there is none. */
static int xm_next_listed(const struct xm_host *host, u32 *at)
{
	while (host->claims && *at < host->map.slots) {
		u32 group = *at / XMEM_GROUP_SLOTS;
		u64 rest = host->claims->listed[group] >> *at % XMEM_GROUP_SLOTS;

		if (rest) {
			*at += __builtin_ctzll(rest);
			return (*at)++;
		}
		*at = (group + 1) * XMEM_GROUP_SLOTS;
	}
	return -ENOENT;
}

int xm_host_expire_claims(struct xm_host *host, u64 now_ns, u32 *at)
{
	u32 looks;

	for (looks = 0; looks < LOOKS; looks++) {
		int slot = xm_next_listed(host, at);

		if (slot < 0)
			return slot;
		if (!xm_claims_of(&host->map, slot))
			xm_delist(host, slot);	/* all were taken without the host */
		else if (host->claims->slot[slot].deadline_ns <= now_ns &&
			 xm_claims_void(host, slot))
			return slot;
	}
	return -EAGAIN;
}

void xm_claims_leave(struct xm_host *host, u32 client)
{
	u32 at = 0;
	int slot;

	while ((slot = xm_next_listed(host, &at)) >= 0)
		xm_set_bit(host->claims->slot[slot].adders, client, false);
}

/* The only client that is alive; XMEM_OWNER_NONE: there is none; XMEM_OWNER_HOST: several. */
static u32 xm_last_client(const struct xm_map *map)
{
	u32 last = XMEM_OWNER_NONE, c;

	for (c = 0; c < map->clients; c++) {
		if (xm_client_row(map, c)->state != XMEM_CLIENT_ALIVE)
			continue;
		if (last != XMEM_OWNER_NONE)
			return XMEM_OWNER_HOST;
		last = c;
	}
	return last;
}

/* The next slot that may have claims: any, if owners add claims without the host. */
static int xm_next_claimed(const struct xm_host *host, u32 *at)
{
	if (!host->claims || !host->claims->alone)
		return xm_next_listed(host, at);
	return *at < host->map.slots ? (int)(*at)++ : -ENOENT;
}

/* Only the owner may ask for claims without a deadline, and it cannot void them after its end. */
static void xm_bound(struct xm_host *host, u32 slot, u64 now_ns)
{
	u64 latest_ns = now_ns + XMEM_CLAIM_LONGEST_NS;

	if (xm_slot_row(&host->map, slot)->owner == XMEM_OWNER_HOST &&
	    host->claims->slot[slot].deadline_ns > latest_ns)
		xm_set_deadline(host->claims, slot, latest_ns);
}

/* Is nobody left to take the claims of @slot? @last: see xm_last_client. */
static bool xm_are_orphaned(const struct xm_host *host, u32 last, u32 slot)
{
	if (last == XMEM_OWNER_HOST || last == XMEM_OWNER_NONE)
		return last == XMEM_OWNER_NONE;
	/* The last client may add more claims, or take some. */
	return xm_slot_row(&host->map, slot)->owner == last && !xm_has_added(host, last, slot);
}

int xm_host_claims_left(struct xm_host *host, u64 now_ns, u32 *at)
{
	u32 last = xm_last_client(&host->map), looks;

	for (looks = 0; looks < LOOKS; looks++) {
		int slot = xm_next_claimed(host, at);

		if (slot < 0)
			return slot;
		xm_claims_update(host, slot);
		if (!xm_is_listed(host->claims, slot))
			continue;
		if (xm_are_orphaned(host, last, slot) && xm_claims_void(host, slot))
			return slot;
		xm_bound(host, slot, now_ns);
	}
	return -EAGAIN;
}
