// SPDX-License-Identifier: MIT
/*
 * Claims that owners add by themselves (I10): when they may, how the host treats them, and what
 * happens in between.
 */
#include "claims.h"

/* slot[0] gets new contents, which the owner holds. */
static void renew(struct scene *s)
{
	ck_assert(world_scan(s->world, s->owner, s->slot[0], true, 0));
	s->token = world_publish(s->world, s->owner, s->slot[0]);
	ck_assert_int_eq(xm_get(s->map, s->owner, s->token), 0);
}

static struct scene scene_alone(void)
{
	struct scene s = scene_make();

	xm_claims_share(s.host);
	ck_assert_int_eq(xm_get(s.map, s.owner, s.token), 0);
	return s;
}

START_TEST(an_owner_adds_by_itself_once_for_each_contents)
{
	struct scene s = scene_make();
	u32 i;

	ck_assert_int_eq(xm_get(s.map, s.owner, s.token), 0);
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), -EAGAIN);	/* unknown owner */
	xm_claims_share(s.host);
	ck_assert_uint_eq(s.map->pool->claimed, 1);
	ck_assert_int_eq(xm_get(s.map, s.reader, s.token), 0);
	ck_assert_int_eq(xm_claim_alone(s.map, s.reader, s.token, 1), -EAGAIN);
	world_put(s.world, s.reader, s.slot[0]);
	for (i = 1; i < 4; i++) {
		u64 earlier = s.token - (1ULL << 16);

		ck_assert_int_eq(xm_claim_alone(s.map, s.owner, earlier, 1), -EAGAIN);
		world_put(s.world, s.owner, s.slot[0]);
		ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), -EAGAIN);
		ck_assert_int_eq(xm_get(s.map, s.owner, s.token), 0);
		ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, i), 0);
		ck_assert_uint_eq(left(&s), i);
		ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), -EAGAIN);
		world_put(s.world, s.owner, s.slot[0]);
		ck_assert(!world_scan(s.world, s.owner, s.slot[0], true, 0));
		ck_assert_int_eq(xm_get(s.map, s.reader, s.token), 0);
		ck_assert_int_eq(xm_get(s.map, s.reader, earlier), -ESTALE);
		world_put(s.world, s.reader, s.slot[0]);
		/* a client that wants claims of earlier contents gets none of these */
		ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], xm_generation(earlier), 1),
				 -ERANGE);
		ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], xm_generation(s.token), i), 0);
		world_put(s.world, s.reader, s.slot[0]);
		ck_assert_int_eq(xm_get(s.map, s.owner, s.token), 0);
		ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), -EAGAIN);
		world_put(s.world, s.owner, s.slot[0]);
		renew(&s);
	}
	scene_end(&s);
}
END_TEST

/* The host's record of claims that were taken does not apply to others. */
START_TEST(what_came_alone_has_no_time_and_is_its_owners)
{
	struct scene s = scene_alone();
	u32 third = world_join(s.world, XMEM_ROLE_READER, 0);

	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_ADD, s.token, 1, SECOND), 0);
	ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], ~0ULL, 1), 0);
	world_put(s.world, s.owner, s.slot[0]);
	renew(&s);
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), 0);
	ck_assert_int_eq(tick(&s, NOW + 20 * SECOND), -ENOENT);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_VOID, s.token, 0, 0), -EPERM);
	world_end(s.world, third);
	ck_assert_uint_eq(left(&s), 1);
	/* Claims that other clients add have no time then, either. */
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_ADD, s.token, 1, SECOND), 0);
	ck_assert_int_eq(tick(&s, NOW + 20 * SECOND), -ENOENT);
	ck_assert_uint_eq(left(&s), 2);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 0, 0), 0);
	ck_assert_uint_eq(left(&s), 0);
	world_put(s.world, s.owner, s.slot[0]);
	scene_end(&s);
}
END_TEST

START_TEST(what_came_alone_has_an_end_once_its_owner_has_ended)
{
	const u64 bound = NOW + XMEM_CLAIM_LONGEST_NS;
	struct scene s = scene_alone();
	u32 third = world_join(s.world, XMEM_ROLE_READER, 0);

	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 2), 0);
	world_end(s.world, s.owner);
	ck_assert_uint_eq(world_reap(s.world), 0);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);
	ck_assert_int_eq(tick(&s, bound - 1), -ENOENT);
	ck_assert_uint_eq(s.host->claims->timed, 1);
	ck_assert_uint_eq(left(&s), 2);
	ck_assert_int_eq(tick(&s, bound), s.slot[0]);
	ck_assert_uint_eq(world_reap(s.world), 1);
	world_end(s.world, third);
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	scene_end(&s);
}
END_TEST

/* ---- races ---- */

static struct scene *racing;
static int race_step, race_err;

