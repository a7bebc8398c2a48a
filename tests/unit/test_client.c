// SPDX-License-Identifier: MIT
/*
 * The host's clients: joining, subscribing, ending, zombies and their limit.
 */
#include "core/poll.h"
#include "unit.h"

/* ---- join ---- */

START_TEST(join_fills_row_and_outputs)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	struct xmem_join_request join = {
		.role = XMEM_ROLE_WRITER, .wait_bound_ns = 5, .label = "cam",
	};
	struct xm_joiner who = { .pid = 12, .uid = 34, .sibling = XM_NO_CLIENT };
	u32 i;

	join.client = 77;
	join.incarnation = join.total_bytes = POISON;
	ck_assert_int_eq(xm_host_join(&world->host, 0, &join, &who), 0);
	ck_assert_uint_eq(join.client, 0);
	ck_assert_uint_eq(join.incarnation, 1);
	ck_assert_uint_eq(join.total_bytes, world->bytes);
	ck_assert_uint_eq(xm_client_row(map, 0)->state, XMEM_CLIENT_ALIVE);
	ck_assert_uint_eq(xm_client_row(map, 0)->pid, 12);
	ck_assert_uint_eq(xm_client_row(map, 0)->uid, 34);
	ck_assert_str_eq((char *)xm_client_row(map, 0)->label, "cam");
	ck_assert(xm_bit(map->pool->counted, 0));
	for (i = 0; i < map->clients; i++)
		ck_assert_uint_eq(*xm_cursor(map, 0, i), XMEM_CURSOR_NONE);
	ck_assert_int_eq(xm_host_free_client(&world->host), 1);
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(clients_of_one_process_have_one_number)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	struct xmem_join_request join = { .role = XMEM_ROLE_READER };
	struct xm_joiner who = { .sibling = XM_NO_CLIENT };
	u32 i;

	for (i = 0; i < 4; i++) {
		who.sibling = i == 3 ? 1 : i == 2 ? 0 : XM_NO_CLIENT;
		ck_assert_int_eq(xm_host_join(&world->host, i, &join, &who), 0);
	}
	ck_assert_uint_ne(xm_client_row(map, 0)->process, 0);
	ck_assert_uint_ne(xm_client_row(map, 0)->process, xm_client_row(map, 1)->process);
	ck_assert_uint_eq(xm_client_row(map, 0)->process, xm_client_row(map, 2)->process);
	ck_assert_uint_eq(xm_client_row(map, 1)->process, xm_client_row(map, 3)->process);
	world_free(world);
}
END_TEST

START_TEST(a_client_is_asked_for_by_number_and_incarnation)
{
	struct world *world = world_make(64, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_READER, 0);
	struct xmem_client_request request = { .client = me };
	const struct xmem_client_row *row = NULL;

	ck_assert_int_eq(xm_host_client(&world->host, &request, &row), 0);
	ck_assert_ptr_eq(row, xm_client_row(&world->host.map, me));
	ck_assert_uint_eq(request.incarnation, row->incarnation);
	ck_assert_int_eq(xm_host_client(&world->host, &request, &row), 0);
	request.incarnation++;
	ck_assert_int_eq(xm_host_client(&world->host, &request, &row), -ENOENT);
	request = (struct xmem_client_request){ .client = me + 1 };
	ck_assert_int_eq(xm_host_client(&world->host, &request, &row), -ENOENT);
	request.client = 4;
	ck_assert_int_eq(xm_host_client(&world->host, &request, &row), -EINVAL);
	world_free(world);
}
END_TEST

START_TEST(bad_join_is_EINVAL_and_changes_nothing)
{
	static const struct xmem_join_request bad[] = {
		{ .role = 0 }, { .role = 4 }, { .role = XMEM_ROLE_READER, .wait_bound_ns = 1 },
		{ .role = XMEM_ROLE_READER, .label = "a\n" },
		{ .role = XMEM_ROLE_READER, .label = { [0 ... XMEM_LABEL_BYTES - 1] = 'a' } },
	};
	struct world *world = world_make(64, 4, 4);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		const struct xm_joiner nobody = { .sibling = XM_NO_CLIENT };
		struct xmem_join_request join = bad[i];

		ck_assert_int_eq(xm_host_join(&world->host, 0, &join, &nobody), -EINVAL);
		ck_assert_uint_eq(xm_client_row(&world->host.map, 0)->state, XMEM_CLIENT_NONE);
		ck_assert_uint_eq(world->host.incarnations, 0);
	}
	world_free(world);
}
END_TEST

