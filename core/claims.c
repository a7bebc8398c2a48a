// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Claims: references that are set aside for clients yet unknown. Their number is in the slot's
 * row, above the first generation of its tenancy, so a get without claims pays nothing for them.
 * The host adds and voids them; in the daemon's pools clients take them by themselves. So every
 * change is a compare-and-swap.
 */
#include "host.h"

int xm_look(const struct xm_map *map, u64 token)
{
	u32 slot = xm_token_slot(token);
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	u64 first = xm_first_generation(xm_load(&xm_slot_row(map, slot)->generation_first));

	if (!xm_in_tenancy(xm_generation(token), first) ||
	    xm_generation(word) != xm_generation(token))
		return -ESTALE;
	if (xm_state(word) == XMEM_SLOT_LIVE)
		return 0;
	return xm_state(word) == XMEM_SLOT_SCANNING ? -EAGAIN : -ESTALE;
}

u64 xm_group_claimed(const struct xm_map *map, u32 group, u64 among)
{
	u64 claimed = 0;

	if (!xm_any_claims(map))
		return 0;
	for (; among; among &= among - 1) {
		u32 i = __builtin_ctzll(among);

		if (xm_claims_of(map, group * XMEM_GROUP_SLOTS + i))
			claimed |= 1ULL << i;
	}
	return claimed;
}

int xm_claim_take(const struct xm_map *map, u32 slot, u32 count)
{
	u64 *word = &xm_slot_row(map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		if (xm_claims(before) < count)
			return -ERANGE;
	} while (!xm_cas_full(word, before, before - ((u64)count << XMEM_CLAIMS_SHIFT)));
	return 0;
}

u64 xm_make_live(const struct xm_own *own)
{
	u64 word = xm_load(&own->word->state);

	xm_store(&own->word->position, 0);
	XM_STEP(XM_STEP_CLAIM_POSITION);
	xm_store_release(&own->word->state, word - XMEM_SLOT_WRITING + XMEM_SLOT_LIVE);
	XM_STEP(XM_STEP_CLAIM_LIVE);
	return (word & ~0xffffULL) | own->slot;
}

/* ---- the host's list, by deadlines ---- */

size_t xm_claims_bytes(const struct xm_map *map)
{
	return sizeof(struct xm_claims) + map->slots * sizeof(struct xm_claim);
}

/* The link that leads to the one behind @place (1 + slot, or 0: to the first). */
static u32 *xm_link_behind(struct xm_claims *claims, u32 place)
{
	return place ? &claims->slot[place - 1].next : &claims->first;
}

static u32 *xm_link_before(struct xm_claims *claims, u32 place)
{
	return place ? &claims->slot[place - 1].before : &claims->last;
}

static void xm_unlink(struct xm_claims *claims, u32 slot)
{
	struct xm_claim *claim = &claims->slot[slot];

	*xm_link_behind(claims, claim->before) = claim->next;
	*xm_link_before(claims, claim->next) = claim->before;
}

/* Mostly all times are equally long, and the place is the last one. */
static void xm_link(struct xm_claims *claims, u32 slot)
{
	struct xm_claim *claim = &claims->slot[slot];
	u32 before = claims->last;

	while (before && claims->slot[before - 1].deadline_ns > claim->deadline_ns)
		before = claims->slot[before - 1].before;
	claim->before = before;
	claim->next = *xm_link_behind(claims, before);
	*xm_link_before(claims, claim->next) = slot + 1;
	*xm_link_behind(claims, before) = slot + 1;
}

/* @slot has no claims any more. `claimed` is lowered after them. */
static void xm_delist(struct xm_host *host, u32 slot)
{
	struct xm_claims *claims = host->claims;

	xm_unlink(claims, slot);
	claims->slot[slot].listed = false;
	xm_store_release(&host->map.pool->claimed, --claims->count);
}

