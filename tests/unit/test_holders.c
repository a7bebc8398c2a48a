// SPDX-License-Identifier: MIT
/*
 * Whose holds count where (core/holders.c)? A hold of a client of another user counts for an owner
 * only if the client could have been given the buffer, and then it always does.
 * test_holders_rings.c tests buffers that stages forward.
 */
#include "holders.h"

/* ---- clients that are let in from the beginning ---- */

START_TEST(users_hold_their_own_and_the_pools_owner_all)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, BOB, XMEM_ROLE_READER), late;

	put_own(&s);
	ck_assert(counts(&s, s.alice, s.slot[0]) && counts(&s, s.alice, s.slot[1]));
	ck_assert(!counts(&s, s.bob, s.slot[0]) && counts(&s, s.bob, s.slot[1]));
	ck_assert(!counts(&s, reader, s.slot[0]) && counts(&s, reader, s.slot[1]));
	ck_assert(!counts(&s, s.carol, s.slot[0]) && !counts(&s, s.carol, s.slot[1]));
	ck_assert(xm_is_counted(s.map, s.alice) && !xm_is_counted(s.map, s.bob));
	late = join_as(s.world, ALICE, XMEM_ROLE_READER);
	ck_assert(counts(&s, late, s.slot[0]) && counts(&s, late, s.slot[1]));
	scene_free(&s);
}
END_TEST

/*
 * A hold that it gets by a token counts, and a get that would not count fails; also in later
 * groups.
 */
START_TEST(a_client_that_may_not_hold_gets_an_error)
{
	struct scene s = scene_make();
	u32 more[XMEM_GROUP_SLOTS];
	u64 token;

	ck_assert_int_eq(xm_may_hold(s.map, s.bob, s.token[1]), 0);
	ck_assert_int_eq(xm_may_hold(s.map, s.bob, s.token[0]), -EACCES);
	ck_assert_int_eq(xm_may_hold(s.map, s.carol, s.token[1]), -EACCES);
	ck_assert_int_eq(xm_may_hold(s.map, s.bob, s.token[1] + (1ULL << 63)), -ESTALE);
	world_attach(s.world, s.bob, XMEM_GROUP_SLOTS, more);
	ck_assert_uint_ne(more[XMEM_GROUP_SLOTS - 1] / XMEM_GROUP_SLOTS,
			  s.slot[1] / XMEM_GROUP_SLOTS);
	token = publish_and_hold(s.world, s.bob, more[XMEM_GROUP_SLOTS - 1]);
	ck_assert_int_eq(xm_may_hold(s.map, s.carol, token), -EACCES);
	world_subscribe(s.world, s.carol, s.bob, 0);
	ck_assert_int_eq(xm_may_hold(s.map, s.carol, token), 0);
	ck_assert_int_eq(xm_may_hold(s.map, s.carol, s.token[1]), 0);
	ck_assert_int_eq(xm_may_hold(s.map, s.carol, s.token[0]), -EACCES);
	scene_free(&s);
}
END_TEST

/* ---- subscribing ---- */

struct look {
	const struct scene *s;
	u32 client, slot;
	bool seen;
};

static void at_the_cursor(int step, void *arg)
{
	struct look *look = arg;

	if (step != XM_STEP_SUBSCRIBE_CURSOR)
		return;
	look->seen = true;
	ck_assert(xm_holds_count(look->s->map, look->client, look->slot));
}

START_TEST(a_subscribers_holds_count_before_its_cursor_is_there)
{
	struct scene s = scene_make();
	struct look look = { &s, s.carol, s.slot[1], false };

	put_own(&s);
	ck_assert(!counts(&s, s.carol, s.slot[1]));
	unit_step = at_the_cursor;
	unit_step_arg = &look;
	world_subscribe(s.world, s.carol, s.bob, 0);
	unit_step = NULL;
	ck_assert(look.seen);
	ck_assert(counts(&s, s.carol, s.slot[1]));
	ck_assert(!counts(&s, s.carol, s.slot[0]));
	scene_free(&s);
}
END_TEST

START_TEST(followers_of_an_owner_without_slots_hold_its_first)
{
	struct scene s = scene_make();
	u32 slot;

	world_subscribe(s.world, s.bob, s.carol, 0);
	world_attach(s.world, s.carol, 1, &slot);
	ck_assert(counts(&s, s.bob, slot));
	scene_free(&s);
}
END_TEST

START_TEST(who_has_unsubscribed_may_hold_what_it_had)
{
	struct scene s = scene_make();
	struct xm_follow follow = world_subscribe(s.world, s.carol, s.bob, 0);

	put_own(&s);
	world_unsubscribe(s.world, s.carol, &follow);
	ck_assert(counts(&s, s.carol, s.slot[1]));
	scene_free(&s);
}
END_TEST

/* ---- granting ---- */

