// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host's list of the slots that have claims: a bitmap, and for each slot the deadline of its
 * claims and the clients that have added some. The list is in the host's private memory, and the
 * claims themselves are in the rows; claims.h says how the two are kept in step.
 */
#include "claims.h"

size_t xm_claims_bytes(const struct xm_map *map)
{
	return sizeof(struct xm_claims) + map->slots * sizeof(struct xm_claim);
}

void xm_set_deadline(struct xm_claims *claims, u32 slot, u64 deadline_ns)
{
	struct xm_claim *claim = &claims->slot[slot];

	claims->timed += (deadline_ns != ~0ULL) - (claim->deadline_ns != ~0ULL);
	claim->deadline_ns = deadline_ns;
}

/* The header counts one more if owners may add claims without the host. */
static void xm_update_claimed(struct xm_host *host)
{
	xm_store_release(&host->map.pool->claimed, host->claims->count + host->claims->alone);
}

void xm_delist(struct xm_host *host, u32 slot)
{
	xm_set_deadline(host->claims, slot, ~0ULL);
	xm_set_bit(host->claims->listed, slot, false);
	host->claims->count--;
	xm_update_claimed(host);
}

void xm_enlist(struct xm_host *host, u32 slot, u64 word, u64 deadline_ns)
{
	struct xm_claims *claims = host->claims;
	struct xm_claim *claim = &claims->slot[slot];

	xm_store(&claim->first, xm_first_generation(word));
	if (!xm_is_listed(claims, slot)) {
		claim->deadline_ns = ~0ULL;
		xm_set_bit(claims->listed, slot, true);
		claims->count++;
		xm_update_claimed(host);
	} else if (xm_claims(word) && deadline_ns <= claim->deadline_ns) {
		return;
	}
	xm_set_deadline(claims, slot, deadline_ns);
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
		claim->adders[i] = 0;
	if (owner < host->map.clients)
		xm_set_bit(claim->adders, owner, true);
	xm_enlist(host, slot, word, ~0ULL);
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

struct xm_pending xm_claims_pending(const struct xm_host *host, u32 slot)
{
	return xm_put_pending(&host->map, slot);
}
