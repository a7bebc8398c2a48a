/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host's list of the slots that have claims, for claims_request.c and claims_end.c.
 * claims_list.c implements it.
 */
#ifndef XM_CLAIMS_H
#define XM_CLAIMS_H

#include "host.h"

static inline bool xm_is_listed(const struct xm_claims *claims, u32 slot)
{
	return xm_bit(claims->listed, slot);
}

/* Has @me added claims to @slot that are not all void or taken? */
static inline bool xm_has_added(const struct xm_host *host, u32 me, u32 slot)
{
	return xm_is_listed(host->claims, slot) && xm_bit(host->claims->slot[slot].adders, me);
}

/*
 * Put @slot, whose word is @word, into the list, because it is about to get claims; `claimed` is
 * raised before they are added. The slot's claims last as long as the last of them.
 */
void xm_enlist(struct xm_host *host, u32 slot, u64 word, u64 deadline_ns);

/* Take @slot, which has no claims any more, out of the list; `claimed` is lowered after that. */
void xm_delist(struct xm_host *host, u32 slot);

/* The claims of @slot, which is in the list, end at @deadline_ns. */
void xm_set_deadline(struct xm_claims *claims, u32 slot, u64 deadline_ns);

/*
 * Return the word of @slot, and bring the list up to date with it. If the word counts claims that
 * the list does not know, all earlier claims were taken and the owner has added these without the
 * host; they last as long as the owner lives.
 */
u64 xm_claims_update(struct xm_host *host, u32 slot);

/*
 * Void the claims of @slot that the list knows. false: the owner has added other claims since, and
 * only the list was updated.
 */
bool xm_claims_void(struct xm_host *host, u32 slot);

#endif