START_TEST(grants)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, CAROL, XMEM_ROLE_READER), more[XMEM_GROUP_SLOTS];
	struct xmem_grant_request bad[] = {
		{ .client = 8, .incarnation = 1 },
		{ .client = reader },
		{ .client = reader, .incarnation = incarnation(&s, reader), .slot = 1 },
		{ .op = XMEM_OP_FORWARD, .slot = 256 },
		{ .op = XMEM_OP_FORWARD, .slot = s.slot[1], .client = 1 },
		{ .op = XMEM_OP_FORWARD, .slot = s.slot[1], .incarnation = 1 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_int_eq(xm_host_grant(&s.world->host, s.bob, &bad[i]), -EINVAL);
	ck_assert_int_eq(grant(&s, s.bob, reader, incarnation(&s, reader) + 1), -ESTALE);
	ck_assert_int_eq(grant(&s, s.bob, 7, 1), -ESTALE);
	ck_assert_int_eq(grant(&s, reader, s.bob, incarnation(&s, s.bob)), -EPERM);
	ck_assert_int_eq(stage(&s, reader, s.slot[1]), -EPERM);
	put_own(&s);
	ck_assert(!counts(&s, reader, s.slot[1]));
	ck_assert_int_eq(grant(&s, s.bob, reader, incarnation(&s, reader)), 0);
	ck_assert_int_eq(grant(&s, s.bob, reader, incarnation(&s, reader)), 0);
	ck_assert(counts(&s, reader, s.slot[1]) && !counts(&s, reader, s.slot[0]));
	/* The grant also holds for later groups. */
	world_attach(s.world, s.bob, XMEM_GROUP_SLOTS, more);
	ck_assert(counts(&s, reader, more[XMEM_GROUP_SLOTS - 1]));
	scene_free(&s);
}
END_TEST

/* ---- ends ---- */

START_TEST(only_clients_that_could_hold_it_keep_limbo)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, CAROL, XMEM_ROLE_READER), late, again;

	world_subscribe(s.world, s.alice, s.bob, 0);
	put_own(&s);
	ck_assert_int_eq(xm_get(s.map, s.alice, s.token[1]), 0);
	world_end(s.world, s.bob);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 1);
	/* A restarted publisher has the owner's user, a stranger does not. */
	late = join_as(s.world, BOB, XMEM_ROLE_WRITER);
	ck_assert_int_eq(xm_may_hold(s.map, late, s.token[1]), 0);
	ck_assert_int_eq(xm_may_hold(s.map, reader, s.token[1]), -EACCES);
	/* The client that holds it forwards it. */
	ck_assert_int_eq(stage(&s, s.alice, s.slot[1]), 0);
	world_subscribe(s.world, reader, s.alice, 0);
	ck_assert_int_eq(xm_may_hold(s.map, reader, s.token[1]), 0);
	/* That is about the slot that is left, and not about the new client. */
	ck_assert(!xm_bit(xm_client_row(s.map, late)->holders, reader));
	ck_assert_int_eq(xm_get(s.map, reader, s.token[1]), 0);
	world_put(s.world, s.alice, s.slot[1]);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 1);
	xm_store(xm_hold(s.map, s.carol, s.slot[1]), 7);
	world_put(s.world, reader, s.slot[1]);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 0);
	/* The group's next owner starts from the beginning. */
	world_reap(s.world);
	world_attach(s.world, late, 1, &again);
	ck_assert_uint_eq(again / XMEM_GROUP_SLOTS, s.slot[1] / XMEM_GROUP_SLOTS);
	ck_assert(!xm_holds_count(s.map, reader, again) && xm_holds_count(s.map, late, again));
	ck_assert(xm_bit(xm_group_row(s.map, again / XMEM_GROUP_SLOTS)->stages, late));
	ck_assert(!xm_bit(xm_group_row(s.map, again / XMEM_GROUP_SLOTS)->stages, s.alice));
	ck_assert_int_eq(xm_may_hold(s.map, late, s.token[1]), -ESTALE);
	scene_free(&s);
}
END_TEST

START_TEST(an_ids_next_client_begins_anew)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, CAROL, XMEM_ROLE_READER), next;

	world_subscribe(s.world, reader, s.bob, 0);
	ck_assert_int_eq(grant(&s, s.alice, reader, incarnation(&s, reader)), 0);
	ck_assert_int_eq(xm_get(s.map, s.alice, s.token[1]), 0);
	ck_assert_int_eq(stage(&s, s.alice, s.slot[1]), 0);
	world_end(s.world, reader);
	next = join_as(s.world, CAROL, XMEM_ROLE_WRITER);
	ck_assert_uint_eq(next, reader);
	ck_assert(!xm_holds_count(s.map, next, s.slot[0]) &&
		  !xm_holds_count(s.map, next, s.slot[1]));
	world_end(s.world, s.alice);
	next = join_as(s.world, CAROL, XMEM_ROLE_WRITER);
	ck_assert_uint_eq(next, s.alice);
	ck_assert(!xm_is_counted(s.map, next));
	ck_assert(!xm_bit(xm_group_row(s.map, s.slot[1] / XMEM_GROUP_SLOTS)->stages, next));
	scene_free(&s);
}
END_TEST

/* ---- other uses of a hold ---- */

