// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host's list of the slots that have claims: a heap by deadlines, and for each slot the clients
 * that have added claims. The list is in the host's private memory, and the claims themselves are
 * in the rows; claims.h says how the two are kept in step.
 */
#include "claims.h"

size_t xm_claims_bytes(const struct xm_map *map)
{
	return sizeof(struct xm_claims) + map->slots * sizeof(struct xm_claim);
}

static u64 xm_deadline_at(const struct xm_claims *claims, u32 place)
{
	return claims->slot[claims->slot[place].heap].deadline_ns;
}

static void xm_heap_put(struct xm_claims *claims, u32 place, u32 slot)
{
	claims->slot[place].heap = slot;
	claims->slot[slot].place = place + 1;
}

/* Move @slot up from the free @place, past all slots that end after it. */
static u32 xm_heap_up(struct xm_claims *claims, u32 place, u32 slot)
{
	u64 deadline = claims->slot[slot].deadline_ns;

	for (; place && xm_deadline_at(claims, (place - 1) / 2) > deadline; place = (place - 1) / 2)
		xm_heap_put(claims, place, claims->slot[(place - 1) / 2].heap);
	xm_heap_put(claims, place, slot);
	return place;
}

/* Move @slot down from the free @place, past all slots that end before it. */
static void xm_heap_down(struct xm_claims *claims, u32 place, u32 slot)
{
	u64 deadline = claims->slot[slot].deadline_ns;

	for (;;) {
		u32 below = 2 * place + 1;

		if (below + 1 < claims->count &&
		    xm_deadline_at(claims, below + 1) < xm_deadline_at(claims, below))
			below++;
		if (below >= claims->count || xm_deadline_at(claims, below) >= deadline)
			break;
		xm_heap_put(claims, place, claims->slot[below].heap);
		place = below;
	}
	xm_heap_put(claims, place, slot);
}

void xm_heap_move(struct xm_claims *claims, u32 slot)
{
	u32 place = claims->slot[slot].place - 1;

	xm_heap_down(claims, xm_heap_up(claims, place, slot), slot);
}

/* The header counts one more if owners may add claims without the host. */
static void xm_update_claimed(struct xm_host *host)
{
	xm_store_release(&host->map.pool->claimed, host->claims->count + host->claims->alone);
}

void xm_delist(struct xm_host *host, u32 slot)
{
	struct xm_claims *claims = host->claims;
	u32 place = claims->slot[slot].place - 1, last = claims->slot[--claims->count].heap;

	claims->slot[slot].place = 0;
	if (last != slot) {
		xm_heap_put(claims, place, last);
		xm_heap_move(claims, last);
	}
	xm_update_claimed(host);
}

void xm_enlist(struct xm_host *host, u32 slot, u64 word, u64 deadline_ns, u32 keeper)
{
	struct xm_claims *claims = host->claims;
	struct xm_claim *claim = &claims->slot[slot];
	bool noted = xm_is_listed(claims, slot);

	if (!noted || !xm_claims(word) || deadline_ns > claim->deadline_ns) {
		claim->deadline_ns = deadline_ns;
		xm_store(&claim->keeper, keeper);
	}
	xm_store(&claim->first, xm_first_generation(word));
	if (!noted) {
		xm_heap_put(claims, claims->count++, slot);
		xm_update_claimed(host);
	}
	xm_heap_move(claims, slot);
}

/* ---- what owners have added by themselves (I10) ---- */

u64 xm_claims_update(struct xm_host *host, u32 slot)
{
	struct xm_claim *claim = &host->claims->slot[slot];
	u64 word = xm_load_acquire(&xm_slot_row(&host->map, slot)->generation_first);
	u32 owner = xm_slot_row(&host->map, slot)->owner, i;

	if (!xm_claims(word) ||
	    (xm_is_listed(host->claims, slot) && claim->first == xm_first_generation(word)))
		return word;
	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		claim->adders[i] = claim->counted[i] = 0;
	if (owner < host->map.clients)
		xm_set_bit(claim->adders, owner, true);
	xm_enlist(host, slot, word, ~0ULL, owner < host->map.clients ? owner + 1 : XM_KEEPER_NONE);
	return word;
}

/* ---- voiding ---- */

bool xm_claims_void(struct xm_host *host, u32 slot)
{
	u64 *word = &xm_slot_row(&host->map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		if (xm_claims(before) &&
		    xm_first_generation(before) != host->claims->slot[slot].first) {
			xm_claims_update(host, slot);
			return false;
		}
	} while (xm_claims(before) && !xm_cas_full(word, before, xm_first_generation(before)));
	xm_delist(host, slot);
	return true;
}

void xm_claims_end(struct xm_host *host, u32 slot)
{
	if (!host->claims)
		return;
	xm_claims_update(host, slot);
	if (xm_is_listed(host->claims, slot))
		xm_claims_void(host, slot);
}

u32 xm_claims_next(const struct xm_claims *claims)
{
	return claims->slot[0].heap;
}

void xm_delist_empty(struct xm_host *host)
{
	struct xm_claims *claims = host->claims;

	while (claims->count && !xm_claims_of(&host->map, xm_claims_next(claims)))
		xm_delist(host, xm_claims_next(claims));
}

struct xm_pending xm_claims_pending(const struct xm_host *host, u32 slot)
{
	return xm_put_pending(&host->map, slot);
}
