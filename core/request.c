// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The table of requests (request.h; uapi.h defines them), and those answers to requests without a
 * join that are equal on both hosts.
 */
#include "host.h"
#include "request.h"

#define JOIN_FLAGS	(XMEM_JOIN_EXISTING | XMEM_JOIN_EXCLUSIVE | XMEM_JOIN_FD | \
			 XMEM_JOIN_OWNER | XMEM_JOIN_GROUP)
#define ATTACH_FLAGS	(XMEM_ATTACH_SHARED | XMEM_ATTACH_ONCE | XMEM_ATTACH_CUDA | \
			 XMEM_ATTACH_HANDLE | XMEM_ATTACH_READERS | XMEM_ATTACH_TRUNCATE)

/* After the minimum: the fields of struct xm_request_kind that are not 0. */
#define KIND(name, type, minimum, ...)							\
	FULL(name, type, minimum, .reserved = offsetof(struct type, reserved), __VA_ARGS__)
/* KIND for a struct without a reserved field. */
#define FULL(name, type, minimum, ...)							\
	{ .request = XMEM_IOC_##name, .bytes = sizeof(struct type), .least = (minimum),	\
	  __VA_ARGS__ }

static const struct xm_request_kind kinds[] = {
	KIND(JOIN, xmem_join_request, XMEM_JOIN_MIN,
	     .answers = true, .unjoined = true, .flags = JOIN_FLAGS),
	KIND(POOL_FD, xmem_pool_fd_request, XMEM_POOL_FD_MIN,
	     .answers = true, .unjoined = true, .flags = XMEM_POOL_FD_NARROW),
	FULL(ATTACH, xmem_attach_request, XMEM_ATTACH_MIN,
	     .answers = true, .flags = ATTACH_FLAGS),
	FULL(PAYLOAD, xmem_payload_request, XMEM_PAYLOAD_MIN, .answers = true,
	     .flags = XMEM_PAYLOAD_WRITE | XMEM_PAYLOAD_OPEN | XMEM_PAYLOAD_CLOSE),
	KIND(SUBSCRIBE, xmem_subscribe_request, XMEM_SUBSCRIBE_MIN,
	     .answers = true, .flags = XMEM_SUBSCRIBE_WAIT | XMEM_SUBSCRIBE_JOINT),
	KIND(UNSUBSCRIBE, xmem_unsubscribe_request, XMEM_UNSUBSCRIBE_MIN,
	     .answers = false, .flags = XMEM_UNSUBSCRIBE_ENDED | XMEM_UNSUBSCRIBE_DROPPED |
					XMEM_UNSUBSCRIBE_JOINT | XMEM_UNSUBSCRIBE_LASTS),
	KIND(WAIT, xmem_wait_request, XMEM_WAIT_MIN,
	     .ops = XMEM_OP_KICK + 1, .answers = 1 << XMEM_OP_ARM),
	FULL(SLOT, xmem_slot_request, XMEM_SLOT_MIN,
	     .ops = XMEM_OP_DETACH_FILE + 1, .answers = 1 << XMEM_OP_RENEW),
	KIND(QUERY, xmem_query_request, XMEM_QUERY_MIN, .answers = true, .unjoined = true),
	KIND(POOLS, xmem_pools_request, XMEM_POOLS_MIN, .answers = true, .unjoined = true),
	KIND(POLL_FD, xmem_poll_fd_request, XMEM_POLL_FD_MIN, .answers = true),
	KIND(CLAIM, xmem_claim_request, XMEM_CLAIM_MIN,
	     .ops = XMEM_CLAIM_UNDO + 1, .answers = false),
	KIND(UPGRADE, xmem_upgrade_request, XMEM_UPGRADE_MIN, .answers = true,
	     .flags = XMEM_UPGRADE_PUBLISH | XMEM_UPGRADE_GIVE_UP | XMEM_UPGRADE_CANCEL),
	KIND(ACCESS, xmem_access_request, XMEM_ACCESS_MIN,
	     .answers = true, .flags = XMEM_ACCESS_MODE | XMEM_ACCESS_GROUP),
	KIND(QUOTA, xmem_quota_request, XMEM_QUOTA_MIN,
	     .answers = true, .unjoined = true, .flags = XMEM_QUOTA_REFUSED),
	KIND(CLIENT, xmem_client_request, XMEM_CLIENT_MIN,
	     .answers = true, .flags = XMEM_CLIENT_LIMBO),
	FULL(EVICT, xmem_evict_request, XMEM_EVICT_MIN, .ops = XMEM_OP_DRAIN_EVICT + 1,
	     .answers = 1 << XMEM_OP_WHY | 1 << XMEM_OP_DRAIN_EVICT, .unjoined = true),
	KIND(GRANT, xmem_grant_request, XMEM_GRANT_MIN, .ops = XMEM_OP_WRITER + 1),
};

