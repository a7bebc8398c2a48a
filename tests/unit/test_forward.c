// SPDX-License-Identifier: MIT
/*
 * Forwarding: an owner, a stage that puts the owner's slot into its own ring, and two readers that
 * follow the stage. The owner's scan must see slots that only the stage's ring names (I6).
 */
#include "core/publish.h"
#include "unit.h"

#define RING	4

struct stage {
	struct world *world;
	const struct xm_map *map;
	u32 owner, stage, waited, loser;
	struct xm_follow in, waits, loses;
	u32 slot[8];
	u64 token[8];
};

static struct stage stage_make(void)
{
	struct stage s = { .world = world_make(128, 6, RING) };

	s.map = &s.world->host.map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 1000);
	s.stage = world_join(s.world, XMEM_ROLE_WRITER, 1000);
	s.waited = world_join(s.world, XMEM_ROLE_READER, 0);
	s.loser = world_join(s.world, XMEM_ROLE_READER, 0);
	world_attach(s.world, s.owner, ARRAY_SIZE(s.slot), s.slot);
	s.in = world_subscribe(s.world, s.stage, s.owner, XMEM_SUBSCRIBE_WAIT);
	return s;
}

static void follow_waiting(struct stage *s)
{
	s->waits = world_subscribe(s->world, s->waited, s->stage, XMEM_SUBSCRIBE_WAIT);
}

static void follow_losing(struct stage *s)
{
	s->loses = world_subscribe(s->world, s->loser, s->stage, 0);
}

/* Put the slot that the stage holds into its ring; the hold stays. */
static u64 forward_for(struct stage *s, u64 token, u64 addressee)
{
	struct xm_publisher_words words = xm_publisher_words(s->map, s->stage);
	struct xm_publication what = { .token = token, .length = 16 };
	u64 tail = xm_load(&words.ring->tail), over = xm_overwritten(s->map, &words, tail);

	xm_forward(s->map, s->stage, &words, tail, &what, addressee);
	if (over)
		world_do(s->world, xm_put_pending(s->map, xm_token_slot(over)));
	return what.sequence;
}

/* The owner publishes slot @i, and the stage receives it and passes it on. */
static void pass_on(struct stage *s, u32 i, u64 addressee)
{
	struct xm_publication what;

	s->token[i] = world_take_publish(s->world, s->owner, s->slot[i]);
	ck_assert_int_eq(world_receive(s->world, s->stage, &s->in, &what), 0);
	ck_assert_uint_eq(what.token, s->token[i]);
	forward_for(s, what.token, addressee);
	world_put(s->world, s->stage, s->slot[i]);
}

static bool taken(struct stage *s, u32 i, bool evict)
{
	return world_scan(s->world, s->owner, s->slot[i], evict, 0);
}

static void receives(struct stage *s, u32 me, struct xm_follow *follow, u32 i)
{
	struct xm_publication what;

	ck_assert_int_eq(world_receive(s->world, me, follow, &what), 0);
	ck_assert_uint_eq(what.token, s->token[i]);
	ck_assert(!taken(s, i, true));
	world_put(s->world, me, s->slot[i]);
}

static void receives_nothing(struct stage *s, u32 me, struct xm_follow *follow)
{
	struct xm_publication what;

	ck_assert_int_eq(world_receive(s->world, me, follow, &what), -EAGAIN);
}

static int retract(struct stage *s, u32 i)
{
	struct xm_publisher_words words = xm_publisher_words(s->map, s->owner);
	struct xm_own own = xm_own(s->map, s->slot[i]);

	return xm_retract(s->map, &words, &own, s->token[i]);
}

void unit_forward(void)
{
	struct stage s = stage_make();

	pass_on(&s, 0, 0);
	retract(&s, 0);
	world_free(s.world);
}

/* ---- in use ---- */

START_TEST(forwarded_slot_is_in_use_until_its_reader_has_passed_it)
{
	struct stage s = stage_make();

	follow_waiting(&s);
	pass_on(&s, 0, 0);
	ck_assert_uint_eq(world_holds(s.world), 0);
	ck_assert(!taken(&s, 0, false));
	ck_assert(!taken(&s, 0, true));
	receives(&s, s.waited, &s.waits, 0);
	ck_assert(taken(&s, 0, false));
	ck_assert_uint_eq(s.waits.lost, 0);
	world_free(s.world);
}
END_TEST

