// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The request `claim`: it adds, takes or voids claims. */
#include "claims.h"

/*
 * Add @count claims to those of the generation @first. -ERANGE: there would be too many. -EAGAIN:
 * the owner has added claims without the host meanwhile. *ret_before: how many there were.
 */
static int xm_claims_add(const struct xm_map *map, u32 slot, u64 first, u32 count, u32 *ret_before)
{
	u64 *word = &xm_slot_row(map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		*ret_before = xm_claims(before);
		if (before == XM_NO_GENERATIONS)
			return -ESTALE;
		if (xm_first_generation(before) != first)
			return -EAGAIN;
		if (count > XMEM_MAX_CLAIMS - *ret_before)
			return -ERANGE;
	} while (!xm_cas_full(word, before, before + ((u64)count << XMEM_CLAIMS_SHIFT)));
	return 0;
}

/*
 * Record that @me has added @count claims. If there were no claims before, the records of earlier
 * ones are out of date.
 */
static void xm_claims_mark(struct xm_host *host, u32 me, u32 slot, u32 before, u32 count)
{
	struct xm_claim *claim = &host->claims->slot[slot];
	u32 i;

	for (i = 0; !before && i < XMEM_CLIENT_WORDS; i++)
		claim->adders[i] = 0;
	if (count)
		xm_set_bit(claim->adders, me, true);
}

/*
 * May claims be added to the present contents of the slot? 0, or -EAGAIN: not while the slot is
 * scanned. Only the writer knows the token of contents that are still being written.
 */
static int xm_may_claim(const struct xm_map *map, u32 me, const struct xmem_claim_request *request)
{
	u32 slot = xm_index(request->slot, map->slots);
	u64 generation = request->generation;
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	u64 first = xm_first_generation(xm_load(&xm_slot_row(map, slot)->generation_first));

	if (xm_generation(word) != generation || !xm_in_tenancy(generation, first))
		return -ESTALE;
	switch (xm_state(word)) {
	case XMEM_SLOT_LIVE:
		return 0;
	case XMEM_SLOT_SCANNING:
		return -EAGAIN;
	case XMEM_SLOT_WRITING:
		return xm_slot_row(map, slot)->owner == me ? 0 : -ESTALE;
	case XMEM_SLOT_UPGRADED:
		return xm_slot_row(map, slot)->upgrader == me + 1 ? 0 : -ESTALE;
	}
	return -ESTALE;
}

static u64 xm_claim_deadline(const struct xmem_claim_request *request, u64 now_ns)
{
	u64 timeout_ns = request->timeout_ns ? request->timeout_ns : XMEM_CLAIM_DEFAULT_NS;

	return timeout_ns > ~0ULL - now_ns ? ~0ULL : now_ns + timeout_ns;
}

/*
 * Add the claims, then look at the state word, as with a hold (I7). If the slot had claims before,
 * these have kept the contents, and a scan that is running will find them.
 */
static int xm_host_claim_add(struct xm_host *host, u32 me, u32 slot,
			     const struct xmem_claim_request *request, u64 now_ns,
			     struct xm_pending *pending)
{
	const struct xm_map *map = &host->map;
	u32 before = 0;
	u64 word;
	int err, added;

	if (xm_slot_row(map, slot)->owner != me && request->timeout_ns > XMEM_CLAIM_LONGEST_NS)
		return -EPERM;
	word = xm_claims_update(host, slot);
	err = xm_may_claim(map, me, request);
	if (err && !(err == -EAGAIN && xm_claims(word)))
		return err;
	if (request->count > XMEM_MAX_CLAIMS - xm_claims(word))
		return -ERANGE;
	if (!request->count && !xm_claims(word))
		return -ENOENT;
	xm_enlist(host, slot, word, xm_claim_deadline(request, now_ns));
	XM_STEP(XM_STEP_CLAIM_NOTED);
	added = err = xm_claims_add(map, slot, xm_first_generation(word), request->count, &before);
	XM_STEP(XM_STEP_CLAIM_ADDED);
	if (!err)
		err = xm_may_claim(map, me, request);
	if (!added && (!err || (err == -EAGAIN && before))) {
		xm_claims_mark(host, me, slot, before, request->count);
		return 0;
	}
	/* The owner may have seen the claims meanwhile, and may sleep because of them. */
	if (!added)
		xm_claim_take(map, slot, xm_first_generation(word), request->count);
	if (!xm_claims_of(map, slot))
		xm_delist(host, slot);
	*pending = xm_claims_pending(host, slot);
	return err;
}

