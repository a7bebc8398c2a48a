// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Forwarding: a client puts what it holds, and another one owns, into its own ring. The owner's
 * scan then looks for users in that ring too (I6). A client can write its ring, so the host
 * reads each word there once and never trusts it.
 */
#include "host.h"
#include "policy.h"
#include "publish.h"

/* ---- the forwarder ---- */

bool xm_forward(const struct xm_map *map, u32 me, const struct xm_publisher_words *words,
		u64 place, struct xm_publication *what, u64 addressee)
{
	u32 *hold = xm_hold(map, me, xm_token_slot(what->token));

	/* Before the entry: if this client ends behind it, the ring is looked at all the same. */
	if (!(xm_load(hold) & XM_HOLD_FORWARDED))
		xm_add_full(hold, XM_HOLD_FORWARDED);
	XM_STEP(XM_STEP_FORWARD_NOTED);
	return xm_put_entry(map, words, place, what, XMEM_ENTRY_MARKED, addressee);
}

u64 xm_overwritten(const struct xm_map *map, const struct xm_publisher_words *words, u64 place)
{
	const struct xmem_entry *entry = (const struct xmem_entry *)
		(words->entries + (place & map->ring_mask) * map->entry_stride);
	u64 position = xm_load(&entry->position);

	if (!(position & XMEM_ENTRY_MARKED) || position & XMEM_ENTRY_VOID)
		return 0;
	return xm_load(&entry->token);
}

/* ---- the scan ---- */

/*
 * The place from which on what is forwarded is in use; @evicts: as in xm_scan_rules. The bound is
 * the host's word: a publisher that is stopped, or has ended, keeps nothing for longer.
 */
static u64 xm_in_use_from(const struct xm_map *map, u32 publisher, u64 evicts)
{
	struct xm_waited waited;
	u32 culprit;

	if (!evicts)
		return xm_passed(map, publisher, &culprit);
	if (evicts > xm_load(&xm_client_row(map, publisher)->wait_bound_ns))
		return ~0ULL;
	xm_look_at_waited(map, publisher, &waited);
	return waited.evictable;
}

/*
 * Which of these slots does @publisher's ring name, with their present contents, in an entry that
 * may still be received? The place at the tail is one of them: its entry may be complete already,
 * and who ends there leaves it complete.
 */
static u64 xm_ring_names(const struct xm_map *map, u32 publisher, u32 group, u64 among,
			 u64 evicts)
{
	u64 from = xm_in_use_from(map, publisher, evicts), found = 0, left;
	u64 tail = xm_load_acquire(&xm_ring(map, publisher)->tail), oldest = xm_oldest(map, tail);

	from = from > oldest ? from : oldest;
	left = from > tail ? 0 : tail - from + 1;	/* at most a lap and one, always */
	for (; left && found != among; left--) {
		u64 place = tail - left + 1, token, bit;
		const struct xmem_entry *entry = xm_entry(map, publisher, place);
		const struct xmem_slot_word *word;

		if (xm_load_acquire(&entry->position) != ((place + 1) | XMEM_ENTRY_MARKED))
			continue;
		token = xm_load(&entry->token);
		bit = 1ULL << token % XMEM_GROUP_SLOTS;
		if (xm_token_slot(token) / XMEM_GROUP_SLOTS != group || !(among & bit))
			continue;
		word = &map->group[group]->word[token % XMEM_GROUP_SLOTS];
		if (xm_generation(xm_load(&word->state)) == xm_generation(token))
			found |= bit;
	}
	return found;
}

/* Which of these slots has this client forwarded at some time? */
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
		if (!xm_bit(map->pool->counted, c) || !map->area[c])
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
