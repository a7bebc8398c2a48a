/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What claims_list.c offers to claims_request.c and claims_end.c. */
#ifndef XM_CLAIMS_H
#define XM_CLAIMS_H

#include "host.h"

static inline bool xm_is_noted(const struct xm_claims *claims, u32 slot)
{
	return claims->slot[slot].place;
}

/* Is one of the claims of @slot this client's own, and not forgotten? */
static inline bool xm_has_own(const struct xm_host *host, u32 me, u32 slot)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	return claim->place && xm_bit(claim->counted, me) &&
	       !(xm_load(xm_hold(&host->map, me, slot)) & XM_HOLD_FORGOTTEN);
}

/* Has @me added claims to @slot that are not all void or taken? */
static inline bool xm_has_added(const struct xm_host *host, u32 me, u32 slot)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	return claim->place && xm_bit(claim->adders, me);
}

/*
 * @slot, whose word is @word now, is about to get claims. `claimed` is raised before them. If they
 * last longer by that, it is due to @keeper; who adds some that end no later has not to answer for
 * the others.
 */
void xm_enlist(struct xm_host *host, u32 slot, u64 word, u64 deadline_ns, u32 keeper);

/* @slot has no claims any more. `claimed` is lowered after them. */
void xm_delist(struct xm_host *host, u32 slot);

/* @slot has claims and another deadline than before. */
void xm_heap_move(struct xm_claims *claims, u32 slot);

/*
 * The word of @slot, once what is noted of it is of the claims that the word counts. If it is not,
 * those were all taken, and the owner has added these by itself since, for as long as it lives.
 */
u64 xm_claims_settle(struct xm_host *host, u32 slot);

/* Void what is noted. false: the owner has added by itself since, and that is noted now. */
bool xm_claims_void(struct xm_host *host, u32 slot);

/* The slot whose claims end next. There is one. */
u32 xm_claims_next(const struct xm_claims *claims);

/* The heap may have slots whose claims were taken without the host. */
void xm_delist_empty(struct xm_host *host);

#endif
