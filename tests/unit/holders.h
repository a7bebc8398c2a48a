/* SPDX-License-Identifier: MIT */
/*
 * Helpers for the unit tests of holders.c: three users with a writer each. User 0 made the pool, so
 * its clients are let in everywhere.
 */
#ifndef XM_UNIT_HOLDERS_H
#define XM_UNIT_HOLDERS_H

#include "core/held.h"
#include "core/publish.h"
#include "unit.h"

#define ALICE	0	/* the maker of the pool */
#define BOB	1
#define CAROL	2

struct scene {
	struct world *world;
	const struct xm_map *map;
	u32 alice, bob, carol;	/* writers; the first two with slots in a group of their own */
	u32 slot[2];		/* Alice's and Bob's */
	u64 token[2];		/* of the contents, which their owner holds */
};

static inline u32 join_as(struct world *world, u32 user, u32 role)
{
	u32 id;

	world->user = user;
	id = world_join(world, role, 0);
	world->user = ALICE;
	return id;
}

static inline u64 publish_and_hold(struct world *world, u32 me, u32 slot)
{
	u64 token = world_take_publish(world, me, slot);

	ck_assert_int_eq(xm_get(&world->host.map, me, token), 0);
	return token;
}

static inline struct scene scene_make(void)
{
	struct scene s = { .world = world_make(256, 8, 4) };

	s.map = &s.world->host.map;
	s.alice = join_as(s.world, ALICE, XMEM_ROLE_WRITER);
	s.bob = join_as(s.world, BOB, XMEM_ROLE_WRITER);
	s.carol = join_as(s.world, CAROL, XMEM_ROLE_WRITER);
	world_attach(s.world, s.alice, 1, &s.slot[0]);
	world_attach(s.world, s.bob, 1, &s.slot[1]);
	s.token[0] = publish_and_hold(s.world, s.alice, s.slot[0]);
	s.token[1] = publish_and_hold(s.world, s.bob, s.slot[1]);
	return s;
}

/* Which clients hold this slot, as a scan of its owner sees it? */
static inline u64 held(const struct scene *s, u32 slot)
{
	return xm_group_holds(s->map, slot / XMEM_GROUP_SLOTS, 1ULL << slot % XMEM_GROUP_SLOTS,
			      NULL).held;
}

/* Does a hold of @client there count? For a moment the client claims to hold all slots. */
static inline bool counts(const struct scene *s, u32 client, u32 slot)
{
	bool count, before = held(s, slot);
	u32 *hold = xm_hold(s->map, client, slot), was = *hold;

	ck_assert(!before);
	xm_store(hold, was + 1);
	count = held(s, slot);
	xm_store(hold, was);
	ck_assert_int_eq(count, xm_holds_count(s->map, client, slot));
	return count;
}

static inline void put_own(const struct scene *s)
{
	world_put(s->world, s->alice, s->slot[0]);
	world_put(s->world, s->bob, s->slot[1]);
}

static inline void scene_free(struct scene *s)
{
	world_is_valid(s->world);
	world_free(s->world);
}

static inline int grant(const struct scene *s, u32 me, u32 client, u64 incarnation)
{
	struct xmem_grant_request request = { .client = client, .incarnation = incarnation };
	int err = xm_host_grant(&s->world->host, me, &request);

	world_is_valid(s->world);
	return err;
}

static inline int stage(const struct scene *s, u32 me, u32 slot)
{
	struct xmem_grant_request request = { .op = XMEM_OP_FORWARD, .slot = slot };
	int err = xm_host_grant(&s->world->host, me, &request);

	world_is_valid(s->world);
	return err;
}

static inline u64 incarnation(const struct scene *s, u32 client)
{
	return xm_client_row(s->map, client)->incarnation;
}

#endif
