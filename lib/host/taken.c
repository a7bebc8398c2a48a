// SPDX-License-Identifier: MIT
/*
 * Messages about which clients have the slots of a pool. This file only reads the pool's pages;
 * own/holders.c adds what a writer knows of its own slots.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/host/taken.h"

#define MAX_NAMED	3	/* more holders do not fit into a message */

void xl_print(struct xl_text *to, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(to->bytes + to->used, sizeof(to->bytes) - to->used, format, args);
	va_end(args);
	if (length > 0)
		to->used += length;
	if (to->used >= sizeof(to->bytes))
		to->used = sizeof(to->bytes) - 1;
}

bool xl_count_holders(const struct xm_map *map, u32 slot, struct xl_shares *shares)
{
	bool held = false;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		if (!xl_holds(map, c, slot))
			continue;
		shares->by[c]++;
		held = true;
	}
	return held;
}

/* The client with the largest number, which is removed from @shares. */
static u32 next_client(const struct xm_map *map, struct xl_shares *shares, u32 *ret_number)
{
	u32 c, most = 0;

	for (c = 1; c < map->clients; c++)
		if (shares->by[c] > shares->by[most])
			most = c;
	*ret_number = shares->by[most];
	shares->by[most] = 0;
	return most;
}

void xl_name_clients(struct xmem_pool *pool, struct xl_shares *shares, const char *first,
			 struct xl_text *to)
{
	const struct xm_map *map = &pool->map;
	u32 named, number, client;
	struct xl_ids who;

	for (named = 0; (client = next_client(map, shares, &number)), number; named++) {
		const struct xmem_client_row *row = xm_client_row(map, client);

		if (named == MAX_NAMED) {
			xl_print(to, ", and others");
			break;
		}
		xl_client_ids(pool, client, xm_load(&row->incarnation), &who);
		xl_print(to, "%sclient %u %.*s pid %u%s %u", named ? ", " : " (", client,
			 XMEM_LABEL_BYTES, (const char *)row->label, who.pid,
			 named ? ":" : first, number);
	}
	if (named)
		xl_print(to, ")");
}

/*
 * How many groups do other clients have? shares->by: each client's; *ret_dead: those of ended
 * clients.
 */
static u32 count_groups(const struct xmem_pool *pool, struct xl_shares *shares, u32 *ret_dead)
{
	u32 g, others = 0;

	*ret_dead = 0;
	memset(shares->by, 0, sizeof(shares->by));
	for (g = 0; g < pool->map.groups; g++) {
		u64 slot = g * XMEM_GROUP_SLOTS;
		u32 whose = xm_load(&xm_slot_row(&pool->map, slot)->group_owner);

		if (!whose || whose == pool->me + 1)
			continue;
		others++;
		if (whose - 1 < pool->map.clients)
			shares->by[whose - 1]++;
		else
			++*ret_dead;	/* the host owns it until its slots are unused */
	}
	return others;
}

/* Say how many slots of ended writers are still used, and which clients use them. */
static void describe_left(struct xmem_pool *pool, struct xl_shares *shares, struct xl_text *to)
{
	const struct xm_map *map = &pool->map;
	u32 left = 0, s, c;

	memset(shares->by, 0, sizeof(shares->by));
	for (s = 0; s < map->slots; s++)
		left += xm_load(&xm_slot_row(map, s)->owner) == XMEM_OWNER_HOST;
	if (!left)
		return;
	xl_print(to, ", %u slots of clients that have ended are still used", left);
	for (s = 0; s < map->slots; s++)
		for (c = 0; c < map->clients; c++)
			shares->by[c] += xl_keeps(map, c, s);
	xl_name_clients(pool, shares, ":", to);
}

void xl_describe_slots(struct xmem_pool *pool, struct xl_text *to)
{
	struct xl_shares shares;
	u32 dead, others = count_groups(pool, &shares, &dead);

	xl_print(to, "writers get slots in groups of %u, and others have %u of the %u groups",
		 XMEM_GROUP_SLOTS, others, pool->map.groups);
	xl_name_clients(pool, &shares, ":", to);
	if (dead)
		xl_print(to, ", %u are left by clients that have ended", dead);
	describe_left(pool, &shares, to);
	if (others < pool->map.groups)
		xl_print(to, ", and too few slots of this writer's own groups are free");
}