/* @slot is about to get claims. `claimed` is raised before them. */
static void xm_enlist(struct xm_host *host, u32 slot, u64 deadline_ns)
{
	struct xm_claims *claims = host->claims;
	struct xm_claim *claim = &claims->slot[slot];

	if (claim->listed)
		xm_unlink(claims, slot);
	else
		xm_store_release(&host->map.pool->claimed, ++claims->count);
	if (!claim->listed || !xm_claims_of(&host->map, slot) || deadline_ns > claim->deadline_ns)
		claim->deadline_ns = deadline_ns;
	claim->listed = true;
	xm_link(claims, slot);
}

/* ---- adding and voiding ---- */

/* Add @count. -ERANGE: there would be too many. *ret_before: how many there were. */
static int xm_claims_add(const struct xm_map *map, u32 slot, u32 count, u32 *ret_before)
{
	u64 *word = &xm_slot_row(map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		*ret_before = xm_claims(before);
		if (before == XM_NO_GENERATIONS)
			return -ESTALE;
		if (count > XMEM_MAX_CLAIMS - *ret_before)
			return -ERANGE;
	} while (!xm_cas_full(word, before, before + ((u64)count << XMEM_CLAIMS_SHIFT)));
	return 0;
}

/*
 * Note who has added, and whose own one is. If there were none before, those of whom it was noted
 * have had theirs.
 */
static void xm_claims_note(struct xm_claim *claim, u32 me, u32 before, bool own)
{
	u32 i;

	for (i = 0; !before && i < XMEM_CLIENT_WORDS; i++)
		claim->adders[i] = claim->counted[i] = 0;
	xm_set_bit(claim->adders, me, true);
	if (own)
		xm_set_bit(claim->counted, me, true);
}

static void xm_claims_void(struct xm_host *host, u32 slot)
{
	u64 *word = &xm_slot_row(&host->map, slot)->generation_first, before;

	do
		before = xm_load(word);
	while (xm_claims(before) && !xm_cas_full(word, before, xm_first_generation(before)));
	xm_delist(host, slot);
}

void xm_claims_end(struct xm_host *host, u32 slot)
{
	if (host->claims && host->claims->slot[slot].listed)
		xm_claims_void(host, slot);
}

/* The list may have slots whose claims were taken without the host. */
static void xm_delist_empty(struct xm_host *host)
{
	while (host->claims->first && !xm_claims_of(&host->map, host->claims->first - 1))
		xm_delist(host, host->claims->first - 1);
}

struct xm_pending xm_claims_pending(const struct xm_host *host, u32 slot)
{
	return xm_put_pending(&host->map, slot);
}

/* ---- requests ---- */

/* May claims be added to what @word says of the slot? 0, -EAGAIN: not while it is scanned. */
static int xm_may_claim(const struct xm_map *map, u32 me, u32 slot, u64 generation)
{
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
 * Add the claims, then look at the state word, as with a hold (I7). If there were claims already,
 * they have kept the contents, and a scan that is at work will find them.
 */
static int xm_host_claim_add(struct xm_host *host, u32 me, u32 slot,
			     const struct xmem_claim_request *request, u64 now_ns,
			     struct xm_pending *pending)
{
	const struct xm_map *map = &host->map;
	u32 before = 0;
	int err;

	if (xm_slot_row(map, slot)->owner != me && request->timeout_ns > XMEM_CLAIM_LONGEST_NS)
		return -EPERM;
	xm_delist_empty(host);
	err = xm_may_claim(map, me, slot, request->generation);
	if (err && !(err == -EAGAIN && xm_claims_of(map, slot)))
		return err;
	if (request->count > XMEM_MAX_CLAIMS - xm_claims_of(map, slot))
		return -ERANGE;
	if (!request->count && !xm_claims_of(map, slot))
		return -ENOENT;
	xm_enlist(host, slot, xm_claim_deadline(request, now_ns));
	err = xm_claims_add(map, slot, request->count, &before);
	XM_STEP(XM_STEP_CLAIM_ADDED);
	if (!err)
		err = xm_may_claim(map, me, slot, request->generation);
	if (!err || (err == -EAGAIN && before)) {
		xm_claims_note(&host->claims->slot[slot], me, before,
			       request->flags & XMEM_CLAIM_OWN);
		return 0;
	}
	/* The owner may have seen them meanwhile, and may sleep for that. */
	xm_claim_take(map, slot, request->count);
	if (!xm_claims_of(map, slot))
		xm_delist(host, slot);
	*pending = xm_claims_pending(host, slot);
	return err;
}

/* Has @me added claims to @slot that are not all void or taken? */
static bool xm_has_added(const struct xm_host *host, u32 me, u32 slot)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	return claim->listed && xm_bit(claim->adders, me);
}

