// SPDX-License-Identifier: MIT
/*
 * Publishing and receiving between honest clients; also what a subscriber sees when entries are
 * overwritten or their publisher ends.
 */
#include "unit.h"

struct stream {
	struct world *world;
	const struct xm_map *map;
	u32 owner, reader;
	u32 slot[16];
	u64 token[64];			/* of publication n, slot n % 16 */
	u64 published;
	struct xm_follow follow;
	struct xm_publication what;
	struct xm_pending pending;
};

static struct stream stream_make(u32 flags)
{
	struct stream s = { .world = world_make(128, 4, 8) };

	s.map = &s.world->host.map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 1000);
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	world_attach(s.world, s.owner, 16, s.slot);
	s.follow = world_subscribe(s.world, s.reader, s.owner, flags);
	return s;
}

static void publish(struct stream *s, u32 count)
{
	for (; count--; s->published++) {
		u32 slot = s->slot[s->published % 16];
		u32 state = xm_state(xm_slot(s->map, slot)->state);

		if (state == XMEM_SLOT_FREE)
			ck_assert_int_eq(xm_take(s->map, slot), 0);
		else if (state == XMEM_SLOT_LIVE)
			ck_assert(world_scan(s->world, s->owner, slot, true, 0));
		s->token[s->published] = world_publish(s->world, s->owner, slot);
	}
}

/* One attempt, outputs poisoned. */
static int receive(struct stream *s)
{
	memset(&s->what, 0xa5, sizeof(s->what));
	memset(&s->pending, 0xa5, sizeof(s->pending));
	return xm_receive(s->map, s->reader, &s->follow, &s->what, &s->pending);
}

static void expect(struct stream *s, u64 place)
{
	ck_assert_int_eq(world_receive(s->world, s->reader, &s->follow, &s->what), 0);
	ck_assert_uint_eq(s->what.sequence, place);
	ck_assert_uint_eq(s->what.token, s->token[place]);
	ck_assert_uint_eq(s->what.timestamp_ns, 7);
	ck_assert_uint_eq(s->what.offset, 8);
	ck_assert_uint_eq(s->what.length, 16);
	ck_assert_uint_eq(s->follow.place, place + 1);
	ck_assert_uint_eq(*xm_cursor(s->map, s->reader, s->owner), place + 1);
}

static void put(struct stream *s)
{
	world_put(s->world, s->reader, xm_token_slot(s->what.token));
}

/* ---- without losses ---- */

START_TEST(publications_arrive_in_order)
{
	struct stream s = stream_make(0);
	u32 i;

	ck_assert_int_eq(receive(&s), -EAGAIN);
	ck_assert_int_eq(s.pending.what, XM_NOTHING);
	publish(&s, 5);
	for (i = 0; i < 5; i++) {
		ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, i));
		expect(&s, i);
		ck_assert_uint_eq(*xm_hold(s.map, s.reader, s.slot[i]), 1);
		put(&s);
	}
	ck_assert(!xm_ready(s.map, s.owner, s.follow.incarnation, 5));
	ck_assert_int_eq(receive(&s), -EAGAIN);
	ck_assert_uint_eq(s.follow.lost, 0);
	world_free(s.world);
}
END_TEST

START_TEST(publish_fills_word_record_entry_and_tail)
{
	struct stream s = stream_make(0);
	u64 first = xm_slot_row(s.map, s.slot[0])->generation_first;

	publish(&s, 1);
	ck_assert_uint_eq(xm_slot(s.map, s.slot[0])->state, xm_word(first + 1, 0, XMEM_SLOT_LIVE));
	ck_assert_uint_eq(xm_slot(s.map, s.slot[0])->position, 1);
	ck_assert_uint_eq(s.token[0], xm_token(first + 1, s.slot[0]));
	ck_assert_uint_eq(xm_entry(s.map, s.owner, 0)->position, 1);
	ck_assert_uint_eq(xm_ring(s.map, s.owner)->tail, 1);
	world_free(s.world);
}
END_TEST

START_TEST(two_publishers_do_not_mix)
{
	struct stream s = stream_make(0);
	u32 other = world_join(s.world, XMEM_ROLE_WRITER, 0), slot;
	struct xm_follow follow = world_subscribe(s.world, s.reader, other, 0);
	u64 token;

	world_attach(s.world, other, 1, &slot);
	token = world_take_publish(s.world, other, slot);
	ck_assert_int_eq(receive(&s), -EAGAIN);
	ck_assert_int_eq(world_receive(s.world, s.reader, &follow, &s.what), 0);
	ck_assert_uint_eq(s.what.token, token);
	world_free(s.world);
}
END_TEST

/* ---- losses ---- */

