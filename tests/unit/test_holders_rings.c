// SPDX-License-Identifier: MIT
/*
 * Whose holds count where (core/holders.c), for forwarded buffers? A stage lets its subscribers in,
 * and the ring of any other client keeps nothing.
 */
#include "core/history.h"
#include "holders.h"

static void forward(const struct scene *s, u32 me, u64 token)
{
	struct xm_publisher_words words = xm_publisher_words(s->map, me);
	struct xm_publication what = { .token = token, .length = 16 };

	xm_forward(s->map, me, &words, xm_load(&words.ring->tail), &what, 0);
}

START_TEST(what_is_forwarded_its_receivers_may_hold)
{
	struct scene s = scene_make();
	u32 early = join_as(s.world, CAROL, XMEM_ROLE_READER);
	u32 late = join_as(s.world, CAROL, XMEM_ROLE_READER);
	struct xm_follow follow = world_subscribe(s.world, early, s.alice, 0);
	struct xm_publication what;

	/* Alice holds a buffer of Bob's, but has not told the host that she forwards it. */
	ck_assert_int_eq(xm_get(s.map, s.alice, s.token[1]), 0);
	forward(&s, s.alice, s.token[1]);
	ck_assert_int_eq(world_receive(s.world, early, &follow, &what), -EAGAIN);
	ck_assert_uint_eq(follow.lost, 1);
	ck_assert_uint_eq(xm_load(xm_hold(s.map, early, s.slot[1])) & XM_HOLD_COUNT, 0);
	ck_assert_int_eq(stage(&s, s.alice, s.slot[1]), 0);
	forward(&s, s.alice, s.token[1]);
	ck_assert_int_eq(world_receive(s.world, early, &follow, &what), 0);
	ck_assert_uint_eq(what.token, s.token[1]);
	world_put(s.world, s.alice, s.slot[1]);
	put_own(&s);
	ck_assert(held(&s, s.slot[1]));
	world_put(s.world, early, s.slot[1]);
	/* A later subscriber may receive the next one, and the owner is woken by each of them. */
	ck_assert(!counts(&s, late, s.slot[1]));
	world_subscribe(s.world, late, s.alice, 0);
	ck_assert(counts(&s, late, s.slot[1]));
	ck_assert(xm_bit(xm_client_row(s.map, s.bob)->holders, late));
	scene_free(&s);
}
END_TEST

/* A stage of a stage: each lets its own subscribers in. */
START_TEST(stages_let_in_their_own_subscribers)
{
	struct scene s = scene_make();
	u32 last = join_as(s.world, CAROL + 1, XMEM_ROLE_READER);

	world_subscribe(s.world, s.carol, s.alice, 0);
	world_subscribe(s.world, last, s.carol, 0);
	ck_assert_int_eq(xm_get(s.map, s.alice, s.token[1]), 0);
	ck_assert_int_eq(stage(&s, s.carol, s.slot[1]), -EACCES);
	ck_assert_int_eq(stage(&s, s.alice, s.slot[1]), 0);
	ck_assert(xm_holds_count(s.map, s.carol, s.slot[1]));
	ck_assert(!xm_holds_count(s.map, last, s.slot[1]));
	ck_assert_int_eq(stage(&s, s.carol, s.slot[1]), -EPERM);	/* it holds nothing */
	ck_assert_int_eq(xm_get(s.map, s.carol, s.token[1]), 0);
	ck_assert_int_eq(stage(&s, s.carol, s.slot[1]), 0);
	ck_assert(xm_holds_count(s.map, last, s.slot[1]));
	ck_assert(!xm_holds_count(s.map, last, s.slot[0]));
	scene_free(&s);
}
END_TEST

