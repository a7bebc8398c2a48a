// SPDX-License-Identifier: MIT
/*
 * A group that an ended writer has left, because one of its slots is held. The other slots are for
 * writers of the user of the pool's owner (xm_host_shown_owner).
 */
#include "core/limbo.h"
#include "core/host.h"
#include "holders.h"

/* Alice's writer has ended. One slot of its only group is held. */
struct left {
	struct world *world;
	struct xm_host *host;
	const struct xm_map *map;
	u32 keeper, next, bob;		/* a reader and a writer of Alice's; a writer of Bob's */
	u32 slot;
	u64 token;
};

static struct left left_before_the_end(u32 *ret_alice)
{
	struct left l = { .world = world_make(XMEM_GROUP_SLOTS, 8, 4) };

	l.host = &l.world->host;
	l.map = &l.host->map;
	*ret_alice = join_as(l.world, ALICE, XMEM_ROLE_WRITER);
	l.keeper = join_as(l.world, ALICE, XMEM_ROLE_READER);
	l.next = join_as(l.world, ALICE, XMEM_ROLE_WRITER);
	l.bob = join_as(l.world, BOB, XMEM_ROLE_WRITER);
	world_attach(l.world, *ret_alice, 1, &l.slot);
	return l;
}

static void end_at(struct left *l, u32 client, u64 now_ns)
{
	xm_host_end(l->host, client);
	xm_host_limbo(l->host, now_ns);
	world_reap(l->world);
	world_is_valid(l->world);
}

static struct left left_make(void)
{
	u32 alice;
	struct left l = left_before_the_end(&alice);

	l.token = world_take_publish(l.world, alice, l.slot);
	ck_assert_int_eq(xm_get(l.map, l.keeper, l.token), 0);
	end_at(&l, alice, 1000);
	return l;
}

static void left_free(struct left *l)
{
	world_put(l->world, l->keeper, l->slot);
	world_reap(l->world);
	world_is_valid(l->world);
	world_free(l->world);
}

/* The host and the library agree whether an attach of @count slots succeeds. */
static void finds(const struct left *l, u32 writer, u32 count, bool some)
{
	ck_assert_int_eq(xm_host_free_group(l->host, writer, count), some ? 0 : -ENOSPC);
	ck_assert_int_eq(xm_has_slots(l->map, writer, count), some);
}

START_TEST(the_rest_of_a_group_is_for_the_pools_owners_writers)
{
	struct left l = left_make();

	finds(&l, l.next, 1, true);
	finds(&l, l.next, XMEM_GROUP_SLOTS - 1, true);
	finds(&l, l.next, XMEM_GROUP_SLOTS, false);
	finds(&l, l.bob, 1, false);
	left_free(&l);
}
END_TEST

START_TEST(what_another_user_has_left_is_for_nobody)
{
	struct world *world = world_make(XMEM_GROUP_SLOTS, 8, 4);
	u32 keeper = join_as(world, ALICE, XMEM_ROLE_READER);
	u32 alice = join_as(world, ALICE, XMEM_ROLE_WRITER);
	u32 bob = join_as(world, BOB, XMEM_ROLE_WRITER), slot;
	u32 bobs = join_as(world, BOB, XMEM_ROLE_WRITER);

	world_attach(world, bob, 1, &slot);
	ck_assert_int_eq(xm_get(&world->host.map, keeper, world_take_publish(world, bob, slot)), 0);
	world_end(world, bob);
	ck_assert_int_eq(xm_host_free_group(&world->host, alice, 1), -ENOSPC);
	ck_assert_int_eq(xm_host_free_group(&world->host, bobs, 1), -ENOSPC);
	world_put(world, keeper, slot);
	world_reap(world);
	ck_assert_int_eq(xm_host_free_group(&world->host, alice, 1), 0);
	world_free(world);
}
END_TEST

START_TEST(nothing_is_left_before_the_ring_is_over)
{
	struct xm_publication what;
	struct xm_follow follow;
	u32 alice;
	struct left l = left_before_the_end(&alice);

	follow = world_subscribe(l.world, l.keeper, alice, 0);
	world_take_publish(l.world, alice, l.slot);
	end_at(&l, alice, 1000);
	finds(&l, l.next, 1, false);
	ck_assert_int_eq(world_receive(l.world, l.keeper, &follow, &what), 0);
	world_reap(l.world);
	finds(&l, l.next, 1, true);
	left_free(&l);
}
END_TEST