START_TEST(overrun_skips_to_the_oldest_and_counts)
{
	struct stream s = stream_make(0);

	publish(&s, 12);		/* ring of 8: 5 is the oldest that stays */
	expect(&s, 5);
	ck_assert_uint_eq(s.follow.lost, 5);
	expect(&s, 6);
	world_free(s.world);
}
END_TEST

/* All of the last D are there. A publication under way opens the oldest of them. */
START_TEST(exactly_D_behind_loses_nothing)
{
	struct stream s = stream_make(0);
	u32 i;

	publish(&s, 8);
	for (i = 0; i < 8; i++)
		expect(&s, i);
	ck_assert_uint_eq(s.follow.lost, 0);
	world_free(s.world);
}
END_TEST

START_TEST(void_entries_are_lost_one_by_one)
{
	struct stream s = stream_make(0);

	publish(&s, 4);
	ck_assert(world_scan(s.world, s.owner, s.slot[1], true, 0));
	ck_assert(world_scan(s.world, s.owner, s.slot[2], true, 0));
	expect(&s, 0);
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_uint_eq(s.follow.place, 2);
	expect(&s, 3);
	ck_assert_uint_eq(s.follow.lost, 2);
	world_free(s.world);
}
END_TEST

START_TEST(void_entry_does_not_hide_that_it_is_newer)
{
	struct stream s = stream_make(0);

	publish(&s, 9);			/* place 8 is where place 0 was */
	ck_assert(world_scan(s.world, s.owner, s.slot[8], true, 0));
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_uint_eq(s.follow.place, 2);
	ck_assert_uint_eq(s.follow.lost, 2);
	ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, 8));
	world_free(s.world);
}
END_TEST

static struct stream *lapped;

static void lap(int step, void *arg)
{
	if (step == *(int *)arg) {
		unit_step = NULL;
		publish(lapped, 8);
	}
}

static void check_lapped_at(int step)
{
	struct stream s = stream_make(0);

	lapped = &s;
	publish(&s, 1);
	unit_step_arg = &step;
	unit_step = lap;
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_uint_eq(world_holds(s.world), 0);
	expect(&s, 2);
	ck_assert_uint_eq(s.follow.lost, 2);
	world_free(s.world);
}

/*
 * The entry is overwritten between its two reads: the first read does not count, and no hold is
 * left.
 */
START_TEST(entry_overwritten_while_received_is_not_received)
{
	check_lapped_at(XM_STEP_RECEIVE_READ);
	check_lapped_at(XM_STEP_RECEIVE_HELD);
}
END_TEST

static void evict(int step, void *arg)
{
	struct stream *s = arg;

	if (step != XM_STEP_RECEIVE_READ)
		return;
	unit_step = NULL;
	ck_assert(world_scan(s->world, s->owner, s->slot[0], true, 0));
}

START_TEST(entry_taken_back_while_received_is_not_received)
{
	struct stream s = stream_make(0);

	publish(&s, 2);
	unit_step_arg = &s;
	unit_step = evict;
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_uint_eq(world_holds(s.world), 0);
	expect(&s, 1);
	ck_assert_uint_eq(s.follow.lost, 1);
	world_free(s.world);
}
END_TEST

/* The hold is there before the second read, so an eviction that comes then finds it. */
static void fail_to_evict(int step, void *arg)
{
	struct stream *s = arg;

	if (step != XM_STEP_RECEIVE_VALID)
		return;
	unit_step = NULL;
	ck_assert(!world_scan(s->world, s->owner, s->slot[0], true, 0));
}

START_TEST(received_is_held_from_the_second_look_on)
{
	struct stream s = stream_make(0);

	publish(&s, 1);
	unit_step_arg = &s;
	unit_step = fail_to_evict;
	expect(&s, 0);
	ck_assert_int_eq(xm_look(s.map, s.what.token), 0);
	world_free(s.world);
}
END_TEST

/*
 * The publisher stops with an entry open. The entry that it was overwriting is lost; the complete
 * entries behind it are not.
 */
static void publish_one(void *arg)
{
	publish(arg, 1);
}

START_TEST(open_entry_hides_nothing_behind_it)
{
	struct stream s = stream_make(0);

	publish(&s, 8);
	ck_assert(unit_dies_at(XM_STEP_PUBLISH_OPEN, 1, publish_one, &s));
	ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, 0));
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_uint_eq(s.follow.lost, 1);
	expect(&s, 1);
	world_free(s.world);
}
END_TEST

/*
 * An open entry hides nothing wherever the subscriber is, also if no lap has filled the entry
 * before, and if the entry of the lap before is void.
 */