START_TEST(incarnations_are_never_used_again)
{
	struct world *world = world_make(64, 2, 4);
	u64 last = 0;
	u32 i, id;

	for (i = 0; i < 5; i++) {
		id = world_join(world, XMEM_ROLE_READER, 0);
		ck_assert_uint_eq(id, 0);
		ck_assert_uint_gt(xm_client_row(&world->host.map, id)->incarnation, last);
		last = xm_client_row(&world->host.map, id)->incarnation;
		world_end(world, id);
	}
	world_free(world);
}
END_TEST

/* ---- subscribe ---- */

static int subscribe(struct world *world, u32 me, u32 publisher, u64 incarnation, u32 flags)
{
	struct xmem_subscribe_request request = {
		.publisher = publisher, .incarnation = incarnation, .flags = flags,
	};

	return xm_host_subscribe(&world->host, me, &request);
}

static int unsubscribe(struct world *world, u32 me, u32 publisher, u64 incarnation)
{
	struct xmem_unsubscribe_request request = {
		.publisher = publisher, .incarnation = incarnation,
	};

	return xm_host_unsubscribe(&world->host, me, &request);
}

START_TEST(subscribe_refusals)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0);

	ck_assert_int_eq(subscribe(world, reader, 4, 0, 0), -EINVAL);
	ck_assert_int_eq(subscribe(world, reader, ~0u, 0, 0), -EINVAL);
	ck_assert_int_eq(subscribe(world, reader, 3, 0, 0), -ENOENT);
	ck_assert_int_eq(subscribe(world, reader, 3, 9, 0), -ESTALE);
	ck_assert_int_eq(subscribe(world, reader, reader, 0, 0), -ENOENT);
	ck_assert_int_eq(subscribe(world, reader, writer, 9, 0), -ESTALE);
	ck_assert_int_eq(subscribe(world, reader, writer, 0, XMEM_SUBSCRIBE_WAIT), -EOPNOTSUPP);
	ck_assert_uint_eq(*xm_cursor(&world->host.map, reader, writer), XMEM_CURSOR_NONE);
	ck_assert_int_eq(subscribe(world, reader, writer, 1, 0), 0);
	ck_assert_int_eq(subscribe(world, reader, writer, 0, 0), -EEXIST);
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(subscribing_to_a_zombie_is_refused)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot;

	world_attach(world, writer, 1, &slot);
	world_subscribe(world, reader, writer, 0);
	world_take_publish(world, writer, slot);
	world_end(world, writer);
	ck_assert_int_eq(subscribe(world, writer + 2, writer, 0, 0), -ENOENT);
	ck_assert_int_eq(subscribe(world, writer + 2, writer, 1, 0), -ESTALE);
	world_free(world);
}
END_TEST

START_TEST(unsubscribe_refusals)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0);

	ck_assert_int_eq(unsubscribe(world, reader, 4, 0), -EINVAL);
	ck_assert_int_eq(unsubscribe(world, reader, 3, 0), -ENOENT);
	ck_assert_int_eq(unsubscribe(world, reader, writer, 9), -ESTALE);
	ck_assert_int_eq(unsubscribe(world, reader, writer, 0), -ENOENT);
	ck_assert_int_eq(subscribe(world, reader, writer, 0, 0), 0);
	ck_assert_int_eq(unsubscribe(world, reader, writer, 1), 0);
	ck_assert_uint_eq(*xm_cursor(&world->host.map, reader, writer), XMEM_CURSOR_NONE);
	ck_assert_int_eq(unsubscribe(world, reader, writer, 1), -ENOENT);
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(subscriber_starts_at_the_tail)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0);
	u32 slot[3], i;

	world_attach(world, writer, 3, slot);
	for (i = 0; i < 3; i++)
		world_take_publish(world, writer, slot[i]);
	ck_assert_uint_eq(world_subscribe(world, reader, writer, 0).place, 3);
	ck_assert_uint_eq(*xm_cursor(&world->host.map, reader, writer), 3);
	world_free(world);
}
END_TEST

