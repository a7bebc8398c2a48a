// SPDX-License-Identifier: MIT
/*
 * The policy: which subscribers are waited for, which are demoted and until when, what may be
 * evicted, whether the ring has room, and whether an acquire would succeed. The last is compared
 * with a second, plain version of an acquire in this file.
 */
#include "unit.h"

#define RING	8

struct stage {
	struct world *world;
	const struct xm_map *map;
	u32 owner, count, slot[24];
	u32 reader[3];
	struct xm_follow follow[3];
	u64 random;
	u32 steps;
};

static const u32 counts[] = { 4, RING, 24 };	/* fewer slots than entries, as many, more */

static struct stage stage_make(u32 slots)
{
	struct stage s = { .world = world_make(64, 5, RING), .count = slots, .random = 1 };
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

static bool writable(struct world *world, u32 owner)
{
	u64 deadline;

	return xm_writable(&world->host.map, owner, 1, &deadline);
}

/* A client that lacks slots learns only what an attach would find. */
START_TEST(slots_are_to_be_had_where_an_attach_finds_them)
{
	struct world *world = world_make(128, 3, RING);
	const struct xm_map *map = &world->host.map;
	u32 one = world_join(world, XMEM_ROLE_WRITER, 0), other, slot[64], s;
	struct xmem_slot_request detach = { .size = sizeof(detach) };
	struct xmem_ring *ring;
	u64 payload;

	other = world_join(world, XMEM_ROLE_WRITER, 0);
	ring = xm_ring(map, other);
	ring->wanted = 100;
	ring->lacks = 1;
	ck_assert(!writable(world, other));	/* it lacks bytes */
	ring->lacks_slots = 1;
	ck_assert(writable(world, other));
	ck_assert(xm_has_slots(map, other, 64) && !xm_has_slots(map, other, 65));
	world_attach(world, one, 1, slot);
	ck_assert(writable(world, other));
	for (s = 64; s < 128; s++)		/* the last group cannot be used any more */
		xm_slot_row(map, s)->tenancies = XM_TENANCIES;
	ck_assert(!writable(world, other) && !xm_has_slots(map, other, 1));
	xm_slot_row(map, 77)->tenancies--;
	ck_assert(writable(world, other));
	ck_assert(xm_has_slots(map, other, 1) && !xm_has_slots(map, other, 2));
	world_attach(world, other, 1, slot);
	ck_assert_uint_eq(slot[0], 77);
	ck_assert(!writable(world, other));
	/* A group stays its owner's when its slots become free: no other client finds them. */
	detach.slot = 0;
	ck_assert_int_eq(xm_host_detach(&world->host, one, &detach, ~0u, &payload), 1);
	ck_assert(!writable(world, other) && xm_has_slots(map, one, 64));
	ck_assert_int_eq(xm_host_free_group(&world->host, other, 1), -ENOSPC);
	world_end(world, one);
	world_is_valid(world);
	ck_assert(writable(world, other));
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

/* ---- would an acquire succeed? ---- */

static bool fits(const struct stage *s, u32 slot)
{
	return xm_slot_row(s->map, slot)->length >= xm_ring(s->map, s->owner)->wanted;
}

static bool is_held(const struct stage *s, u32 slot)
{
	u32 c;

	for (c = 0; c < s->map->clients; c++)
		if (*xm_hold(s->map, c, slot) & XM_HOLD_COUNT)
			return true;
	return false;
}

/* The question of the test, asked slot by slot and subscriber by subscriber. */
static bool would_find(const struct stage *s, bool demoting)
{
	u64 tail = xm_ring(s->map, s->owner)->tail, least = ~0ULL;
	u32 i, hand = 0, found = 0;
	bool any = false;

	for (i = 0; i < 3; i++) {
		u64 cursor = *xm_cursor(s->map, s->reader[i], s->owner);

		if (!s->follow[i].waits || xm_is_demoted(s->map, s->owner, s->reader[i], cursor) ||
		    (demoting && cursor < tail))
			continue;
		any = true;
		if (cursor < least)
			least = cursor;
	}
	for (i = 0; i < s->count; i++) {
		const struct xmem_slot_word *word = xm_slot(s->map, s->slot[i]);
		u64 place = word->position - 1;

		if (word->position == XMEM_POSITION_IN_HAND)
			hand++;
		else if (!fits(s, s->slot[i]))
			continue;
		else if (xm_state(word->state) != XMEM_SLOT_LIVE)
			found++;
		else if ((place < least || place + RING < tail) && !is_held(s, s->slot[i]))
			found++;
	}
	return found && (!any || tail + hand + 1 <= least + RING);
}

/* One random step of the owner or a reader, by the rules. */
static void anything(struct stage *s)
{
	u64 random = unit_random(&s->random) >> 20;
	bool lazy = s->steps++ >> 9 & 1;	/* now and then one reads nothing for a while */
	u32 i = lazy ? random % 2 : random % 3, slot = s->slot[random / 3 % s->count];
	struct xmem_slot_word *word = xm_slot(s->map, slot);
	struct xm_publication what;

	switch (random / 128 % 16) {
	case 0 ... 4:
		if (xm_state(word->state) == XMEM_SLOT_FREE && would_find(s, false)) {
			xm_take(s->map, slot);
			word->position = random & 1 << 20 ? XMEM_POSITION_IN_HAND : 0;
		} else if (word->position == XMEM_POSITION_IN_HAND) {
			world_publish(s->world, s->owner, slot);
		}
		break;
	case 5 ... 7:
		if (!receive(s, i, &what) && random & 1 << 20)
			world_put(s->world, s->reader[i], xm_token_slot(what.token));
		break;
	case 8:
		if (*xm_hold(s->map, s->reader[i], slot))
			world_put(s->world, s->reader[i], slot);
		break;
	case 9 ... 11:
		if (world_scan(s->world, s->owner, slot, random & 1 << 20, 0) &&
		    random & 1 << 21)
			xm_give_up(s->map, slot);
		break;
	case 12:
		xm_give_up(s->map, slot);
		break;
	case 13:
		if (random & 1 << 20)
			xm_demote(s->map, s->owner, xm_ring(s->map, s->owner)->tail);
		break;
	case 14:
		xm_ring(s->map, s->owner)->wanted = random >> 20 & 127;
		break;
	}
}

/* The search, group by group. */
static bool would_find_in_steps(const struct stage *s, u64 now, u64 *ret_deadline)
{
	struct xm_search search, again;
	u32 groups = 0;

	xm_search_begin(s->map, s->owner, &search);
	while (xm_search_step(s->map, s->owner, &search, 1))
		ck_assert_uint_le(++groups, s->map->groups);
	xm_search_begin(s->map, s->owner, &again);
	ck_assert(xm_search_is_same(&again, &search));
	return xm_search_end(s->map, &search, now, ret_deadline);
}

START_TEST(writable_is_what_an_acquire_would_find)
{
	struct stage s = stage_make(counts[_i]);
	u32 i, yes = 0, later = 0, no = 0, least = unit_scaled(100000);

	s.random = unit_seed();
	for (i = 0; i < s.count; i += 3)
		xm_slot_row(s.map, s.slot[i])->length = 128;
	subscribe(&s, 0, 0);
	subscribe(&s, 1, XMEM_SUBSCRIBE_WAIT);
	subscribe(&s, 2, XMEM_SUBSCRIBE_WAIT);
	/* With some seeds rare cases need more rounds. */
	for (i = 0; i < least || (i < 5000000 && (later <= 5 || no <= 100)); i++) {
		u64 deadline = POISON;
		bool now = would_find(&s, false), then = would_find(&s, true);

		xm_ring(s.map, s.owner)->demote_at_ns = 0;
		ck_assert_int_eq(xm_writable(s.map, s.owner, 100, &deadline), now);
		ck_assert_uint_eq(deadline, 0);
		xm_ring(s.map, s.owner)->demote_at_ns = 50;
		ck_assert_int_eq(xm_writable(s.map, s.owner, 49, &deadline), now);
		ck_assert_uint_eq(deadline, then && !now ? 50 : 0);
		ck_assert_int_eq(xm_writable(s.map, s.owner, 50, &deadline), now || then);
		ck_assert_uint_eq(deadline, 0);
		ck_assert_int_eq(would_find_in_steps(&s, 49, &deadline), now);
		ck_assert_uint_eq(deadline, then && !now ? 50 : 0);
		yes += now;
		later += then && !now;
		no += !then;
		anything(&s);
	}
	ck_assert_msg(yes > 500 && later > 5 && no > 100, "%u now, %u later, %u never", yes,
		      later, no);
	world_free(s.world);
}
END_TEST

START_TEST(nothing_is_writable_without_slots)
{
	struct stage s = stage_make(4);
	u32 other = world_join(s.world, XMEM_ROLE_WRITER, 0);
	u64 deadline = POISON;

	ck_assert(!xm_writable(s.map, other, 1, &deadline));
	ck_assert_uint_eq(deadline, 0);
	ck_assert(xm_writable(s.map, s.owner, 1, &deadline));
	xm_ring(s.map, s.owner)->wanted = 65;
	ck_assert(!xm_writable(s.map, s.owner, 1, &deadline));
	world_free(s.world);
}
END_TEST

/*
 * A subscriber lags and no bound has begun: a client that polls must ask, unless a buffer is still
 * in hand.
 */
START_TEST(who_polls_is_told_to_ask)
{
	struct stage s = stage_make(4);
	u64 deadline = POISON;

	subscribe(&s, 0, XMEM_SUBSCRIBE_WAIT);
	publish_some(&s, 0, 3);
	ck_assert_int_eq(xm_take(s.map, s.slot[3]), 0);
	xm_slot(s.map, s.slot[3])->position = XMEM_POSITION_IN_HAND;
	ck_assert(!xm_poll_writable(s.map, s.owner, 1, &deadline));
	xm_ring(s.map, s.owner)->wanted = 1;	/* it has asked in vain */
	ck_assert(xm_poll_writable(s.map, s.owner, 1, &deadline));
	xm_ring(s.map, s.owner)->wanted = 0;
	world_publish(s.world, s.owner, s.slot[3]);
	ck_assert(!xm_writable(s.map, s.owner, 1, &deadline));
	ck_assert(xm_poll_writable(s.map, s.owner, 1, &deadline));
	xm_ring(s.map, s.owner)->demote_at_ns = 50;
	ck_assert(!xm_poll_writable(s.map, s.owner, 49, &deadline));
	ck_assert_uint_eq(deadline, 50);
	ck_assert(xm_poll_writable(s.map, s.owner, 50, &deadline));
	/* Subscribers that are demoted, or are not waited for, are no reason. */
	xm_ring(s.map, s.owner)->demote_at_ns = 0;
	xm_client_row(s.map, s.owner)->wait_bound_ns = 0;
	ck_assert(!xm_poll_writable(s.map, s.owner, 1, &deadline));
	xm_client_row(s.map, s.owner)->wait_bound_ns = 1000;
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 4), 1);
	xm_hold_more(s.map, s.reader[1], s.slot[0]);
	xm_hold_more(s.map, s.reader[1], s.slot[1]);
	xm_hold_more(s.map, s.reader[1], s.slot[2]);
	xm_hold_more(s.map, s.reader[1], s.slot[3]);
	ck_assert(!xm_poll_writable(s.map, s.owner, 1, &deadline));
	world_free(s.world);
}
END_TEST

void policy_tests(Suite *suite)
{
	TCase *tcase = tcase_create("policy"), *search = tcase_create("search");

	tcase_add_test(tcase, slots_are_to_be_had_where_an_attach_finds_them);
	tcase_add_test(tcase, the_slowest_that_is_waited_for_decides);
	tcase_add_test(tcase, demotion_ends_when_the_subscriber_receives);
	tcase_add_test(tcase, demotion_is_not_inherited);
	tcase_add_test(tcase, only_those_that_lag_are_demoted);
	tcase_add_test(tcase, ring_has_room_for_what_is_in_hand_and_one_more);
	tcase_add_test(tcase, depth_is_half_of_the_slots_and_at_most_the_ring);
	tcase_add_test(tcase, nothing_is_writable_without_slots);
	tcase_add_test(tcase, who_polls_is_told_to_ask);
	suite_add_tcase(suite, tcase);
	/* In a case of its own, because it takes longer than all others. */
	tcase_add_loop_test(search, writable_is_what_an_acquire_would_find, 0, ARRAY_SIZE(counts));
	suite_add_tcase(suite, search);
}
