// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The history of a ring, and its latest publications; see history.h. The order of the lines is the
 * protocol, and the comment at each barrier says which other line it pairs with.
 */
#include "history.h"
#include "policy.h"

/*
 * Does the entry still show the publication of @place, and is that for this client? Void and open
 * entries do not. A forwarded or addressed entry is marked.
 */
static bool xm_past_shown(const struct xm_map *map, u32 me, u32 publisher, u64 place)
{
	u64 shown = xm_load_acquire(&xm_entry(map, publisher, place)->position);

	return shown == place + 1 ||
	       (shown == ((place + 1) | XMEM_ENTRY_MARKED) &&
		!xm_is_for_others(map, me, publisher, place, shown));
}

/* Do the contents that the entry names still exist? Without a hold the answer is only a guess. */
static bool xm_past_is_there(const struct xm_map *map, u32 publisher, u64 place)
{
	u64 token = xm_load(&xm_entry(map, publisher, place)->token);

	return xm_token_slot(token) < map->slots && xm_look(map, token) != -ESTALE;
}

static bool xm_past_exists(const struct xm_map *map, u32 me, u32 publisher, u64 place)
{
	return xm_past_shown(map, me, publisher, place) && xm_past_is_there(map, publisher, place);
}

bool xm_past_is_own(const struct xm_map *map, u32 publisher, u64 place)
{
	/* Forwarded and addressed entries are marked. */
	return xm_load(&xm_entry(map, publisher, place)->position) == place + 1 &&
	       xm_past_is_there(map, publisher, place);
}

struct xm_past xm_past_begin(const struct xm_map *map, u32 me, const struct xm_follow *follow,
			     u32 count)
{
	u64 oldest = xm_oldest(map, follow->place), place;
	struct xm_past past = { 0, 0 };

	for (place = follow->place; count && place > oldest; place--) {
		if (!xm_past_exists(map, me, follow->publisher, place - 1))
			continue;
		past = (struct xm_past){ place - 1, follow->place };
		count--;
	}
	return past;
}

/*
 * Called with a hold: are the copied fields those of one publication of this publisher, and do its
 * contents still exist? Taking the hold is a full operation, so it comes before these looks (I1):
 * the entry is checked as in receive, and the state word as in get.
 */
static int xm_past_check(const struct xm_map *map, u32 me, const struct xm_follow *follow,
			 u64 place, u64 token)
{
	if (!xm_past_shown(map, me, follow->publisher, place) ||
	    !xm_followed_lives_on(map, follow))
		return -ESTALE;
	if (!xm_is_counted(map, me) && xm_may_hold(map, me, token))
		return -ESTALE;
	return xm_look(map, token);
}

static int xm_past_try(const struct xm_map *map, u32 me, const struct xm_followed_words *words,
		       const struct xm_follow *follow, u64 place, struct xm_publication *what,
		       struct xm_pending *pending)
{
	const struct xmem_entry *entry = xm_entry(map, follow->publisher, place);
	u32 slot;
	int err;

	xm_copy_fields(what, entry);
	/* The fields before the second look: pairs with publish's store barrier. */
	xm_load_barrier();
	XM_STEP(XM_STEP_RECEIVE_READ);
	slot = xm_token_slot(what->token);
	if (slot >= map->slots)
		return -EBUSY;
	if (xm_hold_add(&words->holds[slot]))
		return -EOVERFLOW;
	XM_STEP(XM_STEP_RECEIVE_HELD);
	err = xm_past_check(map, me, follow, place, what->token);
	XM_STEP(XM_STEP_RECEIVE_VALID);
	if (err != -ESTALE)
		return err;
	*pending = xm_put(map, me, slot);
	return -EBUSY;
}

int xm_past_hold(const struct xm_map *map, u32 me, const struct xm_followed_words *words,
		 const struct xm_follow *follow, struct xm_past *past,
		 struct xm_publication *what, struct xm_pending *pending)
{
	int err = -ENOENT;

	if (!xm_followed_lives_on(map, follow))
		return err;
	while (past->place < past->end &&
	       !xm_past_exists(map, me, follow->publisher, past->place))
		past->place++;
	if (past->place < past->end)
		err = xm_past_try(map, me, words, follow, past->place, what, pending);
	if (err == -EBUSY)
		past->place++;
	return err;
}

static bool xm_is_anothers(const struct xm_map *map, u32 me, u32 publisher, u64 place)
{
	return xm_is_for_others(map, me, publisher, place,
				xm_load_acquire(&xm_entry(map, publisher, place)->position));
}

/*
 * The place from which on there are @depth publications for this client, or 0: there are fewer
 * after @stop.
 */
static u64 xm_latest_from(const struct xm_map *map, u32 me, u32 publisher, u64 tail, u64 stop,
			  u32 depth)
{
	u64 place;

	for (place = tail; place > stop; place--) {
		depth -= !xm_is_anothers(map, me, publisher, place - 1);
		if (!depth)
			return place - 1;
	}
	return 0;
}

void xm_receive_latest(const struct xm_map *map, u32 me, struct xm_follow *follow,
		       struct xm_past *past, u32 depth, struct xm_pending *pending)
{
	u32 publisher = follow->publisher;
	u64 tail = xm_load_acquire(&xm_ring(map, publisher)->tail), lost, from, place;
	u64 next = past->place < past->end ? past->place : follow->place;
	u64 oldest = xm_oldest(map, tail);

	/*
	 * If the incarnation has changed, the tail is another client's; the first check finds that.
	 */
	if (!xm_followed_lives_on(map, follow) || next >= tail || tail - next <= depth)
		return;
	from = xm_latest_from(map, me, publisher, tail, next > oldest ? next : oldest, depth);
	if (past->place < past->end && past->place < from)
		past->place = from < past->end ? from : past->end;
	if (follow->place >= from)
		return;
	/*
	 * An overwritten entry may have been for this client. The loop is at most one lap long,
	 * whatever the tail is.
	 */
	place = follow->place > oldest ? follow->place : oldest;
	for (lost = place - follow->place; place < from; place++)
		lost += !xm_is_anothers(map, me, publisher, place);
	follow->lost += lost;
	xm_receive_move(map, me, follow, from, pending);
}
