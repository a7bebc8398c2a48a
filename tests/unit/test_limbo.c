// SPDX-License-Identifier: MIT
/*
 * How much limbo of ended owners one client holds: what counts, and at which moment. And how much
 * of it its ring keeps.
 */
#include "core/limbo.h"
#include "core/publish.h"
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
	xm_host_end(&s->world->host, s->writer[i], false);
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

	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), 0);
	end(&s, 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[0] / XMEM_GROUP_SLOTS), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[2] / XMEM_GROUP_SLOTS), 0);
	/* A slot counts once for each of its holders, however many holds they have. */
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.other), 0);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[0]), 0);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token[0]), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.other), BYTES);
	end(&s, 1);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), 4 * BYTES);
	world_put(s.world, s.reader, s.slot[3]);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), 3 * BYTES);
	/* The slot is freed, and so are its bytes. */
	world_reclaim(&s.world->host, s.slot[3]);
	ck_assert_uint_eq(xm_limbo_in_group(s.map, s.slot[3] / XMEM_GROUP_SLOTS), BYTES);
	/* A slot without holds that count keeps nothing. */
	let_hold(&s, false);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), 0);
	let_hold(&s, true);
	/* A slot that it has forwarded and holds no more does not count. */
	xm_store(xm_hold(s.map, s.reader, s.slot[2]), XM_HOLD_FORWARDED);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), 2 * BYTES);
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
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, me), BYTES);
	world_put(s.world, me, slot);
	ck_assert_uint_eq(world_reap(s.world), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, me), BYTES);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, third), 0);
	ck_assert_uint_eq(xm_holds_of(s.map, me, slot, xm_hold(s.map, me, slot)), 1);
	request.flags = XMEM_UPGRADE_GIVE_UP;
	ck_assert_int_eq(xm_host_upgrade(&s.world->host, me, &request), 0);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, me), 0);
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
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, NULL, s.reader, group[0]), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, NULL, s.reader, group[1]), 0);
	end(&s, 1);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, NULL, s.reader, group[0]), 2 * BYTES);
	ck_assert_uint_eq(xm_limbo_of_in_group(s.map, NULL, s.reader, group[1]), 2 * BYTES);
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

/* The first check. true: another one follows. */
static bool look_once(const struct scene *s, struct xm_limbo_look *look, u32 client, u64 most)
{
	memset(look, 0xa5, sizeof(*look));
	look->client = client;
	look->most = most;
	look->bytes = look->first = look->group = 0;
	look->again = false;
	look->since_ns = since;
	look->claims = NULL;
	look->now_ns = XM_LIMBO_GRACE_NS + 10;
	while (!look->again)
		if (xm_limbo_step(s->map, look))
			return false;
	return true;
}

static bool look_again(const struct scene *s, struct xm_limbo_look *look)
{
	while (!xm_limbo_step(s->map, look))
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
	/* Not yet; and not if the host has not recorded since when. */
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
	/* It puts one between the checks. */
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
	/* At the second check one of them has another owner. */
	ck_assert(look_once(&s, &look, s.reader, BYTES));
	xm_store(&xm_slot_row(s.map, s.slot[3])->owner, s.other);
	ck_assert(!look_again(&s, &look));
	ck_assert_uint_eq(look.bytes, BYTES);
	world_free(s.world);
}
END_TEST

