/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Limbo, counted: what others use although its owner has ended, and what a living owner wants
 * back (*overdue*). It only looks, and what it counts may change meanwhile. Pure.
 */
#ifndef XM_LIMBO_H
#define XM_LIMBO_H

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

#endif