/*
 * May @me take claims of @slot? Who has added some may take them back without a hold: a request
 * that was given up is undone. What is its own it may take once, if it is not void.
 */
static int xm_may_take(const struct xm_host *host, u32 me, u32 slot, bool holds, bool own)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	if (own)
		return claim->listed && xm_bit(claim->counted, me) ? 0 : -ENOENT;
	return holds || xm_slot_row(&host->map, slot)->owner == me ||
	       xm_has_added(host, me, slot) ? 0 : -EPERM;
}

static int xm_host_claim_take(struct xm_host *host, u32 me, u32 slot,
			      const struct xmem_claim_request *request, struct xm_pending *pending)
{
	const struct xm_map *map = &host->map;
	bool holds = xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT;
	bool own = request->flags & XMEM_CLAIM_OWN;
	int err = xm_may_take(host, me, slot, holds, own);

	if (err)
		return err;
	if (own)
		xm_set_bit(host->claims->slot[slot].counted, me, false);
	err = xm_claim_take(map, slot, request->count);
	if (err)
		return err;
	if (!xm_claims_of(map, slot) && host->claims->slot[slot].listed)
		xm_delist(host, slot);
	if (!holds)
		*pending = xm_claims_pending(host, slot);
	return 0;
}

static int xm_host_claim_void(struct xm_host *host, u32 me, u32 slot, bool privileged,
			      struct xm_pending *pending)
{
	if (!host->claims->slot[slot].listed || !xm_claims_of(&host->map, slot))
		return -ENOENT;
	if (!privileged && xm_slot_row(&host->map, slot)->owner != me &&
	    !xm_has_added(host, me, slot))
		return -EPERM;
	xm_claims_void(host, slot);
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
		return !request->timeout_ns && request->count &&
		       (request->count == 1 || !request->flags);
	case XMEM_CLAIM_VOID:
		return !request->timeout_ns && !request->count && !request->flags;
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

/* ---- ends ---- */

int xm_host_expire_claims(struct xm_host *host, u64 now_ns, u64 *ret_deadline)
{
	struct xm_claims *claims = host->claims;
	u32 slot;

	*ret_deadline = ~0ULL;
	if (!claims)
		return -ENOENT;
	xm_delist_empty(host);
	if (!claims->first)
		return -ENOENT;
	slot = claims->first - 1;
	*ret_deadline = claims->slot[slot].deadline_ns;
	if (*ret_deadline > now_ns || *ret_deadline == ~0ULL)
		return -ENOENT;
	xm_claims_void(host, slot);
	return slot;
}

void xm_claims_leave(struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	u32 s;

	for (s = 0; host->claims && s < map->slots; s++) {
		struct xm_claim *claim = &host->claims->slot[s];

		if (!claim->listed)
			continue;
		if (xm_bit(claim->counted, client) &&
		    xm_load(xm_hold(map, client, s)) & XM_HOLD_CLAIM &&
		    !xm_claim_take(map, s, 1) && !xm_claims_of(map, s))
			xm_delist(host, s);
		xm_set_bit(claim->counted, client, false);
		xm_set_bit(claim->adders, client, false);
	}
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

	if (!host->claims || !host->claims->count)
		return -ENOENT;
	last = xm_last_client(map);
	if (last == XMEM_OWNER_HOST)
		return -ENOENT;
	while (*at < map->slots) {
		u32 slot = (*at)++;

		if (!host->claims->slot[slot].listed)
			continue;
		/* It may add more, or take some itself. */
		if (last != XMEM_OWNER_NONE && (xm_slot_row(map, slot)->owner != last ||
						xm_has_added(host, last, slot)))
			continue;
		xm_claims_void(host, slot);
		return slot;
	}
	return -ENOENT;
}
