// SPDX-License-Identifier: MIT
/*
 * The owner's side: taking a slot, the scan that searches for users, slots in flight, evicting, and
 * waiting for subscribers.
 */
#include "unit.h"

struct stage {
	struct world *world;
	const struct xm_map *map;
	u32 owner, reader;
	u32 slot[16];
	u64 token[16];
};

/* An owner with 16 slots and a ring of 8, and a reader that follows nothing. */
static struct stage stage_make(u64 wait_bound_ns)
{
	struct stage s = { .world = world_make(64, 4, 8) };

	s.map = &s.world->host.map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, wait_bound_ns);
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	world_attach(s.world, s.owner, 16, s.slot);
	return s;
}

static void publish_some(struct stage *s, u32 from, u32 count)
{
	u32 i;

	for (i = from; i < from + count; i++)
		s->token[i] = world_take_publish(s->world, s->owner, s->slot[i]);
}

static u64 word_of(const struct stage *s, u32 i)
{
	return xm_load(&xm_slot(s->map, s->slot[i])->state);
}

static u64 entry_of(const struct stage *s, u64 place)
{
	return xm_load(&xm_entry(s->map, s->owner, place)->position);
}

/* ---- take, give up ---- */

START_TEST(take_counts_the_generation_and_give_up_keeps_it)
{
	struct stage s = stage_make(0);
	u64 first = xm_slot_row(s.map, s.slot[0])->generation_first;

	ck_assert_int_eq(xm_give_up(s.map, s.slot[0]), -EBUSY);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	ck_assert_uint_eq(word_of(&s, 0), xm_word(first + 1, 0, XMEM_SLOT_WRITING));
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), -EBUSY);
	ck_assert_int_eq(xm_give_up(s.map, s.slot[0]), 0);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	ck_assert_uint_eq(xm_generation(word_of(&s, 0)), first + 2);
	world_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), -EBUSY);
	ck_assert_int_eq(xm_give_up(s.map, s.slot[0]), -EBUSY);
	world_free(s.world);
}
END_TEST

/* ---- holds ---- */

START_TEST(scan_takes_what_nobody_has)
{
	struct stage s = stage_make(0);
	u64 word;

	publish_some(&s, 0, 1);
	word = word_of(&s, 0);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], false, 0));
	ck_assert_uint_eq(word_of(&s, 0), xm_word(xm_generation(word) + 1, 1, XMEM_SLOT_WRITING));
	world_free(s.world);
}
END_TEST

START_TEST(scan_leaves_held_slot_live)
{
	struct stage s = stage_make(0);
	u64 word;

	publish_some(&s, 0, 1);
	ck_assert_int_eq(xm_get(s.map, s.reader, s.token[0]), 0);
	word = word_of(&s, 0);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], true, 0));
	/* as before, except for the scan's number */
	ck_assert_uint_eq(word_of(&s, 0), xm_word(xm_generation(word), 1, XMEM_SLOT_LIVE));
	ck_assert_int_eq(xm_look(s.map, s.token[0]), 0);
	world_put(s.world, s.reader, s.slot[0]);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], false, 0));
	world_free(s.world);
}
END_TEST

START_TEST(scan_sees_the_owners_own_hold)
{
	struct stage s = stage_make(0);

	publish_some(&s, 0, 1);
	ck_assert_int_eq(xm_get(s.map, s.owner, s.token[0]), 0);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], false, 0));
	world_free(s.world);
}
END_TEST

START_TEST(scan_of_many_tells_them_apart)
{
	struct stage s = stage_make(0);
	struct xm_scan_rules how;
	u8 holder[8];

	publish_some(&s, 0, 6);
	how = world_rules(s.world, s.owner, false, 0);
	xm_get(s.map, s.reader, s.token[1]);
	xm_get(s.map, s.owner, s.token[4]);
	ck_assert(world_scan(s.world, s.owner, s.slot[2], false, 0)); /* WRITING: not for scans */
	/* 0, 3, 5; 6 and 7 are FREE */
	ck_assert_uint_eq(scan_slots(s.map, &how, s.slot, 8, holder), 0x29);
	ck_assert_uint_eq(holder[1], s.reader);
	ck_assert_uint_eq(holder[4], s.owner);
	ck_assert_uint_eq(scan_slots(s.map, &how, s.slot, 8, NULL), 0);
	world_free(s.world);
}
END_TEST

