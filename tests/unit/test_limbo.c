// SPDX-License-Identifier: MIT
/* How much one client holds of what ended owners have left: what counts, and at which moment. */
#include "core/limbo.h"
#include "unit.h"

#define BYTES	64	/* of a slot of a world */

/* Two writers with two slots each, in groups of their own, all held by a reader. */
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
	xm_host_end(&s->world->host, s->writer[i], false);
	xm_host_limbo(&s->world->host, 1000);
}

/* Does what the reader holds count? */
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
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[0] / XMEM_GROUP_SLOTS), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[2] / XMEM_GROUP_SLOTS), 0);
	/* A slot counts once for each of its holders, however often they have it. */
	ck_assert_uint_eq(xm_limbo_of(s.map, s.other), 0);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[0]), 0);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[0]), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.other), BYTES);
	end(&s, 1);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 4 * BYTES);
	world_put(s.world, s.reader, s.slot[3]);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 3 * BYTES);
	/* It goes, and so does what it had. */
	world_reclaim(&s.world->host, s.slot[3]);
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[3] / XMEM_GROUP_SLOTS), BYTES);
	/* What holds do not count keep nothing. */
	let_hold(&s, false);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 0);
	let_hold(&s, true);
	/* What it has forwarded and holds no more is not a hold. */
	xm_store(xm_hold(s.map, s.reader, s.slot[2]), XM_HOLD_FORWARDED);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), 2 * BYTES);
	world_free(s.world);
}
END_TEST

static u64 since[XMEM_MAX_GROUPS];

/* All groups are limbo since then. */
static void begin_limbo(u64 ns)
{
	u32 g;

	for (g = 0; g < XMEM_MAX_GROUPS; g++)
		since[g] = ns;
}

/* The first look. true: there is another one. */
static bool look_once(const struct scene *s, struct xm_limbo_look *look, u32 client, u64 most)
{
	memset(look, 0xa5, sizeof(*look));
	look->client = client;
	look->most = most;
	look->bytes = look->first = look->group = 0;
	look->again = false;
	look->since_ns = since;
	look->now_ns = XM_LIMBO_GRACE_NS + 10;
	while (!look->again)
		if (xm_limbo_go_on(s->map, look))
			return false;
	return true;
}

static bool look_again(const struct scene *s, struct xm_limbo_look *look)
{
	while (!xm_limbo_go_on(s->map, look))
		;
	return look->bytes > look->most;
}

START_TEST(too_much_is_what_is_held_at_one_moment)
{
	struct scene s = set();
	struct xm_limbo_look look;

	end(&s, 0);
	end(&s, 1);
	world_put(s.world, s.reader, s.slot[0]);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[1]), 0);
	/* As much as it may have is not too much. */
	/* Not yet, and not when the host has yet to note since when. */
	begin_limbo(11);
	ck_assert(!look_once(&s, &look, s.reader, 2 * BYTES));
	begin_limbo(0);
	ck_assert(!look_once(&s, &look, s.reader, 2 * BYTES));
	begin_limbo(10);
	ck_assert(!look_once(&s, &look, s.reader, 3 * BYTES));
	ck_assert_uint_eq(look.bytes, 0);
	ck_assert(look_once(&s, &look, s.reader, 2 * BYTES));
	ck_assert(look_again(&s, &look));
	ck_assert_uint_eq(look.bytes, 3 * BYTES);
	/* It puts one between the looks. */
	ck_assert(look_once(&s, &look, s.reader, 2 * BYTES));
	world_put(s.world, s.reader, s.slot[1]);
	ck_assert(!look_again(&s, &look));
	ck_assert_uint_eq(look.bytes, 2 * BYTES);
	/* It puts one and gets another, so it never has more than two. */
	ck_assert(look_once(&s, &look, s.reader, BYTES));
	world_put(s.world, s.reader, s.slot[2]);
	ck_assert_int_eq(xm_get(s.map, s.reader, s.token[1]), 0);
	ck_assert(!look_again(&s, &look));
	ck_assert_uint_eq(look.bytes, BYTES);
	/* One of them is another owner's by the second look. */
	ck_assert(look_once(&s, &look, s.reader, BYTES));
	xm_store(&xm_slot_row(s.map, s.slot[3])->owner, s.other);
	ck_assert(!look_again(&s, &look));
	ck_assert_uint_eq(look.bytes, BYTES);
	world_free(s.world);
}
END_TEST

/* Of memory of a GPU the host knows only what the publisher says. */
START_TEST(limbo_of_any_length_does_not_wrap)
{
	struct scene s = set();
	struct xm_limbo_look look;
	u32 i;

	end(&s, 0);
	for (i = 0; i < 2; i++)
		xm_store(&xm_slot_row(s.map, s.slot[i])->length, ~0ULL - BYTES);
	ck_assert_uint_eq(xm_limbo_of(s.map, s.reader), ~0ULL);
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[0] / XMEM_GROUP_SLOTS), ~0ULL);
	begin_limbo(10);
	ck_assert(look_once(&s, &look, s.reader, ~0ULL - 1));
	ck_assert(look_again(&s, &look));
	ck_assert_uint_eq(look.bytes, ~0ULL);
	world_free(s.world);
}
END_TEST

START_TEST(a_pool_allows_no_more_limbo_than_is_asked_for)
{
	struct xmem_join_request join = { .limbo_bytes = 0 };

	ck_assert_int_eq(xm_limbo_fits(~0ULL, &join), 0);
	join.limbo_bytes = 10;
	ck_assert_int_eq(xm_limbo_fits(10, &join), 0);
	ck_assert_int_eq(xm_limbo_fits(9, &join), 0);
	ck_assert_int_eq(xm_limbo_fits(11, &join), -ERANGE);
	join.limbo_bytes = ~0ULL;
	ck_assert_int_eq(xm_limbo_fits(~0ULL, &join), 0);
}
END_TEST

void limbo_tests(Suite *suite)
{
	TCase *tcase = tcase_create("limbo");

	tcase_add_test(tcase, limbo_of_a_holder_is_what_ended_owners_have_left);
	tcase_add_test(tcase, too_much_is_what_is_held_at_one_moment);
	tcase_add_test(tcase, limbo_of_any_length_does_not_wrap);
	tcase_add_test(tcase, a_pool_allows_no_more_limbo_than_is_asked_for);
	suite_add_tcase(suite, tcase);
}
