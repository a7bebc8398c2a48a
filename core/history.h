/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * For the library: receiving what was published before a subscription began, as far as it still
 * exists; and passing publications that a subscriber no longer wants because it wants only the
 * latest.
 *
 * A cursor never moves back and a subscription begins at the tail (I4), so nothing protects the
 * history of a publisher: its owner may scan these slots and overwrite these entries at any moment.
 * So a hold proves nothing until a look at the entry, as in receive, and at the state word (I1).
 * The cursor stays where the subscription began until all of the history has been passed.
 */
#ifndef XM_HISTORY_H
#define XM_HISTORY_H

#include "receive.h"

/* The part of a ring's history that is still to be received. end is 0 if none is left. */
struct xm_past {
	u64 place;			/* the next one */
	u64 end;			/* where the cursor stands */
};

/* The last @count publications before follow->place that still exist and are for this client. */
struct xm_past xm_past_begin(const struct xm_map *map, u32 me, const struct xm_follow *follow,
			     u32 count);

/*
 * Is @place a publication of @publisher's own, for all subscribers, whose contents still exist?
 * Then a later subscriber could receive it. For the publisher.
 */
bool xm_past_is_own(const struct xm_map *map, u32 publisher, u64 place);

/*
 * Hold the next publication of the history and fill in *what. Returns 0: it is held. -EAGAIN: as in
 * xm_look, and the hold stays. -ENOENT: nothing is left, or the publisher has ended. -EBUSY: it
 * went away meanwhile; call again. -EOVERFLOW. past->place is the place of the held publication.
 * The caller sets *pending to nothing, and does it after -EBUSY.
 */
int xm_past_hold(const struct xm_map *map, u32 me, const struct xm_followed_words *words,
		 const struct xm_follow *follow, struct xm_past *past,
		 struct xm_publication *what, struct xm_pending *pending);

/*
 * Pass all but the latest @depth publications for this client. Those that the cursor passes count
 * as lost, unless they were for other clients; history is passed without being counted. The caller
 * sets *pending to nothing, and does it afterwards.
 */
void xm_receive_latest(const struct xm_map *map, u32 me, struct xm_follow *follow,
		       struct xm_past *past, u32 depth, struct xm_pending *pending);

#endif
