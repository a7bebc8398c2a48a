// SPDX-License-Identifier: MIT
/*
 * One client does something complete between two steps of another, at every place of the protocol
 * where the order of two loads or stores decides (I1, I2, I3).
 */
#include "unit.h"

struct race {
	struct world *world;
	const struct xm_map *map;
	u32 owner, reader, slot[4];
	u64 token;			/* of slot[0], published once */
	struct xm_follow follow;
	struct xm_publication what;
	struct xm_pending pending;
	int step;			/* where it happens */
	void (*happens)(struct race *r);
	int err;			/* the result of the action; 1: it did not run */
	bool mine;
};

static void at_step(int step, void *arg)
{
	struct race *r = arg;

	if (step != r->step)
		return;
	unit_step = NULL;		/* once, and not within itself */
	r->happens(r);
}

static struct race race_make(int step, void (*happens)(struct race *r), bool subscribed)
{
	struct race r = {
		.world = world_make(64, 4, 4), .step = step, .happens = happens, .err = 1,
	};

	r.map = &r.world->host.map;
	r.owner = world_join(r.world, XMEM_ROLE_WRITER, 1000);
	r.reader = world_join(r.world, XMEM_ROLE_READER, 0);
	world_attach(r.world, r.owner, 4, r.slot);
	if (subscribed)
		r.follow = world_subscribe(r.world, r.reader, r.owner, 0);
	r.token = world_take_publish(r.world, r.owner, r.slot[0]);
	return r;
}

static void scan(struct race *r, bool evict)
{
	unit_step_arg = r;
	unit_step = at_step;
	r->mine = world_scan(r->world, r->owner, r->slot[0], evict, 0);
	unit_step = NULL;
}

static void race_end(struct race *r)
{
	world_end(r->world, r->reader);
	if (xm_client_row(r->map, r->owner)->state == XMEM_CLIENT_ALIVE)
		world_end(r->world, r->owner);
	world_is_clean(r->world);
	world_free(r->world);
}

/* ---- within a scan ---- */

static void get(struct race *r)
{
	r->err = xm_get(r->map, r->reader, r->token);
}

START_TEST(get_within_a_scan)
{
	int step;

	for (step = XM_STEP_SCAN_CURSORS; step <= XM_STEP_SCAN_HOLDS; step++) {
		struct race r = race_make(step, get, false);

		scan(&r, false);
		/* it cannot know yet where the slot is marked */
		ck_assert_int_eq(r.err, step == XM_STEP_SCAN_CURSORS ? 0 : -EAGAIN);
		ck_assert_int_eq(xm_look(r.map, r.token), r.mine ? -ESTALE : 0);
		/* the hold came before the owner checked the holds, so it is seen */
		ck_assert_int_eq(r.mine, step == XM_STEP_SCAN_HOLDS);
		race_end(&r);
	}
}
END_TEST

static void receive(struct race *r)
{
	r->err = xm_receive(r->map, r->reader, &r->follow, &r->what, &r->pending);
}

START_TEST(receive_within_a_scan)
{
	struct race r = race_make(XM_STEP_SCAN_CURSORS, receive, true);

	scan(&r, false);	/* a slot in flight is not marked, so there is no further step */
	ck_assert_int_eq(r.err, 0);
	ck_assert(!r.mine);
	ck_assert_int_eq(xm_look(r.map, r.token), 0);
	race_end(&r);
}
END_TEST

START_TEST(receive_within_a_evict)
{
	int step;

	for (step = XM_STEP_SCAN_CURSORS; step <= XM_STEP_SCAN_HOLDS; step++) {
		struct race r = race_make(step, receive, true);

		scan(&r, true);
		ck_assert_int_eq(r.mine, r.err != 0);
		ck_assert_int_eq(r.err, step >= XM_STEP_SCAN_VOID ? -EBUSY : 0);
		ck_assert_uint_eq(r.follow.lost, r.mine);
		race_end(&r);
	}
}
END_TEST

static void receive_and_put(struct race *r)
{
	receive(r);
	r->pending = xm_put(r->map, r->reader, xm_token_slot(r->what.token));
}