/* ---- end ---- */

START_TEST(ended_client_holds_nothing_and_follows_nothing)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 9);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[2];
	struct xm_waited waited;
	struct xm_follow follow;
	struct xm_publication what;
	u64 token;

	world_attach(world, writer, 2, slot);
	follow = world_subscribe(world, reader, writer, XMEM_SUBSCRIBE_WAIT);
	token = world_take_publish(world, writer, slot[0]);
	world_take_publish(world, writer, slot[1]);
	ck_assert_int_eq(world_receive(world, reader, &follow, &what), 0);
	ck_assert_int_eq(xm_get(map, reader, token), 0);
	world_end(world, reader);
	ck_assert_uint_eq(world_holds(world), 0);
	ck_assert(!xm_bit(xm_client_row(map, writer)->subscribers, reader));
	ck_assert(!xm_bit(xm_client_row(map, writer)->waits, reader));
	xm_read_waited(map, writer, &waited);
	ck_assert_uint_eq(waited.count, 0);
	ck_assert_uint_eq(waited.evictable, 2);
	ck_assert(world_scan(world, writer, slot[0], false, 0));
	ck_assert(world_scan(world, writer, slot[1], false, 0));
	world_free(world);
}
END_TEST

/*
 * It does so before the host handles its end: with contents that it had received, got, and not
 * received yet.
 */
START_TEST(who_has_let_go_keeps_nothing_from_its_owner)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 9), i;
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[3];
	struct xm_waited waited;
	struct xm_follow follow;
	struct xm_publication what;
	u64 holds, token;

	world_attach(world, writer, 3, slot);
	follow = world_subscribe(world, reader, writer, XMEM_SUBSCRIBE_WAIT);
	token = world_take_publish(world, writer, slot[0]);
	for (i = 1; i < 3; i++)
		world_take_publish(world, writer, slot[i]);
	ck_assert_int_eq(world_receive(world, reader, &follow, &what), 0);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(xm_get(map, reader, token), 0);
	*xm_hold(map, reader, slot[0]) |= XM_HOLD_FORWARDED;
	ck_assert(!world_scan(world, writer, slot[0], false, 0));
	ck_assert(!world_scan(world, writer, slot[2], false, 0));
	ck_assert(xm_client_release(map, reader, &holds));
	ck_assert_uint_eq(holds, 3);
	/* The sweep needs this bit for the client's ring. */
	ck_assert_uint_eq(*xm_hold(map, reader, slot[0]), XM_HOLD_FORWARDED);
	xm_read_waited(map, writer, &waited);
	ck_assert_uint_eq(waited.lagging, 0);
	ck_assert_uint_eq(waited.evictable, 3);
	for (i = 0; i < 3; i++)
		ck_assert(world_scan(world, writer, slot[i], false, 0));
	ck_assert(!xm_client_release(map, reader, &holds));	/* it had nothing more */
	ck_assert_uint_eq(holds, 0);
	world_is_valid(world);
	world_end(world, reader);
	world_end(world, writer);
	world_is_clean(world);
	world_free(world);
}
END_TEST

/* Its GPU may still read the buffer until its process has exited (I9). */
START_TEST(who_has_let_go_still_holds_what_its_gpu_uses)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0), i;
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[2];
	u64 holds;

	world_attach(world, writer, 2, slot);
	for (i = 0; i < 2; i++) {
		u64 token = world_take_publish(world, writer, slot[i]);

		ck_assert_int_eq(xm_get(map, reader, token), 0);
		*xm_hold(map, reader, slot[i]) |= XM_HOLD_DEVICE;
	}
	xm_slot_row(map, slot[0])->traits |= XMEM_TRAIT_CUDA;
	ck_assert(xm_client_release(map, reader, &holds));
	ck_assert_uint_eq(holds, 1);
	ck_assert(!world_scan(world, writer, slot[0], false, 0));
	ck_assert(world_scan(world, writer, slot[1], false, 0));
	xm_slot_row(map, slot[0])->traits &= ~XMEM_TRAIT_CUDA;
	world_end(world, reader);
	world_end(world, writer);
	world_free(world);
}
END_TEST

