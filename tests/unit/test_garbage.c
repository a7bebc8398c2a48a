// SPDX-License-Identifier: MIT
/*
 * Hostile and broken clients: whatever a client's own pages contain, the others and the host
 * continue, and no client holds or frees a buffer of another (P4).
 */
#include "core/history.h"
#include "unit.h"

struct feud {
	struct world *world;
	const struct xm_map *map;
	u32 bad, good, reader;
	u32 bad_slot[4], good_slot[4];
	u64 good_token;
	struct xm_follow follow;	/* the reader follows bad */
};

static struct feud feud_make(void)
{
	struct feud f = { .world = world_make(128, 6, 8) };

	f.map = &f.world->host.map;
	f.bad = world_join(f.world, XMEM_ROLE_WRITER, 0);
	f.good = world_join(f.world, XMEM_ROLE_WRITER, 0);
	f.reader = world_join(f.world, XMEM_ROLE_READER, 0);
	world_attach(f.world, f.bad, 4, f.bad_slot);
	world_attach(f.world, f.good, 4, f.good_slot);
	f.good_token = world_take_publish(f.world, f.good, f.good_slot[0]);
	f.follow = world_subscribe(f.world, f.reader, f.bad, 0);
	return f;
}

/* Both end afterwards, in either order, and the pool is like a new one. */
static void feud_end(struct feud *f)
{
	world_end(f->world, f->bad);
	world_end(f->world, f->reader);
	world_end(f->world, f->good);
	world_is_clean(f->world);
	ck_assert_uint_eq(world_count(f->world, XMEM_OWNER_NONE), f->map->slots);
	world_free(f->world);
}

static int receive(struct feud *f)
{
	struct xm_publication what;
	struct xm_pending pending;
	int err;

	memset(&what, 0xa5, sizeof(what));
	err = xm_receive(f->map, f->reader, &f->follow, &what, &pending);
	if (!err)
		world_put(f->world, f->reader, xm_token_slot(what.token));
	return err;
}

START_TEST(garbage_entries_are_skipped_or_held_and_put)
{
	static const u64 garbage[] = { 0, 1, 63, 64, 127, 128, 65535, ~0ULL, POISON };
	struct feud f = feud_make();
	u32 i, tries;

	for (i = 0; i < ARRAY_SIZE(garbage); i++) {
		struct xmem_entry *entry = xm_entry(f.map, f.bad, f.follow.place);

		*entry = (struct xmem_entry){ .position = f.follow.place + 1, .token = garbage[i] };
		for (tries = 0; tries < 4 && receive(&f) == -EBUSY; tries++)
			;
		ck_assert_uint_lt(tries, 4);
		ck_assert_uint_eq(world_holds(f.world), 0);
	}
	feud_end(&f);
}
END_TEST

START_TEST(entry_naming_anothers_slot_is_received_by_a_full_get_only)
{
	struct feud f = feud_make();

	/* another owner's true token: it is as good as if it had been sent */
	*xm_entry(f.map, f.bad, 0) = (struct xmem_entry){ .position = 1, .token = f.good_token };
	ck_assert_int_eq(receive(&f), 0);
	/* a stale one: lost, not received */
	*xm_entry(f.map, f.bad, 1) = (struct xmem_entry){
		.position = 2, .token = f.good_token - (1 << 16),
	};
	ck_assert_int_eq(receive(&f), -EBUSY);
	ck_assert_uint_eq(f.follow.place, 2);
	ck_assert_uint_eq(f.follow.lost, 1);
	/* and one that its owner is scanning */
	xm_slot(f.map, f.good_slot[0])->state += XMEM_SLOT_SCANNING - XMEM_SLOT_LIVE;
	*xm_entry(f.map, f.bad, 2) = (struct xmem_entry){ .position = 3, .token = f.good_token };
	ck_assert_int_eq(receive(&f), -EBUSY);
	ck_assert_uint_eq(f.follow.place, 2);
	ck_assert_uint_eq(world_holds(f.world), 0);
	feud_end(&f);
}
END_TEST

