// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The host's half of claims: its list of the slots that have claims, the request `claim`, and how
 * claims end. The list is a bitmap; beside it, the host notes for each slot the deadline of its
 * claims and the clients that have added some. All this is in the host's private memory, and the
 * claims themselves are in the slots' rows.
 */
#include "host.h"

#define LOOKS	XMEM_GROUP_SLOTS	/* slots that one call looks at */

/* ---- the list ---- */

static bool xm_is_listed(const struct xm_claims *claims, u32 slot)
{
	return xm_bit(claims->listed, slot);
}

/* Has @me added claims to @slot that are not all void or taken? */
static bool xm_has_added(const struct xm_host *host, u32 me, u32 slot)
{
	return xm_is_listed(host->claims, slot) && xm_bit(host->claims->slot[slot].adders, me);
}

size_t xm_claims_bytes(const struct xm_map *map)
{
	return sizeof(struct xm_claims) + map->slots * sizeof(struct xm_claim);
}

/* The claims of @slot, which is in the list, end at @deadline_ns. */
static void xm_set_deadline(struct xm_claims *claims, u32 slot, u64 deadline_ns)
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

/* Take @slot, which has no claims any more, out of the list; `claimed` is lowered after that. */
static void xm_delist(struct xm_host *host, u32 slot)
{
	xm_set_deadline(host->claims, slot, ~0ULL);
	xm_set_bit(host->claims->listed, slot, false);
	host->claims->count--;
	xm_update_claimed(host);
}

/*
 * Put @slot, whose word is @word, into the list, because it is about to get claims; `claimed` is
 * raised before they are added. All claims of a slot end at the latest of their deadlines.
 */
static void xm_enlist(struct xm_host *host, u32 slot, u64 word, u64 deadline_ns)
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

/*
 * Return the word of @slot, and bring the list up to date with it. If the word counts claims that
 * the list does not know, all earlier claims were taken and the owner has added these without the
 * host (I10); they last as long as the owner lives.
 */
static u64 xm_claims_update(struct xm_host *host, u32 slot)
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

/*
 * Void the claims of @slot that the list knows. false: the owner has added other claims since, and
 * only the list was updated.
 */
static bool xm_claims_void(struct xm_host *host, u32 slot)
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

/* ---- the request ---- */

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
 * Record that @me has added @count claims. If the slot had none @before, the clients that are on
 * record have added earlier claims, which have gone, and are struck off.
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
	*pending = xm_put_pending(map, slot);
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
		last = host->claims->slot[slot].first;	/* no claims that the owner adds now */
	}
	err = xm_claim_take(map, slot, last, request->count);
	if (err)
		return err;
	if (!xm_claims_of(map, slot) && xm_is_listed(host->claims, slot))
		xm_delist(host, slot);
	if (!holds)
		*pending = xm_put_pending(map, slot);
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
	*pending = xm_put_pending(&host->map, slot);
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

/* ---- claims that end ---- */

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