/* As a zombie it is still counted, and yet it holds nothing. */
START_TEST(zombie_holds_nothing)
{
	struct world *world = world_make(128, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 other = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot, mine;
	u64 token;

	world_attach(world, writer, 1, &mine);
	world_attach(world, other, 1, &slot);
	world_subscribe(world, reader, writer, 0);
	world_take_publish(world, writer, mine);
	token = world_take_publish(world, other, slot);
	ck_assert_int_eq(xm_get(&world->host.map, writer, token), 0);
	world_end(world, writer);
	ck_assert_uint_eq(xm_client_row(&world->host.map, writer)->state, XMEM_CLIENT_ZOMBIE);
	ck_assert(xm_bit(world->host.map.pool->counted, writer));
	ck_assert_uint_eq(world_holds(world), 0);
	ck_assert(world_scan(world, other, slot, false, 0));
	world_free(world);
}
END_TEST

/* WRITING slots are dropped, SCANNING ones are resolved, and LIVE ones stay. */
START_TEST(end_leaves_slots_live_or_free)
{
	static const u32 before[] = {
		XMEM_SLOT_FREE, XMEM_SLOT_WRITING, XMEM_SLOT_LIVE, XMEM_SLOT_SCANNING,
		XMEM_SLOT_UPGRADED, 5, 6, 7,
	};
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0), slot[8], i;
	u64 generation;

	world_attach(world, writer, 8, slot);
	for (i = 0; i < 8; i++)
		xm_slot(map, slot[i])->state += before[i] - XMEM_SLOT_FREE;
	xm_host_end(&world->host, writer);
	for (i = 0; i < 8; i++) {
		generation = xm_slot_row(map, slot[i])->generation_first;
		ck_assert_uint_eq(xm_slot(map, slot[i])->state,
				  xm_word(generation, 0,
					  i == 2 || i == 3 ? XMEM_SLOT_LIVE : XMEM_SLOT_FREE));
		ck_assert_uint_eq(xm_slot_row(map, slot[i])->owner, XMEM_OWNER_HOST);
	}
	ck_assert_uint_eq(world_reap(world), 8);
	world_is_clean(world);
	world_free(world);
}
END_TEST

START_TEST(client_that_follows_itself_ends_too)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0), slot;

	world_attach(world, writer, 1, &slot);
	world_subscribe(world, writer, writer, 0);
	world_take_publish(world, writer, slot);
	world_end(world, writer);
	ck_assert_uint_eq(xm_client_row(&world->host.map, writer)->state, XMEM_CLIENT_NONE);
	world_is_clean(world);
	world_free(world);
}
END_TEST

START_TEST(zombie_is_buried_when_its_last_subscriber_ends)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 a = world_join(world, XMEM_ROLE_READER, 0);
	u32 b = world_join(world, XMEM_ROLE_READER, 0), slot;

	world_attach(world, writer, 1, &slot);
	world_subscribe(world, a, writer, 0);
	world_subscribe(world, b, writer, 0);
	world_take_publish(world, writer, slot);
	world_end(world, writer);
	ck_assert_int_eq(xm_host_free_client(&world->host), 3);	/* the zombie's id is not free */
	world_end(world, a);
	ck_assert_uint_eq(xm_client_row(&world->host.map, writer)->state, XMEM_CLIENT_ZOMBIE);
	world_end(world, b);
	ck_assert_int_eq(xm_host_free_client(&world->host), 0);
	world_is_clean(world);
	world_free(world);
}
END_TEST

/*
 * A held buffer outlives its owner's ring, which ends when all that was in flight has been passed.
 */
START_TEST(held_slot_outlives_the_burial_of_its_owner)
{
	struct world *world = world_make(64, 4, 4);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot;
	u32 next;
	u64 token;

	world_attach(world, writer, 1, &slot);
	token = world_take_publish(world, writer, slot);
	ck_assert_int_eq(xm_get(&world->host.map, reader, token), 0);
	world_end(world, writer);
	ck_assert_uint_eq(xm_client_row(&world->host.map, writer)->state, XMEM_CLIENT_NONE);
	ck_assert_uint_eq(xm_slot_row(&world->host.map, slot)->tenant, XMEM_OWNER_NONE);
	/* the id is used again: nothing of it is the former client's */
	next = world_join(world, XMEM_ROLE_WRITER, 0);
	ck_assert_uint_eq(next, writer);
	ck_assert_uint_eq(world_reclaim(&world->host, slot), 0);
	ck_assert_int_eq(xm_look(&world->host.map, token), 0);
	world_put(world, reader, slot);
	world_end(world, next);
	world_is_clean(world);
	world_free(world);
}
END_TEST