START_TEST(garbage_positions_never_move_a_cursor_back)
{
	static const u64 garbage[] = {
		~0ULL, 1ULL << 63, (1ULL << 63) - 1, 1ULL << 62, 5, XMEM_ENTRY_VOID | 5,
		XMEM_ENTRY_VOID | 1, POISON,
	};
	struct feud f = feud_make();
	u32 i, t;

	for (t = 0; t < ARRAY_SIZE(garbage); t++)
		for (i = 0; i < ARRAY_SIZE(garbage); i++) {
			u64 before = f.follow.place;

			xm_ring(f.map, f.bad)->tail = garbage[t] / 3;
			xm_entry(f.map, f.bad, f.follow.place)->position = garbage[i];
			receive(&f);
			ck_assert_uint_ge(f.follow.place, before);
			ck_assert_uint_eq(world_holds(f.world), 0);
		}
	feud_end(&f);
}
END_TEST

/* Receive all history that the ring of `bad` shows. Returns how many were held, and put. */
static u32 look_back(struct feud *f, u32 count)
{
	struct xm_followed_words words = xm_followed_words(f->map, f->reader, f->bad);
	struct xm_past past = xm_past_begin(f->map, f->reader, &f->follow, count);
	struct xm_publication what;
	struct xm_pending pending;
	u32 held = 0, tries = 0;
	int err;

	ck_assert(!past.end || past.end - past.place <= f->map->ring_mask + 1);
	do {
		pending = (struct xm_pending){ XM_NOTHING, 0 };
		err = xm_past_hold(f->map, f->reader, &words, &f->follow, &past, &what, &pending);
		ck_assert_uint_lt(++tries, 100);
		if (err && err != -EAGAIN)
			continue;
		world_put(f->world, f->reader, xm_token_slot(what.token));
		held += !err;
		past.place++;
	} while (err != -ENOENT);
	ck_assert_uint_eq(world_holds(f->world), 0);
	return held;
}

START_TEST(garbage_in_history_is_held_or_passed)
{
	static const u64 garbage[] = { 0, 1, 63, 64, 127, 128, 65535, ~0ULL, POISON };
	struct feud f = feud_make();
	u32 i;

	/* As if it had published eight times. */
	xm_ring(f.map, f.bad)->tail = 8;
	world_unsubscribe(f.world, f.reader, &f.follow);
	f.follow = world_subscribe(f.world, f.reader, f.bad, 0);
	for (i = 0; i < 8; i++)
		*xm_entry(f.map, f.bad, i) = (struct xmem_entry){ .position = i + 1 };
	for (i = 0; i < ARRAY_SIZE(garbage); i++) {
		xm_entry(f.map, f.bad, i % 8)->token = garbage[i];
		ck_assert_uint_eq(look_back(&f, 8), 0);
	}
	/* Another owner's true token is as good as if it had been sent; a stale one is not. */
	xm_entry(f.map, f.bad, 3)->token = f.good_token;
	xm_entry(f.map, f.bad, 5)->token = f.good_token - (1 << 16);
	ck_assert_uint_eq(look_back(&f, 8), 1);
	ck_assert_uint_eq(look_back(&f, 0), 0);
	/*
	 * One that its owner scans is in doubt; one with another position is another publication's.
	 */
	xm_slot(f.map, f.good_slot[0])->state += XMEM_SLOT_SCANNING - XMEM_SLOT_LIVE;
	ck_assert_uint_eq(look_back(&f, 1), 0);
	xm_slot(f.map, f.good_slot[0])->state -= XMEM_SLOT_SCANNING - XMEM_SLOT_LIVE;
	ck_assert_uint_eq(look_back(&f, ~0u), 1);
	xm_entry(f.map, f.bad, 3)->position |= XMEM_ENTRY_VOID;
	ck_assert_uint_eq(look_back(&f, ~0u), 0);
	xm_entry(f.map, f.bad, 3)->position = 12;
	ck_assert_uint_eq(look_back(&f, ~0u), 0);
	feud_end(&f);
}
END_TEST