START_TEST(scan_sees_the_holds_of_the_last_client_too)
{
	struct world *world = world_make(64, XMEM_MAX_CLIENTS, 4);
	u32 slot, owner = world_join(world, XMEM_ROLE_WRITER, 0), last = owner, i;
	u64 token;

	for (i = 1; i < XMEM_MAX_CLIENTS; i++)
		last = world_join(world, XMEM_ROLE_READER, 0);
	ck_assert_int_eq(xm_host_free_client(&world->host), -EUSERS);
	world_attach(world, owner, 1, &slot);
	token = world_take_publish(world, owner, slot);
	ck_assert_int_eq(xm_get(&world->host.map, last, token), 0);
	ck_assert(!world_scan(world, owner, slot, false, 0));
	world_end(world, last);
	ck_assert(world_scan(world, owner, slot, false, 0));
	world_free(world);
}
END_TEST

/* ---- resolve against the scan ---- */

static void resolve_at(int step, void *arg)
{
	struct stage *s = arg;
	u64 word = word_of(s, 0);

	if (step != XM_STEP_SCAN_HOLDS)
		return;
	/* a getter came late and found SCANNING, and the host resolved it */
	ck_assert_int_eq(xm_get(s->map, s->reader, s->token[0]), -EAGAIN);
	ck_assert_int_eq(xm_host_resolve(&s->world->host, s->reader, s->slot[0], word), 0);
	ck_assert_int_eq(xm_look(s->map, s->token[0]), 0);
}

START_TEST(scan_that_was_resolved_meanwhile_fails)
{
	struct stage s = stage_make(0);

	publish_some(&s, 0, 1);
	unit_step_arg = &s;
	unit_step = resolve_at;
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], false, 0));
	unit_step = NULL;
	ck_assert_int_eq(xm_look(s.map, s.token[0]), 0);
	world_free(s.world);
}
END_TEST

/* ---- in flight ---- */

START_TEST(scan_leaves_what_is_in_flight)
{
	struct stage s = stage_make(0);
	struct xm_follow follow = world_subscribe(s.world, s.reader, s.owner, 0);
	struct xm_publication what;

	publish_some(&s, 0, 2);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], false, 0));
	ck_assert_int_eq(world_receive(s.world, s.reader, &follow, &what), 0);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], false, 0));		/* held */
	world_put(s.world, s.reader, s.slot[0]);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], false, 0));
	ck_assert(!world_scan(s.world, s.owner, s.slot[1], false, 0));
	world_free(s.world);
}
END_TEST

START_TEST(what_came_before_the_subscriber_is_not_in_flight)
{
	struct stage s = stage_make(0);

	publish_some(&s, 0, 3);
	world_subscribe(s.world, s.reader, s.owner, 0);
	publish_some(&s, 3, 1);
	ck_assert(world_scan(s.world, s.owner, s.slot[2], false, 0));
	ck_assert(!world_scan(s.world, s.owner, s.slot[3], false, 0));
	world_free(s.world);
}
END_TEST

/* An entry is overwritten when publication place + D is complete, not before. */
START_TEST(overwritten_entry_is_not_in_flight)
{
	struct stage s = stage_make(0);

	world_subscribe(s.world, s.reader, s.owner, 0);
	publish_some(&s, 0, 8);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], false, 0));
	publish_some(&s, 8, 1);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], false, 0));
	ck_assert(!world_scan(s.world, s.owner, s.slot[1], false, 0));
	world_free(s.world);
}
END_TEST

START_TEST(unsubscribed_entries_are_not_in_flight)
{
	struct stage s = stage_make(0);
	struct xm_follow follow = world_subscribe(s.world, s.reader, s.owner, 0);

	publish_some(&s, 0, 1);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], false, 0));
	world_unsubscribe(s.world, s.reader, &follow);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], false, 0));
	world_free(s.world);
}
END_TEST

/* ---- taking back ---- */

START_TEST(taken_back_entry_is_void_and_counted_lost)
{
	struct stage s = stage_make(0);
	struct xm_follow follow = world_subscribe(s.world, s.reader, s.owner, 0);
	struct xm_publication what;

	publish_some(&s, 0, 3);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], true, 0));
	ck_assert_uint_eq(entry_of(&s, 0), 1 | XMEM_ENTRY_VOID);
	ck_assert_int_eq(world_receive(s.world, s.reader, &follow, &what), 0);
	ck_assert_uint_eq(what.sequence, 1);
	ck_assert_uint_eq(what.token, s.token[1]);
	ck_assert_uint_eq(follow.lost, 1);
	world_free(s.world);
}
END_TEST

START_TEST(evict_spares_the_last_depth_entries)
{
	struct stage s = stage_make(0);

	world_subscribe(s.world, s.reader, s.owner, 0);
	publish_some(&s, 0, 6);
	ck_assert(!world_scan(s.world, s.owner, s.slot[2], true, 4));
	ck_assert_uint_eq(entry_of(&s, 2), 3);		/* and is not void either */
	ck_assert(world_scan(s.world, s.owner, s.slot[1], true, 4));
	ck_assert(world_scan(s.world, s.owner, s.slot[0], true, 4));
	ck_assert(world_scan(s.world, s.owner, s.slot[5], true, 0));
	world_free(s.world);
}
END_TEST

