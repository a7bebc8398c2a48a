// SPDX-License-Identifier: MIT
/*
 * A client dies at every step of everything that it does. No publication is lost, nothing stays
 * behind, and no client waits for the dead client (P2, P3).
 */
#include "unit.h"

#define RING	4
#define SLOTS	6
#define PUBLISHED	64	/* at most, by one scene */

/*
 * An owner that publishes, a subscriber that is waited for, one that may lose publications, and a
 * reader that gets by token.
 */
struct scene {
	struct world *world;
	const struct xm_map *map;
	u32 owner, waited, loser, getter;
	struct xm_follow waits, loses;
	u64 received_waits, received_loses;
	u32 slot[SLOTS];
	u64 token[PUBLISHED];		/* of each place, recorded before it is published */
	u64 stamp[64];			/* the payloads: the generation that was written there */
	u64 began;			/* publications begun */
	u64 old_token;			/* held by the getter */
	u64 held[16];			/* tokens that the loser holds */
	u32 helds;
};

static void receive_one(struct scene *s, u32 me, struct xm_follow *follow, u64 *received,
			bool keep);

static struct scene scene_make(void)
{
	struct scene s = { .world = world_make(64, 4, RING) };

	s.map = &s.world->host.map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 1000);
	s.waited = world_join(s.world, XMEM_ROLE_READER, 0);
	s.loser = world_join(s.world, XMEM_ROLE_READER, 0);
	s.getter = world_join(s.world, XMEM_ROLE_READER, 0);
	world_attach(s.world, s.owner, SLOTS, s.slot);
	s.waits = world_subscribe(s.world, s.waited, s.owner, XMEM_SUBSCRIBE_WAIT);
	s.loses = world_subscribe(s.world, s.loser, s.owner, 0);
	return s;
}

/* ---- the owner ---- */

static u32 acquire(struct scene *s)
{
	u32 round, i;

	for (i = 0; i < SLOTS; i++)
		if (!xm_take(s->map, s->slot[i]))
			return s->slot[i];
	for (round = 0; round < 2; round++)
		for (i = 0; i < SLOTS; i++)
			if (world_scan(s->world, s->owner, s->slot[i], round, 1))
				return s->slot[i];
	return ~0u;
}

static void publish(struct scene *s)
{
	struct xm_waited waited;
	u32 slot;

	xm_read_waited(s->map, s->owner, &waited);
	if (!xm_has_room(s->map, &waited, 0))
		return;
	slot = acquire(s);
	if (slot == ~0u)
		return;
	s->stamp[slot] = xm_generation(xm_slot(s->map, slot)->state);
	s->token[s->began++] = xm_token(s->stamp[slot], slot);
	world_publish(s->world, s->owner, slot);
}

/* Twelve rounds. The other clients take part, so that all kinds of scan happen. */
static void owner_works(void *arg)
{
	struct scene *s = arg;
	u32 i;

	for (i = 0; i < 12; i++) {
		publish(s);
		if (i == 1) {
			s->old_token = s->token[0];
			ck_assert_int_eq(xm_get(s->map, s->getter, s->old_token), 0);
		}
		if (i % 2)
			receive_one(s, s->waited, &s->waits, &s->received_waits, false);
		if (i % 2 && i > 4)
			receive_one(s, s->waited, &s->waits, &s->received_waits, false);
		if (i == 2)
			receive_one(s, s->loser, &s->loses, &s->received_loses, true);
	}
}

/* ---- the readers ---- */

static void receive_one(struct scene *s, u32 me, struct xm_follow *follow, u64 *received, bool keep)
{
	struct xm_publication what;
	u64 place;
	u32 slot;
	int err = world_receive(s->world, me, follow, &what);

	if (err)
		return;
	place = what.sequence;
	slot = xm_token_slot(what.token);
	++*received;
	ck_assert_uint_eq(follow->place, place + 1);
	ck_assert_uint_eq(what.token, s->token[place]);
	ck_assert_int_eq(xm_look(s->map, what.token), 0);
	ck_assert_uint_eq(s->stamp[slot], xm_generation(what.token));
	if (keep)
		s->held[s->helds++] = what.token;
	else
		world_put(s->world, me, slot);
}

/*
 * Do what a reader does: receive by both kinds of subscription, get by tokens, including stale
 * ones, and put.
 */
