// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Forwarding: a client puts a buffer that it holds, and another client owns, into its own ring. The
 * owner's scan then looks for users in that ring, too (I6). A client can write its ring, so the
 * host reads each word there once and never trusts it.
 */
#include "host.h"
#include "policy.h"
#include "publish.h"

/* ---- the scan ---- */

/*
 * The place in @publisher's ring from which on forwarded entries are in use; @evicts: as in
 * xm_scan_rules. The bound in the host's row counts: a publisher that is stopped, or has ended,
 * keeps nothing for longer.
 */
static u64 xm_in_use_from(const struct xm_map *map, u32 publisher, u64 evicts)
{
	struct xm_waited waited;
	u32 culprit;

	if (!evicts)
		return xm_passed(map, publisher, &culprit);
	if (evicts > xm_load(&xm_client_row(map, publisher)->wait_bound_ns))
		return ~0ULL;
	xm_read_waited(map, publisher, &waited);
	return waited.evictable;
}

/*
 * The walk includes the place at the tail: its entry may be complete already, and stays complete if
 * the publisher ends there.
 */
void xm_walk_begin(const struct xm_map *map, u32 publisher, u64 evicts, struct xm_walk *ret)
{
	u64 from = xm_in_use_from(map, publisher, evicts);
	u64 tail = xm_load_acquire(&xm_ring(map, publisher)->tail), oldest = xm_oldest(map, tail);

	from = from > oldest ? from : oldest;
	*ret = (struct xm_walk){ publisher, tail, from > tail ? 0 : tail - from + 1 };
}

/*
 * Get the next token in an entry that may still be received. The ring's owner can write any value
 * there.
 */
static bool xm_walk_token(const struct xm_map *map, struct xm_walk *walk, u64 *ret_token)
{
	while (walk->left) {
		u64 place = walk->tail - --walk->left;
		const struct xmem_entry *entry = xm_entry(map, walk->publisher, place);

		XM_STEP(XM_STEP_RING_LOOK);
		if (xm_load_acquire(&entry->position) != ((place + 1) | XMEM_ENTRY_MARKED))
			continue;
		*ret_token = xm_load(&entry->token);
		return true;
	}
	return false;
}

/* Does @token name the present contents of its slot? The group exists. */
static bool xm_is_present(const struct xm_map *map, u32 group, u64 token)
{
	const struct xmem_slot_word *word = &xm_group(map, group)->word[token % XMEM_GROUP_SLOTS];

	return xm_generation(xm_load(&word->state)) == xm_generation(token);
}

bool xm_walk_next(const struct xm_map *map, struct xm_walk *walk, const u64 *among, u32 *ret_slot)
{
	u64 token;
	u32 slot;

	while (xm_walk_token(map, walk, &token)) {
		if (xm_token_slot(token) >= map->slots)
			continue;
		slot = xm_index(xm_token_slot(token), map->slots);
		if (!(among[slot / XMEM_GROUP_SLOTS] >> slot % XMEM_GROUP_SLOTS & 1) ||
		    !xm_is_present(map, slot / XMEM_GROUP_SLOTS, token) ||
		    !xm_holds_count(map, walk->publisher, slot) ||
		    !(xm_load(xm_hold(map, walk->publisher, slot)) & XM_HOLD_FORWARDED))
			continue;
		*ret_slot = slot;
		return true;
	}
	return false;
}

/* Returns those slots of @group in @among that @publisher's ring names. */
static u64 xm_ring_names(const struct xm_map *map, u32 publisher, u32 group, u64 among,
			 u64 evicts)
{
	struct xm_walk walk;
	u64 found = 0, token;

	xm_walk_begin(map, publisher, evicts, &walk);
	while (found != among && xm_walk_token(map, &walk, &token)) {
		u64 bit = 1ULL << token % XMEM_GROUP_SLOTS;

		if (xm_token_slot(token) / XMEM_GROUP_SLOTS == group && among & bit &&
		    xm_is_present(map, group, token))
			found |= bit;
	}
	return found;
}

/* Returns the slots in @among that this client has ever forwarded. */
static u64 xm_has_forwarded(const u32 *hold, u64 among)
{
	u64 forwarded = 0;

	for (; among; among &= among - 1) {
		u32 i = __builtin_ctzll(among);

		if (xm_load(&hold[i]) & XM_HOLD_FORWARDED)
			forwarded |= 1ULL << i;
	}
	return forwarded;
}

u64 xm_group_forwarded(const struct xm_map *map, u32 group, u64 among, u64 evicts,
		       u8 *ret_holder)
{
	u64 found = 0, some;
	u32 c;

	for (c = 0; c < map->clients && found != among; c++) {
		if (!xm_bit(xm_group_row(map, group)->holders, c) || !map->area[c])
			continue;
		some = xm_has_forwarded(xm_hold(map, c, group * XMEM_GROUP_SLOTS), among & ~found);
		if (!some)
			continue;
		some = xm_ring_names(map, c, group, some, evicts);
		found |= some;
		for (; ret_holder && some; some &= some - 1)
			ret_holder[__builtin_ctzll(some)] = c;
	}
	return found;
}

/* ---- the host ---- */

bool xm_host_forwards(const struct xm_host *host, u32 publisher)
{
	const struct xm_map *map = &host->map;
	u32 i;

	publisher = xm_index(publisher, map->clients);
	for (i = 0; map->area[publisher] && i <= map->ring_mask; i++) {
		const struct xmem_entry *entry = xm_entry(map, publisher, i);
		u32 slot = xm_token_slot(xm_load(&entry->token));

		if (!(xm_load(&entry->position) & XMEM_ENTRY_MARKED) || slot >= map->slots)
			continue;
		slot = xm_index(slot, map->slots);
		if (xm_slot_row(map, slot)->owner == XMEM_OWNER_HOST)
			return true;
	}
	return false;
}
