/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The policy: which publications an owner may take back, whom it waits for, and for how
 * long. It is pure functions over the pages, so the owner's library, the host and the tests
 * get the same answer.
 *
 * Two places in an owner's ring decide, and neither depends on the number of slots:
 *
 *   passed     below it nobody can still receive a publication
 *   evictable  below it only subscribers that may lose the oldest can
 *
 *   passed <= evictable <= tail
 *
 * Cursors do not move back (I4) and a new subscriber begins at the tail, so what is passed
 * once is passed for ever. What is evictable once is so only while the demotions stand that
 * it relies on.
 *
 * A demotion is noted in the owner's area, in the entry of the subscriber, and it stands as
 * long as the subscriber's incarnation and cursor are the noted ones. So it ends by itself
 * when the subscriber receives something, and the next client with that id has none.
 */
#ifndef XM_POLICY_H
#define XM_POLICY_H

#include "protocol.h"

/* The subscribers that an owner waits for. Demoted ones are not among them. */
struct xm_waited {
	u64 tail;			/* publications so far */
	u64 evictable;			/* the least cursor of them, at most the tail */
	u32 count;			/* how many they are */
	u32 lagging;			/* how many of them have yet to receive something */
	u32 demoted;			/* how many more there would be without demotions */
};

/* Look at them. It reads no cursor of a subscriber that may lose the oldest. */
void xm_look_at_waited(const struct xm_map *map, u32 owner, struct xm_waited *ret);

/*
 * Find the place below which nobody can still receive anything. *ret_culprit is a subscriber
 * whose cursor is there, and XMEM_OWNER_NONE if there is none below the tail: as long as
 * that cursor stands, so does the place.
 */
u64 xm_passed(const struct xm_map *map, u32 owner, u32 *ret_culprit);

/* The place of the oldest publication that is not overwritten. */
static inline u64 xm_oldest(const struct xm_map *map, u64 tail)
{
	u64 entries = (u64)map->ring_mask + 1;

	return tail > entries ? tail - entries : 0;
}

/*
 * May one more buffer be acquired beside @in_hand acquired ones? Not if publishing them all
 * would overwrite what a subscriber that is waited for has yet to receive.
 */
static inline bool xm_has_room(const struct xm_map *map, const struct xm_waited *waited,
			       u64 in_hand)
{
	return !waited->count ||
	       waited->tail + in_hand + 1 - waited->evictable <= (u64)map->ring_mask + 1;
}

/*
 * How many of the last publications stay when several are evicted at once: half as many as
 * there are slots, and at most as many as the ring has entries. Older ones are evicted even if
 * clients hold them. To look at the holds before the entries become void, and again afterwards,
 * would cost 70 % more with 254 subscribers.
 */
static inline u32 xm_depth(const struct xm_map *map, u32 slots)
{
	return slots / 2 < map->ring_mask + 1 ? slots / 2 : map->ring_mask + 1;
}

/*
 * Does @client follow @publisher? Then it can receive all that @publisher publishes from now on:
 * its cursor is at the present tail, or before it. A client that has left has passed everything,
 * even before the host has heard of it.
 */
static inline bool xm_is_subscriber(const struct xm_map *map, u32 publisher, u32 client)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);

	/* First the bit: the host sets it after `subscribing`. */
	return xm_load_acquire(&row->subscribers[client / 64]) >> client % 64 & 1 &&
	       xm_load_acquire(&row->subscribing) != client + 1 &&
	       xm_load_acquire(xm_cursor(map, client, publisher)) != XMEM_CURSOR_NONE;
}

/* Has @owner demoted @client, and does that still stand at @cursor? */
bool xm_is_demoted(const struct xm_map *map, u32 owner, u32 client, u64 cursor);

/*
 * Demote all that the owner waits for and that have yet to receive a publication below
 * @place. Only the owner calls it. Returns how many they are.
 */
u32 xm_demote(const struct xm_map *map, u32 owner, u64 place);

/*
 * How many slots of @group could an attach of @owner get? None, if the group is another client's.
 * Would an attach of @count slots find as many? The host decides in the end.
 */
u32 xm_spare_slots(const struct xm_map *map, u32 owner, u32 group);
bool xm_has_slots(const struct xm_map *map, u32 owner, u32 count);

#endif