/*
 * A client with a hold may take claims, and so may the owner. A client that has added claims may
 * take them back without a hold, to undo a request.
 */
static int xm_host_claim_take(struct xm_host *host, u32 me, u32 slot,
			      const struct xmem_claim_request *request, struct xm_pending *pending)
{
	const struct xm_map *map = &host->map;
	bool holds = xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT;
	u64 last = request->generation;
	int err;

	xm_claims_update(host, slot);
	if (!holds) {
		if (xm_slot_row(map, slot)->owner != me && !xm_has_added(host, me, slot))
			return -EPERM;
		last = host->claims->slot[slot].first;	/* not what the owner adds meanwhile */
	}
	err = xm_claim_take(map, slot, last, request->count);
	if (err)
		return err;
	if (!xm_claims_of(map, slot) && xm_is_listed(host->claims, slot))
		xm_delist(host, slot);
	if (!holds)
		*pending = xm_claims_pending(host, slot);
	return 0;
}

static int xm_host_claim_void(struct xm_host *host, u32 me, u32 slot, bool privileged,
			      struct xm_pending *pending)
{
	if (!xm_claims(xm_claims_update(host, slot)))
		return -ENOENT;
	if (!privileged && xm_slot_row(&host->map, slot)->owner != me &&
	    !xm_has_added(host, me, slot))
		return -EPERM;
	if (!xm_claims_void(host, slot))
		return -ENOENT;		/* the claims belong to later contents */
	*pending = xm_claims_pending(host, slot);
	return 0;
}

/* Do the fields of the request go together? */
static bool xm_claim_is_valid(const struct xmem_claim_request *request)
{
	switch (request->op) {
	case XMEM_CLAIM_ADD:
		return true;
	case XMEM_CLAIM_TAKE:
		return !request->timeout_ns && request->count;
	case XMEM_CLAIM_VOID:
		return !request->timeout_ns && !request->count;
	}
	return false;
}

int xm_host_claim(struct xm_host *host, u32 me, const struct xmem_claim_request *request,
		  u64 now_ns, bool privileged, struct xm_pending *pending)
{
	const struct xm_map *map = &host->map;
	bool add = request->op == XMEM_CLAIM_ADD, take = request->op == XMEM_CLAIM_TAKE;
	u32 slot;

	*pending = (struct xm_pending){ XM_NOTHING, 0 };
	if (!xm_claim_is_valid(request) || request->slot >= map->slots)
		return -EINVAL;
	if (request->count > XMEM_MAX_CLAIMS)
		return -ERANGE;
	slot = xm_index(request->slot, map->slots);
	if ((add || take) && !xm_holds_count(map, me, slot))
		return xm_slot_row(map, slot)->owner == XMEM_OWNER_NONE ? -ESTALE : -EACCES;
	if (!map->group[slot / XMEM_GROUP_SLOTS])
		return -ESTALE;
	if (add)
		return xm_host_claim_add(host, me, slot, request, now_ns, pending);
	if (xm_generation(xm_load_acquire(&xm_slot(map, slot)->state)) != request->generation)
		return -ESTALE;
	if (take)
		return xm_host_claim_take(host, me, slot, request, pending);
	return xm_host_claim_void(host, me, slot, privileged, pending);
}
