// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Are the descriptors of a client readable? See poll.h. A client can write its area, so its cursors
 * are read once and only compared.
 */
#include "label.h"
#include "poll.h"
#include "receive.h"

/* ---- who is followed ---- */

void xm_follow_begin(struct xm_followed *followed, u32 publisher, u32 flags)
{
	xm_set_bit(followed->all, publisher, true);
	xm_set_bit(followed->joint, publisher, flags & XMEM_SUBSCRIBE_JOINT);
}

void xm_follow_end(const struct xm_map *map, struct xm_followed *followed, u32 me,
		   const struct xmem_unsubscribe_request *request)
{
	u32 publisher = request->publisher;
	const struct xmem_client_row *row;

	if (publisher >= map->clients)
		return;
	publisher = xm_index(publisher, map->clients);
	row = xm_client_row(map, publisher);
	/* The client may follow a later client of this id already. */
	if (xm_bit(row->subscribers, me) && xm_load(&row->incarnation) != request->incarnation)
		return;
	xm_set_bit(followed->all, publisher, false);
	xm_set_bit(followed->joint, publisher, false);
}

static int xm_count_lasting(struct xm_followed *followed, bool dropped)
{
	if (!dropped && followed->lasting == ~0u)
		return -EINVAL;
	if (dropped && !followed->lasting)
		return -ENOENT;
	xm_store(&followed->lasting, followed->lasting + (dropped ? -1 : 1));
	return 0;
}

int xm_follow_update(struct xm_followed *followed, const struct xmem_unsubscribe_request *request)
{
	u32 joint = request->flags & XMEM_UNSUBSCRIBE_JOINT ? 1 : 0;
	u32 what = request->flags & ~XMEM_UNSUBSCRIBE_JOINT;

	if (request->publisher || request->incarnation)
		return -EINVAL;
	if ((request->flags & ~XMEM_UNSUBSCRIBE_DROPPED) == XMEM_UNSUBSCRIBE_LASTS)
		return xm_count_lasting(followed, request->flags & XMEM_UNSUBSCRIBE_DROPPED);
	if (what != XMEM_UNSUBSCRIBE_ENDED && what != XMEM_UNSUBSCRIBE_DROPPED)
		return -EINVAL;
	if (what == XMEM_UNSUBSCRIBE_ENDED) {
		if (followed->ended == ~0u)
			return -EINVAL;
		xm_store(&followed->ended, followed->ended + 1);
		xm_store(&followed->ended_joint, followed->ended_joint + joint);
		return 0;
	}
	if (!followed->ended || followed->ended_joint < joint)
		return -ENOENT;
	xm_store(&followed->ended, followed->ended - 1);
	xm_store(&followed->ended_joint, followed->ended_joint - joint);
	return 0;
}

static bool xm_any(const u64 *words)
{
	u64 any = 0;
	u32 i;

	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		any |= xm_load(&words[i]);
	return any;
}

int xm_poll_take(const struct xm_map *map, u32 me, const struct xmem_poll_fd_request *request,
		 struct xm_poll *ret_poll)
{
	bool ring = request->kind == XMEM_POLL_RING;

	if (request->kind > XMEM_POLL_SUBSCRIBERS)
		return -EINVAL;
	if (ring ? request->publisher >= map->clients || !request->incarnation :
		   request->publisher || request->incarnation)
		return -EINVAL;
	*ret_poll = (struct xm_poll){
		.client = me,
		.kind = request->kind,
		.publisher = xm_index(request->publisher, map->clients),
		.incarnation = request->incarnation,
	};
	return 0;
}

/* ---- one ring ---- */

/* @incarnation: 0 stands for the present client of that id. */
static bool xm_ring_readable(const struct xm_map *map, u32 me, u32 publisher, u64 incarnation)
{
	const struct xmem_client_row *row = xm_client_row(map, publisher);
	u64 now = xm_load_acquire(&row->incarnation);

	if (!xm_bit(row->subscribers, me) || (incarnation && incarnation != now))
		return true;	/* the host has dropped the ring */
	if (xm_load(&xm_cursor_of(map, me, publisher)->history))
		return true;	/* there are publications from before the subscription */
	return xm_ready(map, publisher, now, xm_load_acquire(xm_cursor(map, me, publisher)));
}

/* ---- all that a descriptor is about ---- */

/* The rings of the publishers that @poll is about, as a bitmap. */
static const u64 *xm_poll_rings(const struct xm_followed *followed, const struct xm_poll *poll)
{
	return poll->kind == XMEM_POLL_JOINT ? followed->joint : followed->all;
}

/* Does @poll become readable when a writer joins? */
static bool xm_poll_joins(const struct xm_followed *followed, const struct xm_poll *poll)
{
	return poll->kind == XMEM_POLL_JOINT ||
	       (poll->kind == XMEM_POLL_CLIENT &&
		(xm_any(followed->joint) || xm_load(&followed->lasting)));
}

static bool xm_writer_to_follow(const struct xm_map *map, u32 me)
{
	struct xm_label wanted = xm_wanted_label(map, me), label;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		const struct xmem_client_row *row = xm_client_row(map, c);

		if (c == me || xm_load_acquire(&row->state) != XMEM_CLIENT_ALIVE ||
		    xm_load(&row->role) != XMEM_ROLE_WRITER || xm_bit(row->subscribers, me))
			continue;
		label = xm_label_of(map, c);
		if (xm_label_fits(&wanted, &label))
			return true;
	}
	return false;
}

/* Only a subscriber arms a ring's word; a ring that the host has dropped is readable anyway. */
static void xm_arm_ring(const struct xm_map *map, u32 me, u32 publisher)
{
	struct xmem_client_row *row = xm_client_row(map, publisher);

	if (xm_bit(row->subscribers, me))
		xm_arm(&row->ring_waiters);
}

void xm_poll_arm(const struct xm_map *map, const struct xm_followed *followed,
		 const struct xm_poll *poll)
{
	const u64 *rings = xm_poll_rings(followed, poll);
	u32 i;

	if (poll->kind == XMEM_POLL_SUBSCRIBERS)
		return;		/* the host wakes pollers whenever it changes the subscribers */
	if (xm_poll_joins(followed, poll))
		xm_arm(&map->pool->clients_waiters);
	if (poll->kind == XMEM_POLL_RING) {
		xm_arm_ring(map, poll->client, poll->publisher);
		return;
	}
	for (i = 0; i < map->clients; i++)
		if (xm_bit(rings, i))
			xm_arm_ring(map, poll->client, i);
}

bool xm_readable(const struct xm_map *map, const struct xm_followed *followed,
		 const struct xm_poll *poll)
{
	const u64 *rings = xm_poll_rings(followed, poll);
	u32 i, me = poll->client;

	/* Have the subscribers changed since the program last looked at them? */
	if (poll->kind == XMEM_POLL_SUBSCRIBERS)
		return xm_load(&xm_ring(map, me)->changes_seen) !=
		       xm_load_acquire(&xm_client_row(map, me)->subscriber_changes);
	if (poll->kind == XMEM_POLL_RING)
		return xm_ring_readable(map, me, poll->publisher, poll->incarnation);
	if (xm_load(poll->kind == XMEM_POLL_JOINT ? &followed->ended_joint : &followed->ended))
		return true;
	for (i = 0; i < map->clients; i++)
		if (xm_bit(rings, i) && xm_ring_readable(map, me, i, 0))
			return true;
	return xm_poll_joins(followed, poll) && xm_writer_to_follow(map, me);
}