START_TEST(without_subscribers_nothing_keeps_a_forwarded_slot)
{
	struct stage s = stage_make();

	pass_on(&s, 0, 0);
	ck_assert(taken(&s, 0, false));
	world_free(s.world);
}
END_TEST

START_TEST(a_reader_that_may_lose_keeps_it_only_until_the_owner_evicts)
{
	struct stage s = stage_make();
	struct xm_publication what;

	follow_losing(&s);
	pass_on(&s, 0, 0);
	pass_on(&s, 1, 0);
	ck_assert(!taken(&s, 0, false));
	ck_assert(taken(&s, 0, true));
	ck_assert_int_eq(world_receive(s.world, s.loser, &s.loses, &what), 0);
	ck_assert_uint_eq(what.token, s.token[1]);
	ck_assert_uint_eq(s.loses.lost, 1);
	world_free(s.world);
}
END_TEST

START_TEST(a_demoted_reader_keeps_it_no_longer_against_an_eviction)
{
	struct stage s = stage_make();

	follow_waiting(&s);
	pass_on(&s, 0, 0);
	ck_assert_uint_eq(xm_demote(s.map, s.stage, 1), 1);
	ck_assert(!taken(&s, 0, false));
	ck_assert(taken(&s, 0, true));
	world_free(s.world);
}
END_TEST

START_TEST(a_stage_keeps_it_for_no_longer_than_its_bound)
{
	struct stage s = stage_make();
	struct xm_scan_rules how = world_rules(s.world, s.owner, true, 0);
	u32 i;

	follow_waiting(&s);
	for (i = 0; i < ARRAY_SIZE(s.slot); i++)
		pass_on(&s, i, 0);
	how = world_rules(s.world, s.owner, true, 0);
	i = ARRAY_SIZE(s.slot) - 1;
	how.evicts = 1 + 999;
	ck_assert(!xm_scan_one(s.map, &how, s.slot[i]));
	/* The bound is 1000 ns. */
	how.evicts = 1 + 1000;
	ck_assert(xm_scan_one(s.map, &how, s.slot[i]));
	world_free(s.world);
}
END_TEST

START_TEST(an_overwritten_entry_keeps_nothing)
{
	struct stage s = stage_make();
	u32 i;

	follow_losing(&s);
	for (i = 0; i < RING; i++)
		pass_on(&s, i, 0);
	ck_assert(!taken(&s, 0, false));
	pass_on(&s, RING, 0);
	ck_assert(taken(&s, 0, false));
	ck_assert(!taken(&s, 1, false));
	world_free(s.world);
}
END_TEST

START_TEST(overwriting_wakes_an_owner_that_sleeps)
{
	struct stage s = stage_make();
	u32 *waiters = &xm_client_row(s.map, s.owner)->slots_waiters, value, i;

	follow_losing(&s);
	for (i = 0; i < RING; i++)
		pass_on(&s, i, 0);
	value = xm_arm(waiters);
	s.token[RING] = world_take_publish(s.world, s.owner, s.slot[RING]);
	ck_assert_int_eq(xm_get(s.map, s.stage, s.token[RING]), 0);
	ck_assert(xm_still_armed(waiters, value));
	forward_for(&s, s.token[RING], 0);
	ck_assert(!xm_still_armed(waiters, value));
	world_free(s.world);
}
END_TEST

START_TEST(other_contents_of_a_forwarded_slot_are_not_kept)
{
	struct stage s = stage_make();

	follow_losing(&s);
	pass_on(&s, 0, 0);
	ck_assert(taken(&s, 0, true));
	world_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(world_receive(s.world, s.stage, &s.in, &(struct xm_publication){ 0 }), 0);
	world_put(s.world, s.stage, s.slot[0]);
	ck_assert(taken(&s, 0, false));
	world_free(s.world);
}
END_TEST

START_TEST(an_owner_forwards_its_own_slot)
{
	struct stage s = stage_make();

	s.loses = world_subscribe(s.world, s.loser, s.owner, 0);
	s.stage = s.owner;
	s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(xm_get(s.map, s.owner, s.token[0]), 0);
	forward_for(&s, s.token[0], 0);
	world_put(s.world, s.owner, s.slot[0]);
	receives(&s, s.loser, &s.loses, 0);
	ck_assert(!taken(&s, 0, false));
	receives(&s, s.loser, &s.loses, 0);
	ck_assert_uint_eq(s.loses.lost, 0);
	world_free(s.world);
}
END_TEST

