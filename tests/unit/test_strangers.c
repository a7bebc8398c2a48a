// SPDX-License-Identifier: MIT
/*
 * A stranger writes into its own area against an owner that has not let it in: holds, the mark that
 * it has forwarded a slot, and entries in its ring. Owners' scans, the host's sweep and writing in
 * place read none of that. Each test runs again with the stranger let in, and then those words
 * count: so they were in the right places.
 *
 * Rings are read only if a client whose holds count has forwarded the slot at some time. Hence the
 * stage, which has done so, and whose own ring does not name it any more.
 */
#include "core/publish.h"
#include "unit.h"

enum { HOLDS = 1, FORWARDS = 2, LIES = 3 };	/* what the stranger writes: one of them, or both */

struct scene {
	struct world *world;
	const struct xm_map *map;
	/* The reader follows the stranger and receives nothing: that ring stays in flight. */
	u32 owner, stranger, reader, stage;
	u32 slot, lies;
	bool let_in;
	u64 token;
};

static u32 join_as(struct world *world, u32 user, u32 role)
{
	u32 id;

	world->user = user;
	id = world_join(world, role, 0);
	world->user = 0;
	return id;
}

static void forward(const struct scene *s, u32 me)
{
	struct xm_publisher_words words = xm_publisher_words(s->map, me);
	struct xm_publication what = { .token = s->token, .length = 16 };

	xm_forward(s->map, me, &words, xm_load(&words.ring->tail), &what, 0);
}

/* The stage has received the slot, holds it, and has forwarded it while it had no subscribers. */
static void stage_forwards(struct scene *s)
{
	struct xmem_grant_request request = {
		.op = XMEM_OP_FORWARD, .slot = s->slot,
	};
	struct xm_follow follow = world_subscribe(s->world, s->stage, s->owner, 0);
	struct xm_publication what;

	world_take_publish(s->world, s->owner, s->slot);
	ck_assert_int_eq(world_receive(s->world, s->stage, &follow, &what), 0);
	s->token = what.token;
	ck_assert_int_eq(xm_host_grant(&s->world->host, s->stage, &request), 0);
	forward(s, s->stage);
}

static void stranger_lies(const struct scene *s)
{
	struct xmem_grant_request request = {
		.client = s->stranger,
		.incarnation = xm_client_row(s->map, s->stranger)->incarnation,
	};

	if (s->let_in)
		ck_assert_int_eq(xm_host_grant(&s->world->host, s->owner, &request), 0);
	if (s->lies & HOLDS)
		xm_store(xm_hold(s->map, s->stranger, s->slot), 1);
	if (s->lies & FORWARDS)
		forward(s, s->stranger);
	ck_assert_int_eq(xm_holds_count(s->map, s->stranger, s->slot), s->let_in);
	world_is_valid(s->world);
}

/* @way: of WAYS. Each is one or both lies, with the stranger let in or not. */
#define WAYS	(2 * LIES)

static struct scene scene_make(int way)
{
	struct scene s = { .world = world_make(128, 8, 4) };

	s.map = &s.world->host.map;
	s.let_in = way % 2;
	s.lies = 1 + way / 2;
	s.owner = join_as(s.world, 1, XMEM_ROLE_WRITER);
	s.stranger = join_as(s.world, 2, XMEM_ROLE_WRITER);
	s.reader = join_as(s.world, 2, XMEM_ROLE_READER);
	s.stage = join_as(s.world, 3, XMEM_ROLE_WRITER);
	world_attach(s.world, s.owner, 1, &s.slot);
	xm_slot_row(s.map, s.slot)->traits = XMEM_TRAIT_SHARED;
	world_subscribe(s.world, s.reader, s.stranger, 0);
	stage_forwards(&s);
	stranger_lies(&s);
	return s;
}

static void scene_free(struct scene *s)
{
	world_is_valid(s->world);
	world_free(s->world);
}

START_TEST(strangers_stop_no_scan)
{
	struct scene s = scene_make(_i);
	struct xm_scan_rules how;
	u8 holder = 0xff;

	world_put(s.world, s.stage, s.slot);
	how = world_rules(s.world, s.owner, false, 0);
	ck_assert_uint_eq(scan_slots(s.map, &how, &s.slot, 1, &holder), !s.let_in);
	/* A stranger is not named as the holder either. */
	ck_assert_uint_eq(holder, s.let_in ? s.stranger : 0xff);
	scene_free(&s);
}
END_TEST

START_TEST(strangers_stop_no_sweep)
{
	struct scene s = scene_make(_i);

	world_end(s.world, s.owner);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 1);	/* the stage has it */
	world_put(s.world, s.stage, s.slot);
	world_reap(s.world);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), s.let_in);
	world_end(s.world, s.reader);
	world_end(s.world, s.stranger);
	ck_assert_uint_eq(world_count(s.world, XMEM_OWNER_HOST), 0);
	scene_free(&s);
}
END_TEST

START_TEST(strangers_stop_no_writing_in_place)
{
	struct scene s = scene_make(_i);
	struct xmem_upgrade_request request = {
		.slot = s.slot, .generation = xm_generation(s.token),
	};

	ck_assert_int_eq(xm_host_upgrade(&s.world->host, s.stage, &request),
			 s.let_in ? -EBUSY : 0);
	ck_assert_uint_eq(xm_slot_row(s.map, s.slot)->upgrader, s.let_in ? 0 : s.stage + 1);
	scene_free(&s);
}
END_TEST

void strangers_tests(Suite *suite)
{
	TCase *tcase = tcase_create("strangers");

	tcase_add_loop_test(tcase, strangers_stop_no_scan, 0, WAYS);
	tcase_add_loop_test(tcase, strangers_stop_no_sweep, 0, WAYS);
	tcase_add_loop_test(tcase, strangers_stop_no_writing_in_place, 0, WAYS);
	suite_add_tcase(suite, tcase);
}
