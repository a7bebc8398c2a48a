// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Claims: references that are set aside for clients yet unknown. Their number is in the slot's
 * row, above the first generation of its tenancy, so a get without claims pays nothing for them.
 * The host adds and voids them; in the daemon's pools clients take them by themselves. So every
 * change is a compare-and-swap.
 *
 *   add n       count the slot in `claimed`, if it had no claims; claims + n, full barrier; without
 *               claims before, look at the state word as a get does: claims - n, if it is not LIVE
 *   take        only with a hold: claims - 1, or -ERANGE if there are none
 *   count in    add n, one of which is the client's own; its hold says "not forgotten"
 *   forget      its hold says "forgotten", and the handle's reference is dropped
 *   release     take the client's own claim, if it has one and has not forgotten it
 *   add alone   an owner, with a hold (I10): from no claims and another generation than these
 *               contents have, to n claims and the generation of these contents
 *
 * The models are tests/model/counted.pml and tests/model/alone.pml.
 */
#include "host.h"
#include "limbo.h"

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

int xm_may_hold(const struct xm_map *map, u32 me, u64 token)
{
	u32 slot = xm_token_slot(token);
	const struct xmem_slot_row *row = xm_slot_row(map, slot);

	/* The tenancy first: with another one the group may have been another owner's. */
	if (!xm_in_tenancy(xm_generation(token),
			   xm_first_generation(xm_load_acquire(&row->generation_first))))
		return -ESTALE;
	if (!xm_holds_count(map, me, slot))
		return -EACCES;
	xm_full_barrier();
	return 0;
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

int xm_claim_take(const struct xm_map *map, u32 slot, u64 last, u32 count)
{
	u64 *word = &xm_slot_row(map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		if (xm_claims(before) < count || xm_first_generation(before) > last)
			return -ERANGE;
	} while (!xm_cas_full(word, before, before - ((u64)count << XMEM_CLAIMS_SHIFT)));
	return 0;
}

int xm_claim_alone(const struct xm_map *map, u32 me, u64 token, u32 count)
{
	u32 slot = xm_token_slot(token);
	struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 generation = xm_generation(token), before = xm_load(&row->generation_first);

	if (!xm_any_claims(map) || xm_load(&row->owner) != me ||
	    !(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT) || xm_look(map, token))
		return -EAGAIN;
	/* If there are claims it is no generation of the tenancy. */
	if (before == generation || !xm_in_tenancy(generation, before))
		return -EAGAIN;
	if (!xm_cas_full(&row->generation_first, before,
			 generation | (u64)count << XMEM_CLAIMS_SHIFT))
		return -EAGAIN;
	XM_STEP(XM_STEP_CLAIM_ALONE);
	if (!xm_look(map, token))
		return 0;
	/* Another thread may be about to write them in place, with this same hold. */
	while (count && !xm_claim_take(map, slot, generation, 1))
		count--;
	return -EAGAIN;
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

/* ---- the host's heap, by deadlines ---- */

size_t xm_claims_bytes(const struct xm_map *map)
{
	return sizeof(struct xm_claims) + map->slots * sizeof(struct xm_claim);
}

static bool xm_is_noted(const struct xm_claims *claims, u32 slot)
{
	return claims->slot[slot].place;
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

/* Bring @slot, for which @place is free, up as far as it ends before those above it. */
static u32 xm_heap_up(struct xm_claims *claims, u32 place, u32 slot)
{
	u64 deadline = claims->slot[slot].deadline_ns;

	for (; place && xm_deadline_at(claims, (place - 1) / 2) > deadline; place = (place - 1) / 2)
		xm_heap_put(claims, place, claims->slot[(place - 1) / 2].heap);
	xm_heap_put(claims, place, slot);
	return place;
}

/* Likewise down, as far as it ends after those below it. */
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

/* @slot has claims and another deadline than before. */
static void xm_heap_move(struct xm_claims *claims, u32 slot)
{
	u32 place = claims->slot[slot].place - 1;

	xm_heap_down(claims, xm_heap_up(claims, place, slot), slot);
}

/* The header counts one more for all that owners add by themselves. */
static void xm_say_claimed(struct xm_host *host)
{
	xm_store_release(&host->map.pool->claimed, host->claims->count + host->claims->alone);
}

/* @slot has no claims any more. `claimed` is lowered after them. */
static void xm_delist(struct xm_host *host, u32 slot)
{
	struct xm_claims *claims = host->claims;
	u32 place = claims->slot[slot].place - 1, last = claims->slot[--claims->count].heap;

	claims->slot[slot].place = 0;
	if (last != slot) {
		xm_heap_put(claims, place, last);
		xm_heap_move(claims, last);
	}
	xm_say_claimed(host);
}

/*
 * @slot, whose word is @word now, is about to get claims. `claimed` is raised before them. If they
 * last longer by that, it is due to @keeper; who adds some that end no later has not to answer for
 * the others.
 */
static void xm_enlist(struct xm_host *host, u32 slot, u64 word, u64 deadline_ns, u32 keeper)
{
	struct xm_claims *claims = host->claims;
	struct xm_claim *claim = &claims->slot[slot];
	bool noted = xm_is_noted(claims, slot);

	if (!noted || !xm_claims(word) || deadline_ns > claim->deadline_ns) {
		claim->deadline_ns = deadline_ns;
		xm_store(&claim->keeper, keeper);
	}
	xm_store(&claim->first, xm_first_generation(word));
	if (!noted) {
		xm_heap_put(claims, claims->count++, slot);
		xm_say_claimed(host);
	}
	xm_heap_move(claims, slot);
}

/* ---- what owners have added by themselves (I10) ---- */

void xm_claims_share(struct xm_host *host)
{
	host->claims->alone = 1;
	xm_say_claimed(host);
}

/*
 * The word of @slot, once what is noted of it is of the claims that the word counts. If it is not,
 * those were all taken, and the owner has added these by itself since, for as long as it lives.
 */
static u64 xm_claims_settle(struct xm_host *host, u32 slot)
{
	struct xm_claim *claim = &host->claims->slot[slot];
	u64 word = xm_load_acquire(&xm_slot_row(&host->map, slot)->generation_first);
	u32 owner = xm_slot_row(&host->map, slot)->owner, i;

	if (!xm_claims(word) ||
	    (xm_is_noted(host->claims, slot) && claim->first == xm_first_generation(word)))
		return word;
	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		claim->adders[i] = claim->counted[i] = 0;
	if (owner < host->map.clients)
		xm_set_bit(claim->adders, owner, true);
	xm_enlist(host, slot, word, ~0ULL, owner < host->map.clients ? owner + 1 : XM_KEEPER_NONE);
	return word;
}

/* ---- adding and voiding ---- */

/*
 * Add @count to those that are noted (@first). -ERANGE: there would be too many; -EAGAIN: the owner
 * has added by itself meanwhile. *ret_before: how many there were.
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

/* Is one of the claims of @slot this client's own, and not forgotten? */
static bool xm_has_own(const struct xm_host *host, u32 me, u32 slot)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	return claim->place && xm_bit(claim->counted, me) &&
	       !(xm_load(xm_hold(&host->map, me, slot)) & XM_HOLD_FORGOTTEN);
}

/*
 * Note who has added, and whose own one is. If there were none before, those of whom it was noted
 * have had theirs.
 */
static void xm_claims_note(struct xm_host *host, u32 me, u32 slot, u32 before,
			   const struct xmem_claim_request *request)
{
	struct xm_claim *claim = &host->claims->slot[slot];
	u32 *hold = xm_hold(&host->map, me, slot), i;

	for (i = 0; !before && i < XMEM_CLIENT_WORDS; i++)
		claim->adders[i] = claim->counted[i] = 0;
	if (request->count)
		xm_set_bit(claim->adders, me, true);
	if (!(request->flags & XMEM_CLAIM_OWN))
		return;
	xm_set_bit(claim->counted, me, true);
	if (xm_load(hold) & XM_HOLD_FORGOTTEN)
		xm_add_full(hold, -XM_HOLD_FORGOTTEN);
}

/* Void what is noted. false: the owner has added by itself since, and that is noted now. */
static bool xm_claims_void(struct xm_host *host, u32 slot)
{
	u64 *word = &xm_slot_row(&host->map, slot)->generation_first, before;

	do {
		before = xm_load(word);
		if (xm_claims(before) &&
		    xm_first_generation(before) != host->claims->slot[slot].first) {
			xm_claims_settle(host, slot);
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
	xm_claims_settle(host, slot);
	if (xm_is_noted(host->claims, slot))
		xm_claims_void(host, slot);
}

/* The slot whose claims end next. There is one. */
static u32 xm_claims_next(const struct xm_claims *claims)
{
	return claims->slot[0].heap;
}

/* The heap may have slots whose claims were taken without the host. */
static void xm_delist_empty(struct xm_host *host)
{
	struct xm_claims *claims = host->claims;

	while (claims->count && !xm_claims_of(&host->map, xm_claims_next(claims)))
		xm_delist(host, xm_claims_next(claims));
}

struct xm_pending xm_claims_pending(const struct xm_host *host, u32 slot)
{
	return xm_put_pending(&host->map, slot);
}

/* ---- requests ---- */

/*
 * May claims be added to what the slot has now? 0, -EAGAIN: not while it is scanned. Contents that
 * are being written have a token that nobody knows but their writer, who counts itself in.
 */
static int xm_may_claim(const struct xm_map *map, u32 me, const struct xmem_claim_request *request)
{
	u32 slot = xm_index(request->slot, map->slots);
	bool own = request->flags & XMEM_CLAIM_OWN;
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
		return own && xm_slot_row(map, slot)->owner == me ? 0 : -ESTALE;
	case XMEM_SLOT_UPGRADED:
		return own && xm_slot_row(map, slot)->upgrader == me + 1 ? 0 : -ESTALE;
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
	u64 word;
	int err, added;

	if (xm_slot_row(map, slot)->owner != me && request->timeout_ns > XMEM_CLAIM_LONGEST_NS)
		return -EPERM;
	xm_delist_empty(host);
	word = xm_claims_settle(host, slot);
	err = xm_may_claim(map, me, request);
	if (err && !(err == -EAGAIN && xm_claims(word)))
		return err;
	if (request->count > XMEM_MAX_CLAIMS - xm_claims(word))
		return -ERANGE;
	if (!request->count && !xm_claims(word))
		return -ENOENT;
	if ((request->flags & (XMEM_CLAIM_OWN | XMEM_CLAIM_AGAIN)) == XMEM_CLAIM_OWN &&
	    xm_claims(word) && xm_has_own(host, me, slot))
		return -EBUSY;
	xm_enlist(host, slot, word, xm_claim_deadline(request, now_ns), me + 1);
	XM_STEP(XM_STEP_CLAIM_NOTED);
	added = err = xm_claims_add(map, slot, xm_first_generation(word), request->count, &before);
	XM_STEP(XM_STEP_CLAIM_ADDED);
	if (!err)
		err = xm_may_claim(map, me, request);
	if (!added && (!err || (err == -EAGAIN && before))) {
		xm_claims_note(host, me, slot, before, request);
		return 0;
	}
	/* The owner may have seen them meanwhile, and may sleep for that. */
	if (!added)
		xm_claim_take(map, slot, xm_first_generation(word), request->count);
	if (!xm_claims_of(map, slot))
		xm_delist(host, slot);
	*pending = xm_claims_pending(host, slot);
	return err;
}

/* Has @me added claims to @slot that are not all void or taken? */
static bool xm_has_added(const struct xm_host *host, u32 me, u32 slot)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	return claim->place && xm_bit(claim->adders, me);
}

/*
 * May @me take claims of @slot? Who has added some may take them back without a hold: a request
 * that was given up is undone. What is its own it may take once, if it is not void.
 */
static int xm_may_take(const struct xm_host *host, u32 me, u32 slot, bool holds, bool own)
{
	const struct xm_claim *claim = &host->claims->slot[slot];

	if (own)
		return claim->place && xm_bit(claim->counted, me) ? 0 : -ENOENT;
	return holds || xm_slot_row(&host->map, slot)->owner == me ||
	       xm_has_added(host, me, slot) ? 0 : -EPERM;
}

static int xm_host_claim_take(struct xm_host *host, u32 me, u32 slot,
			      const struct xmem_claim_request *request, struct xm_pending *pending)
{
	const struct xm_map *map = &host->map;
	bool holds = xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT;
	bool own = request->flags & XMEM_CLAIM_OWN;
	u64 last = request->generation;
	int err;

	xm_claims_settle(host, slot);
	err = xm_may_take(host, me, slot, holds, own);
	if (err)
		return err;
	if (own) {
		xm_set_bit(host->claims->slot[slot].counted, me, false);
		last = host->claims->slot[slot].first;	/* it is none that came by itself since */
	}
	err = xm_claim_take(map, slot, last, request->count);
	if (err)
		return err;
	if (!xm_claims_of(map, slot) && xm_is_noted(host->claims, slot))
		xm_delist(host, slot);
	if (!holds)
		*pending = xm_claims_pending(host, slot);
	return 0;
}

static int xm_host_claim_void(struct xm_host *host, u32 me, u32 slot, bool privileged,
			      struct xm_pending *pending)
{
	if (!xm_claims(xm_claims_settle(host, slot)))
		return -ENOENT;
	if (!privileged && xm_slot_row(&host->map, slot)->owner != me &&
	    !xm_has_added(host, me, slot))
		return -EPERM;
	if (!xm_claims_void(host, slot))
		return -ENOENT;		/* these are of later contents */
	*pending = xm_claims_pending(host, slot);
	return 0;
}

/* Do the fields of the request go together? */
static bool xm_claim_is_valid(const struct xmem_claim_request *request)
{
	switch (request->op) {
	case XMEM_CLAIM_ADD:
		return request->flags != XMEM_CLAIM_AGAIN;
	case XMEM_CLAIM_TAKE:
		return !request->timeout_ns && !(request->flags & XMEM_CLAIM_AGAIN) &&
		       (request->flags ? request->count <= 1 : request->count != 0);
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

/* ---- ends ---- */

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
	} while (!xm_claims_void(host, slot));	/* which then has no end, and another is next */
	return slot;
}

/*
 * @client has ended, and its id will be given again, so it is named no longer. What it has set
 * aside of its own slots is in flight, and lasts for the time that it has asked for: that is no
 * limbo that somebody keeps.
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
	xm_claims_settle(host, slot);
	if (!xm_is_noted(host->claims, slot) ||
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

void xm_host_bound_claims(struct xm_host *host, u64 now_ns)
{
	u32 g;

	for (g = 0; g < host->map.groups && xm_host_bound_group(host, g, now_ns); g++)
		;
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

		xm_claims_settle(host, slot);
		if (!xm_is_noted(host->claims, slot))
			continue;
		/* It may add more, or take some itself. */
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

/* false: it is kept by those that have ended, and these keep enough without it. */
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