START_TEST(evict_leaves_what_is_held)
{
	struct stage s = stage_make(0);
	struct xm_follow follow = world_subscribe(s.world, s.reader, s.owner, 0);
	struct xm_publication what;

	publish_some(&s, 0, 2);
	xm_get(s.map, s.owner, s.token[0]);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], true, 0));
	ck_assert_int_eq(xm_look(s.map, s.token[0]), 0);
	ck_assert_int_eq(world_receive(s.world, s.reader, &follow, &what), 0);
	ck_assert_uint_eq(follow.lost, 1);
	xm_put(s.map, s.owner, s.slot[0]);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], false, 0));
	world_free(s.world);
}
END_TEST

START_TEST(nothing_is_taken_from_a_subscriber_that_is_waited_for)
{
	struct stage s = stage_make(1000);
	u32 loser = world_join(s.world, XMEM_ROLE_READER, 0);

	world_subscribe(s.world, s.reader, s.owner, XMEM_SUBSCRIBE_WAIT);
	world_subscribe(s.world, loser, s.owner, 0);
	publish_some(&s, 0, 2);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], true, 0));
	ck_assert_uint_eq(entry_of(&s, 0), 1);
	/* it has been waited for too long */
	ck_assert_uint_eq(xm_demote(s.map, s.owner, 2), 1);
	ck_assert(world_scan(s.world, s.owner, s.slot[0], true, 0));
	ck_assert_uint_eq(entry_of(&s, 0), 1 | XMEM_ENTRY_VOID);
	/* without evict the entries of a demoted one stay, too */
	ck_assert(!world_scan(s.world, s.owner, s.slot[1], false, 0));
	world_free(s.world);
}
END_TEST

/* One hold of each line of a group, and of each group: wide reads must not miss one. */
START_TEST(scan_sees_a_hold_at_every_place_of_a_group)
{
	struct world *world = world_make(2 * XMEM_GROUP_SLOTS, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 owner = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[128], i;
	struct xm_scan_rules how;
	u8 holder[64];

	world_attach(world, owner, 64, slot);
	world_attach(world, owner, 64, slot + 64);
	for (i = 0; i < 128; i++) {
		u64 token = world_take_publish(world, owner, slot[i]);
		u32 from = i < 96 ? i / 2 : 64;		/* 64 slots, mostly of both groups */

		ck_assert_int_eq(xm_get(map, reader, token), 0);
		how = world_rules(world, owner, false, 0);
		ck_assert(!(scan_slots(map, &how, slot + from, 64, holder) >> (i - from) & 1));
		ck_assert_uint_eq(holder[i - from], reader);
		ck_assert_uint_eq(xm_group_used(map, slot[i] / 64, ~0ULL, false, NULL),
				  1ULL << slot[i] % 64);
		world_put(world, reader, slot[i]);
		ck_assert_uint_eq(scan_slots(map, &how, slot + i, 1, holder), 1);
	}
	world_free(world);
}
END_TEST

void scan_tests(Suite *suite)
{
	TCase *tcase = tcase_create("scan");

	tcase_add_test(tcase, take_counts_the_generation_and_give_up_keeps_it);
	tcase_add_test(tcase, scan_takes_what_nobody_has);
	tcase_add_test(tcase, scan_leaves_held_slot_live);
	tcase_add_test(tcase, scan_sees_the_owners_own_hold);
	tcase_add_test(tcase, scan_of_many_tells_them_apart);
	tcase_add_test(tcase, scan_sees_the_holds_of_the_last_client_too);
	tcase_add_test(tcase, scan_that_was_resolved_meanwhile_fails);
	tcase_add_test(tcase, scan_leaves_what_is_in_flight);
	tcase_add_test(tcase, what_came_before_the_subscriber_is_not_in_flight);
	tcase_add_test(tcase, overwritten_entry_is_not_in_flight);
	tcase_add_test(tcase, unsubscribed_entries_are_not_in_flight);
	tcase_add_test(tcase, taken_back_entry_is_void_and_counted_lost);
	tcase_add_test(tcase, evict_spares_the_last_depth_entries);
	tcase_add_test(tcase, evict_leaves_what_is_held);
	tcase_add_test(tcase, nothing_is_taken_from_a_subscriber_that_is_waited_for);
	tcase_add_test(tcase, scan_sees_a_hold_at_every_place_of_a_group);
	suite_add_tcase(suite, tcase);
}
