// SPDX-License-Identifier: MIT
/*
 * The policy: which subscribers are waited for, which are demoted and until when, what may be
 * evicted, whether the ring has room, and whether a polled descriptor is writable.
 */
#include "unit.h"

#define RING	8

struct stage {
	struct world *world;
	const struct xm_map *map;
	u32 owner, slot[24];
	u32 reader[3];
	struct xm_follow follow[3];
};

static struct stage stage_make(u32 slots)
{
	struct stage s = { .world = world_make(64, 5, RING) };
	u32 i;

	s.map = &s.world->host.map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 1000);
	for (i = 0; i < 3; i++)
		s.reader[i] = world_join(s.world, XMEM_ROLE_READER, 0);
	world_attach(s.world, s.owner, slots, s.slot);
	return s;
}

static void subscribe(struct stage *s, u32 i, u32 flags)
{
	s->follow[i] = world_subscribe(s->world, s->reader[i], s->owner, flags);
}

static void publish_some(struct stage *s, u32 from, u32 count)
{
	u32 i;

	for (i = from; i < from + count; i++)
		world_take_publish(s->world, s->owner, s->slot[i]);
}

static int receive(struct stage *s, u32 i, struct xm_publication *what)
{
	return world_receive(s->world, s->reader[i], &s->follow[i], what);
}

static void receive_and_put(struct stage *s, u32 i)
{
	struct xm_publication what;

	ck_assert_int_eq(receive(s, i, &what), 0);
	world_put(s->world, s->reader[i], xm_token_slot(what.token));
}

static struct xm_waited waited(const struct stage *s)
{
	struct xm_waited ret;

	memset(&ret, 0xa5, sizeof(ret));
	xm_read_waited(s->map, s->owner, &ret);
	return ret;
}

static u64 passed(const struct stage *s, u32 *ret_culprit)
{
	*ret_culprit = 0x5a5a5a5a;
	return xm_passed(s->map, s->owner, ret_culprit);
}

/* ---- slots for an attach ---- */

/* A client that lacks slots learns only what an attach would find. */
START_TEST(slots_are_to_be_had_where_an_attach_finds_them)
{
	struct world *world = world_make(128, 3, RING);
	const struct xm_map *map = &world->host.map;
	u32 one = world_join(world, XMEM_ROLE_WRITER, 0), other, slot[64], s;
	struct xmem_slot_request detach = { .size = sizeof(detach) };
	u64 payload;

	other = world_join(world, XMEM_ROLE_WRITER, 0);
	ck_assert(xm_has_slots(map, other, 64) && !xm_has_slots(map, other, 65));
	world_attach(world, one, 1, slot);
	ck_assert(xm_has_slots(map, other, 1));
	for (s = 64; s < 128; s++)		/* the last group cannot be used any more */
		xm_slot_row(map, s)->tenancies = XM_TENANCIES;
	ck_assert(!xm_has_slots(map, other, 1));
	xm_slot_row(map, 77)->tenancies--;
	ck_assert(xm_has_slots(map, other, 1) && !xm_has_slots(map, other, 2));
	world_attach(world, other, 1, slot);
	ck_assert_uint_eq(slot[0], 77);
	ck_assert(!xm_has_slots(map, other, 1));
	/* A group stays its owner's when its slots become free: no other client finds them. */
	detach.slot = 0;
	ck_assert_int_eq(xm_host_detach(&world->host, one, &detach, ~0u, &payload), 1);
	ck_assert(!xm_has_slots(map, other, 1) && xm_has_slots(map, one, 64));
	ck_assert_int_eq(xm_host_free_group(&world->host, other, 1), -ENOSPC);
	world_end(world, one);
	world_is_valid(world);
	ck_assert(xm_has_slots(map, other, 1));
	world_free(world);
}
END_TEST

/* ---- who is waited for? ---- */

