// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Which clients' holds count in which group. A client writes its holds itself, in its own area, so
 * they are trusted only in the groups of owners that could have given it something: owners of its
 * own user, publishers that it has subscribed to, owners whose buffers are forwarded to it, and
 * owners that have let it in by a grant. Clients of the pool's owner count in every group. Scans
 * look at one bitmap of each group (scan.c); a client that does not count everywhere checks its bit
 * there for each get (xm_may_hold).
 *
 * The rule: the bit is set before the client can get anything because of it, that is before its
 * cursor, before the entry, before the answer to a grant. It stays as long as the client and the
 * tenancy do. The slots of an owner that has ended keep their bits. The models are
 * tests/model/strangers.pml and tests/model/holders.pml.
 */
#include "host.h"

/* Let @client hold what @owner has, now and later. */
static void xm_let_hold(const struct xm_host *host, u32 owner, u32 client)
{
	struct xmem_client_row *row = xm_client_row(&host->map, owner);
	u32 g;

	if (xm_bit(row->holders, client))
		return;
	xm_set_bit(row->holders, client, true);
	for (g = 0; g < host->map.groups; g++)
		if (host->group_owner[g] == owner)
			xm_set_bit(xm_group_row(&host->map, g)->holders, client, true);
}

/* Let @client hold what the owner of @group has. If that owner has ended, this is @group alone. */
static void xm_let_hold_group(const struct xm_host *host, u32 group, u32 client)
{
	u32 owner = host->group_owner[group];

	if (owner < host->map.clients)
		xm_let_hold(host, owner, client);
	else if (owner == XMEM_OWNER_HOST)
		xm_set_bit(xm_group_row(&host->map, group)->holders, client, true);
}

bool xm_is_in_by_user(const struct xm_host *host, u32 client, u32 owners_user)
{
	return host->user_of[client] == host->user || host->user_of[client] == owners_user;
}

void xm_holders_join(struct xm_host *host, u32 client, u32 user)
{
	const struct xm_map *map = &host->map;
	struct xmem_client_row *row = xm_client_row(map, client);
	u32 c, g;

	host->user_of[client] = user;
	for (c = 0; c < map->clients; c++) {
		if (c != client && xm_client_row(map, c)->state == XMEM_CLIENT_NONE) {
			xm_set_bit(row->holders, c, false);
			continue;
		}
		xm_set_bit(row->holders, c, xm_is_in_by_user(host, c, user));
		if (xm_is_in_by_user(host, client, host->user_of[c]))
			xm_set_bit(xm_client_row(map, c)->holders, client, true);
	}
	for (g = 0; g < map->groups; g++)
		if (host->group_owner[g] != XMEM_OWNER_NONE &&
		    xm_is_in_by_user(host, client, host->group_user[g]))
			xm_set_bit(xm_group_row(map, g)->holders, client, true);
	xm_set_bit(map->pool->counted, client, user == host->user);
}

void xm_holders_subscribe(const struct xm_host *host, u32 me, u32 publisher)
{
	const struct xm_map *map = &host->map;
	u32 g;

	if (!xm_is_counted(map, me)) {
		xm_let_hold(host, publisher, me);
		for (g = 0; g < map->groups; g++)
			if (xm_bit(xm_group_row(map, g)->stages, publisher))
				xm_let_hold_group(host, g, me);
	}
	xm_full_barrier();	/* before the cursor: all that it receives it can hold (I1) */
}

void xm_holders_give(struct xm_host *host, u32 group, u32 owner)
{
	const struct xm_map *map = &host->map;
	struct xmem_group_row *row = xm_group_row(map, group);
	bool left = host->group_owner[group] == XMEM_OWNER_HOST && owner < map->clients;
	u32 c, i;

	if (owner == XMEM_OWNER_HOST)
		return;
	/* Clients that may hold what an earlier owner has left there may hold what @owner has. */
	for (c = 0; left && c < map->clients; c++)
		if (xm_bit(row->holders, c))
			xm_let_hold(host, owner, c);
	for (i = 0; i < XMEM_CLIENT_WORDS; i++) {
		if (!left)
			xm_store(&row->stages[i],
				 owner < map->clients && host->one_user ? ~0ULL : 0);
		xm_store(&row->holders[i], owner < map->clients ?
			 xm_load(&xm_client_row(map, owner)->holders[i]) : 0);
	}
	if (owner >= map->clients)
		return;
	host->group_user[group] = host->user_of[owner];
	xm_set_bit(row->stages, owner, true);	/* its subscribers are holders already */
}

void xm_holders_leave(const struct xm_host *host, u32 client)
{
	const struct xm_map *map = &host->map;
	u32 c, g;

	xm_set_bit(map->pool->counted, client, false);
	for (c = 0; c < map->clients; c++)
		xm_set_bit(xm_client_row(map, c)->holders, client, false);
	for (g = 0; g < map->groups; g++) {
		xm_set_bit(xm_group_row(map, g)->holders, client, false);
		if (!host->one_user)
			xm_set_bit(xm_group_row(map, g)->stages, client, false);
	}
}

/* ---- the request ---- */

/* @me holds @slot and is about to forward a slot of its group. */
static int xm_grant_followers(const struct xm_host *host, u32 me, u32 slot)
{
	const struct xm_map *map = &host->map;
	const struct xmem_client_row *row = xm_client_row(map, me);
	u32 group, c;

	if (slot >= map->slots)
		return -EINVAL;
	slot = xm_index(slot, map->slots);
	group = slot / XMEM_GROUP_SLOTS;
	/*
	 * A client that may not hold the slot has not been given it, and cannot give it to others.
	 */
	if (!xm_holds_count(map, me, slot))
		return -EACCES;
	if (!(xm_load_acquire(xm_hold(map, me, slot)) & XM_HOLD_COUNT))
		return -EPERM;
	xm_set_bit(xm_group_row(map, group)->stages, me, true);
	for (c = 0; c < map->clients; c++)
		if (xm_bit(row->subscribers, c))
			xm_let_hold_group(host, group, c);
	return 0;
}

static int xm_grant_client(const struct xm_host *host, u32 me,
			   const struct xmem_grant_request *request)
{
	const struct xm_map *map = &host->map;
	const struct xmem_client_row *row;
	u32 client;

	if (request->slot || request->client >= map->clients || !request->incarnation)
		return -EINVAL;
	client = xm_index(request->client, map->clients);
	row = xm_client_row(map, client);
	if (row->state != XMEM_CLIENT_ALIVE || row->incarnation != request->incarnation)
		return -ESTALE;
	xm_let_hold(host, me, client);
	return 0;
}

int xm_host_grant(const struct xm_host *host, u32 me, const struct xmem_grant_request *request)
{
	int err;

	if (xm_client_row(&host->map, me)->role != XMEM_ROLE_WRITER)
		return -EPERM;
	if (request->op == XMEM_OP_FORWARD)
		err = request->client || request->incarnation ? -EINVAL :
		      xm_grant_followers(host, me, request->slot);
	else
		err = xm_grant_client(host, me, request);
	xm_full_barrier();	/* before the answer: the clients can hold what they are given
				 * after it (I1) */
	return err;
}
