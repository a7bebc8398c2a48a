/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What was published before a subscription began, as far as it still exists; and passing what
 * a subscriber that wants only the latest publications no longer wants. For the library.
 *
 * A cursor never moves back and a subscription begins at the tail (I4), so nothing protects the
 * history of a publisher: its owner may scan these slots and overwrite these entries at any
 * time. The subscriber therefore holds one as if it had got the entry's token from elsewhere:
 * a hold, then a look at the entry again, then a look at the state word (I1). Its cursor stands
 * where the subscription began until all of the history is behind it.
 */
#ifndef XM_HISTORY_H
#define XM_HISTORY_H

#include "receive.h"

/* The history of one ring that is still to be received. end 0: there is none, or none is left. */
struct xm_past {
	u64 place;			/* the next one */
	u64 end;			/* where the cursor stands */
};

/*
 * The last @count publications before follow->place that still exist, of those that are for this
 * client; the others are passed.
 */
struct xm_past xm_past_begin(const struct xm_map *map, u32 me, const struct xm_follow *follow,
			     u32 count);

/*
 * Is @place an own publication of @publisher, for all, whose contents are still there? So a later
 * subscriber could receive it. What @publisher forwards is not its own. For the publisher.
 */
bool xm_past_is_own(const struct xm_map *map, u32 publisher, u64 place);

/*
 * Hold the next one, and fill *what. 0: it is held. -EAGAIN: as with xm_look, and the hold
 * stays. -ENOENT: nothing is left, or the publisher has ended. -EBUSY: it went meanwhile; call
 * again. -EOVERFLOW. *pending, which the caller has set to nothing, is to be done after
 * -EBUSY. past->place is the place of what is held.
 */
int xm_past_hold(const struct xm_map *map, u32 me, const struct xm_followed_words *words,
		 const struct xm_follow *follow, struct xm_past *past,
		 struct xm_publication *what, struct xm_pending *pending);

/*
 * Pass all but the latest @depth publications that are for this client. What the cursor passes is
 * lost, but for what was for others, and the caller does *pending, which it has set to nothing;
 * history is passed silently.
 */
void xm_receive_latest(const struct xm_map *map, u32 me, struct xm_follow *follow,
		       struct xm_past *past, u32 depth, struct xm_pending *pending);

#endif
