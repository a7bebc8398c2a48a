/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limbo, counted: what others use although its owner has ended, and what a living owner wants
 * back (*overdue*). It only looks, and what it counts may change meanwhile. Pure.
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
	u64 ended_ns;			/* when the first of these owners ended; 0: there is none */
	u64 overdue_ns;			/* since when one has been wanted; 0: there is none */
};

/*
 * Does the owner of @slot, which lives, want it back while others hold it? It wants what is in
 * flight no more, once it has found no buffer. Slow.
 */
bool xm_is_overdue(const struct xm_map *map, u32 slot);

/* All of a pool. Slow. */
void xm_limbo_count(const struct xm_map *map, struct xm_limbo *ret);

/*
 * Its two halves, which add to *sum; that begins zeroed. What ended owners have left the table says
 * alone. What is overdue is looked for by groups, for each slot may be one of which the holds of
 * all clients are looked at.
 */
void xm_limbo_count_ended(const struct xm_map *map, struct xm_limbo *sum);
void xm_limbo_count_overdue(const struct xm_map *map, u32 group, struct xm_limbo *sum);

/* Slots of @group whose owner has ended: how many bytes they have. */
u64 xm_limbo_in_group(const struct xm_map *map, u32 group);

/*
 * How often does @client, whose word for @slot this is, hold it? Who writes in place holds it, also
 * when it has put its hold, for until then nobody else gets the slot. This is for those who say who
 * keeps what; scans look at holds alone.
 */
static inline u32 xm_holds_of(const struct xm_map *map, u32 client, u32 slot, const u32 *hold)
{
	u32 count = xm_load_acquire(hold) & XM_HOLD_COUNT;

	return !count && xm_load(&xm_slot_row(map, slot)->upgrader) == client + 1 ? 1 : count;
}

/*
 * How many bytes of what ended owners have left does @client hold? A slot counts once for each of
 * its holders, if its holds count, and so it does for who keeps it by claims (xm_claims_keeper).
 * @claims: those of the pool's host, or NULL. Slow.
 */
u64 xm_limbo_of(const struct xm_map *map, const struct xm_claims *claims, u32 client);
/* The same of one group. */
u64 xm_limbo_of_in_group(const struct xm_map *map, const struct xm_claims *claims, u32 client,
			 u32 group);

/*
 * What has been limbo for less than this does not count as too much: who lets go in time has done
 * nothing wrong, for it is the owner who says how long its slots are, and when it ends.
 */
#define XM_LIMBO_GRACE_NS	5000000000ULL

/* Is what has been limbo since then (0: it is none) old by now? */
static inline bool xm_limbo_is_old(u64 since_ns, u64 now_ns)
{
	return since_ns && now_ns > since_ns && now_ns - since_ns >= XM_LIMBO_GRACE_NS;
}

static inline u64 xm_limbo_add(u64 bytes, u64 more)
{
	return bytes > ~0ULL - more ? ~0ULL : bytes + more;	/* publishers say how long */
}

/*
 * A look at whether a client holds more limbo than it may, or keeps it by claims. It may put one
 * and get the next while it is looked at, so what it holds is looked at twice, and only what it
 * holds both times counts: that much it holds at the moment between the two. Others may have the
 * lock meanwhile.
 */
struct xm_limbo_look {
	u32 client;
	u64 most;			/* bytes that it may hold */
	u64 bytes;			/* that it holds both times; begins with 0, as the next */
	u64 first;			/* that it holds the first time */
	bool again;			/* it is the second time */
	const u64 *since_ns;		/* of each group: since when it is limbo, or 0 */
	const struct xm_claims *claims;	/* of the pool's host, or NULL */
	u64 now_ns;			/* of the same clock */
	u32 group;			/* the next one */
	u64 held[XMEM_MAX_GROUPS];	/* bitmaps, of the first time; need not be zero */
};
/* Go on, by one group. true: that was all, and if `bytes` is above `most` it is too much. */
bool xm_limbo_go_on(const struct xm_map *map, struct xm_limbo_look *look);

/* A pool that allows so many bytes exists: is that what @join asks for? 0 or -ERANGE. */
int xm_limbo_fits(u64 most, const struct xmem_join_request *join);

#endif
