// SPDX-License-Identifier: MIT
/*
 * How many rows the host reads: those of the groups that are concerned, however many slots the pool
 * has.
 */
#include "unit.h"

#define FILES	5

static void count_looks(int step, void *arg)
{
	u32 *looks = arg;

	*looks += step == XM_STEP_ROW_LOOK;
}

static void begin_to_count(u32 *looks)
{
	*looks = 0;
	unit_step_arg = looks;
	unit_step = count_looks;
}

/* All other groups belong to other clients. */
static void take_the_rest(struct world *world)
{
	u32 other = world_join(world, XMEM_ROLE_WRITER, 0), slot[XMEM_GROUP_SLOTS];

	while (xm_host_free_group(&world->host, other, 1) >= 0)
		world_attach(world, other, XMEM_GROUP_SLOTS, slot);
}

/* Twice: to see that all are FREE, and then to detach them. */
START_TEST(detach_looks_at_the_groups_of_the_file)
{
	struct world *world = world_make(1024, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), slot[FILES][XMEM_GROUP_SLOTS], i, looks;
	struct xmem_slot_request request = { .op = XMEM_OP_DETACH_FILE };
	u64 payload;

	for (i = 0; i < FILES; i++)
		world_attach(world, me, 40, slot[i]);
	take_the_rest(world);
	/* This file is in two groups. */
	request.slot = slot[1][0];
	begin_to_count(&looks);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, 40, &payload), 40);
	unit_step = NULL;
	ck_assert_uint_eq(looks, 2 * 2 * XMEM_GROUP_SLOTS);
	/* It begins in the upper one of the two groups, and goes round. */
	request.slot = slot[3][39];
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, 40, &payload), 40);
	world_is_valid(world);
	world_free(world);
}
END_TEST

/* Adopted, ended and buried: three times, each with a search that finds no more of them. */
START_TEST(an_end_looks_at_the_groups_of_the_client)
{
	struct world *world = world_make(1024, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[3], looks;
	u64 token;

	world_attach(world, me, 3, slot);
	take_the_rest(world);
	token = world_take_publish(world, me, slot[0]);
	ck_assert_int_eq(xm_get(&world->host.map, reader, token), 0);
	begin_to_count(&looks);
	xm_host_end(&world->host, me);
	ck_assert_int_eq(xm_host_bury(&world->host, me), XM_BURIED);
	unit_step = NULL;
	ck_assert_uint_eq(looks, 3 * (XMEM_GROUP_SLOTS + 1));
	world_is_valid(world);
	begin_to_count(&looks);
	xm_host_end(&world->host, reader);
	ck_assert_int_eq(xm_host_bury(&world->host, reader), XM_BURIED);
	unit_step = NULL;
	ck_assert_uint_eq(looks, 3);
	ck_assert_uint_eq(world_reap(world), 3);
	world_is_valid(world);
	world_free(world);
}
END_TEST

void looks_tests(Suite *suite)
{
	TCase *tcase = tcase_create("looks");

	tcase_add_test(tcase, detach_looks_at_the_groups_of_the_file);
	tcase_add_test(tcase, an_end_looks_at_the_groups_of_the_client);
	suite_add_tcase(suite, tcase);
}
