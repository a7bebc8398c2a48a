/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A look at the holds of a group: which of its slots are held, and which were forwarded. The scan
 * of an owner and the sweep of the host use it.
 */
#ifndef XM_HELD_H
#define XM_HELD_H

#include "protocol.h"

#define XM_LINE_HOLDS	16	/* holds that are read together */

/* Two holds as one word; the holds of a group begin at a multiple of 8 bytes. */
typedef u64 __attribute__((may_alias)) xm_two_holds;

#define XM_HOLD_ANY	(XM_HOLD_COUNT | XM_HOLD_FORWARDED)
#define XM_TWO_ANY	((u64)XM_HOLD_ANY << 32 | XM_HOLD_ANY)

/* Is one of these XM_LINE_HOLDS holds not 0? Most clients hold nothing in most lines. */
static inline bool xm_line_held(const u32 *hold)
{
	const xm_two_holds *two = (const xm_two_holds *)hold;
	u64 any = 0;
	u32 i;

#ifdef __SANITIZE_THREAD__
	return true;	/* the sanitizer sees an ordering only between accesses of equal width */
#endif
#pragma GCC unroll 8
	for (i = 0; i < XM_LINE_HOLDS / 2; i++)
		any |= xm_load_acquire(&two[i]);
	return any & XM_TWO_ANY;
}

/* The result of a look at the holds of a group, as bitmaps of its slots. */
struct xm_held {
	u64 held;
	u64 forwarded;			/* forwarded, perhaps by clients that do not hold them */
};

/* Add the holds of @client on the slots in @among to *ret. */
static __attribute__((__noinline__)) void
xm_read_holds(const u32 *hold, u64 among, u32 client, struct xm_held *ret, u8 *ret_holder)
{
	for (among &= ~ret->held; among; among &= among - 1) {
		u32 i = __builtin_ctzll(among);
		u32 word = xm_load_acquire(&hold[i]);

		if (!(word & XM_HOLD_COUNT)) {
			ret->forwarded |= word & XM_HOLD_FORWARDED ? 1ULL << i : 0;
			continue;
		}
		ret->held |= 1ULL << i;
		if (ret_holder)
			ret_holder[i] = client;
	}
}

/* The lines of a group that have slots to look at. */
struct xm_lines {
	u32 count;
	u32 first[XMEM_GROUP_SLOTS / XM_LINE_HOLDS];	/* the first hold of each line */
};

static inline struct xm_lines xm_lines_of(u64 among)
{
	struct xm_lines lines = { .count = 0 };
	u32 first;

	for (first = 0; first < XMEM_GROUP_SLOTS; first += XM_LINE_HOLDS)
		if (among >> first & ((1ULL << XM_LINE_HOLDS) - 1))
			lines.first[lines.count++] = first;
	return lines;
}

static inline bool xm_lines_held(const u32 *hold, const struct xm_lines *lines)
{
	bool any = false;
	u32 i;

	for (i = 0; i < lines->count; i++)
		any |= xm_line_held(hold + lines->first[i]);
	return any;
}

/*
 * The first half of xm_group_used: look at the holds of all holders of the group, until all slots
 * in @among are held.
 */
static xm_inline struct xm_held xm_group_holds(const struct xm_map *map, u32 group, u64 among,
					       u8 *ret_holder)
{
	const struct xmem_group_row *row = xm_group_row(map, group);
	struct xm_lines lines = xm_lines_of(among);
	struct xm_held found = { 0, 0 };
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		u64 holders = xm_load_acquire(&row->holders[i]);

		for (; holders && found.held != among; holders &= holders - 1) {
			u32 c = i * 64 + __builtin_ctzll(holders);
			const u32 *hold;

			if (c >= map->clients || !map->area[c])
				continue;
			hold = xm_hold(map, c, group * XMEM_GROUP_SLOTS);
			if (__builtin_expect(xm_lines_held(hold, &lines), 0))
				xm_read_holds(hold, among, c, &found, ret_holder);
		}
	}
	found.forwarded &= ~found.held;
	return found;
}

#endif
