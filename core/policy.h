/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The owner's policy: which publications it may evict, which subscribers it waits for, and for how
 * long. These are pure functions over the pages, so the owner's library, the host and the tests get
 * equal answers.
 *
 * Two places in an owner's ring decide, and neither depends on the number of slots:
 *
 *   passed     nobody can still receive a publication below this
 *   evictable  only subscribers that may lose the oldest publications can still receive a
 *              publication below this
 *
 *   passed <= evictable <= tail
 *
 * Cursors do not move back (I4) and a new subscriber begins at the tail, so a publication that is
 * passed stays passed. A publication that is evictable stays so only while the demotions stand on
 * which that relies.
 *
 * To *demote* a subscriber is to stop waiting for it. The owner writes the demotion into its own
 * area, into the subscriber's cursor there: the subscriber's incarnation and cursor at that moment.
 * The demotion stands as long as both are unchanged. So it ends by itself when the subscriber
 * receives something, and the next client with that id has none.
 */
#ifndef XM_POLICY_H
#define XM_POLICY_H

#include "protocol.h"

/* The subscribers that an owner waits for, without demoted ones. */
struct xm_waited {
	u64 tail;			/* publications so far */
	u64 evictable;			/* their lowest cursor, at most the tail */
	u32 count;			/* their number */
	u32 lagging;			/* how many of them have something to receive */
	u32 demoted;			/* how many others are demoted */
};

/* Fill in *ret. It reads no cursor of a subscriber that may lose the oldest publications. */
void xm_read_waited(const struct xm_map *map, u32 owner, struct xm_waited *ret);

/*
 * Find the place that is passed. *ret_culprit is a subscriber whose cursor is there, or
 * XMEM_OWNER_NONE if the place is the tail. The place does not change while that cursor does not.
 */
u64 xm_passed(const struct xm_map *map, u32 owner, u32 *ret_culprit);

/* The place of the oldest publication that is not overwritten. */
static inline u64 xm_oldest(const struct xm_map *map, u64 tail)
{
	u64 entries = (u64)map->ring_mask + 1;

	return tail > entries ? tail - entries : 0;
}

/*
 * May one more buffer be acquired in addition to @in_hand acquired ones? Not if publishing all of
 * them would overwrite what a subscriber that is waited for has not received.
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
 * Does @client follow @publisher? Then it can receive everything that @publisher publishes from now
 * on, because its cursor is at the present tail or before it. A client that has ended has passed
 * everything, even before the host knows of its end.
 */
static inline bool xm_is_subscriber(const struct xm_map *map, u32 publisher, u32 client)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);

	/* First the bit, because the host sets it after `subscribing`. */
	return xm_load_acquire(&row->subscribers[client / 64]) >> client % 64 & 1 &&
	       xm_load_acquire(&row->subscribing) != client + 1 &&
	       xm_load_acquire(xm_cursor(map, client, publisher)) != XMEM_CURSOR_NONE;
}

/* The subscribers of @owner, or only those that it waits for, as a bitmap. */
void xm_subscribers(const struct xm_map *map, u32 owner, bool waits, u64 *ret);
/* Take the next subscriber out of *words. false: there is none left. */
bool xm_next_client(const struct xm_map *map, u64 *words, u32 *ret);

/* Has @owner demoted @client, and does the demotion still stand at @cursor? */
bool xm_is_demoted(const struct xm_map *map, u32 owner, u32 client, u64 cursor);

/*
 * Demote all subscribers that the owner waits for and that have not received a publication below
 * @place. Only the owner calls it. Returns how many were demoted.
 */
u32 xm_demote(const struct xm_map *map, u32 owner, u64 place);

/* Does a client other than @me hold @slot? */
bool xm_others_hold(const struct xm_map *map, u32 me, u32 slot);

/*
 * xm_spare_slots: how many slots of @group could an attach of @owner get? None if another client
 * owns the group. xm_has_slots: would an attach of @count slots find enough? The host decides in
 * the end.
 */
u32 xm_spare_slots(const struct xm_map *map, u32 owner, u32 group);
bool xm_has_slots(const struct xm_map *map, u32 owner, u32 count);

#endif
