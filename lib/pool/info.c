// SPDX-License-Identifier: MIT
/*
 * Information about a pool, a client, a slot or a GPU. It is read from the pool's pages, which
 * other clients may change at the same time.
 */
#include <stdlib.h>

#include "core/limbo.h"
#include "lib/base/handle.h"
#include "lib/base/structs.h"
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/own/limbo.h"
#include "lib/payload/payload.h"

/* May @pool be read? 0, or an error, noted. */
static int check(const struct xmem_pool *pool)
{
	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	return xl_is_open(pool) ? 0 : xl_fail_not_alive(pool);
}

/* ---- the pool ---- */

static void add_slot(const struct xm_map *map, u32 slot, struct xmem_pool_info *info)
{
	u32 owner = xm_load(&xm_slot_row(map, slot)->owner);
	u64 holds = xl_holds_of_slot(map, slot);
	u32 claims = xm_claims_of(map, slot);

	info->claims += claims;
	info->claimed += claims != 0;
	info->holds += holds;
	info->held += holds != 0;
	if (owner == XMEM_OWNER_NONE)
		return;
	info->attached++;
	info->bytes += xm_slot_row(map, slot)->length;
	info->limbo += owner == XMEM_OWNER_HOST;
	switch (xm_state(xm_load(&xm_slot(map, slot)->state))) {
	case XMEM_SLOT_FREE:	info->free++; break;
	case XMEM_SLOT_WRITING:
	case XMEM_SLOT_UPGRADED:	info->writing++; break;
	default:		info->live++; break;
	}
}

static void add_files(struct xmem_pool *pool, struct xmem_pool_info *info)
{
	const struct xmem_pool_header *header = pool->map.pool;
	u32 d;

	info->payloads = xm_load(&header->payloads);
	info->bytes_files = xm_load(&header->payload_bytes);
	info->bytes_kept = xm_load(&header->kept_bytes);
	info->bytes_huge = xm_load(&header->huge_bytes);
	for (d = 1; d <= XMEM_MAX_DEVICES; d++) {
		info->bytes_cuda += xm_load(&xm_device_row(&pool->map, d)->bytes);
		info->bytes_closing += xm_load(&xm_device_row(&pool->map, d)->closing_bytes);
	}
	xl_lock(&pool->mappings.lock);
	info->bytes_mapped = pool->mappings.bytes;
	info->bytes_advised = pool->mappings.advised;
	xl_unlock(&pool->mappings.lock);
}

static void add_limbo(struct xmem_pool *pool, struct xmem_pool_info *info)
{
	struct xmem_limbo limbo;

	xl_limbo_count(pool, &limbo);
	info->bytes_limbo = limbo.bytes_ended;
	info->limbo_age_ns = limbo.ended_age_ns;
	info->overdue = limbo.overdue;
	info->bytes_overdue = limbo.bytes_overdue;
	info->overdue_age_ns = limbo.overdue_age_ns;
}

/*
 * Free what is not used any more before anything is counted, and wait until the host has noticed
 * it. So memory that this call closes is not counted.
 */
static void reap(struct xmem_pool *pool)
{
	bool closes;

	xl_catch_up(pool);
	xl_attached_drain(pool);
	xl_payload_unmap_stale(pool);
	closes = __atomic_load_n(&pool->mappings.dropped, __ATOMIC_RELAXED);
	xl_payload_reap(pool, XL_HOST_NS);
	if (closes)
		xl_drain_posts(pool);
}

XMEM_API int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_info)
{
	XL_CALL;
	struct xmem_pool_info info = { .size = sizeof(info) };
	u32 i;
	int err;
	XL_USE(pool);

	err = check(pool);
	if (!err)
		err = xl_answer_check("xmem_pool_info", ret_info);
	if (err)
		return err;
	reap(pool);
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
	add_files(pool, &info);
	add_limbo(pool, &info);
	info.stale_handles = xl_stale_handles();
	xl_answer_give(ret_info, &info, sizeof(info));
	xl_limbo_notify(pool);
	return 0;
}

/* ---- a client ---- */