START_TEST(open_entry_hides_nothing_at_any_place)
{
	u32 place, taken_back;

	for (place = 0; place < 20; place++)
		for (taken_back = 0; taken_back < 2; taken_back++) {
			struct stream s = stream_make(0);
			u32 i;

			for (i = 0; i < place; i++) {
				publish(&s, 1);
				expect(&s, i);
				put(&s);
			}
			if (taken_back && place >= 8)
				xm_entry(s.map, s.owner, place)->position |= XMEM_ENTRY_VOID;
			ck_assert(!xm_ready(s.map, s.owner, s.follow.incarnation, place));
			ck_assert_int_eq(receive(&s), -EAGAIN);
			publish(&s, 8);
			ck_assert(unit_dies_at(XM_STEP_PUBLISH_OPEN, 1, publish_one, &s));
			ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, place));
			ck_assert_int_eq(receive(&s), -EBUSY);
			ck_assert_uint_eq(s.follow.lost, 1);
			expect(&s, place + 1);
			world_free(s.world);
		}
}
END_TEST

/*
 * While the entries of the lap before are there, the tail says nothing new. Polling leaves its line
 * alone.
 */
START_TEST(tail_is_not_read_in_vain)
{
	struct stream s = stream_make(0);
	u32 i;

	for (i = 0; i < 11; i++) {
		publish(&s, 1);
		expect(&s, i);
		put(&s);
	}
	xm_ring(s.map, s.owner)->tail = 1000;	/* a reader of the tail would count all as lost */
	ck_assert(!xm_ready(s.map, s.owner, s.follow.incarnation, 11));
	ck_assert_int_eq(receive(&s), -EAGAIN);
	xm_ring(s.map, s.owner)->tail = 11;
	publish(&s, 1);
	expect(&s, 11);
	put(&s);
	world_end(s.world, s.owner);
	ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, 12));
	ck_assert_int_eq(receive(&s), -EPIPE);
	world_free(s.world);
}
END_TEST

START_TEST(complete_entry_is_received_before_the_tail_moves)
{
	struct stream s = stream_make(0);

	ck_assert(unit_dies_at(XM_STEP_PUBLISH_ENTRY, 1, publish_one, &s));
	ck_assert_uint_eq(xm_ring(s.map, s.owner)->tail, 0);
	ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, 0));
	ck_assert_int_eq(receive(&s), 0);
	ck_assert_uint_eq(s.what.sequence, 0);
	world_free(s.world);
}
END_TEST

/* ---- wakes ---- */

START_TEST(publish_owes_a_wake_to_who_sleeps_for_it)
{
	struct stream s = stream_make(0);
	struct xm_publication what = { 0 };

	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	ck_assert(!xm_publish(s.map, s.owner, s.slot[0], &what));
	xm_arm(&xm_client_row(s.map, s.owner)->ring_waiters);
	ck_assert_int_eq(xm_take(s.map, s.slot[1]), 0);
	ck_assert(xm_publish(s.map, s.owner, s.slot[1], &what));
	world_free(s.world);
}
END_TEST

START_TEST(cursor_owes_a_wake_to_a_publisher_that_waits_for_it)
{
	struct stream s = stream_make(XMEM_SUBSCRIBE_WAIT);

	publish(&s, 2);
	xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
	ck_assert_int_eq(receive(&s), 0);
	ck_assert_int_eq(s.pending.what, XM_WAKE_OWNER);
	ck_assert_uint_eq(s.pending.who, s.owner);
	world_free(s.world);
}
END_TEST

START_TEST(receiving_without_wait_owes_nothing_until_the_put)
{
	struct stream s = stream_make(0);
	struct xm_pending pending;

	publish(&s, 1);
	xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
	ck_assert_int_eq(receive(&s), 0);
	ck_assert_int_eq(s.pending.what, XM_NOTHING);
	pending = xm_put(s.map, s.reader, s.slot[0]);
	ck_assert_int_eq(pending.what, XM_WAKE_OWNER);
	world_free(s.world);
}
END_TEST

/* No put follows a skipped entry: the cursor itself is the event. */
START_TEST(skipped_entry_owes_the_wake)
{
	struct stream s = stream_make(0);

	publish(&s, 10);
	xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_int_eq(s.pending.what, XM_WAKE_OWNER);
	ck_assert_uint_eq(s.pending.who, s.owner);
	world_free(s.world);
}
END_TEST

START_TEST(undone_hold_of_a_receive_owes_the_wake)
{
	struct stream s = stream_make(0);
	int step = XM_STEP_RECEIVE_HELD;

	lapped = &s;
	publish(&s, 1);
	xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
	unit_step_arg = &step;
	unit_step = lap;
	ck_assert_int_eq(receive(&s), -EBUSY);
	ck_assert_int_eq(s.pending.what, XM_WAKE_OWNER);
	world_free(s.world);
}
END_TEST

/* ---- the publisher's end ---- */

