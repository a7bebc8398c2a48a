// SPDX-License-Identifier: MIT
/*
 * Words, tokens, tenancies; taking and dropping holds.
 */
#include "unit.h"

/* ---- words ---- */

START_TEST(state_word_keeps_its_three_parts)
{
	u64 word = xm_word(0xfedcba987654, 0x1abc, XMEM_SLOT_SCANNING);

	ck_assert_uint_eq(xm_generation(word), 0xfedcba987654);
	ck_assert_uint_eq(xm_scan_number(word), 0x1abc);
	ck_assert_uint_eq(xm_state(word), XMEM_SLOT_SCANNING);
	/* the scan number wraps within its bits */
	ck_assert_uint_eq(xm_word(1, 0x2000, XMEM_SLOT_LIVE), xm_word(1, 0, XMEM_SLOT_LIVE));
	ck_assert_uint_eq(xm_token_slot(xm_token(0xfedcba987654, 65535)), 65535);
	ck_assert_uint_eq(xm_generation(xm_token(0xfedcba987654, 65535)), 0xfedcba987654);
}
END_TEST

START_TEST(tenancy_reaches_from_its_first_to_the_next_multiple)
{
	u64 range = 1ULL << XMEM_TENANCY_SHIFT, first = 5 * range + 77;

	ck_assert(!xm_in_tenancy(first - 1, first));
	ck_assert(xm_in_tenancy(first, first));
	ck_assert(xm_in_tenancy(6 * range - 1, first));
	ck_assert(!xm_in_tenancy(6 * range, first));
	ck_assert(!xm_in_tenancy(first + range, first));
	ck_assert(!xm_in_tenancy(0, first));
	ck_assert(!xm_in_tenancy(first, ~0ULL));
}
END_TEST

/* ---- get and put ---- */

struct pair {
	struct world *world;
	const struct xm_map *map;
	u32 owner, reader, slot;
	u64 token;
};

/* An owner with one LIVE slot, and a reader. */
static struct pair pair_make(void)
{
	struct pair p = { .world = world_make(64, 4, 4) };

	p.map = &p.world->host.map;
	p.owner = world_join(p.world, XMEM_ROLE_WRITER, 0);
	p.reader = world_join(p.world, XMEM_ROLE_READER, 0);
	world_attach(p.world, p.owner, 1, &p.slot);
	p.token = world_take_publish(p.world, p.owner, p.slot);
	return p;
}

static u32 holds_of(const struct pair *p)
{
	return xm_load(xm_hold(p->map, p->reader, p->slot));
}

START_TEST(get_and_put_leave_nothing)
{
	struct pair p = pair_make();
	struct xm_pending pending;

	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), 0);
	ck_assert_uint_eq(holds_of(&p), 1);
	ck_assert_int_eq(xm_hold_more(p.map, p.reader, p.slot), 0);
	ck_assert_uint_eq(holds_of(&p), 2);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_NOTHING);
	xm_put(p.map, p.reader, p.slot);
	ck_assert_uint_eq(holds_of(&p), 0);
	world_free(p.world);
}
END_TEST

START_TEST(stale_token_is_ESTALE)
{
	struct pair p = pair_make();

	ck_assert(world_scan(p.world, p.owner, p.slot, false, 0));
	/* WRITING, the next generation */
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -ESTALE);
	ck_assert_uint_eq(holds_of(&p), 1);				/* the caller puts */
	xm_put(p.map, p.reader, p.slot);
	world_publish(p.world, p.owner, p.slot);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -ESTALE); /* LIVE, the next generation */
	xm_put(p.map, p.reader, p.slot);
	world_free(p.world);
}
END_TEST

START_TEST(what_is_not_live_is_ESTALE_whatever_its_generation)
{
	static const u32 state[] = {
		XMEM_SLOT_FREE, XMEM_SLOT_WRITING, XMEM_SLOT_UPGRADED, 5, 6, 7,
	};
	struct pair p = pair_make();
	u32 i;

	for (i = 0; i < ARRAY_SIZE(state); i++) {
		xm_slot(p.map, p.slot)->state = xm_word(xm_generation(p.token), 1, state[i]);
		ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -ESTALE);
		xm_put(p.map, p.reader, p.slot);
	}
	ck_assert_uint_eq(holds_of(&p), 0);
	world_free(p.world);
}
END_TEST

