// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Retracting: a publisher takes back a publication that nobody has received yet. The entries are
 * open while it looks for users, so subscribers wait for a moment. Then the entries become void,
 * addressed to nobody, or show again what they showed. The order of the lines is the protocol.
 */
#include "publish.h"

/* The place among the last ring_mask + 1 that entry @i is for. */
static u64 xm_place_of(const struct xm_map *map, u64 tail, u32 i)
{
	return tail - 1 - ((tail - 1 - i) & map->ring_mask);
}

/*
 * Open the entries that name @token. *ret_first becomes the position word of the entry at the
 * position @first; all other entries are marked. Returns the number of entries.
 */
static u32 xm_open_entries(const struct xm_map *map, const struct xm_publisher_words *words,
			   u64 token, u64 first, u64 *ret_first)
{
	u64 tail = xm_load(&words->ring->tail);
	u32 i, count = 0;

	*ret_first = 0;
	for (i = 0; i <= map->ring_mask; i++) {
		struct xmem_entry *entry = xm_entry_at(map, words->entries, i);
		u64 shown = xm_load(&entry->position);

		if (!shown || shown & XMEM_ENTRY_VOID || xm_load(&entry->token) != token ||
		    xm_position(shown) != xm_place_of(map, tail, i) + 1)
			continue;
		if (xm_position(shown) == first)
			*ret_first = shown;
		xm_store(&entry->position, 0);
		count++;
	}
	xm_full_barrier();	/* open before the holds: pairs with receive's full hold (I1) */
	XM_STEP(XM_STEP_RETRACT_OPEN);
	return count;
}

/* Close the open entries: they become void and addressed to nobody, or show what they showed. */
static void xm_close_entries(const struct xm_map *map, const struct xm_publisher_words *words,
			     u64 token, u64 first, u64 shown_first, bool retracted)
{
	u64 tail = xm_load(&words->ring->tail);
	u32 i;

	for (i = 0; i <= map->ring_mask; i++) {
		struct xmem_entry *entry = xm_entry_at(map, words->entries, i);
		u64 position = xm_place_of(map, tail, i) + 1;

		if (!tail || xm_load(&entry->position) || xm_load(&entry->token) != token)
			continue;
		if (retracted) {
			xm_store(&entry->addressee, XMEM_ADDRESSEE_NOBODY);
			position |= XMEM_ENTRY_MARKED | XMEM_ENTRY_VOID;
		} else {
			position = position == first ? shown_first : position | XMEM_ENTRY_MARKED;
		}
		/* Full, so that it comes before the look at the waiters words (I5). */
		xm_xchg_full(&entry->position, position);
	}
}

int xm_retract(const struct xm_map *map, const struct xm_publisher_words *words,
	       const struct xm_own *own, u64 token)
{
	struct xmem_slot_word *mine = own->word;
	u64 word = xm_load(&mine->state), scanning, first = xm_load(&mine->position), shown;
	bool marked, taken = false;

	if (xm_generation(word) != xm_generation(token) || xm_state(word) != XMEM_SLOT_LIVE)
		return -ESTALE;
	xm_open_entries(map, words, token, first, &shown);
	scanning = xm_scanning(word);
	/* By CAS, because the only holder may begin to write the slot in place. */
	marked = xm_cas_full(&mine->state, word, scanning);
	/* SCANNING, by a full operation, before the holds: pairs with get's full hold (I1). */
	XM_STEP(XM_STEP_SCAN_SCANNING);
	if (marked && !xm_group_used(map, own->group, own->bit, 0, NULL) &&
	    !xm_group_claimed(map, own->group, own->bit))
		taken = xm_cas_full(&mine->state, scanning, scanning + XM_ONE_GENERATION -
				    XMEM_SLOT_SCANNING + XMEM_SLOT_WRITING);
	else if (marked)
		xm_cas_full(&mine->state, scanning, word);
	if (taken)
		xm_store(&mine->position, 0);
	xm_close_entries(map, words, token, first, shown, taken);
	return taken ? 0 : -EBUSY;
}

bool xm_retract_forwarded(const struct xm_map *map, const struct xm_publisher_words *words,
			  u64 token)
{
	u64 shown;

	if (!xm_open_entries(map, words, token, 0, &shown))
		return false;
	xm_close_entries(map, words, token, 0, 0, true);
	return true;
}