START_TEST(the_slowest_that_is_waited_for_decides)
{
	struct stage s = stage_make(24);
	struct xm_waited w;
	u32 culprit;

	publish_some(&s, 0, 2);
	w = waited(&s);
	ck_assert_uint_eq(w.tail, 2);
	ck_assert_uint_eq(w.evictable, 2);
	ck_assert_uint_eq(w.count + w.lagging + w.demoted, 0);
	ck_assert_uint_eq(passed(&s, &culprit), 2);
	ck_assert_uint_eq(culprit, XMEM_OWNER_NONE);
	subscribe(&s, 0, 0);
	publish_some(&s, 2, 1);
	subscribe(&s, 1, XMEM_SUBSCRIBE_WAIT);
	subscribe(&s, 2, XMEM_SUBSCRIBE_WAIT);
	publish_some(&s, 3, 2);
	receive_and_put(&s, 1);
	w = waited(&s);
	ck_assert_uint_eq(w.evictable, 3);
	ck_assert_uint_eq(w.count, 2);
	ck_assert_uint_eq(w.lagging, 2);
	ck_assert_uint_eq(passed(&s, &culprit), 2);
	ck_assert_uint_eq(culprit, s.reader[0]);
	*xm_cursor(s.map, s.reader[2], s.owner) = 1000;	/* garbage does not lift it over the tail */
	*xm_cursor(s.map, s.reader[1], s.owner) = 1000;
	w = waited(&s);
	ck_assert_uint_eq(w.evictable, 5);
	ck_assert_uint_eq(w.count, 2);
	ck_assert_uint_eq(w.lagging, 0);
	world_free(s.world);
}
END_TEST

/* L1: a demotion ends with the next publication that the subscriber receives. */
START_TEST(demotion_ends_when_the_subscriber_receives)
{
	struct stage s = stage_make(24);

	subscribe(&s, 0, XMEM_SUBSCRIBE_WAIT);
	publish_some(&s, 0, 3);
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 0), 0);
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 3), 1);
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 3), 0);	/* it is demoted already */
	ck_assert_uint_eq(waited(&s).evictable, 3);
	ck_assert_uint_eq(waited(&s).count, 0);
	ck_assert_uint_eq(waited(&s).demoted, 1);
	publish_some(&s, 3, 1);
	ck_assert_uint_eq(waited(&s).count, 0);
	receive_and_put(&s, 0);
	ck_assert_uint_eq(waited(&s).evictable, 1);
	ck_assert_uint_eq(waited(&s).count, 1);
	ck_assert_uint_eq(waited(&s).demoted, 0);
	world_free(s.world);
}
END_TEST

/* L1: the next client with this id has not been waited for yet. */
START_TEST(demotion_is_not_inherited)
{
	struct stage s = stage_make(24);
	u32 id = s.reader[0];

	subscribe(&s, 0, XMEM_SUBSCRIBE_WAIT);
	publish_some(&s, 0, 1);
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 1), 1);
	world_end(s.world, id);
	s.reader[0] = world_join(s.world, XMEM_ROLE_READER, 0);
	ck_assert_uint_eq(s.reader[0], id);
	subscribe(&s, 0, XMEM_SUBSCRIBE_WAIT);
	publish_some(&s, 1, 1);
	/* even if its cursor has the other one's value */
	*xm_cursor(s.map, id, s.owner) = 0;
	ck_assert_uint_eq(waited(&s).count, 1);
	ck_assert_uint_eq(waited(&s).evictable, 0);
	world_free(s.world);
}
END_TEST

START_TEST(only_those_that_lag_are_demoted)
{
	struct stage s = stage_make(24);

	subscribe(&s, 0, XMEM_SUBSCRIBE_WAIT);
	subscribe(&s, 1, XMEM_SUBSCRIBE_WAIT);
	subscribe(&s, 2, 0);
	publish_some(&s, 0, 2);
	receive_and_put(&s, 1);
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 1), 1);
	ck_assert(xm_is_demoted(s.map, s.owner, s.reader[0], 0));
	ck_assert(!xm_is_demoted(s.map, s.owner, s.reader[1], 1));
	ck_assert(!xm_is_demoted(s.map, s.owner, s.reader[2], 0));
	ck_assert_uint_eq(waited(&s).evictable, 1);
	ck_assert_uint_eq(waited(&s).count, 1);
	world_free(s.world);
}
END_TEST

/* ---- room and depth ---- */