/* The owner may have seen it as in flight or as held: either way it is woken. */
START_TEST(receive_and_put_within_a_scan_wakes_its_owner)
{
	struct race r = race_make(XM_STEP_SCAN_CURSORS, receive_and_put, true);

	xm_arm(&xm_client_row(r.map, r.owner)->slots_waiters);
	scan(&r, false);
	ck_assert_int_eq(r.err, 0);
	ck_assert(!r.mine);
	ck_assert_int_eq(r.pending.what, XM_WAKE_OWNER);
	ck_assert(world_scan(r.world, r.owner, r.slot[0], false, 0));
	race_end(&r);
}
END_TEST

static void subscribe(struct race *r)
{
	r->follow = world_subscribe(r->world, r->reader, r->owner, 0);
	r->err = 0;
}

START_TEST(subscribe_within_a_scan)
{
	int step;

	for (step = XM_STEP_SCAN_CURSORS; step <= XM_STEP_SCAN_HOLDS; step++) {
		struct race r = race_make(step, subscribe, false);

		scan(&r, false);
		ck_assert_int_eq(r.err, 0);
		ck_assert(r.mine);		/* it was published before the subscription */
		receive(&r);
		ck_assert_int_eq(r.err, -EAGAIN);
		r.token = world_publish(r.world, r.owner, r.slot[0]);
		receive(&r);
		ck_assert_int_eq(r.err, 0);
		ck_assert_uint_eq(r.what.token, r.token);
		race_end(&r);
	}
}
END_TEST

static void end_reader(struct race *r)
{
	world_end(r->world, r->reader);
	r->err = 0;
}

START_TEST(reader_ends_within_a_scan)
{
	int step;

	for (step = XM_STEP_SCAN_CURSORS; step <= XM_STEP_SCAN_HOLDS; step++) {
		struct race r = race_make(step, end_reader, true);

		receive(&r);
		scan(&r, false);
		ck_assert(r.mine || world_scan(r.world, r.owner, r.slot[0], false, 0));
		r.reader = world_join(r.world, XMEM_ROLE_READER, 0);
		race_end(&r);
	}
}
END_TEST

/* ---- within a publication ---- */

START_TEST(receive_within_a_publication)
{
	int step;

	for (step = XM_STEP_PUBLISH_POSITION; step <= XM_STEP_PUBLISH_TAIL; step++) {
		struct race r = race_make(step, receive, true);

		receive(&r);
		ck_assert_int_eq(xm_take(r.map, r.slot[1]), 0);
		unit_step_arg = &r;
		unit_step = at_step;
		r.token = world_publish(r.world, r.owner, r.slot[1]);
		unit_step = NULL;
		ck_assert_int_eq(r.err, step >= XM_STEP_PUBLISH_ENTRY ? 0 : -EAGAIN);
		if (r.err)
			receive(&r);
		ck_assert_uint_eq(r.what.token, r.token);
		race_end(&r);
	}
}
END_TEST

static void get_next(struct race *r)
{
	u64 generation = xm_generation(xm_slot(r->map, r->slot[1])->state);

	r->err = xm_get(r->map, r->reader, xm_token(generation, r->slot[1]));
}

START_TEST(get_within_a_publication)
{
	int step;

	for (step = XM_STEP_PUBLISH_POSITION; step <= XM_STEP_PUBLISH_TAIL; step++) {
		struct race r = race_make(step, get_next, false);

		ck_assert_int_eq(xm_take(r.map, r.slot[1]), 0);
		unit_step_arg = &r;
		unit_step = at_step;
		world_publish(r.world, r.owner, r.slot[1]);
		unit_step = NULL;
		ck_assert_int_eq(r.err, step >= XM_STEP_PUBLISH_LIVE ? 0 : -ESTALE);
		race_end(&r);
	}
}
END_TEST

/* ---- within a receive ---- */

static void evict(struct race *r)
{
	r->mine = world_scan(r->world, r->owner, r->slot[0], true, 0);
	r->err = 0;
}