START_TEST(one_subscriber_keeps_eight_zombies_the_oldest_go_first)
{
	struct world *world = world_make(1024, 16, 4);
	const struct xm_map *map = &world->host.map;
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot, writer[10], i, zombies = 0;

	for (i = 0; i < 10; i++) {
		writer[i] = world_join(world, XMEM_ROLE_WRITER, 0);
		world_attach(world, writer[i], 1, &slot);
		world_subscribe(world, reader, writer[i], 0);
		world_take_publish(world, writer[i], slot);
	}
	for (i = 10; i--; )
		world_end(world, writer[i]);
	for (i = 0; i < 10; i++)
		zombies += xm_client_row(map, writer[i])->state == XMEM_CLIENT_ZOMBIE;
	ck_assert_uint_eq(zombies, XM_MAX_ZOMBIES);
	/* The subscriber can see which rings were dropped, and where they ended. */
	for (i = 0; i < 10; i++)
		ck_assert_uint_eq(*xm_cursor(map, reader, writer[i]),
				  i < 2 ? 1 | XMEM_CURSOR_DROPPED : 0);
	/* by age of the client, not of its end */
	ck_assert_uint_eq(world_count(world, XMEM_OWNER_HOST), XM_MAX_ZOMBIES);
	world_end(world, reader);
	world_is_clean(world);
	world_free(world);
}
END_TEST

/*
 * Ten writers publish one buffer each for @reader, perhaps demote it, and end. Returns how many of
 * these rings it keeps.
 */
static u32 rings_kept(struct world *world, u32 reader, u32 writers_user, u32 flags, bool demote)
{
	u32 writer[10], slot, i, kept = 0;

	for (i = 0; i < 10; i++) {
		world->user = writers_user;
		writer[i] = world_join(world, XMEM_ROLE_WRITER, 1);
		world_attach(world, writer[i], 1, &slot);
		world_subscribe(world, reader, writer[i], flags);
		world_take_publish(world, writer[i], slot);
		if (demote)
			ck_assert_uint_eq(xm_demote(&world->host.map, writer[i], 1), 1);
	}
	for (i = 0; i < 10; i++)
		world_end(world, writer[i]);
	for (i = 0; i < 10; i++)
		kept += xm_client_row(&world->host.map, writer[i])->state == XMEM_CLIENT_ZOMBIE;
	return kept;
}

/* The user of the pool's owner is 0. */
static u32 rings_kept_by(u32 readers_user, u32 writers_user, u32 flags, bool demote)
{
	struct world *world = world_make(4096, 64, 4);
	u32 reader, kept;

	world->user = readers_user;
	reader = world_join(world, XMEM_ROLE_READER, 0);
	kept = rings_kept(world, reader, writers_user, flags, demote);
	world_end(world, reader);
	world_is_clean(world);
	world_free(world);
	return kept;
}

START_TEST(an_awaited_subscriber_keeps_all_zombies_and_a_stranger_none)
{
	ck_assert_uint_eq(rings_kept_by(0, 0, XMEM_SUBSCRIBE_WAIT, false), 10);
	ck_assert_uint_eq(rings_kept_by(1, 1, XMEM_SUBSCRIBE_WAIT, false), 10);
	ck_assert_uint_eq(rings_kept_by(0, 1, XMEM_SUBSCRIBE_WAIT, false), 10);
	ck_assert_uint_eq(rings_kept_by(1, 0, XMEM_SUBSCRIBE_WAIT, false), XM_MAX_ZOMBIES);
	ck_assert_uint_eq(rings_kept_by(1, 2, XMEM_SUBSCRIBE_WAIT, false), XM_MAX_ZOMBIES);
	ck_assert_uint_eq(rings_kept_by(1, 1, 0, false), XM_MAX_ZOMBIES);
	ck_assert_uint_eq(rings_kept_by(1, 1, XMEM_SUBSCRIBE_WAIT, true), XM_MAX_ZOMBIES);
}
END_TEST

