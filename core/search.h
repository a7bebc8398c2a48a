/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Would an acquire succeed? poll() asks this for an owner. Pure.
 */
#ifndef XM_SEARCH_H
#define XM_SEARCH_H

#include "policy.h"

/*
 * A search for what an owner could acquire, for hosts, which look for poll(). It changes
 * nothing. It can take milliseconds where slots and clients are many, so it is made in steps,
 * between which the host may let others have its lock.
 */
struct xm_search {
	u64 wanted;			/* bytes */
	u64 wanted_device;		/* where: 0: the CPU, else the number of a GPU */
	u64 makes, lacks, lacks_slots;	/* as the ring says: see struct xmem_ring */
	u64 freed, freed_later;		/* bytes with contents that nobody uses, for lacks */
	u64 demote_at_ns;		/* or 0 */
	u64 recall_at_ns;		/* or 0 */
	struct xm_waited waited;
	struct xm_waited later;		/* as if all that lag were demoted */
	u32 group;			/* where it goes on */
	u32 in_hand;			/* acquired and not published */
	bool bound;			/* does the time matter? */
	bool found;			/* something that is to be had */
	bool found_later;		/* or will be, by the time alone */
	bool lent;			/* something is kept only by those that forwarded it */
};

/* Ask what ring.wanted asks for. */
void xm_search_begin(const struct xm_map *map, u32 owner, struct xm_search *ret);

/* Look at up to @groups groups more. true: it is not over yet. */
bool xm_search_go_on(const struct xm_map *map, u32 owner, struct xm_search *search, u32 groups);

/*
 * It is over: would an acquire with timeout 0 succeed at @now_ns? If time alone will make it
 * true, *ret_deadline says when, and else it is 0.
 */
bool xm_search_end(const struct xm_map *map, const struct xm_search *search, u64 now_ns,
		   u64 *ret_deadline);

/*
 * No acquire would succeed. Shall the owner ask all the same, so that its bound begins? It has
 * nothing in hand or has asked in vain, and somebody lags who did not when it was last at work,
 * being demoted then; or a client that does not wait for ever has forwarded what it wants.
 */
bool xm_search_wants_to_ask(const struct xm_map *map, u32 owner, const struct xm_search *search);

/*
 * Does @search, which has just begun, ask what @before asked? Then the answer is another one
 * only if somebody has let go of a slot since, and so has woken the owner's slots_waiters.
 */
bool xm_search_is_same(const struct xm_search *search, const struct xm_search *before);

/* The whole search at once. */
bool xm_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline);

/* The same for who polls: also true if the owner shall ask. */
bool xm_says_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline);

#endif