START_TEST(the_latest_of_a_garbage_ring_never_move_a_cursor_back)
{
	static const u64 tail[] = { ~0ULL, 1ULL << 63, 0, 5, 100, 1, POISON };
	struct feud f = feud_make();
	struct xm_past past = { 0, 0 };
	struct xm_pending pending = { XM_NOTHING, 0 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(tail); i++) {
		u64 before = f.follow.place, lost = f.follow.lost;

		xm_ring(f.map, f.bad)->tail = tail[ARRAY_SIZE(tail) - 1 - i] / 3;
		xm_receive_latest(f.map, f.reader, &f.follow, &past, 2, &pending);
		ck_assert_uint_ge(f.follow.place, before);
		ck_assert_uint_eq(f.follow.lost - lost, f.follow.place - before);
		ck_assert_uint_eq(xm_load(xm_cursor(f.map, f.reader, f.bad)), f.follow.place);
	}
	feud_end(&f);
}
END_TEST

START_TEST(subscribing_to_a_garbage_tail_harms_nobody)
{
	static const u64 garbage[] = { ~0ULL, ~0ULL - 1, 1ULL << 63, 1ULL << 62, POISON };
	u32 i, tries;

	for (i = 0; i < ARRAY_SIZE(garbage); i++) {
		struct feud f = feud_make();

		world_unsubscribe(f.world, f.reader, &f.follow);
		xm_ring(f.map, f.bad)->tail = garbage[i];
		f.follow = world_subscribe(f.world, f.reader, f.bad, 0);
		look_back(&f, ~0u);
		for (tries = 0; tries < 20; tries++)
			receive(&f);
		ck_assert_uint_eq(world_holds(f.world), 0);
		ck_assert(world_scan(f.world, f.good, f.good_slot[0], false, 0));
		feud_end(&f);
	}
}
END_TEST

START_TEST(garbage_cursors_and_holds_only_keep_slots_busy)
{
	static const u64 garbage[] = { 0, 1, 7, 1ULL << 40, ~0ULL - 1, ~0ULL, POISON };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(garbage); i++) {
		struct feud f = feud_make();
		struct xm_follow mine;

		world_end(f.world, f.reader);
		mine = world_subscribe(f.world, f.bad, f.good, 0);
		(void)mine;
		for (k = 0; k < f.map->clients; k++)
			*xm_cursor(f.map, f.bad, k) = garbage[i];
		for (k = 0; k < f.map->slots; k++)
			*xm_hold(f.map, f.bad, k) = garbage[i] | 1;
		ck_assert(!world_scan(f.world, f.good, f.good_slot[0], true, 0));
		world_end(f.world, f.bad);
		ck_assert(world_scan(f.world, f.good, f.good_slot[0], false, 0));
		f.bad = world_join(f.world, XMEM_ROLE_READER, 0);
		f.reader = world_join(f.world, XMEM_ROLE_READER, 0);
		feud_end(&f);
	}
}
END_TEST

static void fill(struct feud *f, void *at, u64 bytes, u32 kind)
{
	u64 *word = at, i;

	for (i = 0; i < bytes / 8; i++)
		word[i] = kind == 0 ? 0 : kind == 1 ? ~0ULL :
			  unit_random(&f->world->random) >> kind % 64;
}

/* All words that a client can write are noise; then it ends. Its readers soon see an end, too. */
START_TEST(client_of_pure_noise_ends_cleanly)
{
	u32 kind, tries;
	int err;

	for (kind = 0; kind < 64; kind++) {
		struct feud f = feud_make();

		fill(&f, f.map->area[f.bad], f.map->pool->area_stride, kind);
		fill(&f, f.map->group[f.bad_slot[0] / XMEM_GROUP_SLOTS],
		     f.map->pool->group_stride, kind);
		for (tries = 0; tries < 100; tries++)
			receive(&f);
		ck_assert_uint_eq(*xm_hold(f.map, f.reader, f.good_slot[0]), 0);
		world_end(f.world, f.bad);
		for (tries = 0; tries < 100; tries++) {
			err = receive(&f);
			if (err == -EPIPE)
				break;
		}
		ck_assert_int_eq(err, -EPIPE);
		ck_assert_int_eq(xm_get(f.map, f.reader, f.good_token), 0);
		world_put(f.world, f.reader, f.good_slot[0]);
		ck_assert(world_scan(f.world, f.good, f.good_slot[0], false, 0));
		f.bad = world_join(f.world, XMEM_ROLE_READER, 0);
		feud_end(&f);
	}
}
END_TEST