/* For memory of a GPU the host knows only the length that the publisher has written. */
START_TEST(limbo_of_any_length_does_not_wrap)
{
	struct scene s = set();
	struct xm_limbo_look look;
	u32 i;

	end(&s, 0);
	for (i = 0; i < 2; i++)
		xm_store(&xm_slot_row(s.map, s.slot[i])->length, ~0ULL - BYTES);
	ck_assert_uint_eq(xm_limbo_of(s.map, NULL, s.reader), ~0ULL);
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

/* ---- rings ---- */

#define ENDED_NS	1000
#define OLD_NS		(ENDED_NS + XM_LIMBO_GRACE_NS)

/* An owner that has ended. Two stages have forwarded all its slots, and a reader follows both. */
struct rings {
	struct world *world;
	const struct xm_map *map;
	u32 owner, stage[2], reader;
	u32 slot[4];
	u64 token[4];
	struct xm_follow follow[2];
};

static void pass_on(const struct rings *r, u32 stage, u32 i)
{
	struct xm_publisher_words words = xm_publisher_words(r->map, stage);
	struct xm_publication what = { .token = r->token[i], .length = 16 };

	ck_assert_int_eq(xm_get(r->map, stage, r->token[i]), 0);
	xm_forward(r->map, stage, &words, xm_load(&words.ring->tail), &what, 0);
	world_put(r->world, stage, r->slot[i]);
}

/* @stages: how many of the two have forwarded them. */
static struct rings rings_make(u32 stages)
{
	struct rings r = { .world = world_make(256, 8, 8) };
	u32 i;

	r.map = &r.world->host.map;
	r.owner = world_join(r.world, XMEM_ROLE_WRITER, 0);
	r.reader = world_join(r.world, XMEM_ROLE_READER, 0);
	for (i = 0; i < 2; i++) {
		r.stage[i] = world_join(r.world, XMEM_ROLE_WRITER, 0);
		r.follow[i] = world_subscribe(r.world, r.reader, r.stage[i], 0);
	}
	world_attach(r.world, r.owner, 4, r.slot);
	for (i = 0; i < 4; i++)
		r.token[i] = world_take_publish(r.world, r.owner, r.slot[i]);
	for (i = 0; i < 4 * stages; i++)
		pass_on(&r, r.stage[i / 4], i % 4);
	xm_host_end(&r.world->host, r.owner, false);
	xm_host_limbo(&r.world->host, ENDED_NS);
	return r;
}

/* Sweep all. Returns how many slots are left; *ret_over: ring_over of the first stage. */
static u32 swept(const struct rings *r, u64 now_ns, u64 most, u64 *ret_over)
{
	struct xm_sweep sweep = { .now_ns = now_ns, .ring_most = most };
	u64 payload;
	bool first;
	int slot;

	*ret_over = 0;
	xm_host_suspect_all(&r->world->host);
	do {
		first = sweep.stage == XM_SWEEP_RINGS && sweep.at == r->stage[0];
		slot = xm_host_sweep(&r->world->host, &sweep, &payload);
		*ret_over = first ? sweep.ring_over : *ret_over;
	} while (slot != -ENOENT);
	world_is_valid(r->world);
	return world_count(r->world, XMEM_OWNER_HOST);
}

START_TEST(a_ring_keeps_no_more_limbo_than_it_may)
{
	struct rings r = rings_make(1);
	struct xm_publication what;
	u64 over;

	/* The first sweeps: no limit, not yet too old, and exactly the limit. */
	ck_assert_uint_eq(swept(&r, 0, 0, &over), 4);
	ck_assert_uint_eq(swept(&r, OLD_NS - 1, 0, &over), 4);
	ck_assert_uint_eq(swept(&r, OLD_NS, 4 * BYTES, &over), 4);
	ck_assert_uint_eq(over, 0);
	/* The excess is freed; a second sweep frees nothing, because the ring has its limit now. */
	ck_assert_uint_eq(swept(&r, OLD_NS, 3 * BYTES - 1, &over), 2);
	ck_assert_uint_eq(over, 3 * BYTES);
	ck_assert_uint_eq(swept(&r, OLD_NS, 2 * BYTES, &over), 2);
	ck_assert_uint_eq(over, 0);
	/* The reader gets the first two, and knows that it has lost the others. */
	ck_assert_int_eq(world_receive(r.world, r.reader, &r.follow[0], &what), 0);
	ck_assert_uint_eq(what.token, r.token[0]);
	ck_assert_int_eq(world_receive(r.world, r.reader, &r.follow[0], &what), 0);
	ck_assert_uint_eq(what.token, r.token[1]);
	ck_assert_uint_eq(r.follow[0].lost, 0);
	ck_assert_int_eq(world_receive(r.world, r.reader, &r.follow[0], &what), -EAGAIN);
	ck_assert_uint_eq(r.follow[0].lost, 2);
	/* Holds do not count for the ring. */
	ck_assert_uint_eq(swept(&r, OLD_NS, 0, &over), 2);
	ck_assert_uint_eq(over, 0);
	world_put(r.world, r.reader, r.slot[0]);
	world_put(r.world, r.reader, r.slot[1]);
	ck_assert_uint_eq(world_count(r.world, XMEM_OWNER_HOST), 0);
	world_free(r.world);
}
END_TEST

/* Each slot counts once: for the first ring that may still keep it. */
START_TEST(what_several_rings_keep_counts_for_one)
{
	struct rings r = rings_make(2);
	u64 over;

	ck_assert_uint_eq(swept(&r, OLD_NS, 2 * BYTES, &over), 4);
	ck_assert_uint_eq(over, 3 * BYTES);
	ck_assert_uint_eq(swept(&r, OLD_NS, BYTES, &over), 2);
	ck_assert_uint_eq(over, 2 * BYTES);
	/* The ring of an ended client, too, ends with the entries that have been received. */
	xm_host_end(&r.world->host, r.stage[0], false);
	ck_assert_uint_eq(swept(&r, OLD_NS, BYTES, &over), 2);
	ck_assert_uint_eq(swept(&r, OLD_NS, 0, &over), 0);
	ck_assert_uint_eq(over, BYTES);
	world_free(r.world);
}
END_TEST

/* A client can write one slot into its ring as often as it likes, and any length. */
START_TEST(a_ring_of_any_lengths_does_not_wrap)
{
	struct rings r = rings_make(1);
	u64 over;
	u32 i;

	for (i = 0; i < 4; i++)
		pass_on(&r, r.stage[0], 0);
	ck_assert_uint_eq(swept(&r, OLD_NS, 4 * BYTES, &over), 4);
	ck_assert_uint_eq(over, 0);
	for (i = 1; i < 4; i++)
		xm_store(&xm_slot_row(r.map, r.slot[i])->length, ~0ULL - 1);
	/* The first entry that is left names the second slot, and then one byte is left. */
	ck_assert_uint_eq(swept(&r, OLD_NS, ~0ULL, &over), 1);
	ck_assert_uint_eq(over, ~0ULL);
	world_free(r.world);
}
END_TEST

void limbo_tests(Suite *suite)
{
	TCase *tcase = tcase_create("limbo");

	tcase_add_test(tcase, limbo_of_a_holder_is_what_ended_owners_have_left);
	tcase_add_test(tcase, too_much_is_what_is_held_at_one_moment);
	tcase_add_test(tcase, limbo_of_who_writes_in_place_is_what_it_writes);
	tcase_add_test(tcase, limbo_is_counted_by_groups);
	tcase_add_test(tcase, limbo_of_any_length_does_not_wrap);
	tcase_add_test(tcase, a_pool_allows_no_more_limbo_than_is_asked_for);
	tcase_add_test(tcase, a_ring_keeps_no_more_limbo_than_it_may);
	tcase_add_test(tcase, what_several_rings_keep_counts_for_one);
	tcase_add_test(tcase, a_ring_of_any_lengths_does_not_wrap);
	suite_add_tcase(suite, tcase);
}
