/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The search for a buffer that an owner could acquire: a host asks for it to answer poll(). Pure.
 */
#ifndef XM_SEARCH_H
#define XM_SEARCH_H

#include "policy.h"

/*
 * A search changes nothing. With many slots and clients it can take milliseconds, so it runs in
 * steps, between which the host may let others take its lock.
 */
struct xm_search {
	u64 wanted;			/* bytes */
	u64 wanted_device;		/* 0: the CPU, else the number of a GPU */
	u64 makes, lacks, lacks_slots;	/* from the owner's ring: see struct xmem_ring */
	u64 freed, freed_later;		/* bytes that nobody uses: compared with lacks */
	u64 demote_at_ns;		/* or 0 */
	u64 recall_at_ns;		/* or 0 */
	struct xm_waited waited;
	struct xm_waited later;		/* if all that lag were demoted */
	u32 group;			/* the next group */
	u32 in_hand;			/* acquired and not published */
	bool bound;			/* will time alone change the answer? */
	bool found;			/* there is a free buffer */
	bool found_later;		/* there will be one, once those that lag are demoted */
	bool lent;			/* something is in use only because it is forwarded */
};

/* Begin a search for what ring.wanted asks for. */
void xm_search_begin(const struct xm_map *map, u32 owner, struct xm_search *ret);

/* Look at up to @groups more groups. true: the search is not over. */
bool xm_search_step(const struct xm_map *map, u32 owner, struct xm_search *search, u32 groups);

/*
 * After the search: would an acquire with timeout 0 succeed at @now_ns? If it will succeed later
 * because of time alone, *ret_deadline says when; otherwise *ret_deadline is 0.
 */
bool xm_search_end(const struct xm_map *map, const struct xm_search *search, u64 now_ns,
		   u64 *ret_deadline);

/*
 * No acquire would succeed. Should the owner call acquire nevertheless, so that its bound begins?
 * It should if it has no buffer in hand or has failed to acquire one, and if one of these is true:
 * a subscriber lags that did not lag when the owner last worked, because it was demoted then; or a
 * client that does not wait for ever has forwarded what the owner wants.
 */
bool xm_search_should_ask(const struct xm_map *map, u32 owner, const struct xm_search *search);

/*
 * Does @search, which has just begun, ask the same question as @before? Then the answer has changed
 * only if somebody has dropped a slot since, and so has woken the owner's slots_waiters.
 */
bool xm_search_is_same(const struct xm_search *search, const struct xm_search *before);

/* Run a whole search. */
bool xm_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline);

/* Run a whole search for poll(): also true if the owner should call acquire nevertheless. */
bool xm_poll_writable(const struct xm_map *map, u32 owner, u64 now_ns, u64 *ret_deadline);

#endif