static int claim(const struct scene *s, u32 me, u32 op)
{
	struct xmem_claim_request request = {
		.op = op, .slot = s->slot[1], .generation = xm_generation(s->token[1]),
		.count = 1,
	};
	struct xm_pending pending;

	return xm_host_claim(&s->world->host, me, &request, 1, false, &pending);
}

START_TEST(what_does_not_count_is_good_for_nothing)
{
	struct scene s = scene_make();
	u64 *state = &xm_slot(s.map, s.slot[1])->state, live = xm_load(state);
	struct xmem_wait_request wake = {
		.op = XMEM_OP_WAKE, .kind = XMEM_WAIT_SLOTS, .client = s.bob,
	};
	struct xmem_upgrade_request upgrade = {
		.slot = s.slot[1], .generation = xm_generation(s.token[1]),
	};
	int err;

	xm_slot_row(s.map, s.slot[1])->traits = XMEM_TRAIT_SHARED;
	xm_store(xm_hold(s.map, s.carol, s.slot[1]), 1);
	xm_store(state, xm_scanning(live));
	ck_assert_int_eq(xm_host_resolve(&s.world->host, s.carol, s.slot[1], xm_scanning(live)),
			 -EPERM);
	xm_store(state, live);
	put_own(&s);
	ck_assert_int_eq(xm_host_upgrade(&s.world->host, s.carol, &upgrade), -EPERM);
	ck_assert_int_eq(claim(&s, s.carol, XMEM_CLAIM_ADD), -EACCES);
	ck_assert_int_eq(claim(&s, s.alice, XMEM_CLAIM_ADD), 0);
	ck_assert_int_eq(claim(&s, s.carol, XMEM_CLAIM_TAKE), -EACCES);
	ck_assert_int_eq(claim(&s, s.alice, XMEM_CLAIM_TAKE), 0);
	ck_assert_ptr_null(xm_host_waiters(&s.world->host, s.carol, &wake, &err));
	ck_assert_int_eq(err, -EPERM);
	ck_assert_int_eq(grant(&s, s.bob, s.carol, incarnation(&s, s.carol)), 0);
	ck_assert_ptr_nonnull(xm_host_waiters(&s.world->host, s.carol, &wake, &err));
	ck_assert_int_eq(xm_host_upgrade(&s.world->host, s.carol, &upgrade), 0);
	scene_free(&s);
}
END_TEST

/* Each of a follower's bits, where it must be, is cleared in turn. */
START_TEST(the_check_sees_followers_that_may_not_hold_what_they_follow)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, CAROL + 1, XMEM_ROLE_READER);
	struct xm_host *host = &s.world->host;
	u32 group = s.slot[1] / XMEM_GROUP_SLOTS;

	world_subscribe(s.world, s.carol, s.bob, 0);
	world_subscribe(s.world, reader, s.carol, 0);
	xm_set_bit(xm_client_row(s.map, s.carol)->holders, reader, false);
	ck_assert_pstr_eq(xm_host_is_valid(host),
			  "a subscriber may not hold what its publisher owns");
	xm_set_bit(xm_client_row(s.map, s.carol)->holders, reader, true);
	/* Carol forwards a buffer of Bob's; then also one that he has left. */
	xm_set_bit(xm_group_row(s.map, group)->stages, s.carol, true);
	ck_assert_pstr_eq(xm_host_is_valid(host),
			  "a subscriber may not hold what its publisher forwards");
	xm_set_bit(xm_group_row(s.map, group)->stages, s.carol, false);
	ck_assert_int_eq(xm_get(s.map, s.carol, s.token[1]), 0);
	ck_assert_int_eq(stage(&s, s.carol, s.slot[1]), 0);
	world_end(s.world, s.bob);
	ck_assert_uint_eq(host->group_owner[group], XMEM_OWNER_HOST);
	xm_set_bit(xm_group_row(s.map, group)->holders, reader, false);
	ck_assert_pstr_eq(xm_host_is_valid(host),
			  "a subscriber may not hold what its publisher forwards");
	xm_set_bit(xm_group_row(s.map, group)->holders, reader, true);
	scene_free(&s);
}
END_TEST

void holders_tests(Suite *suite)
{
	TCase *tcase = tcase_create("holders");

	tcase_add_test(tcase, users_hold_their_own_and_the_pools_owner_all);
	tcase_add_test(tcase, a_client_that_may_not_hold_gets_an_error);
	tcase_add_test(tcase, a_subscribers_holds_count_before_its_cursor_is_there);
	tcase_add_test(tcase, followers_of_an_owner_without_slots_hold_its_first);
	tcase_add_test(tcase, who_has_unsubscribed_may_hold_what_it_had);
	tcase_add_test(tcase, grants);
	tcase_add_test(tcase, only_clients_that_could_hold_it_keep_limbo);
	tcase_add_test(tcase, an_ids_next_client_begins_anew);
	tcase_add_test(tcase, what_does_not_count_is_good_for_nothing);
	tcase_add_test(tcase, the_check_sees_followers_that_may_not_hold_what_they_follow);
	suite_add_tcase(suite, tcase);
}