int xl_fail_no_slots(struct xmem_pool *pool)
{
	char name[XL_NAME_BYTES];
	struct xl_text text = { .used = 0 };
	struct xl_shares shares;
	u32 dead, others;

	others = count_groups(pool, &shares, &dead) - dead;
	xl_print(&text, "%s: this writer has no slots: writers get them in groups of %u, and ",
		 xl_pool_name(pool, name, sizeof(name)), XMEM_GROUP_SLOTS);
	if (dead)
		xl_print(&text, "%u of the %u groups are left by clients that have ended, and stay "
				"until this client itself releases or receives their buffers%s",
			 dead, pool->map.groups, others ? "; " : "");
	if (others)
		xl_print(&text, "other writers have all of the %u%s groups until they end", others,
			 dead ? " other" : "");
	xl_name_clients(pool, &shares, ":", &text);
	describe_left(pool, &shares, &text);
	xl_print(&text, "; open the pool with more slots");
	return xl_fail(ENOSPC, "%s", text.bytes);
}

int xl_fail_too_few_slots(struct xmem_pool *pool, u32 count)
{
	char name[XL_NAME_BYTES];
	struct xl_text text = { .used = 0 };

	xl_print(&text, "%s: too few slots for %u buffer%s: ",
		 xl_pool_name(pool, name, sizeof(name)), count, count == 1 ? "" : "s");
	xl_describe_slots(pool, &text);
	xl_print(&text, "; open the pool with more slots");
	return xl_fail(ENOSPC, "%s", text.bytes);
}

/* How many slots are on a GPU, of all owners? *ret_held: how many of them are held. */
static u32 count_on_gpu(const struct xm_map *map, u32 device, struct xl_shares *shares,
			u32 *ret_held)
{
	u32 slots = 0, s;

	*ret_held = 0;
	memset(shares, 0, sizeof(*shares));
	for (s = 0; s < map->slots; s++) {
		if (xm_device(xm_load(&xm_slot_row(map, s)->traits)) != device)
			continue;
		slots++;
		*ret_held += xl_count_holders(map, s, shares);
	}
	return slots;
}

/* A message about a GPU, and the pool that it has described. */
struct gpu_text {
	struct xl_text text;
	const struct xmem_pool *pool;
	const u8 *uuid;
};

static void name_other_pool(struct xmem_pool *pool, void *user)
{
	const struct xmem_device_row *row;
	struct gpu_text *to = user;
	char name[XL_NAME_BYTES];
	u32 device;

	for (device = 1; pool != to->pool && device <= XMEM_MAX_DEVICES; device++) {
		row = xm_device_row(&pool->map, device);
		if (!xm_load(&row->bytes) || memcmp(row->uuid, to->uuid, XMEM_UUID_BYTES))
			continue;
		xl_print(&to->text, "; %s, which this process has open too, has %llu there",
			 xl_pool_name(pool, name, sizeof(name)),
			 (unsigned long long)xm_load(&row->bytes));
	}
}

int xl_fail_gpu_full(struct xmem_pool *pool, u32 device, int ordinal,
		     const u8 uuid[XMEM_UUID_BYTES], u64 bytes)
{
	const struct xmem_device_row *row;
	char name[XL_NAME_BYTES];
	struct gpu_text to = { .pool = pool, .uuid = uuid };
	struct xl_shares shares;
	u32 slots, held;

	xl_print(&to.text, "%s: GPU %d has too little memory left for buffers of %llu bytes in all",
		 xl_pool_name(pool, name, sizeof(name)), ordinal, (unsigned long long)bytes);
	if (device) {
		row = xm_device_row(&pool->map, device);
		xl_print(&to.text, "; this pool has %llu there",
			 (unsigned long long)xm_load(&row->bytes));
		if (xm_load(&row->closing_bytes))
			xl_print(&to.text, ", of which %llu are freed when the clients that have "
				 "them open have closed them",
				 (unsigned long long)xm_load(&row->closing_bytes));
		slots = count_on_gpu(&pool->map, device, &shares, &held);
		xl_print(&to.text, ", and %u of %u buffers held", held, slots);
		xl_name_clients(pool, &shares, ":", &to.text);
	}
	xl_each_pool(name_other_pool, &to);
	return xl_fail(ENOMEM, "%s", to.text.bytes);
}