START_TEST(what_was_in_flight_is_read_after_the_publishers_end)
{
	struct stream s = stream_make(0);

	publish(&s, 3);
	expect(&s, 0);
	world_end(s.world, s.owner);
	ck_assert_uint_eq(xm_client_row(s.map, s.owner)->state, XMEM_CLIENT_ZOMBIE);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 3); /* one held, two in flight */
	put(&s);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 2);
	expect(&s, 1);
	put(&s);
	expect(&s, 2);
	ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, 3));
	put(&s);
	ck_assert_int_eq(receive(&s), -EPIPE);
	world_unsubscribe(s.world, s.reader, &s.follow);
	world_is_clean(s.world);
	world_free(s.world);
}
END_TEST

START_TEST(end_of_an_idle_publisher_is_EPIPE)
{
	struct stream s = stream_make(0);

	world_end(s.world, s.owner);
	ck_assert_uint_eq(xm_client_row(s.map, s.owner)->state, XMEM_CLIENT_NONE);
	ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, 0));
	ck_assert_int_eq(receive(&s), -EPIPE);
	world_is_clean(s.world);
	world_free(s.world);
}
END_TEST

/* Another publisher gets the id: its entries are not received, wherever they are. */
START_TEST(next_publisher_with_the_same_id_is_EPIPE)
{
	u32 before, after;

	for (before = 0; before < 3; before++)
		for (after = 0; after < 12; after++) {
			struct stream s = stream_make(0);
			u32 next, i;

			publish(&s, before);
			for (i = 0; i < before; i++) {
				expect(&s, i);
				put(&s);
			}
			world_end(s.world, s.owner);
			next = world_join(s.world, XMEM_ROLE_WRITER, 0);
			ck_assert_uint_eq(next, s.owner);
			world_attach(s.world, next, 16, s.slot);
			s.published = 0;
			publish(&s, after);
			ck_assert(xm_ready(s.map, s.owner, s.follow.incarnation, s.follow.place));
			ck_assert_int_eq(receive(&s), -EPIPE);
			ck_assert_uint_eq(s.follow.lost, 0);
			ck_assert_uint_eq(world_holds(s.world), 0);
			world_free(s.world);
		}
}
END_TEST

static void change_publisher(int step, void *arg)
{
	struct stream *s = arg;

	if (step == XM_STEP_RECEIVE_READ) {
		unit_step = NULL;
		xm_client_row(s->map, s->owner)->incarnation++;
	}
}

START_TEST(publisher_that_changes_while_received_is_EPIPE)
{
	struct stream s = stream_make(0);

	publish(&s, 1);
	unit_step_arg = &s;
	unit_step = change_publisher;
	ck_assert_int_eq(receive(&s), -EPIPE);
	ck_assert_uint_eq(world_holds(s.world), 0);
	world_free(s.world);
}
END_TEST

void ring_tests(Suite *suite)
{
	TCase *tcase = tcase_create("ring");

	tcase_add_test(tcase, publications_arrive_in_order);
	tcase_add_test(tcase, publish_fills_word_record_entry_and_tail);
	tcase_add_test(tcase, two_publishers_do_not_mix);
	tcase_add_test(tcase, overrun_skips_to_the_oldest_and_counts);
	tcase_add_test(tcase, exactly_D_behind_loses_nothing);
	tcase_add_test(tcase, void_entries_are_lost_one_by_one);
	tcase_add_test(tcase, void_entry_does_not_hide_that_it_is_newer);
	tcase_add_test(tcase, entry_overwritten_while_received_is_not_received);
	tcase_add_test(tcase, entry_taken_back_while_received_is_not_received);
	tcase_add_test(tcase, received_is_held_from_the_second_look_on);
	tcase_add_test(tcase, open_entry_hides_nothing_behind_it);
	tcase_add_test(tcase, open_entry_hides_nothing_at_any_place);
	tcase_add_test(tcase, tail_is_not_read_in_vain);
	tcase_add_test(tcase, complete_entry_is_received_before_the_tail_moves);
	tcase_add_test(tcase, publish_owes_a_wake_to_who_sleeps_for_it);
	tcase_add_test(tcase, cursor_owes_a_wake_to_a_publisher_that_waits_for_it);
	tcase_add_test(tcase, receiving_without_wait_owes_nothing_until_the_put);
	tcase_add_test(tcase, skipped_entry_owes_the_wake);
	tcase_add_test(tcase, undone_hold_of_a_receive_owes_the_wake);
	tcase_add_test(tcase, what_was_in_flight_is_read_after_the_publishers_end);
	tcase_add_test(tcase, end_of_an_idle_publisher_is_EPIPE);
	tcase_add_test(tcase, next_publisher_with_the_same_id_is_EPIPE);
	tcase_add_test(tcase, publisher_that_changes_while_received_is_EPIPE);
	suite_add_tcase(suite, tcase);
}