/* ---- strangers that receive nothing ---- */

#define GUESTS	3

/*
 * One publisher of the pool's owner after the other publishes a buffer of @bytes for a guest, of
 * three in turn, and ends.
 */
struct service {
	struct world *world;
	const struct xm_map *map;
	u32 guest[GUESTS];
	u32 writer[12];
	u32 count;
};

static struct service service_make(u32 slots, u32 clients)
{
	struct service s = { .world = world_make(slots, clients, 4) };
	u32 i;

	s.map = &s.world->host.map;
	for (i = 0; i < GUESTS; i++) {
		s.world->user = 1 + i / 2;	/* two of them are one user's */
		s.guest[i] = world_join(s.world, XMEM_ROLE_READER, 0);
	}
	s.world->user = 0;
	return s;
}

static u32 service_publishes(struct service *s, u64 bytes, u32 more_subscribers)
{
	u32 writer = world_join(s->world, XMEM_ROLE_WRITER, 0), slot;

	world_attach(s->world, writer, 1, &slot);
	xm_store(&xm_slot_row(s->map, slot)->length, bytes);
	world_subscribe(s->world, s->guest[s->count % GUESTS], writer, 0);
	if (more_subscribers < s->map->clients)
		world_subscribe(s->world, more_subscribers, writer, 0);
	world_take_publish(s->world, writer, slot);
	s->writer[s->count++] = writer;
	return writer;
}

static void service_restarts(struct service *s, u64 bytes, u32 more_subscribers)
{
	world_end(s->world, service_publishes(s, bytes, more_subscribers));
}

static bool is_zombie(const struct service *s, u32 i)
{
	return xm_client_row(s->map, s->writer[i])->state == XMEM_CLIENT_ZOMBIE;
}

static void service_end(struct service *s)
{
	u32 i;

	for (i = 0; i < GUESTS; i++)
		world_end(s->world, s->guest[i]);
	world_is_clean(s->world);
	world_free(s->world);
}

/* However many guests there are, most groups stay for the next publishers. */
START_TEST(strangers_keep_a_part_of_the_groups)
{
	struct service s = service_make(512, 32);
	u32 i;

	for (i = 0; i < 12; i++)
		service_restarts(&s, 64, ~0u);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 2);
	ck_assert(is_zombie(&s, 11) && is_zombie(&s, 10));
	/* A guest can see that it has lost the ring, and where it ended. */
	ck_assert_uint_eq(*xm_cursor(s.map, s.guest[0], s.writer[9]), 1 | XMEM_CURSOR_DROPPED);
	ck_assert_uint_eq(*xm_cursor(s.map, s.guest[1], s.writer[10]), 0);
	service_end(&s);
}
END_TEST

START_TEST(strangers_keep_a_part_of_the_ids)
{
	struct service s = service_make(4096, 12);
	u32 i;

	for (i = 0; i < 9; i++)
		service_restarts(&s, 64, ~0u);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 3);
	service_end(&s);
}
END_TEST

START_TEST(strangers_keep_few_bytes)
{
	const u64 half = XM_STRANGERS_BYTES / 2;
	struct service s = service_make(4096, 32);

	service_restarts(&s, half, ~0u);
	service_restarts(&s, half, ~0u);
	ck_assert(is_zombie(&s, 0) && is_zombie(&s, 1));
	/* The last one stays, however many bytes it has. */
	service_restarts(&s, ~0ULL, ~0u);
	ck_assert(!is_zombie(&s, 0) && !is_zombie(&s, 1) && is_zombie(&s, 2));
	service_restarts(&s, 64, ~0u);
	ck_assert(!is_zombie(&s, 2) && is_zombie(&s, 3));
	service_restarts(&s, XM_STRANGERS_BYTES - 64, ~0u);
	ck_assert(is_zombie(&s, 3) && is_zombie(&s, 4));
	/* A guest that receives keeps no ring, and the others do not lose more for it. */
	xm_store(xm_cursor(s.map, s.guest[4 % GUESTS], s.writer[4]), 1);
	service_restarts(&s, 64, ~0u);
	ck_assert(is_zombie(&s, 3) && is_zombie(&s, 5));
	service_end(&s);
}
END_TEST