START_TEST(token_of_another_pool_is_refused)
{
	struct pair p = pair_make();
	u64 other = xm_token(xm_generation(p.token) + (1ULL << XMEM_TENANCY_SHIFT), p.slot);

	ck_assert_int_eq(xm_get(p.map, p.reader, other), -ESTALE);
	xm_put(p.map, p.reader, p.slot);
	/* no such slot: no hold is left */
	ck_assert_int_eq(xm_get(p.map, p.reader, xm_token(1, 64)), -EINVAL);
	ck_assert_int_eq(xm_get(p.map, p.reader, ~0ULL), -EINVAL);
	ck_assert_uint_eq(world_holds(p.world), 0);
	world_free(p.world);
}
END_TEST

/*
 * The owner may write anything into the word: a generation outside the host's range does not count
 * (P5).
 */
START_TEST(generation_out_of_the_tenancy_is_stale_whatever_the_word_says)
{
	struct pair p = pair_make();
	u64 first = xm_slot_row(p.map, p.slot)->generation_first;
	u64 forged[] = { 0, 1, first - 1, first + (1ULL << XMEM_TENANCY_SHIFT), (1ULL << 48) - 1 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(forged); i++) {
		xm_slot(p.map, p.slot)->state = xm_word(forged[i], 0, XMEM_SLOT_LIVE);
		ck_assert_int_eq(xm_get(p.map, p.reader, xm_token(forged[i], p.slot)), -ESTALE);
		xm_put(p.map, p.reader, p.slot);
	}
	world_free(p.world);
}
END_TEST

/*
 * The next owner of a group forges the word of a slot that it has not attached. No old token
 * becomes valid by that.
 */
START_TEST(spare_slot_has_no_valid_tokens)
{
	struct pair p = pair_make();
	u32 thief, slot;

	world_end(p.world, p.owner);
	thief = world_join(p.world, XMEM_ROLE_WRITER, 0);
	xm_host_give_group(&p.world->host, p.slot / XMEM_GROUP_SLOTS, thief);
	xm_slot(p.map, p.slot)->state = xm_word(xm_generation(p.token), 0, XMEM_SLOT_LIVE);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -ESTALE);
	xm_put(p.map, p.reader, p.slot);
	/* nor once it is attached */
	world_attach(p.world, thief, 1, &slot);
	ck_assert_uint_eq(slot, p.slot);
	xm_slot(p.map, p.slot)->state = xm_word(xm_generation(p.token), 0, XMEM_SLOT_LIVE);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -ESTALE);
	xm_put(p.map, p.reader, p.slot);
	world_free(p.world);
}
END_TEST

START_TEST(get_during_a_scan_is_EAGAIN_and_keeps_the_hold)
{
	struct pair p = pair_make();
	u64 *state = &xm_slot(p.map, p.slot)->state;
	u64 live = *state;

	*state = xm_word(xm_generation(live), 1, XMEM_SLOT_SCANNING);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -EAGAIN);
	ck_assert_uint_eq(holds_of(&p), 1);
	ck_assert_int_eq(xm_look(p.map, p.token), -EAGAIN);
	*state = live;
	ck_assert_int_eq(xm_look(p.map, p.token), 0);
	world_free(p.world);
}
END_TEST

START_TEST(put_without_a_hold_changes_nothing)
{
	struct pair p = pair_make();
	struct xm_pending pending;

	xm_arm(&xm_client_row(p.map, p.owner)->slots_waiters);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_NOTHING);
	ck_assert_uint_eq(holds_of(&p), 0);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), 0);
	ck_assert_uint_eq(holds_of(&p), 1);
	world_free(p.world);
}
END_TEST

START_TEST(too_many_holds_are_EOVERFLOW)
{
	struct pair p = pair_make();
	u32 *hold = xm_hold(p.map, p.reader, p.slot);

	*hold = XM_HOLD_LIMIT - 1;
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), 0);
	ck_assert_uint_eq(*hold, XM_HOLD_LIMIT);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -EOVERFLOW);
	ck_assert_int_eq(xm_hold_more(p.map, p.reader, p.slot), -EOVERFLOW);
	ck_assert_uint_eq(*hold, XM_HOLD_LIMIT);
	ck_assert(!world_scan(p.world, p.owner, p.slot, false, 0));
	world_free(p.world);
}
END_TEST