START_TEST(ring_has_room_for_what_is_in_hand_and_one_more)
{
	struct stage s = stage_make(24);
	u32 i;

	for (i = 0; i < 40; i++) {	/* no subscriber is waited for */
		struct xm_waited w = waited(&s);

		ck_assert(xm_has_room(s.map, &w, i));
	}
	subscribe(&s, 0, XMEM_SUBSCRIBE_WAIT);
	for (i = 0; i < RING; i++) {
		struct xm_waited w = waited(&s);

		ck_assert(xm_has_room(s.map, &w, RING - 1 - i));
		ck_assert(!xm_has_room(s.map, &w, RING - i));
		publish_some(&s, i, 1);
	}
	for (i = 0; i < 2; i++) {
		struct xm_waited w = waited(&s);

		ck_assert_int_eq(xm_has_room(s.map, &w, 0), i);
		receive_and_put(&s, 0);
	}
	world_free(s.world);
}
END_TEST

START_TEST(depth_is_half_of_the_slots_and_at_most_the_ring)
{
	struct stage s = stage_make(4);

	ck_assert_uint_eq(xm_depth(s.map, 0), 0);
	ck_assert_uint_eq(xm_depth(s.map, 1), 0);
	ck_assert_uint_eq(xm_depth(s.map, 5), 2);
	ck_assert_uint_eq(xm_depth(s.map, 2 * RING - 1), RING - 1);
	ck_assert_uint_eq(xm_depth(s.map, 2 * RING), RING);
	ck_assert_uint_eq(xm_depth(s.map, 65536), RING);
	ck_assert_uint_eq(xm_oldest(s.map, RING), 0);
	ck_assert_uint_eq(xm_oldest(s.map, RING + 1), 1);
	world_free(s.world);
}
END_TEST

/* ---- an event count for programs that poll ---- */

START_TEST(writable_is_whether_something_has_changed)
{
	struct stage s = stage_make(4);
	struct xmem_ring *ring = xm_ring(s.map, s.owner);
	u32 *word = &xm_client_row(s.map, s.owner)->slots_waiters, armed;

	ck_assert(xm_writable(s.map, s.owner, 1));	/* nothing is noted */
	armed = xm_arm(word);
	ck_assert(xm_writable(s.map, s.owner, 1));
	ring->vain = armed;
	ck_assert(!xm_writable(s.map, s.owner, ~0ULL));
	ck_assert_uint_eq(xm_arm(word), armed);		/* another thread arms it, too */
	ck_assert(!xm_writable(s.map, s.owner, 1));
	ck_assert(xm_disarm(word));
	ck_assert(xm_writable(s.map, s.owner, 1));
	ring->vain = xm_arm(word);
	ck_assert(!xm_writable(s.map, s.owner, 1));
	ring->vain = armed;				/* an older look */
	ck_assert(xm_writable(s.map, s.owner, 1));
	ring->vain = 0;
	ck_assert(xm_writable(s.map, s.owner, 1));
	world_free(s.world);
}
END_TEST

START_TEST(writable_is_also_whether_a_time_has_come)
{
	struct stage s = stage_make(4);
	struct xmem_ring *ring = xm_ring(s.map, s.owner);

	ring->look_at_ns = 50;
	ring->vain = xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
	ck_assert(!xm_writable(s.map, s.owner, 49));
	ck_assert(xm_writable(s.map, s.owner, 50));
	ring->look_at_ns = 0;
	ck_assert(!xm_writable(s.map, s.owner, 50));
	world_free(s.world);
}
END_TEST

void policy_tests(Suite *suite)
{
	TCase *tcase = tcase_create("policy");

	tcase_add_test(tcase, slots_are_to_be_had_where_an_attach_finds_them);
	tcase_add_test(tcase, the_slowest_that_is_waited_for_decides);
	tcase_add_test(tcase, demotion_ends_when_the_subscriber_receives);
	tcase_add_test(tcase, demotion_is_not_inherited);
	tcase_add_test(tcase, only_those_that_lag_are_demoted);
	tcase_add_test(tcase, ring_has_room_for_what_is_in_hand_and_one_more);
	tcase_add_test(tcase, depth_is_half_of_the_slots_and_at_most_the_ring);
	tcase_add_test(tcase, writable_is_whether_something_has_changed);
	tcase_add_test(tcase, writable_is_also_whether_a_time_has_come);
	suite_add_tcase(suite, tcase);
}
