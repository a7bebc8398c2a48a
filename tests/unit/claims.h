/* SPDX-License-Identifier: MIT */
/* Helpers for the unit tests of claims: a writer, a reader, and their requests to the host. */
#ifndef XM_UNIT_CLAIMS_H
#define XM_UNIT_CLAIMS_H

#include "unit.h"

#define SECOND	1000000000ULL
#define NOW	(7 * SECOND)

struct scene {
	struct world *world;
	struct xm_host *host;
	const struct xm_map *map;
	u32 owner, reader, slot[4];
	u64 token;			/* of slot[0], which is LIVE */
	struct xm_pending pending;
};

static inline struct scene scene_of(u32 slots)
{
	struct scene s = { .world = world_make(slots, 4, 4) };

	s.host = &s.world->host;
	s.map = &s.host->map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	world_attach(s.world, s.owner, 4, s.slot);
	s.token = world_take_publish(s.world, s.owner, s.slot[0]);
	return s;
}

static inline struct scene scene_make(void)
{
	return scene_of(64);
}

/* A tick, until it voids the claims of a slot, or ends with -ENOENT. */
static inline int tick(const struct scene *s, u64 now_ns)
{
	u32 at = 0;
	int slot;

	do
		slot = xm_host_expire_claims(s->host, now_ns, &at);
	while (slot == -EAGAIN);
	world_is_valid(s->world);
	return slot;
}

/* The look at claims after the end of a client, until it voids those of a slot, or -ENOENT. */
static inline int left_by(const struct scene *s, u64 now_ns)
{
	u32 at = 0;
	int slot;

	do
		slot = xm_host_claims_left(s->host, now_ns, &at);
	while (slot == -EAGAIN);
	world_is_valid(s->world);
	return slot;
}

static inline void scene_end(struct scene *s)
{
	world_is_valid(s->world);
	world_end(s->world, s->reader);
	world_end(s->world, s->owner);
	while (left_by(s, NOW) >= 0)
		world_reap(s->world);
	ck_assert_uint_eq(s->map->pool->claimed, s->host->claims->alone);
	world_is_clean(s->world);
	world_free(s->world);
}

static inline int claim(struct scene *s, u32 me, u32 op, u64 token, u32 count, u64 timeout_ns)
{
	struct xmem_claim_request request = {
		.size = sizeof(request), .op = op, .slot = xm_token_slot(token),
		.generation = xm_generation(token), .count = count, .timeout_ns = timeout_ns,
	};

	return xm_host_claim(s->host, me, &request, NOW, false, &s->pending);
}

static inline int add(struct scene *s, u32 me, u64 token, u32 count)
{
	return claim(s, me, XMEM_CLAIM_ADD, token, count, 0);
}

static inline u32 left(const struct scene *s)
{
	world_is_valid(s->world);
	return xm_claims_of(s->map, s->slot[0]);
}

#endif