static void reader_works(void *arg)
{
	struct scene *s = arg;
	u32 me = s->waited, i;

	for (i = 0; i < 3; i++) {
		receive_one(s, me, &s->waits, &s->received_waits, false);
		if (!xm_get(s->map, me, s->token[s->began - 1]))
			xm_put(s->map, me, xm_token_slot(s->token[s->began - 1]));
		xm_get(s->map, me, s->token[0] - (1 << 16));
		xm_put(s->map, me, xm_token_slot(s->token[0]));
	}
}

/* ---- checks afterwards ---- */

static void drain(struct scene *s, u32 me, struct xm_follow *follow, u64 *received, u64 made)
{
	u64 before = *received;
	struct xm_publication what;
	u32 tries;

	for (tries = 0; tries < 2 * RING; tries++)
		receive_one(s, me, follow, received, false);
	ck_assert_int_eq(world_receive(s->world, me, follow, &what), -EPIPE);
	ck_assert_uint_eq(*received + follow->lost, made);
	if (follow->place != made)
		ck_assert_uint_eq(*received, before);
	world_unsubscribe(s->world, me, follow);
}

/* The owner has died at @step: its earlier publications are received, or count as lost. */
static void check_owner_gone(struct scene *s, int step)
{
	bool half = step >= XM_STEP_PUBLISH_POSITION && step < XM_STEP_PUBLISH_ENTRY;
	u64 made = s->began - half;
	u32 i;

	world_end(s->world, s->owner);
	if (s->old_token) {
		ck_assert_int_eq(xm_look(s->map, s->old_token), 0);
		ck_assert_uint_eq(s->stamp[xm_token_slot(s->old_token)],
				  xm_generation(s->old_token));
	}
	for (i = 0; i < s->helds; i++)
		ck_assert_int_eq(xm_look(s->map, s->held[i]), 0);
	if (xm_client_row(s->map, s->owner)->state == XMEM_CLIENT_ZOMBIE) {
		ck_assert_uint_eq(xm_ring(s->map, s->owner)->tail, made);
		drain(s, s->waited, &s->waits, &s->received_waits, made);
		ck_assert_uint_eq(s->waits.lost, 0);
		if (xm_client_row(s->map, s->owner)->state == XMEM_CLIENT_ZOMBIE)
			drain(s, s->loser, &s->loses, &s->received_loses, made);
	}
	ck_assert_uint_eq(xm_client_row(s->map, s->owner)->state, XMEM_CLIENT_NONE);
	if (s->old_token)
		world_put(s->world, s->getter, xm_token_slot(s->old_token));
	for (i = 0; i < s->helds; i++)
		world_put(s->world, s->loser, xm_token_slot(s->held[i]));
	world_reap(s->world);
	world_is_clean(s->world);
	ck_assert_uint_eq(world_count(s->world, XMEM_OWNER_NONE), s->map->slots);
}

static u32 kill_owner(int step)
{
	u32 nth, died = 0;
	bool dead = true;

	for (nth = 1; dead && nth < 40; nth++) {
		struct scene s = scene_make();

		dead = unit_dies_at(step, nth, owner_works, &s);
		died += dead;
		check_owner_gone(&s, dead ? step : XM_CORE_STEPS);
		world_free(s.world);
	}
	return died;
}

START_TEST(owner_dies_at_every_step)
{
	int step;

	for (step = XM_STEP_TAKE_WRITING; step <= XM_STEP_PUBLISH_TAIL; step++)
		ck_assert_msg(kill_owner(step) >= 2, "the owner never came to %s",
			      unit_step_name(step));
}
END_TEST

START_TEST(owner_dies_between_entry_and_tail)
{
	struct scene s = scene_make();
	struct xm_publication what;

	ck_assert(unit_dies_at(XM_STEP_PUBLISH_ENTRY, 1, owner_works, &s));
	ck_assert_uint_eq(xm_ring(s.map, s.owner)->tail, 0);
	world_end(s.world, s.owner);
	ck_assert_uint_eq(xm_ring(s.map, s.owner)->tail, 1);
	ck_assert_int_eq(world_receive(s.world, s.waited, &s.waits, &what), 0);
	ck_assert_uint_eq(what.token, s.token[0]);
	world_free(s.world);
}
END_TEST