/* Rings that the owner's own readers have yet to receive stay, and count for no stranger. */
START_TEST(strangers_answer_for_their_own_rings_alone)
{
	struct service s = service_make(512, 32);
	u32 own = world_join(s.world, XMEM_ROLE_READER, 0), i;

	for (i = 0; i < 4; i++)
		service_restarts(&s, XM_STRANGERS_BYTES, own);
	for (i = 0; i < 4; i++)
		ck_assert(is_zombie(&s, i));
	/* From now on only the guests keep them; the next end counts them. */
	for (i = 0; i < 4; i++)
		xm_store(xm_cursor(s.map, own, s.writer[i]), 1);
	service_restarts(&s, 64, ~0u);
	for (i = 0; i < 4; i++)
		ck_assert(!is_zombie(&s, i));
	ck_assert(is_zombie(&s, 4));
	world_end(s.world, own);
	service_end(&s);
}
END_TEST

static void count_rows(int step, void *arg)
{
	u32 *looks = arg;

	*looks += step == XM_STEP_ROW_LOOK;
}

/* How many rows the host reads at an end that drops so many rings. */
static u32 looks_that_drop(u32 rings)
{
	struct service s = service_make(1024, 64);
	u32 own = world_join(s.world, XMEM_ROLE_READER, 0), looks = 0, last, i;

	for (i = 0; i < rings; i++)
		service_restarts(&s, XM_STRANGERS_BYTES, own);
	for (i = 0; i < rings; i++)
		xm_store(xm_cursor(s.map, own, s.writer[i]), 1);
	last = service_publishes(&s, 64, ~0u);
	unit_step_arg = &looks;
	unit_step = count_rows;
	xm_host_end(&s.world->host, last);
	unit_step = NULL;
	world_reap(s.world);
	for (i = 0; i < rings; i++)
		ck_assert(!is_zombie(&s, i));
	ck_assert(is_zombie(&s, rings));
	world_end(s.world, own);
	service_end(&s);
	return looks;
}

/* The ring that is too much is counted, and older ones need not be. */
START_TEST(no_ring_of_strangers_is_counted_twice)
{
	ck_assert_uint_eq(looks_that_drop(10), looks_that_drop(1));
}
END_TEST

/* A guest that publishes much and ends drops its own rings alone. */
START_TEST(strangers_answer_for_their_own_publishers_alone)
{
	struct service s = service_make(512, 32);

	service_restarts(&s, XM_STRANGERS_BYTES, ~0u);
	s.world->user = GUESTS + 1;
	service_restarts(&s, XM_STRANGERS_BYTES, ~0u);
	ck_assert(is_zombie(&s, 0) && is_zombie(&s, 1));
	service_restarts(&s, XM_STRANGERS_BYTES, ~0u);
	ck_assert(is_zombie(&s, 0) && !is_zombie(&s, 1) && is_zombie(&s, 2));
	s.world->user = 0;
	service_end(&s);
}
END_TEST

/* ---- what a publisher sees of its subscribers ---- */

struct look {
	const struct xm_map *map;
	u32 publisher, subscriber;
	bool seen;
};

static void before_the_cursor(int step, void *arg)
{
	struct look *look = arg;

	if (step != XM_STEP_SUBSCRIBE_BIT)
		return;
	look->seen = true;
	ck_assert(xm_bit(xm_client_row(look->map, look->publisher)->subscribers, look->subscriber));
	ck_assert(!xm_is_subscriber(look->map, look->publisher, look->subscriber));
}

/* A publication from before the tail is read is not for the subscriber. */
START_TEST(a_subscriber_counts_once_its_cursor_is_there)
{
	struct world *world = world_make(64, 4, 4);
	u32 publisher = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0);
	u32 another = world_join(world, XMEM_ROLE_READER, 0);
	struct look look = { &world->host.map, publisher, reader, false };

	world_subscribe(world, another, publisher, 0);
	unit_step = before_the_cursor;
	unit_step_arg = &look;
	world_subscribe(world, reader, publisher, 0);
	unit_step = NULL;
	ck_assert(look.seen);
	ck_assert(xm_is_subscriber(look.map, publisher, reader));
	ck_assert(xm_is_subscriber(look.map, publisher, another));
	world_end(world, reader);
	ck_assert(!xm_is_subscriber(look.map, publisher, reader));
	world_free(world);
}
END_TEST