/* ---- during a scan ---- */

struct meanwhile {
	struct stage *s;
	int at;
	void (*what)(struct stage *s);
};

static void do_meanwhile(int step, void *arg)
{
	struct meanwhile *m = arg;

	if (step != m->at)
		return;
	m->at = -1;
	m->what(m->s);
}

static bool taken_while(struct stage *s, u32 i, int at, void (*what)(struct stage *s))
{
	struct meanwhile m = { s, at, what };
	bool mine;

	unit_step_arg = &m;
	unit_step = do_meanwhile;
	mine = taken(s, i, true);
	unit_step = NULL;
	ck_assert_int_eq(m.at, -1);
	return mine;
}

static void forward_and_put(struct stage *s)
{
	forward_for(s, s->token[0], 0);
	world_put(s->world, s->stage, s->slot[0]);
}

START_TEST(a_scan_sees_what_is_forwarded_while_it_runs)
{
	static const int steps[] = { XM_STEP_SCAN_CURSORS, XM_STEP_SCAN_SCANNING,
				     XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS };
	struct xm_publication what;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct stage s = stage_make();

		follow_waiting(&s);
		s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
		ck_assert_int_eq(world_receive(s.world, s.stage, &s.in, &what), 0);
		ck_assert(!taken_while(&s, 0, steps[i], forward_and_put));
		receives(&s, s.waited, &s.waits, 0);
		world_free(s.world);
	}
}
END_TEST

static void receive_in_vain(struct stage *s)
{
	struct xm_pending pending;
	struct xm_publication what;

	ck_assert_int_eq(xm_receive(s->map, s->waited, &s->waits, &what, &pending), -EBUSY);
	ck_assert_uint_eq(s->waits.place, 0);
	world_do(s->world, pending);
}

/* Otherwise the reference would move from the ring to a hold without the scan's notice. */
START_TEST(nobody_receives_a_forwarded_slot_that_is_being_scanned)
{
	struct stage s = stage_make();

	follow_waiting(&s);
	pass_on(&s, 0, 0);
	ck_assert(!taken_while(&s, 0, XM_STEP_SCAN_HOLDS, receive_in_vain));
	receives(&s, s.waited, &s.waits, 0);
	ck_assert_uint_eq(s.waits.lost, 0);
	world_free(s.world);
}
END_TEST

/* ---- for one subscriber alone ---- */

static u64 incarnation(const struct stage *s, u32 client)
{
	return xm_client_row(s->map, client)->incarnation;
}

START_TEST(only_the_addressee_receives_and_others_lose_nothing)
{
	struct stage s = stage_make();

	follow_waiting(&s);
	follow_losing(&s);
	pass_on(&s, 0, incarnation(&s, s.waited));
	pass_on(&s, 1, incarnation(&s, s.loser));
	receives(&s, s.waited, &s.waits, 0);
	receives_nothing(&s, s.waited, &s.waits);
	receives(&s, s.loser, &s.loses, 1);
	receives_nothing(&s, s.loser, &s.loses);
	ck_assert_uint_eq(s.waits.lost + s.loses.lost, 0);
	ck_assert(!xm_ready(s.map, s.stage, s.waits.incarnation, s.waits.place));
	ck_assert(taken(&s, 0, false));
	ck_assert(taken(&s, 1, false));
	world_free(s.world);
}
END_TEST

START_TEST(an_addressed_publication_that_is_evicted_is_lost_for_its_addressee_alone)
{
	struct stage s = stage_make();
	struct xm_publisher_words words = xm_publisher_words(s.map, s.owner);
	struct xm_publication what = { .length = 8 };
	struct xm_follow other;
	struct xm_own own;

	s.loses = world_subscribe(s.world, s.loser, s.owner, 0);
	other = world_subscribe(s.world, s.waited, s.owner, 0);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	own = xm_own(s.map, s.slot[0]);
	xm_publish_as(s.map, &own, &words, 0, &what, XMEM_ENTRY_MARKED, incarnation(&s, s.loser));
	receives_nothing(&s, s.stage, &s.in);
	ck_assert(!taken(&s, 0, false));
	ck_assert(taken(&s, 0, true));
	receives_nothing(&s, s.waited, &other);
	receives_nothing(&s, s.loser, &s.loses);
	ck_assert_uint_eq(other.lost, 0);
	ck_assert_uint_eq(s.loses.lost, 1);
	world_free(s.world);
}
END_TEST