/* Even while a get beyond the limit is undone, the count is never seen as 0 (P1). */
START_TEST(overflow_never_reads_as_unheld)
{
	/* room for that many threads at once */
	ck_assert_uint_gt(XM_HOLD_COUNT - XM_HOLD_LIMIT, 1u << 27);
	ck_assert_uint_ne((XM_HOLD_LIMIT + (1u << 27)) & XM_HOLD_COUNT, 0);
}
END_TEST

/* ---- wakes after a put ---- */

START_TEST(last_put_owes_a_waiting_owner_a_wake)
{
	struct pair p = pair_make();
	struct xm_pending pending;

	xm_get(p.map, p.reader, p.token);
	xm_get(p.map, p.reader, p.token);
	xm_arm(&xm_client_row(p.map, p.owner)->slots_waiters);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_NOTHING);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_WAKE_OWNER);
	ck_assert_uint_eq(pending.who, p.owner);
	world_do(p.world, pending);
	xm_get(p.map, p.reader, p.token);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_NOTHING);	/* no client sleeps any more */
	world_free(p.world);
}
END_TEST

/* The owner may have seen the passing hold of a stale get, so its put wakes too. */
START_TEST(put_after_ESTALE_owes_the_wake_too)
{
	struct pair p = pair_make();
	struct xm_pending pending;

	ck_assert_int_eq(xm_get(p.map, p.reader, p.token - (1 << 16)), -ESTALE);
	ck_assert(!world_scan(p.world, p.owner, p.slot, false, 0));
	xm_arm(&xm_client_row(p.map, p.owner)->slots_waiters);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_WAKE_OWNER);
	ck_assert(world_scan(p.world, p.owner, p.slot, false, 0));
	world_free(p.world);
}
END_TEST

START_TEST(last_put_of_an_orphan_tells_the_host)
{
	struct pair p = pair_make();
	struct xm_pending pending;

	xm_get(p.map, p.reader, p.token);
	world_end(p.world, p.owner);
	ck_assert_uint_eq(xm_slot_row(p.map, p.slot)->owner, XMEM_OWNER_HOST);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), 0);	/* still readable */
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_NOTHING);
	pending = xm_put(p.map, p.reader, p.slot);
	ck_assert_int_eq(pending.what, XM_RECLAIM_SLOT);
	ck_assert_uint_eq(pending.who, p.slot);
	ck_assert_uint_eq(world_reclaim(&p.world->host, p.slot), FIRST_ID);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token), -ESTALE);
	world_put(p.world, p.reader, p.slot);
	world_reap(p.world);
	world_is_clean(p.world);
	world_free(p.world);
}
END_TEST

void word_tests(Suite *suite)
{
	TCase *tcase = tcase_create("word");

	tcase_add_test(tcase, state_word_keeps_its_three_parts);
	tcase_add_test(tcase, tenancy_reaches_from_its_first_to_the_next_multiple);
	suite_add_tcase(suite, tcase);
}

void hold_tests(Suite *suite)
{
	TCase *tcase = tcase_create("hold");

	tcase_add_test(tcase, get_and_put_leave_nothing);
	tcase_add_test(tcase, stale_token_is_ESTALE);
	tcase_add_test(tcase, what_is_not_live_is_ESTALE_whatever_its_generation);
	tcase_add_test(tcase, token_of_another_pool_is_refused);
	tcase_add_test(tcase, generation_out_of_the_tenancy_is_stale_whatever_the_word_says);
	tcase_add_test(tcase, spare_slot_has_no_valid_tokens);
	tcase_add_test(tcase, get_during_a_scan_is_EAGAIN_and_keeps_the_hold);
	tcase_add_test(tcase, put_without_a_hold_changes_nothing);
	tcase_add_test(tcase, too_many_holds_are_EOVERFLOW);
	tcase_add_test(tcase, overflow_never_reads_as_unheld);
	tcase_add_test(tcase, last_put_owes_a_waiting_owner_a_wake);
	tcase_add_test(tcase, put_after_ESTALE_owes_the_wake_too);
	tcase_add_test(tcase, last_put_of_an_orphan_tells_the_host);
	suite_add_tcase(suite, tcase);
}