/* A stream may still wait for the word, whose slot could be another writer's then. */
START_TEST(nothing_is_left_where_a_gpu_has_written_a_ready_word)
{
	u32 alice;
	struct left l = left_before_the_end(&alice);
	u64 *ready = (void *)((char *)l.map->group[0] + l.map->ready_offset);

	ck_assert_int_eq(xm_get(l.map, l.keeper, world_take_publish(l.world, alice, l.slot)), 0);
	xm_store(&ready[XMEM_GROUP_SLOTS - 1], XMEM_READY_OVER);
	end_at(&l, alice, 1000);
	finds(&l, l.next, 1, false);
	left_free(&l);
}
END_TEST

/* A client that may hold the left slots may hold the next writer's, and wake it. */
START_TEST(followers_of_the_dead_hold_what_the_next_writer_has)
{
	struct xmem_wait_request wake = { .op = XMEM_OP_WAKE, .kind = XMEM_WAIT_SLOTS };
	u32 alice, slot;
	struct left l = left_before_the_end(&alice);
	u64 token;
	int err;

	world_subscribe(l.world, l.bob, alice, 0);
	ck_assert_int_eq(xm_get(l.map, l.keeper, world_take_publish(l.world, alice, l.slot)), 0);
	xm_store(xm_cursor(l.map, l.bob, alice), xm_load(&xm_ring(l.map, alice)->tail));
	end_at(&l, alice, 1000);
	ck_assert(xm_holds_count(l.map, l.bob, l.slot));
	world_attach(l.world, l.next, 1, &slot);
	ck_assert_uint_eq(slot / XMEM_GROUP_SLOTS, l.slot / XMEM_GROUP_SLOTS);
	token = world_take_publish(l.world, l.next, slot);
	ck_assert(xm_holds_count(l.map, l.bob, l.slot) && xm_holds_count(l.map, l.bob, slot));
	ck_assert_int_eq(xm_may_hold(l.map, l.bob, token), 0);
	ck_assert_int_eq(xm_get(l.map, l.bob, token), 0);
	ck_assert(!world_scan(l.world, l.next, slot, true, 0));
	wake.client = l.next;
	ck_assert_ptr_nonnull(xm_host_waiters(l.host, l.bob, &wake, &err));
	world_put(l.world, l.bob, slot);
	ck_assert(world_scan(l.world, l.next, slot, true, 0));
	left_free(&l);
}
END_TEST

START_TEST(what_is_left_is_limbo_while_another_writer_has_the_group)
{
	struct left l = left_make();
	struct xm_limbo limbo;
	u32 slot;
	u64 token;

	world_attach(l.world, l.next, 1, &slot);
	token = world_take_publish(l.world, l.next, slot);
	ck_assert_int_eq(xm_get(l.map, l.keeper, token), 0);
	ck_assert_uint_eq(xm_limbo_of(l.map, l.keeper), 64);
	xm_limbo_count(l.map, &limbo);
	ck_assert_uint_eq(limbo.ended, 1);
	ck_assert_uint_eq(limbo.ended_ns, 1000);
	/* All limbo of the group counts from the next writer's end. */
	end_at(&l, l.next, 2000);
	ck_assert_uint_eq(l.host->limbo_ns[0], 2000);
	ck_assert_uint_eq(xm_limbo_of(l.map, l.keeper), 128);
	world_put(l.world, l.keeper, slot);
	world_reap(l.world);
	ck_assert_uint_eq(l.map->pool->limbo_ns, 2000);
	left_free(&l);
}
END_TEST

/* A sweep finds the slot free, and then there is no limbo any more. */
START_TEST(what_is_left_goes_while_another_writer_has_the_group)
{
	struct left l = left_make();
	u32 slot;

	world_attach(l.world, l.next, 1, &slot);
	world_put(l.world, l.keeper, l.slot);
	world_reap(l.world);
	ck_assert_uint_eq(world_count(l.world, XMEM_OWNER_HOST), 0);
	ck_assert_uint_eq(l.map->pool->limbo_ns, 0);
	ck_assert_uint_eq(l.host->group_owner[0], l.next);
	ck_assert_uint_eq(xm_host_spare_slots(l.host, l.next, false), XMEM_GROUP_SLOTS - 1);
	world_is_valid(l.world);
	world_free(l.world);
}
END_TEST

void left_tests(Suite *suite)
{
	TCase *tcase = tcase_create("left");

	tcase_add_test(tcase, the_rest_of_a_group_is_for_the_pools_owners_writers);
	tcase_add_test(tcase, what_another_user_has_left_is_for_nobody);
	tcase_add_test(tcase, nothing_is_left_before_the_ring_is_over);
	tcase_add_test(tcase, nothing_is_left_where_a_gpu_has_written_a_ready_word);
	tcase_add_test(tcase, followers_of_the_dead_hold_what_the_next_writer_has);
	tcase_add_test(tcase, what_is_left_is_limbo_while_another_writer_has_the_group);
	tcase_add_test(tcase, what_is_left_goes_while_another_writer_has_the_group);
	suite_add_tcase(suite, tcase);
}