START_TEST(a_reader_that_passes_what_is_not_for_it_wakes_the_owner)
{
	struct stage s = stage_make();
	u32 *waiters = &xm_client_row(s.map, s.owner)->slots_waiters, value;

	follow_losing(&s);
	pass_on(&s, 0, incarnation(&s, s.waited));
	value = xm_arm(waiters);
	receives_nothing(&s, s.loser, &s.loses);
	ck_assert(!xm_still_armed(waiters, value));
	world_free(s.world);
}
END_TEST

/* ---- retract ---- */

START_TEST(what_nobody_has_is_retracted_and_nobody_loses_it)
{
	struct stage s = stage_make();

	s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
	s.token[1] = world_take_publish(s.world, s.owner, s.slot[1]);
	ck_assert_int_eq(retract(&s, 0), 0);
	ck_assert_int_eq(xm_look(s.map, s.token[0]), -ESTALE);
	ck_assert_uint_eq(xm_state(xm_slot(s.map, s.slot[0])->state), XMEM_SLOT_WRITING);
	ck_assert_int_eq(retract(&s, 0), -ESTALE);
	receives(&s, s.stage, &s.in, 1);
	receives_nothing(&s, s.stage, &s.in);
	ck_assert_uint_eq(s.in.lost, 0);
	world_free(s.world);
}
END_TEST

START_TEST(what_somebody_holds_is_not_retracted_and_stays)
{
	struct stage s = stage_make();

	s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(xm_get(s.map, s.loser, s.token[0]), 0);
	ck_assert_int_eq(retract(&s, 0), -EBUSY);
	receives(&s, s.stage, &s.in, 0);
	world_put(s.world, s.loser, s.slot[0]);
	ck_assert_int_eq(retract(&s, 0), 0);
	world_free(s.world);
}
END_TEST

START_TEST(what_others_forward_is_not_retracted_until_it_has_passed)
{
	struct stage s = stage_make();

	follow_losing(&s);
	pass_on(&s, 0, 0);
	ck_assert_int_eq(retract(&s, 0), -EBUSY);
	receives(&s, s.loser, &s.loses, 0);
	ck_assert_int_eq(retract(&s, 0), 0);
	world_free(s.world);
}
END_TEST

START_TEST(a_stage_retracts_what_it_forwards_and_the_owner_is_free_of_it)
{
	struct stage s = stage_make();
	struct xm_publisher_words words = xm_publisher_words(s.map, s.stage);

	follow_waiting(&s);
	pass_on(&s, 0, 0);
	pass_on(&s, 1, 0);
	ck_assert(!taken(&s, 0, true));
	ck_assert(xm_retract_forwarded(s.map, &words, s.token[0]));
	ck_assert(!xm_retract_forwarded(s.map, &words, s.token[0]));
	ck_assert(taken(&s, 0, false));
	receives(&s, s.waited, &s.waits, 1);
	ck_assert_uint_eq(s.waits.lost, 0);
	world_free(s.world);
}
END_TEST