static void alone_at_step(int step, void *arg)
{
	if (step != race_step)
		return;
	unit_step = NULL;
	race_err = xm_claim_alone(racing->map, racing->owner, racing->token, 2);
}

/*
 * The host adds a reader's claim, for some time, and the owner adds its own between two steps of
 * that. Each claim exists as often as it was reported, and no time ends the owner's.
 */
START_TEST(the_owner_adds_while_the_host_adds)
{
	static const int steps[] = { XM_STEP_CLAIM_NOTED, XM_STEP_CLAIM_ADDED };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		struct scene s = scene_alone();
		bool first = steps[i] == XM_STEP_CLAIM_NOTED;
		int err;

		racing = &s;
		race_step = steps[i];
		race_err = 1;
		unit_step = alone_at_step;
		err = claim(&s, s.reader, XMEM_CLAIM_ADD, s.token, 1, SECOND);
		unit_step = NULL;
		ck_assert_int_eq(race_err, first ? 0 : -EAGAIN);
		ck_assert_int_eq(err, first ? -EAGAIN : 0);
		ck_assert_uint_eq(left(&s), first ? 2 : 1);
		/* After EAGAIN the client asks again, or for the first time. */
		if (first)
			err = claim(&s, s.reader, XMEM_CLAIM_ADD, s.token, 1, SECOND);
		else
			err = claim(&s, s.owner, XMEM_CLAIM_ADD, s.token, 2, ~0ULL);
		ck_assert_int_eq(err, 0);
		ck_assert_uint_eq(left(&s), 3);
		ck_assert_int_eq(tick(&s, NOW + 20 * SECOND), -ENOENT);
		ck_assert_uint_eq(left(&s), 3);
		ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], xm_generation(s.token), 3), 0);
		world_put(s.world, s.owner, s.slot[0]);
		ck_assert(world_scan(s.world, s.owner, s.slot[0], true, 0));
		scene_end(&s);
	}
}
END_TEST

/* An upgrade with the owner's own hold has already checked the claims, and marks the slot. */
static void mark_at_step(int step, void *arg)
{
	if (step != XM_STEP_CLAIM_ALONE)
		return;
	unit_step = NULL;
	xm_slot(racing->map, racing->slot[0])->state += XMEM_SLOT_SCANNING - XMEM_SLOT_LIVE;
}

START_TEST(what_is_written_in_place_gets_none_alone)
{
	struct scene s = scene_alone();
	u64 *state = &xm_slot(s.map, s.slot[0])->state;
	struct xmem_upgrade_request upgrade = {
		.size = sizeof(upgrade), .slot = s.slot[0], .generation = xm_generation(s.token),
	};

	racing = &s;
	unit_step = mark_at_step;
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 3), -EAGAIN);
	unit_step = NULL;
	ck_assert_uint_eq(left(&s), 0);
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 3), -EAGAIN);
	*state += XMEM_SLOT_LIVE - XMEM_SLOT_SCANNING;
	world_put(s.world, s.owner, s.slot[0]);
	renew(&s);

	/*
	 * No claim is added while the contents are written, or later if they are not published: the
	 * token stays good.
	 */
	xm_slot_row(s.map, s.slot[0])->traits |= XMEM_TRAIT_SHARED;
	upgrade.generation = xm_generation(s.token);
	ck_assert_int_eq(xm_host_upgrade(s.host, s.owner, &upgrade), 0);
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, xm_token(upgrade.generation, s.slot[0]),
					1), -EAGAIN);
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), -EAGAIN);
	upgrade.flags = XMEM_UPGRADE_CANCEL;
	ck_assert_int_eq(xm_host_upgrade(s.host, s.owner, &upgrade), 0);
	ck_assert_int_eq(xm_get(s.map, s.reader, s.token), 0);
	world_put(s.world, s.reader, s.slot[0]);
	ck_assert_int_eq(xm_claim_alone(s.map, s.owner, s.token, 1), 0);
	ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], xm_generation(s.token), 1), 0);
	xm_slot_row(s.map, s.slot[0])->traits &= ~XMEM_TRAIT_SHARED;
	world_put(s.world, s.owner, s.slot[0]);
	scene_end(&s);
}
END_TEST

void claims_alone_tests(Suite *suite)
{
	TCase *tcase = tcase_create("alone");

	tcase_add_test(tcase, an_owner_adds_by_itself_once_for_each_contents);
	tcase_add_test(tcase, what_came_alone_has_no_time_and_is_its_owners);
	tcase_add_test(tcase, what_came_alone_has_an_end_once_its_owner_has_ended);
	tcase_add_test(tcase, the_owner_adds_while_the_host_adds);
	tcase_add_test(tcase, what_is_written_in_place_gets_none_alone);
	suite_add_tcase(suite, tcase);
}