static bool changed(const struct world *world, u32 publisher)
{
	const struct xm_poll what = { .client = publisher, .kind = XMEM_POLL_SUBSCRIBERS };
	const struct xm_map *map = &world->host.map;
	const struct xm_followed none = { .ended = 0 };
	bool before = xm_readable(map, &none, &what);

	ck_assert(xm_readable(map, &none, &what) == before);
	xm_store(&xm_ring(map, publisher)->changes_seen,
		 xm_client_row(map, publisher)->subscriber_changes);
	ck_assert(!xm_readable(map, &none, &what));
	return before;
}

START_TEST(a_publisher_polls_for_its_own_subscribers)
{
	struct world *world = world_make(64, 4, 4);
	u32 publisher = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 other = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0);
	struct xm_follow follow;

	ck_assert(!changed(world, publisher));
	follow = world_subscribe(world, reader, publisher, 0);
	ck_assert(changed(world, publisher));
	world_unsubscribe(world, reader, &follow);
	ck_assert(changed(world, publisher));
	world_subscribe(world, reader, other, 0);
	ck_assert(!changed(world, publisher));
	ck_assert(changed(world, other));
	world_end(world, reader);
	ck_assert(!changed(world, publisher));
	ck_assert(changed(world, other));
	world_subscribe(world, publisher, other, 0);
	world_end(world, other);
	/* The next client with that id starts from the beginning. */
	world_end(world, publisher);
	ck_assert_uint_eq(world_join(world, XMEM_ROLE_WRITER, 0), publisher);
	ck_assert(!changed(world, publisher));
	world_free(world);
}
END_TEST

void client_tests(Suite *suite)
{
	TCase *tcase = tcase_create("client");

	tcase_add_test(tcase, join_fills_row_and_outputs);
	tcase_add_test(tcase, clients_of_one_process_have_one_number);
	tcase_add_test(tcase, a_client_is_asked_for_by_number_and_incarnation);
	tcase_add_test(tcase, bad_join_is_EINVAL_and_changes_nothing);
	tcase_add_test(tcase, incarnations_are_never_used_again);
	tcase_add_test(tcase, subscribe_refusals);
	tcase_add_test(tcase, subscribing_to_a_zombie_is_refused);
	tcase_add_test(tcase, unsubscribe_refusals);
	tcase_add_test(tcase, subscriber_starts_at_the_tail);
	tcase_add_test(tcase, ended_client_holds_nothing_and_follows_nothing);
	tcase_add_test(tcase, who_has_let_go_keeps_nothing_from_its_owner);
	tcase_add_test(tcase, who_has_let_go_still_holds_what_its_gpu_uses);
	tcase_add_test(tcase, zombie_holds_nothing);
	tcase_add_test(tcase, end_leaves_slots_live_or_free);
	tcase_add_test(tcase, client_that_follows_itself_ends_too);
	tcase_add_test(tcase, zombie_is_buried_when_its_last_subscriber_ends);
	tcase_add_test(tcase, held_slot_outlives_the_burial_of_its_owner);
	tcase_add_test(tcase, one_subscriber_keeps_eight_zombies_the_oldest_go_first);
	tcase_add_test(tcase, an_awaited_subscriber_keeps_all_zombies_and_a_stranger_none);
	tcase_add_test(tcase, strangers_keep_a_part_of_the_groups);
	tcase_add_test(tcase, strangers_keep_a_part_of_the_ids);
	tcase_add_test(tcase, strangers_keep_few_bytes);
	tcase_add_test(tcase, strangers_answer_for_their_own_rings_alone);
	tcase_add_test(tcase, strangers_answer_for_their_own_publishers_alone);
	tcase_add_test(tcase, no_ring_of_strangers_is_counted_twice);
	tcase_add_test(tcase, a_subscriber_counts_once_its_cursor_is_there);
	tcase_add_test(tcase, a_publisher_polls_for_its_own_subscribers);
	suite_add_tcase(suite, tcase);
}