START_TEST(an_owner_retracts_all_its_entries_of_a_slot_or_none)
{
	struct stage s = stage_make();
	struct xm_publication what;
	u32 i;

	s.stage = s.owner;
	s.loses = world_subscribe(s.world, s.loser, s.owner, 0);
	s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(xm_get(s.map, s.owner, s.token[0]), 0);
	forward_for(&s, s.token[0], 0);
	forward_for(&s, s.token[0], incarnation(&s, s.loser));
	ck_assert_int_eq(retract(&s, 0), -EBUSY);
	for (i = 0; i < 2; i++)
		receives(&s, s.loser, &s.loses, 0);
	world_put(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(retract(&s, 0), 0);
	ck_assert_int_eq(world_receive(s.world, s.loser, &s.loses, &what), -EAGAIN);
	ck_assert_uint_eq(s.loses.lost, 0);
	world_free(s.world);
}
END_TEST

static void get_owners(struct stage *s)
{
	struct xm_pending pending;
	struct xm_publication what;

	/* The entry is open: for the moment there is nothing. */
	ck_assert_int_eq(xm_receive(s->map, s->stage, &s->in, &what, &pending), -EAGAIN);
	ck_assert_int_eq(xm_get(s->map, s->loser, s->token[0]), 0);
}

START_TEST(a_subscriber_loses_nothing_by_a_retract_that_fails)
{
	struct stage s = stage_make();
	struct meanwhile m = { &s, XM_STEP_RETRACT_OPEN, get_owners };

	s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
	unit_step_arg = &m;
	unit_step = do_meanwhile;
	ck_assert_int_eq(retract(&s, 0), -EBUSY);
	unit_step = NULL;
	ck_assert_int_eq(m.at, -1);
	world_put(s.world, s.loser, s.slot[0]);
	receives(&s, s.stage, &s.in, 0);
	ck_assert_uint_eq(s.in.lost, 0);
	world_free(s.world);
}
END_TEST

static void retract_dying(void *arg)
{
	retract(arg, 0);
}

START_TEST(an_owner_dies_while_it_retracts_and_nothing_is_left)
{
	static const int steps[] = { XM_STEP_RETRACT_OPEN, XM_STEP_SCAN_SCANNING };
	struct xm_publication what;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct stage s = stage_make();

		s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
		ck_assert(unit_dies_at(steps[i], 1, retract_dying, &s));
		world_end(s.world, s.owner);
		ck_assert_int_eq(world_receive(s.world, s.stage, &s.in, &what), -EPIPE);
		world_is_clean(s.world);
		ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_NONE), s.map->slots);
		world_free(s.world);
	}
}
END_TEST

/* ---- deaths, garbage ---- */

START_TEST(the_stage_ends_and_the_owner_ends_and_the_reader_receives)
{
	u32 order;

	for (order = 0; order < 2; order++) {
		struct stage s = stage_make();
		struct xm_publication what;

		follow_waiting(&s);
		pass_on(&s, 0, 0);
		world_end(s.world, order ? s.stage : s.owner);
		world_end(s.world, order ? s.owner : s.stage);
		ck_assert_int_eq(world_receive(s.world, s.waited, &s.waits, &what), 0);
		ck_assert_uint_eq(what.token, s.token[0]);
		ck_assert_int_eq(xm_look(s.map, what.token), 0);
		world_put(s.world, s.waited, s.slot[0]);
		ck_assert_int_eq(world_receive(s.world, s.waited, &s.waits, &what), -EPIPE);
		world_unsubscribe(s.world, s.waited, &s.waits);
		world_is_clean(s.world);
		ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_NONE), s.map->slots);
		world_free(s.world);
	}
}
END_TEST

static void forward_dying(void *arg)
{
	forward_and_put(arg);
}

START_TEST(the_stage_dies_at_every_step_of_a_forward)
{
	static const int steps[] = {
		XM_STEP_FORWARD_NOTED, XM_STEP_PUBLISH_OPEN, XM_STEP_PUBLISH_FIELDS,
		XM_STEP_PUBLISH_ENTRY, XM_STEP_PUBLISH_TAIL, XM_STEP_PUT_BEFORE,
		XM_STEP_PUT_DROPPED,
	};
	struct xm_publication what;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct stage s = stage_make();
		bool complete = i >= 3;

		follow_waiting(&s);
		s.token[0] = world_take_publish(s.world, s.owner, s.slot[0]);
		ck_assert_int_eq(world_receive(s.world, s.stage, &s.in, &what), 0);
		ck_assert(unit_dies_at(steps[i], 1, forward_dying, &s));
		ck_assert(!taken(&s, 0, true));
		world_end(s.world, s.stage);
		ck_assert(taken(&s, 0, true) == !complete);
		ck_assert_int_eq(world_receive(s.world, s.waited, &s.waits, &what),
				 complete ? 0 : -EPIPE);
		if (complete)
			world_put(s.world, s.waited, s.slot[0]);
		ck_assert_int_eq(world_receive(s.world, s.waited, &s.waits, &what), -EPIPE);
		if (complete)
			ck_assert(taken(&s, 0, false));
		world_free(s.world);
	}
}
END_TEST