START_TEST(evict_within_a_receive)
{
	int step, err;

	for (step = XM_STEP_RECEIVE_READ; step <= XM_STEP_RECEIVE_VALID; step++) {
		struct race r = race_make(step, evict, true);

		unit_step_arg = &r;
		unit_step = at_step;
		err = xm_receive(r.map, r.reader, &r.follow, &r.what, &r.pending);
		unit_step = NULL;
		/*
		 * The one held and the other voided, so neither has the buffer. The contents stay
		 * until the owner scans again.
		 */
		ck_assert_int_eq(err, step == XM_STEP_RECEIVE_VALID ? 0 : -EBUSY);
		ck_assert_int_eq(r.mine, step == XM_STEP_RECEIVE_READ);
		ck_assert_uint_eq(world_holds(r.world), !err);
		race_end(&r);
	}
}
END_TEST

static void end_owner(struct race *r)
{
	world_end(r->world, r->owner);
	r->err = 0;
}

START_TEST(owner_ends_within_a_receive)
{
	int step, err;

	for (step = XM_STEP_RECEIVE_READ; step <= XM_STEP_RECEIVE_VALID; step++) {
		struct race r = race_make(step, end_owner, true);

		unit_step_arg = &r;
		unit_step = at_step;
		err = xm_receive(r.map, r.reader, &r.follow, &r.what, &r.pending);
		unit_step = NULL;
		ck_assert_int_eq(r.err, 0);
		ck_assert_int_eq(err, 0);	/* it was published and in flight: not lost */
		ck_assert_int_eq(xm_look(r.map, r.token), 0);
		world_put(r.world, r.reader, r.slot[0]);
		ck_assert_uint_eq(world_count(r.world, XMEM_OWNER_HOST), 0);
		race_end(&r);
	}
}
END_TEST

/* ---- within a put, a get ---- */

START_TEST(owner_ends_within_a_put)
{
	int step;

	for (step = XM_STEP_PUT_BEFORE; step <= XM_STEP_PUT_DROPPED; step++) {
		struct race r = race_make(step, end_owner, false);

		get(&r);
		unit_step_arg = &r;
		unit_step = at_step;
		r.pending = xm_put(r.map, r.reader, r.slot[0]);
		unit_step = NULL;
		/* either the end found no hold, or the put tells the host */
		world_do(r.world, r.pending);
		ck_assert_uint_eq(world_count(r.world, XMEM_OWNER_HOST), 0);
		race_end(&r);
	}
}
END_TEST

static void plain_scan(struct race *r)
{
	r->mine = world_scan(r->world, r->owner, r->slot[0], false, 0);
}

START_TEST(scan_within_a_get)
{
	int step;

	for (step = XM_STEP_GET_HELD; step <= XM_STEP_GET_DONE; step++) {
		struct race r = race_make(step, plain_scan, false);

		unit_step_arg = &r;
		unit_step = at_step;
		ck_assert_int_eq(xm_get(r.map, r.reader, r.token), 0);
		unit_step = NULL;
		ck_assert(!r.mine);
		race_end(&r);
	}
}
END_TEST

void race_tests(Suite *suite)
{
	TCase *tcase = tcase_create("race");

	tcase_add_test(tcase, get_within_a_scan);
	tcase_add_test(tcase, receive_within_a_scan);
	tcase_add_test(tcase, receive_within_a_evict);
	tcase_add_test(tcase, receive_and_put_within_a_scan_wakes_its_owner);
	tcase_add_test(tcase, subscribe_within_a_scan);
	tcase_add_test(tcase, reader_ends_within_a_scan);
	tcase_add_test(tcase, receive_within_a_publication);
	tcase_add_test(tcase, get_within_a_publication);
	tcase_add_test(tcase, evict_within_a_receive);
	tcase_add_test(tcase, owner_ends_within_a_receive);
	tcase_add_test(tcase, owner_ends_within_a_put);
	tcase_add_test(tcase, scan_within_a_get);
	suite_add_tcase(suite, tcase);
}