const struct xm_request_kind *xm_request_find(u32 request)
{
	u32 nr = request & 0xff;

	/* The table is in the order of the numbers. */
	if (nr >= sizeof(kinds) / sizeof(*kinds))
		return NULL;
	nr = xm_index(nr, sizeof(kinds) / sizeof(*kinds));
	return request && kinds[nr].request == request ? &kinds[nr] : NULL;
}

int xm_request_size(const struct xm_request_kind *kind, u32 size)
{
	if (size < kind->least)
		return -EINVAL;
	return size > XM_REQUEST_BYTES ? -E2BIG : 0;
}

int xm_request_check(const struct xm_request_kind *kind, const union xm_request *request)
{
	if (request->flags & ~kind->flags)
		return -EINVAL;
	if (kind->ops && request->op >= kind->ops)
		return -EINVAL;
	if (kind->reserved && *(const u32 *)((const char *)request + kind->reserved))
		return -EINVAL;
	return 0;
}

void xm_host_query(struct xmem_query_request *request)
{
	request->abi = XMEM_ABI;
	request->abi_oldest = XMEM_ABI_OLDEST;
	request->compat = XMEM_COMPAT_KNOWN;
	request->incompat = XMEM_INCOMPAT_KNOWN;
	request->max_slots = XMEM_MAX_SLOTS;
	request->max_clients = XMEM_MAX_CLIENTS;
	request->max_ring_entries = XMEM_MAX_RING;
	request->group_slots = XMEM_GROUP_SLOTS;
}

int xm_slot_check(const struct xm_map *map, const struct xmem_slot_request *request)
{
	if (request->slot >= map->slots)
		return -EINVAL;
	return request->op != XMEM_OP_RESOLVE && request->generation ? -EINVAL : 0;
}

/* ---- limits ---- */

static bool xm_fill_capacity(const struct xm_host *host, struct xmem_quota_request *request)
{
	const struct xm_map *map = &host->map;
	u32 i;

	request->used = 0;
	switch (request->quota) {
	case XMEM_QUOTA_POOL_CLIENTS:
		request->most = map->clients;
		for (i = 0; i < map->clients; i++)
			request->used += xm_load(&xm_client_row(map, i)->state) !=
					 XMEM_CLIENT_NONE;
		return true;
	case XMEM_QUOTA_POOL_SLOTS:
		request->most = map->slots;
		for (i = 0; i < map->slots; i++)
			request->used += xm_load(&xm_slot_row(map, i)->owner) != XMEM_OWNER_NONE;
		return true;
	case XMEM_QUOTA_POOL_GROUPS:
		request->most = map->groups;
		for (i = 0; i < map->groups; i++)
			request->used += xm_load(&host->group_owner[i]) != XMEM_OWNER_NONE;
		return true;
	case XMEM_QUOTA_POOL_DEVICES:
		request->most = XMEM_MAX_DEVICES;
		for (i = 1; i <= XMEM_MAX_DEVICES; i++)
			request->used += xm_load(&xm_device_row(map, i)->bytes) != 0;
		return true;
	}
	return false;
}

bool xm_host_quota(const struct xm_host *host, struct xmem_quota_request *request)
{
	static const char *const names[] = {
		[XMEM_QUOTA_POOL_CLIENTS] = "clients",
		[XMEM_QUOTA_POOL_SLOTS] = "slots",
		[XMEM_QUOTA_POOL_GROUPS] = "groups",
		[XMEM_QUOTA_POOL_DEVICES] = "devices",
	};

	if (!xm_fill_capacity(host, request))
		return false;
	xm_quota_is(request, XMEM_QUOTA_OF_POOL,
		    names[xm_index(request->quota, sizeof(names) / sizeof(*names))]);
	return true;
}

void xm_quota_is(struct xmem_quota_request *request, u32 scope, const char *name)
{
	u32 i;

	request->scope = scope;
	request->uid = ~0u;
	request->level = 0;
	request->wanted = 0;
	request->reserved1 = 0;
	for (i = 0; i < sizeof(request->name); i++)
		request->name[i] = 0;
	for (i = 0; name[i] && i < sizeof(request->name) - 1; i++)
		request->name[i] = name[i];
}

void xm_host_describe(const struct xm_host *host, struct xmem_pools_request *request)
{
	const struct xm_map *map = &host->map;
	u32 i;

	for (i = 0; i < XMEM_NAME_BYTES; i++)
		request->name[i] = map->pool->name[i];
	request->payload_bytes = xm_load(&map->pool->payload_bytes);
	request->kept_bytes = xm_load(&map->pool->kept_bytes);
	request->payloads = xm_load(&map->pool->payloads);
	request->slots = map->slots;
	request->clients = map->clients;
	request->ring_entries = map->ring_mask + 1;
	request->alive = 0;
	for (i = 0; i < map->clients; i++)
		request->alive += xm_load(&xm_client_row(map, i)->state) == XMEM_CLIENT_ALIVE;
	request->attached_bytes = 0;
	for (i = 0; i < map->slots; i++) {
		const struct xmem_slot_row *row = xm_slot_row(map, i);

		if (xm_load(&row->owner) != XMEM_OWNER_NONE)
			request->attached_bytes += xm_load(&row->length);
	}
}