/* The owner's slot becomes the stage's own while an old entry of the stage names it. */
START_TEST(an_old_entry_does_not_give_the_stages_own_slot)
{
	struct stage s = stage_make();
	struct xm_publication what;
	u32 slot[64];

	follow_losing(&s);
	pass_on(&s, 0, 0);
	ck_assert(taken(&s, 0, true));
	world_end(s.world, s.owner);
	world_attach(s.world, s.stage, 1, slot);
	ck_assert_uint_eq(slot[0], s.slot[0]);
	ck_assert_int_eq(xm_take(s.map, slot[0]), 0);
	ck_assert_int_eq(world_receive(s.world, s.loser, &s.loses, &what), -EAGAIN);
	ck_assert_uint_eq(s.loses.lost, 1);
	world_free(s.world);
}
END_TEST

START_TEST(a_garbage_ring_of_a_stage_costs_one_look_at_it)
{
	static const u64 garbage[] = { 0, 1, 5, ~0ULL, 1ULL << 63, (1ULL << 63) - 1, 1ULL << 62,
				       (1ULL << 62) + 4, POISON };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(garbage); i++) {
		struct stage s = stage_make();

		follow_waiting(&s);
		pass_on(&s, 0, 0);
		for (k = 0; k < RING; k++) {
			xm_entry(s.map, s.stage, k)->token = garbage[(i + k) % ARRAY_SIZE(garbage)];
			xm_entry(s.map, s.stage, k)->position =
				garbage[(i + 2 * k) % ARRAY_SIZE(garbage)];
		}
		xm_ring(s.map, s.stage)->tail = garbage[i];
		taken(&s, 0, true);
		xm_host_forwards(&s.world->host, s.stage);
		world_end(s.world, s.owner);
		world_end(s.world, s.stage);
		world_end(s.world, s.waited);
		world_end(s.world, s.loser);
		world_is_clean(s.world);
		world_free(s.world);
	}
}
END_TEST

void forward_tests(Suite *suite)
{
	TCase *tcase = tcase_create("forward");

	tcase_add_test(tcase, forwarded_slot_is_in_use_until_its_reader_has_passed_it);
	tcase_add_test(tcase, without_subscribers_nothing_keeps_a_forwarded_slot);
	tcase_add_test(tcase, a_reader_that_may_lose_keeps_it_only_until_the_owner_evicts);
	tcase_add_test(tcase, a_demoted_reader_keeps_it_no_longer_against_an_eviction);
	tcase_add_test(tcase, a_stage_keeps_it_for_no_longer_than_its_bound);
	tcase_add_test(tcase, an_overwritten_entry_keeps_nothing);
	tcase_add_test(tcase, overwriting_wakes_an_owner_that_sleeps);
	tcase_add_test(tcase, other_contents_of_a_forwarded_slot_are_not_kept);
	tcase_add_test(tcase, an_owner_forwards_its_own_slot);
	tcase_add_test(tcase, a_scan_sees_what_is_forwarded_while_it_runs);
	tcase_add_test(tcase, nobody_receives_a_forwarded_slot_that_is_being_scanned);
	tcase_add_test(tcase, only_the_addressee_receives_and_others_lose_nothing);
	tcase_add_test(tcase,
		       an_addressed_publication_that_is_evicted_is_lost_for_its_addressee_alone);
	tcase_add_test(tcase, a_reader_that_passes_what_is_not_for_it_wakes_the_owner);
	tcase_add_test(tcase, what_nobody_has_is_retracted_and_nobody_loses_it);
	tcase_add_test(tcase, what_somebody_holds_is_not_retracted_and_stays);
	tcase_add_test(tcase, what_others_forward_is_not_retracted_until_it_has_passed);
	tcase_add_test(tcase, a_stage_retracts_what_it_forwards_and_the_owner_is_free_of_it);
	tcase_add_test(tcase, an_owner_retracts_all_its_entries_of_a_slot_or_none);
	tcase_add_test(tcase, a_subscriber_loses_nothing_by_a_retract_that_fails);
	tcase_add_test(tcase, an_owner_dies_while_it_retracts_and_nothing_is_left);
	tcase_add_test(tcase, the_stage_ends_and_the_owner_ends_and_the_reader_receives);
	tcase_add_test(tcase, the_stage_dies_at_every_step_of_a_forward);
	tcase_add_test(tcase, an_old_entry_does_not_give_the_stages_own_slot);
	tcase_add_test(tcase, a_garbage_ring_of_a_stage_costs_one_look_at_it);
	suite_add_tcase(suite, tcase);
}