/* May a client that may hold the stage's own buffers hold those that the stage forwards? */
START_TEST(clients_let_in_by_a_stage_hold_what_it_forwards)
{
	enum { OF_ITS_USER, LET_IN, FOLLOWED_IT_BEFORE };
	struct scene s = scene_make();
	u32 reader = join_as(s.world, _i == OF_ITS_USER ? CAROL : CAROL + 1, XMEM_ROLE_READER);
	struct xm_publication what;
	struct xm_follow follow;

	if (_i == LET_IN)
		ck_assert_int_eq(grant(&s, s.carol, reader, incarnation(&s, reader)), 0);
	if (_i == FOLLOWED_IT_BEFORE) {
		follow = world_subscribe(s.world, reader, s.carol, 0);
		world_unsubscribe(s.world, reader, &follow);
	}
	ck_assert(xm_bit(xm_client_row(s.map, s.carol)->holders, reader));
	world_subscribe(s.world, s.carol, s.bob, 0);
	ck_assert_int_eq(xm_get(s.map, s.carol, s.token[1]), 0);
	ck_assert_int_eq(stage(&s, s.carol, s.slot[1]), 0);
	ck_assert(!xm_holds_count(s.map, reader, s.slot[1]));
	follow = world_subscribe(s.world, reader, s.carol, 0);
	ck_assert(xm_holds_count(s.map, reader, s.slot[1]));
	ck_assert(xm_bit(xm_client_row(s.map, s.bob)->holders, reader));
	forward(&s, s.carol, s.token[1]);
	ck_assert_int_eq(world_receive(s.world, reader, &follow, &what), 0);
	ck_assert_uint_eq(what.token, s.token[1]);
	ck_assert_uint_eq(follow.lost, 0);
	scene_free(&s);
}
END_TEST

/* Entries of a stranger's ring keep nothing from an owner that has not let it in. */
START_TEST(a_strangers_ring_keeps_nothing)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, CAROL, XMEM_ROLE_READER);

	world_subscribe(s.world, reader, s.carol, 0);
	xm_store(xm_hold(s.map, s.carol, s.slot[1]), 1);
	forward(&s, s.carol, s.token[1]);
	put_own(&s);
	ck_assert(world_scan(s.world, s.bob, s.slot[1], false, 0));
	/* Nothing is kept from the host either, when it is the owner. */
	s.token[1] = world_publish(s.world, s.bob, s.slot[1]);
	forward(&s, s.carol, s.token[1]);
	world_end(s.world, s.bob);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 0);
	scene_free(&s);
}
END_TEST

START_TEST(history_that_one_may_not_hold_has_gone)
{
	struct scene s = scene_make();
	u32 reader = join_as(s.world, CAROL, XMEM_ROLE_READER);
	struct xm_follow follow;
	struct xm_followed_words words;
	struct xm_publication what;
	struct xm_pending pending = { XM_NOTHING, 0 };
	struct xm_past past;

	ck_assert_int_eq(xm_get(s.map, s.alice, s.token[1]), 0);
	forward(&s, s.alice, s.token[1]);
	follow = world_subscribe(s.world, reader, s.alice, 0);
	words = xm_followed_words(s.map, reader, s.alice);
	past = xm_past_begin(s.map, reader, &follow, 1);
	ck_assert_uint_ne(past.end, 0);
	ck_assert_int_eq(xm_past_hold(s.map, reader, &words, &follow, &past, &what, &pending),
			 -EBUSY);
	ck_assert_uint_eq(xm_load(xm_hold(s.map, reader, s.slot[1])) & XM_HOLD_COUNT, 0);
	scene_free(&s);
}
END_TEST

/* In a pool of one user a client need not announce that it forwards. */
START_TEST(one_user_stages_by_itself)
{
	struct scene s = { .world = world_make(128, 4, 4) };
	u32 writer, slot, early, late;

	s.map = &s.world->host.map;
	s.world->host.one_user = true;
	writer = world_join(s.world, XMEM_ROLE_WRITER, 0);
	early = world_join(s.world, XMEM_ROLE_WRITER, 0);
	world_subscribe(s.world, early, writer, 0);
	world_attach(s.world, writer, 1, &slot);
	ck_assert(xm_bit(xm_group_row(s.map, slot / XMEM_GROUP_SLOTS)->stages, 3));
	late = world_join(s.world, XMEM_ROLE_READER, 0);
	world_subscribe(s.world, late, early, 0);
	ck_assert(xm_holds_count(s.map, late, slot) && xm_holds_count(s.map, early, slot));
	world_end(s.world, writer);
	world_reap(s.world);
	world_is_clean(s.world);
	scene_free(&s);
}
END_TEST

void holders_rings_tests(Suite *suite)
{
	TCase *tcase = tcase_create("holders");

	tcase_add_test(tcase, what_is_forwarded_its_receivers_may_hold);
	tcase_add_test(tcase, stages_let_in_their_own_subscribers);
	tcase_add_loop_test(tcase, clients_let_in_by_a_stage_hold_what_it_forwards, 0, 3);
	tcase_add_test(tcase, a_strangers_ring_keeps_nothing);
	tcase_add_test(tcase, history_that_one_may_not_hold_has_gone);
	tcase_add_test(tcase, one_user_stages_by_itself);
	suite_add_tcase(suite, tcase);
}
