/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Counting limbo: contents that clients still use although their owner has ended, and contents that
 * a living owner wants back (*overdue*). It only looks, and the words may change meanwhile. Pure.
 */
#ifndef XM_LIMBO_H
#define XM_LIMBO_H

#include "host.h"
#include "policy.h"

struct xm_limbo {
	u32 ended;			/* slots whose owner has ended */
	u32 overdue;			/* slots that a living owner wants back */
	u64 ended_bytes;
	u64 overdue_bytes;
	u64 ended_ns;			/* when the first of these owners ended, or 0 */
	u64 overdue_ns;			/* since when the first is wanted, or 0 */
};

/* The owner of @slot, if it is alive and has found no buffer; else XMEM_OWNER_NONE. */
u32 xm_wanting_owner(const struct xm_map *map, u32 slot);
/* Do other clients keep @slot from its owner? @passed: xm_passed of the owner. */
bool xm_is_kept(const struct xm_map *map, u32 owner, u32 slot, u64 passed);

/*
 * Is @slot overdue: does its living owner want it back while other clients hold it? An owner that
 * has found no buffer wants everything back that is no longer in flight. Slow.
 */
static inline bool xm_is_overdue(const struct xm_map *map, u32 slot)
{
	u32 owner = xm_wanting_owner(map, slot), culprit;

	return owner != XMEM_OWNER_NONE &&
	       xm_is_kept(map, owner, slot, xm_passed(map, owner, &culprit));
}

/*
 * The two halves of xm_limbo_count, which add to *sum; that begins zeroed. The table alone says
 * what ended owners have left. Overdue slots are counted group by group, because each may need a
 * look at the holds of all clients.
 */
void xm_limbo_count_ended(const struct xm_map *map, struct xm_limbo *sum);
void xm_limbo_count_overdue(const struct xm_map *map, u32 group, struct xm_limbo *sum);

/* Count the limbo of a pool. Slow. */
static inline void xm_limbo_count(const struct xm_map *map, struct xm_limbo *ret)
{
	u32 g;

	*ret = (struct xm_limbo){ .ended = 0 };
	xm_limbo_count_ended(map, ret);
	for (g = 0; g < map->groups; g++)
		xm_limbo_count_overdue(map, g, ret);
}

/*
 * How many holds does @client have of @slot? @hold: its hold word. A client that writes the slot in
 * place counts as a holder even after it has dropped its hold, because nobody else gets the slot
 * meanwhile. This is for telling who keeps a slot; scans look at hold words alone.
 */
static inline u32 xm_holds_of(const struct xm_map *map, u32 client, u32 slot, const u32 *hold)
{
	u32 count = xm_load_acquire(hold) & XM_HOLD_COUNT;

	return !count && xm_load(&xm_slot_row(map, slot)->upgrader) == client + 1 ? 1 : count;
}

static inline u64 xm_limbo_add(u64 bytes, u64 more)
{
	return bytes > ~0ULL - more ? ~0ULL : bytes + more;	/* publishers choose the lengths */
}

/*
 * xm_limbo_of for one group. 0: the group has no owner, or the client's holds do not count in it.
 * Each slot's owner counts, because a living writer may have got the group of an ended one.
 */
static inline u64 xm_limbo_of_in_group(const struct xm_map *map, u32 client, u32 group)
{
	u32 slot = group * XMEM_GROUP_SLOTS, end = slot + XMEM_GROUP_SLOTS;
	u64 bytes = 0;

	if (!xm_load(&xm_slot_row(map, slot)->group_owner) || !map->area[client] ||
	    !xm_bit(xm_group_row(map, group)->holders, client))
		return 0;
	for (; slot < end; slot++)
		if (xm_holds_of(map, client, slot, xm_hold(map, client, slot)) &&
		    xm_load(&xm_slot_row(map, slot)->owner) == XMEM_OWNER_HOST)
			bytes = xm_limbo_add(bytes, xm_load(&xm_slot_row(map, slot)->length));
	return bytes;
}

/*
 * The bytes that @client holds of what ended owners have left. A slot counts for each of its
 * holders whose holds count. Slow.
 */
static inline u64 xm_limbo_of(const struct xm_map *map, u32 client)
{
	u64 bytes = 0;
	u32 g;

	for (g = 0; g < map->groups; g++)
		bytes = xm_limbo_add(bytes, xm_limbo_of_in_group(map, client, g));
	return bytes;
}

#endif