/* How many rings does the client follow, and how many publications has it yet to receive? */
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

struct file {
	u64 payload;
	u64 bytes;
};

static int by_payload(const void *a, const void *b)
{
	u64 p = ((const struct file *)a)->payload, q = ((const struct file *)b)->payload;

	return p < q ? -1 : p > q;
}

/*
 * The bytes of the files of ended owners that @client keeps, each file once. 0, or -ENOMEM, noted.
 */
static int kept_bytes(const struct xm_map *map, u32 client, uint64_t *ret)
{
	struct file *file = malloc(map->slots * sizeof(*file));
	u32 s, i, count = 0;

	if (!file)
		return xl_fail_fast(ENOMEM, "no memory to count the files that a client keeps");
	for (s = 0; s < map->slots; s++) {
		const struct xmem_slot_row *row = xm_slot_row(map, s);

		if (!xm_device(xm_load(&row->traits)) && xl_keeps(map, client, s))
			file[count++] = (struct file){
				.payload = xm_load(&row->payload),
				.bytes = xm_load(&row->payload_bytes),
			};
	}
	qsort(file, count, sizeof(*file), by_payload);
	*ret = 0;
	for (i = 0; i < count; i++)
		if (!i || file[i].payload != file[i - 1].payload)
			*ret += file[i].bytes;
	free(file);
	return 0;
}

/* Count a slot of the client, and its hold if the owner wants the slot back or has ended. */
static void add_slot_of_client(const struct xm_map *map, u32 slot, struct xmem_client_info *info)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u32 holds = xl_holds(map, info->id, slot);

	info->slots += xm_load(&row->owner) == info->id;
	info->holds += holds;
	if (!holds || xm_load(&row->owner) == info->id ||
	    (xm_load(&row->owner) != XMEM_OWNER_HOST && !xm_is_overdue(map, slot)))
		return;
	info->limbo++;
	info->bytes_limbo += xm_load(&row->length);
	if (xm_load(&row->owner) == XMEM_OWNER_HOST)
		info->bytes_ended += xm_load(&row->length);
}

/* Read a row, which the host may be changing, once. false: there is no client. */
static bool read_client(const struct xm_map *map, u32 client, struct xmem_client_info *ret)
{
	const struct xmem_client_row *row = xm_client_row(map, client);
	u32 state = xm_load_acquire(&row->state), s, i;

	*ret = (struct xmem_client_info){
		.size = sizeof(*ret),
		.id = client,
		.role = xm_load(&row->role) == XMEM_ROLE_WRITER ? XMEM_CLIENT_WRITER :
								  XMEM_CLIENT_READER,
		.alive = state == XMEM_CLIENT_ALIVE,
		.incarnation = xm_load(&row->incarnation),
		.wait_bound_ns = xm_load(&row->wait_bound_ns),
	};
	for (i = 0; i + 1 < sizeof(ret->label); i++)
		ret->label[i] = xm_load(&row->label[i]);
	for (s = 0; s < map->slots; s++)
		add_slot_of_client(map, s, ret);
	if (state == XMEM_CLIENT_ALIVE) {	/* a client that has ended follows no ring */
		add_subscriptions(map, ret);
		ret->followers = xl_count_subscribers(map, client);
		ret->bytes_mapped = xm_load(&xm_ring(map, client)->mapped_bytes);
		ret->awaits_writer = xm_load(&xm_ring(map, client)->awaits_writer);
	}
	return state != XMEM_CLIENT_NONE;
}

XMEM_API int xmem_pool_client_info(struct xmem_pool *pool, uint32_t client,
				   struct xmem_client_info *ret_info)
{
	XL_CALL;
	const struct xmem_client_row *row;
	struct xmem_client_info info;
	struct xl_ids who;
	bool there;
	int err;
	XL_USE(pool);

	err = check(pool);
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
	xl_client_ids(pool, client, info.incarnation, &who);
	info.pid = who.pid;
	info.uid = who.uid;
	if (info.alive)
		err = kept_bytes(&pool->map, client, &info.bytes_kept);
	if (err)
		return err;
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
	case XMEM_SLOT_WRITING:
	case XMEM_SLOT_UPGRADED:	return XMEM_USE_WRITING;
	}
	return XMEM_USE_LIVE;
}