/* An impossible position is garbage, and does not become the ring's tail. */
START_TEST(an_absurd_position_does_not_become_the_tail)
{
	struct scene s = scene_make();
	u64 absurd = XMEM_ENTRY_MARKED / 2 + 1;

	xm_store(&xm_entry(s.map, s.owner, absurd - 1)->position, absurd);
	world_end(s.world, s.owner);
	ck_assert_uint_eq(xm_ring(s.map, s.owner)->tail, 0);
	world_free(s.world);
}
END_TEST

START_TEST(owner_dies_with_position_recorded_and_the_slot_is_freed)
{
	struct scene s = scene_make();

	ck_assert(unit_dies_at(XM_STEP_PUBLISH_LIVE, 1, owner_works, &s));
	world_end(s.world, s.owner);
	world_is_clean(s.world);
	world_free(s.world);
}
END_TEST

/* ---- the readers' ends ---- */

static u32 kill_reader(int step)
{
	u32 nth, died = 0, i;
	bool dead = true;

	for (nth = 1; dead && nth < 20; nth++) {
		struct scene s = scene_make();

		for (i = 0; i < 3; i++)
			publish(&s);
		xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
		dead = unit_dies_at(step, nth, reader_works, &s);
		died += dead;
		world_end(s.world, s.waited);
		ck_assert_uint_eq(world_holds(s.world), 0);
		/* the owner gets back all slots that no other client has */
		for (i = 0; i < 3; i++)
			ck_assert(!world_scan(s.world, s.owner, xm_token_slot(s.token[i]),
					      false, 0));
		world_end(s.world, s.loser);
		for (i = 0; i < 3; i++)
			ck_assert(world_scan(s.world, s.owner, xm_token_slot(s.token[i]),
					     false, 0));
		world_end(s.world, s.owner);
		world_is_clean(s.world);
		world_free(s.world);
	}
	return died;
}

START_TEST(reader_dies_at_every_step)
{
	static const int steps[] = {
		XM_STEP_GET_HELD, XM_STEP_GET_DONE, XM_STEP_PUT_BEFORE, XM_STEP_PUT_DROPPED,
		XM_STEP_RECEIVE_READ, XM_STEP_RECEIVE_HELD, XM_STEP_RECEIVE_VALID,
		XM_STEP_RECEIVE_CURSOR,
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		ck_assert_msg(kill_reader(steps[i]) >= 3, "the reader never came to %s",
			      unit_step_name(steps[i]));
}
END_TEST

/* First a reader, then the owner; every pair of steps. */
START_TEST(reader_dies_then_owner_dies)
{
	int first, second;
	u32 i;

	for (first = 0; first < XM_CORE_STEPS; first++)
		for (second = 0; second < XM_CORE_STEPS; second++) {
			struct scene s = scene_make();

			for (i = 0; i < 3; i++)
				publish(&s);
			unit_dies_at(first, 2, reader_works, &s);
			world_end(s.world, s.waited);
			s.waits.lost = 0;
			unit_dies_at(second, 3, owner_works, &s);
			world_end(s.world, s.owner);
			world_end(s.world, s.loser);
			world_end(s.world, s.getter);
			world_is_clean(s.world);
			ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_NONE), s.map->slots);
			world_free(s.world);
		}
}
END_TEST

START_TEST(no_step_is_left_out)
{
	int step;

	kill_owner(XM_STEP_PUBLISH_TAIL);
	kill_reader(XM_STEP_RECEIVE_CURSOR);
	unit_forward();
	unit_upgrade();
	for (step = 0; step < XM_CORE_STEPS; step++)
		ck_assert_msg(unit_step_seen(step), "nothing came to %s", unit_step_name(step));
}
END_TEST

void end_tests(Suite *suite)
{
	TCase *tcase = tcase_create("end");

	tcase_add_test(tcase, owner_dies_at_every_step);
	tcase_add_test(tcase, owner_dies_between_entry_and_tail);
	tcase_add_test(tcase, an_absurd_position_does_not_become_the_tail);
	tcase_add_test(tcase, owner_dies_with_position_recorded_and_the_slot_is_freed);
	tcase_add_test(tcase, reader_dies_at_every_step);
	tcase_add_test(tcase, reader_dies_then_owner_dies);
	tcase_add_test(tcase, no_step_is_left_out);
	suite_add_tcase(suite, tcase);
}