/* ---- the repaired ring ---- */

static void repair(u64 tail, u64 *position)
{
	struct feud f = feud_make();
	u32 i;

	xm_ring(f.map, f.bad)->tail = tail;
	for (i = 0; i < 8; i++)
		xm_entry(f.map, f.bad, i)->position = position[i];
	xm_host_end(&f.world->host, f.bad);
	for (i = 0; i < 8; i++)
		position[i] = xm_entry(f.map, f.bad, i)->position;
	position[8] = xm_ring(f.map, f.bad)->tail;
	world_reap(f.world);
	f.bad = world_join(f.world, XMEM_ROLE_READER, 0);
	feud_end(&f);
}

START_TEST(repair_believes_the_entries_not_the_tail)
{
	u64 p[9] = { 1, 2, 3 };

	repair(1000, p);
	ck_assert_uint_eq(p[8], 3);
	ck_assert_uint_eq(p[2], 3);
	ck_assert_uint_eq(p[3], 0);
}
END_TEST

START_TEST(repair_voids_what_is_half_written)
{
	u64 p[9] = { 9, 10, 0, 4, 5, 6, 7, 8 };		/* place 10 was opened over place 2 */

	repair(10, p);
	ck_assert_uint_eq(p[8], 10);
	ck_assert_uint_eq(p[2], 3 | XMEM_ENTRY_VOID);
	ck_assert_uint_eq(p[0], 9);
	ck_assert_uint_eq(p[7], 8);
}
END_TEST

START_TEST(repair_keeps_what_was_taken_back)
{
	u64 p[9] = { 1 | XMEM_ENTRY_VOID, 2, 3 | XMEM_ENTRY_VOID };

	repair(3, p);
	ck_assert_uint_eq(p[8], 3);
	ck_assert_uint_eq(p[0], 1 | XMEM_ENTRY_VOID);
	ck_assert_uint_eq(p[2], 3 | XMEM_ENTRY_VOID);
}
END_TEST

/*
 * Wherever it begins, each of the last D places reads as itself or void, and never as another
 * place.
 */
START_TEST(repair_leaves_a_ring_that_fits_together)
{
	u64 state = 4711, p[9], k;
	u32 round, i, most = unit_scaled(2000);

	for (round = 0; round < most; round++) {
		for (i = 0; i < 8; i++) {
			p[i] = unit_random(&state);
			if (round % 3)
				p[i] = p[i] % 40 | (p[i] >> 60 == 1 ? XMEM_ENTRY_VOID : 0);
		}
		repair(unit_random(&state) % 40, p);
		for (i = 0; i < 8; i++) {
			k = xm_position(p[i]);
			if (!k) {
				ck_assert(p[8] <= i);
				continue;
			}
			ck_assert_uint_eq((k - 1) % 8, i);
			ck_assert_uint_le(k, p[8]);
			ck_assert_uint_gt(k + 8, p[8]);
		}
	}
}
END_TEST

void garbage_tests(Suite *suite)
{
	TCase *tcase = tcase_create("garbage");

	tcase_add_test(tcase, garbage_entries_are_skipped_or_held_and_put);
	tcase_add_test(tcase, entry_naming_anothers_slot_is_received_by_a_full_get_only);
	tcase_add_test(tcase, garbage_positions_never_move_a_cursor_back);
	tcase_add_test(tcase, garbage_in_history_is_held_or_passed);
	tcase_add_test(tcase, the_latest_of_a_garbage_ring_never_move_a_cursor_back);
	tcase_add_test(tcase, subscribing_to_a_garbage_tail_harms_nobody);
	tcase_add_test(tcase, garbage_cursors_and_holds_only_keep_slots_busy);
	tcase_add_test(tcase, client_of_pure_noise_ends_cleanly);
	tcase_add_test(tcase, repair_believes_the_entries_not_the_tail);
	tcase_add_test(tcase, repair_voids_what_is_half_written);
	tcase_add_test(tcase, repair_keeps_what_was_taken_back);
	tcase_add_test(tcase, repair_leaves_a_ring_that_fits_together);
	suite_add_tcase(suite, tcase);
}