/* Read a slot, which its owner and the host may be changing, once. */
static void read_slot(const struct xm_map *map, u32 slot, struct xmem_slot_info *ret)
{
	const struct xmem_slot_row *row = xm_slot_row(map, slot);
	u64 word = xm_load_acquire(&xm_slot(map, slot)->state);
	u32 owner = xm_load(&row->owner), state = xm_state(word);
	u32 upgrader = xm_load(&row->upgrader);

	*ret = (struct xmem_slot_info){
		.size = sizeof(*ret),
		.slot = slot,
		.state = use_of(owner, word),
		.owner = owner < map->clients ? owner : XMEM_NOBODY,
		.holds = xl_holds_of_slot(map, slot),
		.claims = xm_claims_of(map, slot),
		.upgrader = upgrader ? upgrader - 1 : XMEM_NOBODY,
	};
	if (owner == XMEM_OWNER_NONE)
		return;
	ret->payload = xm_load(&row->payload);
	ret->device = xm_device(xm_load(&row->traits));
	ret->overdue = ret->holds && xm_is_overdue(map, slot);
	ret->bytes = row->length;
	ret->payload_bytes = xm_load(&row->payload_bytes);
	ret->position = xm_load(&xm_slot(map, slot)->position);
	if (state == XMEM_SLOT_LIVE || state == XMEM_SLOT_SCANNING)
		ret->token = xm_token(xm_generation(word), slot);
}

static int no_such_slot(const struct xmem_pool *pool, u32 slot)
{
	return xl_fail(EINVAL, "there is no slot %u: the pool has %u", slot, pool->map.slots);
}

XMEM_API int xmem_pool_slot_info(struct xmem_pool *pool, uint32_t slot,
				 struct xmem_slot_info *ret_info)
{
	XL_CALL;
	const struct xmem_slot_row *row;
	struct xmem_slot_info info;
	u32 tenancies;
	int err;
	XL_USE(pool);

	err = check(pool);
	if (!err)
		err = xl_answer_check("xmem_slot_info", ret_info);
	if (err)
		return err;
	if (slot >= pool->map.slots)
		return no_such_slot(pool, slot);
	row = xm_slot_row(&pool->map, slot);
	do {
		tenancies = xm_load_acquire(&row->tenancies);
		read_slot(&pool->map, slot, &info);
	} while (tenancies != xm_load_acquire(&row->tenancies));
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

/* ---- a GPU ---- */

XMEM_API int xmem_pool_device_info(struct xmem_pool *pool, uint32_t device,
				   struct xmem_device_info *ret_info)
{
	XL_CALL;
	struct xmem_device_info info = { .size = sizeof(info), .device = device };
	const struct xmem_device_row *row;
	u32 i, any = 0;
	int err;
	XL_USE(pool);

	err = check(pool);
	if (!err)
		err = xl_answer_check("xmem_device_info", ret_info);
	if (err)
		return err;
	if (!device || device > XMEM_MAX_DEVICES)
		return xl_fail(EINVAL, "no pool has a GPU of number %u: they are 1 to %u", device,
			       XMEM_MAX_DEVICES);
	row = xm_device_row(&pool->map, device);
	for (i = 0; i < sizeof(info.uuid); i++)
		any |= info.uuid[i] = xm_load(&row->uuid[i]);
	if (!any)
		return xl_fail(ENOENT, "the pool has no GPU of number %u", device);
	info.bytes = xm_load(&row->bytes);
	info.bytes_closing = xm_load(&row->closing_bytes);
	xl_answer_give(ret_info, &info, sizeof(info));
	return 0;
}

/* ---- holds ---- */

XMEM_API int64_t xmem_pool_holds(struct xmem_pool *pool, uint32_t client, uint32_t slot)
{
	XL_CALL;
	int err;
	XL_USE(pool);

	err = check(pool);
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
