// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The end of claims: the host voids claims whose deadline has passed, claims that ended clients
 * have left to nobody, and claims that keep too much limbo.
 */
#include "claims.h"
#include "limbo.h"

int xm_host_expire_claims(struct xm_host *host, u64 now_ns, u64 *ret_deadline)
{
	struct xm_claims *claims = host->claims;
	u32 slot;

	*ret_deadline = ~0ULL;
	if (!claims)
		return -ENOENT;
	do {
		xm_delist_empty(host);
		if (!claims->count)
			return -ENOENT;
		slot = xm_claims_next(claims);
		*ret_deadline = claims->slot[slot].deadline_ns;
		if (*ret_deadline > now_ns || *ret_deadline == ~0ULL)
			return -ENOENT;
	} while (!xm_claims_void(host, slot));	/* its claims are newer and have no deadline, so
						 * another slot is next */
	return slot;
}

/*
 * @client has ended, and its id will be given again, so it can be a keeper no longer. Claims that
 * it has added to its own slots are in flight and last for the time that it has asked for; they do
 * not count as limbo that somebody keeps.
 */
static void xm_keeper_leaves(struct xm_host *host, u32 client, u32 slot)
{
	struct xm_claim *claim = &host->claims->slot[slot];

	if (claim->keeper == client + 1)
		xm_store(&claim->keeper, xm_slot_row(&host->map, slot)->tenant == client ?
			 XM_KEEPER_NONE : XM_KEEPER_ENDED);
}

void xm_claims_leave(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	u32 s;

	for (s = 0; host->claims && host->claims->count && s < map->slots; s++) {
		struct xm_claim *claim = &host->claims->slot[s];

		if (!claim->place)
			continue;
		xm_keeper_leaves(host, client, s);
		if (xm_has_own(host, client, s) && !xm_claim_take(map, s, claim->first, 1) &&
		    !xm_claims_of(map, s))
			xm_delist(host, s);
		xm_set_bit(claim->counted, client, false);
		xm_set_bit(claim->adders, client, false);
	}
}

static void xm_bound_slot(struct xm_host *host, u32 slot, u64 now_ns)
{
	struct xm_claim *claim = &host->claims->slot[slot];

	if (xm_slot_row(&host->map, slot)->owner != XMEM_OWNER_HOST)
		return;
	xm_claims_update(host, slot);
	if (!xm_is_listed(host->claims, slot) ||
	    claim->deadline_ns <= now_ns + XMEM_CLAIM_LONGEST_NS)
		return;
	claim->deadline_ns = now_ns + XMEM_CLAIM_LONGEST_NS;
	xm_heap_move(host->claims, slot);
}

bool xm_host_bound_group(struct xm_host *host, u32 group, u64 now_ns)
{
	u32 i;

	if (!host->claims || !(host->claims->count + host->claims->alone))
		return false;
	for (i = 0; i < XMEM_GROUP_SLOTS; i++)
		xm_bound_slot(host, group * XMEM_GROUP_SLOTS + i, now_ns);
	return true;
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

int xm_host_orphaned_claims(struct xm_host *host, u32 *at)
{
	const struct xm_map *map = &host->map;
	u32 last;

	if (!host->claims || !(host->claims->count + host->claims->alone))
		return -ENOENT;
	last = xm_last_client(map);
	if (last == XMEM_OWNER_HOST)
		return -ENOENT;
	while (*at < map->slots) {
		u32 slot = (*at)++;

		xm_claims_update(host, slot);
		if (!xm_is_listed(host->claims, slot))
			continue;
		/* The last client may add more claims, or take some. */
		if (last != XMEM_OWNER_NONE && (xm_slot_row(map, slot)->owner != last ||
						xm_has_added(host, last, slot)))
			continue;
		if (xm_claims_void(host, slot))
			return slot;
	}
	return -ENOENT;
}

/* ---- limbo ---- */

u32 xm_claims_keeper(const struct xm_map *map, const struct xm_claims *claims, u32 slot)
{
	u64 word;

	if (!claims)
		return XM_KEEPER_NONE;
	word = xm_load(&xm_slot_row(map, slot)->generation_first);
	if (!xm_claims(word) ||
	    xm_load(&claims->slot[slot].first) != xm_first_generation(word))
		return XM_KEEPER_NONE;
	return xm_load(&claims->slot[slot].keeper);
}

/*
 * May the claims of @slot stay? false: the claims are of ended clients, and exceed what these may
 * keep.
 */
static bool xm_may_keep(const struct xm_host *host, struct xm_kept *kept, u32 slot)
{
	const struct xmem_slot_row *row = xm_slot_row(&host->map, slot);
	u64 length = xm_load(&row->length);

	if (row->owner != XMEM_OWNER_HOST ||
	    xm_claims_keeper(&host->map, host->claims, slot) != XM_KEEPER_ENDED ||
	    !xm_limbo_is_old(host->limbo_ns[slot / XMEM_GROUP_SLOTS], kept->now_ns))
		return true;
	if (length > kept->most - kept->bytes) {
		kept->over = xm_limbo_add(kept->bytes, length);
		return false;
	}
	kept->bytes += length;
	return true;
}

int xm_host_void_kept(struct xm_host *host, struct xm_kept *kept)
{
	u32 slot;

	if (!host->claims || !host->claims->count)
		return -ENOENT;
	do {
		if (kept->slot >= host->map.slots)
			return -ENOENT;
		slot = kept->slot++;
		if (!xm_may_keep(host, kept, slot) && xm_claims_void(host, slot))
			return slot;
	} while (kept->slot % XMEM_GROUP_SLOTS);
	return -EAGAIN;
}
