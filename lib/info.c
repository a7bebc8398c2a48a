// SPDX-License-Identifier: MIT
/*
 * What is in a pool: all of it, one client, one slot. It is read from the pool's pages,
 * which other clients go on changing.
 */
#include "pages.h"
#include "structs.h"

/* Can @pool be looked at? 0, or an error, noted. */
static int check(const struct xmem_pool *pool, const char *message)
{
	if (!pool)
		return xl_fail_fast(EINVAL, message);
	return xl_alive(pool) ? 0 : xl_fail_forked();
}

/* ---- the pool ---- */

static void add_slot(const struct xm_map *map, u32 slot, struct xmem_pool_info *info)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);
	u64 holds = xl_holds_of_slot(map, slot);

	info->holds += holds;
	info->held += holds != 0;
	if (owner == XMEM_OWNER_NONE)
		return;
	info->attached++;
	info->bytes += xm_slot_row(map, slot)->length;
	info->limbo += owner == XMEM_OWNER_HOST;
	switch (xm_state(xm_load(&xm_slot(map, slot)->state))) {
	case XMEM_SLOT_FREE:	info->free++; break;
	case XMEM_SLOT_WRITING:	info->writing++; break;
	default:		info->live++; break;
	}
}

XMEM_API int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_info)
{
	struct xmem_pool_info info = { .size = sizeof(info) };
	u32 i;
	int err = check(pool, "xmem_pool_stat: no pool");

	if (!err)
		err = xl_answer_check("xmem_pool_info", ret_info);
	if (err)
		return err;
	info.slots = pool->map.slots;
	info.clients_max = pool->map.clients;
	info.ring_entries = pool->map.ring_mask + 1;
	for (i = 0; i < pool->map.slots; i++)
		add_slot(&pool->map, i, &info);
	for (i = 0; i < pool->map.clients; i++) {
		u32 state = xm_load(&xm_client_row(&pool->map, i)->state);

		info.clients += state == XMEM_CLIENT_ALIVE;
		info.zombies += state == XMEM_CLIENT_ZOMBIE;
	}
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

/* ---- a client ---- */

/* Whom does it follow, and how far is it behind? */
static void add_subscriptions(const struct xm_map *map, struct xmem_client_info *info)
{
	u32 p;

	for (p = 0; p < map->clients; p++) {
		const struct xmem_client_row *row = xm_client_row(map, p);

		if (xm_load_acquire(&row->state) == XMEM_CLIENT_NONE ||
		    !xm_bit(row->subscribers, info->id))
			continue;
		info->follows++;
		info->behind += xl_behind(map, info->id, p);
	}
}

/* One look at a row that the host may be changing; false: there is no client. */
static bool read_client(const struct xm_map *map, u32 client, struct xmem_client_info *ret)
{
	const struct xmem_client_row *row = xm_client_row(map, client);
	u32 state = xm_load_acquire(&row->state), s, i;

	*ret = (struct xmem_client_info){
		.size = sizeof(*ret),
		.id = client,
		.role = xm_load(&row->role),
		.alive = state == XMEM_CLIENT_ALIVE,
		.pid = xm_load(&row->pid),
		.uid = xm_load(&row->uid),
		.incarnation = xm_load(&row->incarnation),
		.wait_bound_ns = xm_load(&row->wait_bound_ns),
	};
	for (i = 0; i + 1 < sizeof(ret->label); i++)
		ret->label[i] = xm_load(&row->label[i]);
	for (s = 0; s < map->slots; s++) {
		ret->slots += xm_load(&xm_slot_row(map, s)->owner) == client;
		ret->holds += xl_holds(map, client, s);
	}
	if (state == XMEM_CLIENT_ALIVE)		/* one that has ended follows nobody */
		add_subscriptions(map, ret);
	return state != XMEM_CLIENT_NONE;
}

XMEM_API int xmem_pool_client_info(struct xmem_pool *pool, uint32_t client,
				   struct xmem_client_info *ret_info)
{
	const struct xmem_client_row *row;
	struct xmem_client_info info;
	bool there;
	int err = check(pool, "xmem_pool_client_info: no pool");

	if (!err)
		err = xl_answer_check("xmem_client_info", ret_info);
	if (err)
		return err;
	if (client >= pool->map.clients)
		return xl_fail(EINVAL, "there is no client %u: the pool has at most %u", client,
			       pool->map.clients);
	row = xm_client_row(&pool->map, client);
	do
		there = read_client(&pool->map, client, &info);
	while (info.incarnation != xm_load_acquire(&row->incarnation));
	if (!there)
		return xl_fail(ENOENT, "no client has the id %u now", client);
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

/* ---- a slot ---- */

static u32 use_of(u32 owner, u64 word)
{
	if (owner == XMEM_OWNER_NONE)
		return XMEM_USE_NONE;
	if (owner == XMEM_OWNER_HOST)
		return XMEM_USE_LIMBO;
	switch (xm_state(word)) {
	case XMEM_SLOT_FREE:	return XMEM_USE_FREE;
	case XMEM_SLOT_WRITING:	return XMEM_USE_WRITING;
	}
	return XMEM_USE_LIVE;
}

/* One look at a slot that its owner and the host may be changing. */
static void read_slot(const struct xm_map *map, u32 slot, struct xmem_slot_info *ret)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	u32 owner = xm_load(&row->owner), state = xm_state(word);

	*ret = (struct xmem_slot_info){
		.size = sizeof(*ret),
		.slot = slot,
		.state = use_of(owner, word),
		.owner = owner < map->clients ? owner : XMEM_NOBODY,
		.holds = xl_holds_of_slot(map, slot),
	};
	if (owner == XMEM_OWNER_NONE)
		return;
	ret->payload = xm_load(&row->payload);
	ret->bytes = row->length;
	ret->position = xm_load(&xm_slot(map, slot)->position);
	if (state != XMEM_SLOT_FREE && state != XMEM_SLOT_WRITING)
		ret->token = xm_token(xm_generation(word), slot);
}

static int no_such_slot(const struct xmem_pool *pool, u32 slot)
{
	return xl_fail(EINVAL, "there is no slot %u: the pool has %u", slot, pool->map.slots);
}

XMEM_API int xmem_pool_slot_info(struct xmem_pool *pool, uint32_t slot,
				 struct xmem_slot_info *ret_info)
{
	const struct xmem_slot_row *row;
	struct xmem_slot_info info;
	u32 tenancy;
	int err = check(pool, "xmem_pool_slot_info: no pool");

	if (!err)
		err = xl_answer_check("xmem_slot_info", ret_info);
	if (err)
		return err;
	if (slot >= pool->map.slots)
		return no_such_slot(pool, slot);
	row = xm_slot_row(&pool->map, slot);
	do {
		tenancy = xm_load_acquire(&row->tenancy);
		read_slot(&pool->map, slot, &info);
	} while (tenancy != xm_load_acquire(&row->tenancy));
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

XMEM_API int64_t xmem_pool_holds(struct xmem_pool *pool, uint32_t client, uint32_t slot)
{
	int err = check(pool, "xmem_pool_holds: no pool");

	if (err)
		return err;
	if (client >= pool->map.clients)
		return xl_fail(EINVAL, "there is no client %u: the pool has at most %u", client,
			       pool->map.clients);
	if (slot >= pool->map.slots)
		return no_such_slot(pool, slot);
	if (xm_load_acquire(&xm_client_row(&pool->map, client)->state) == XMEM_CLIENT_NONE)
		return xl_fail(ENOENT, "no client has the id %u now", client);
	return xl_holds(&pool->map, client, slot);
}
