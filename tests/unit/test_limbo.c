// SPDX-License-Identifier: MIT
/*
 * How much limbo of ended owners one client holds: what counts.
 */
#include "core/limbo.h"
#include "unit.h"

#define BYTES	64	/* of a slot of a world */

/* Two writers with two slots each, in groups of their own. A reader holds all of them. */
struct scene {
	struct world *world;
	const struct xm_map *map;
	u32 writer[2], reader, other;
	u32 slot[4];
	u64 token[4];
};

static struct scene set(void)
{
	struct scene s = { .world = world_make(256, 8, 4) };
	u32 i;

	s.map = &s.world->host.map;
	for (i = 0; i < 2; i++) {
		s.writer[i] = world_join(s.world, XMEM_ROLE_WRITER, 0);
		world_attach(s.world, s.writer[i], 2, &s.slot[2 * i]);
	}
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	s.other = world_join(s.world, XMEM_ROLE_READER, 0);
	for (i = 0; i < 4; i++) {
		s.token[i] = world_take_publish(s.world, s.writer[i / 2], s.slot[i]);
		ck_assert_int_eq(xm_get(s.map, s.reader, s.token[i]), 0);
	}
	return s;
}

static void end(struct scene *s, u32 i)
{
	xm_host_end(&s->world->host, s->writer[i]);
	xm_host_limbo(&s->world->host, 1000);
}

/* Do the reader's holds count? */
static void let_hold(const struct scene *s, bool it_does)
{
	u32 g;

	for (g = 0; g < s->map->groups; g++)
		xm_set_bit(xm_group_row(s->map, g)->holders, s->reader, it_does);
}

START_TEST(limbo_of_a_holder_is_what_ended_owners_have_left)
{
	struct scene s = set();

	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 0);
	end(&s, 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 2 * BYTES);
	/* A slot counts once for each of its holders, however many holds they have. */
	ck_assert_uint_eq(xm_limbo_of(s.map, s.other), 0);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[0]), 0);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[0]), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.other), BYTES);
	end(&s, 1);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 4 * BYTES);
	world_put(s.world, s.reader, s.slot[3]);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 3 * BYTES);
	/* The slot is freed, and so are its bytes. */
	world_reclaim(&s.world->host, s.slot[3]);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 3 * BYTES);
	/* A slot without holds that count keeps nothing. */
	let_hold(&s, false);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 0);
	let_hold(&s, true);
	/* A slot that it has forwarded and holds no more does not count. */
	xm_store(xm_hold(s.map, s.reader, s.slot[2]), XM_HOLD_FORWARDED);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 2 * BYTES);
	world_free(s.world);
}
END_TEST

/* It puts its hold, and still keeps the slot until the writing has ended. */
START_TEST(limbo_of_who_writes_in_place_is_what_it_writes)
{
	struct scene s = { .world = world_make(64, 4, 8) };
	u32 owner = world_join(s.world, XMEM_ROLE_WRITER, 0), slot;
	u32 me = world_join(s.world, XMEM_ROLE_WRITER, 0);
	u32 third = world_join(s.world, XMEM_ROLE_WRITER, 0);
	struct xmem_upgrade_request request = { .flags = 0 };
	u64 token;

	s.map = &s.world->host.map;
	world_attach(s.world, owner, 1, &slot);
	xm_slot_row(s.map, slot)->traits = XMEM_TRAIT_SHARED;
	token = world_take_publish(s.world, owner, slot);
	ck_assert_int_eq(xm_get(s.map, me, token), 0);
	request.slot = slot;
	request.generation = xm_generation(token);
	ck_assert_int_eq(xm_host_upgrade(&s.world->host, me, &request), 0);
	world_end(s.world, owner);
	ck_assert_uint_eq(xm_limbo_of(s.map, me), BYTES);
	world_put(s.world, me, slot);
	ck_assert_uint_eq(world_reap(s.world), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, me), BYTES);
	ck_assert_uint_eq(xm_limbo_of(s.map, third), 0);
	ck_assert_uint_eq(xm_holds_of(s.map, me, slot, xm_hold(s.map, me, slot)), 1);
	request.flags = XMEM_UPGRADE_GIVE_UP;
	ck_assert_int_eq(xm_host_upgrade(&s.world->host, me, &request), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, me), 0);
	ck_assert_uint_eq(world_reap(s.world), 1);
	world_free(s.world);
}
END_TEST

/* A host that may not check all of a pool at once adds up the sums of its groups. */
START_TEST(limbo_is_counted_by_groups)
{
	struct scene s = set();
	u32 group[2] = { s.slot[0] / XMEM_GROUP_SLOTS, s.slot[2] / XMEM_GROUP_SLOTS };
	struct xm_limbo limbo = { .ended = 0 };

	xm_ring(s.map, s.writer[0])->limbo_ns = 700;
	xm_ring(s.map, s.writer[1])->limbo_ns = 500;
	xm_limbo_count_overdue(s.map, group[0], &limbo);
	ck_assert_uint_eq(limbo.overdue, 2);
	ck_assert_uint_eq(limbo.overdue_bytes, 2 * BYTES);
	ck_assert_uint_eq(limbo.overdue_ns, 700);
	xm_limbo_count_overdue(s.map, group[1], &limbo);
	ck_assert_uint_eq(limbo.overdue, 4);
	ck_assert_uint_eq(limbo.overdue_bytes, 4 * BYTES);
	ck_assert_uint_eq(limbo.overdue_ns, 500);
	xm_limbo_count_ended(s.map, &limbo);
	ck_assert_uint_eq(limbo.ended | limbo.ended_bytes | limbo.ended_ns, 0);
	end(&s, 0);
	xm_limbo_count_overdue(s.map, group[0], &limbo);
	ck_assert_uint_eq(limbo.overdue, 4);
	xm_limbo_count_ended(s.map, &limbo);
	ck_assert_uint_eq(limbo.ended, 2);
	ck_assert_uint_eq(limbo.ended_bytes, 2 * BYTES);
	ck_assert_uint_eq(limbo.ended_ns, 1000);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, s.reader, group[0]), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, s.reader, group[1]), 0);
	end(&s, 1);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, s.reader, group[0]), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, s.reader, group[1]), 2 * BYTES);
	world_free(s.world);
}
END_TEST

/* For memory of a GPU the host knows only the length that the publisher has written. */
START_TEST(limbo_of_any_length_does_not_wrap)
{
	struct scene s = set();
	u32 i;

	end(&s, 0);
	for (i = 0; i < 2; i++)
		xm_store(&xm_slot_row(s.map, s.slot[i])->length, ~0ULL - BYTES);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), ~0ULL);
	world_free(s.world);
}
END_TEST

void limbo_tests(Suite *suite)
{
	TCase *tcase = tcase_create("limbo");

	tcase_add_test(tcase, limbo_of_a_holder_is_what_ended_owners_have_left);
	tcase_add_test(tcase, limbo_of_who_writes_in_place_is_what_it_writes);
	tcase_add_test(tcase, limbo_is_counted_by_groups);
	tcase_add_test(tcase, limbo_of_any_length_does_not_wrap);
	suite_add_tcase(suite, tcase);
}
