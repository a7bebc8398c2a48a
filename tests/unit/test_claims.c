// SPDX-License-Identifier: MIT
/* Claims (I7): adding, taking, voiding, their list, and how a scan and a get treat them. */
#include "claims.h"

/* ---- counting ---- */

START_TEST(claims_are_counted_and_their_range_is_kept)
{
	struct scene s = scene_make();

	ck_assert_int_eq(add(&s, s.reader, s.token, 0), -ENOENT);
	ck_assert_int_eq(add(&s, s.reader, s.token, 65536), -ERANGE);
	ck_assert_int_eq(add(&s, s.reader, s.token, ~0u), -ERANGE);
	ck_assert_uint_eq(s.map->pool->claimed, 0);
	ck_assert_int_eq(add(&s, s.reader, s.token, 65534), 0);
	ck_assert_int_eq(add(&s, s.owner, s.token, 2), -ERANGE);
	ck_assert_uint_eq(left(&s), 65534);
	ck_assert_int_eq(add(&s, s.owner, s.token, 1), 0);
	ck_assert_int_eq(add(&s, s.owner, s.token, 0), 0);
	ck_assert_uint_eq(left(&s), 65535);
	ck_assert_uint_eq(s.map->pool->claimed, 1);
	ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], ~0ULL, 65535), 0);
	ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], ~0ULL, 1), -ERANGE);
	ck_assert_uint_eq(left(&s), 0);
	scene_end(&s);
}
END_TEST

START_TEST(claims_of_contents_that_are_not_there_are_ESTALE)
{
	struct scene s = scene_make();
	u64 other = s.token + (1ULL << 16), first;
	u32 op;

	for (op = XMEM_CLAIM_ADD; op <= XMEM_CLAIM_VOID; op++) {
		u32 count = op != XMEM_CLAIM_VOID;

		ck_assert_int_eq(claim(&s, s.owner, op, other, count, 0), -ESTALE);
		ck_assert_int_eq(claim(&s, s.owner, op, s.slot[1], count, 0), -ESTALE);
		ck_assert_int_eq(claim(&s, s.owner, op, s.token | 63, count, 0), -ESTALE);
	}
	/* Its owner has forged the word: the host gave it no such generations. */
	first = xm_slot_row(s.map, s.slot[0])->generation_first;
	xm_slot(s.map, s.slot[0])->state = xm_word(first - 1, 0, XMEM_SLOT_LIVE);
	ck_assert_int_eq(add(&s, s.owner, xm_token(first - 1, s.slot[0]), 1), -ESTALE);
	xm_slot(s.map, s.slot[0])->state = xm_word(first, 0, 7);
	ck_assert_int_eq(add(&s, s.owner, xm_token(first, s.slot[0]), 1), -ESTALE);
	ck_assert_uint_eq(left(&s), 0);
	scene_end(&s);
}
END_TEST

START_TEST(fields_out_of_range_are_EINVAL)
{
	struct scene s = scene_make();
	struct xmem_claim_request request = {
		.size = sizeof(request), .slot = 64, .generation = xm_generation(s.token),
	};

	ck_assert_int_eq(xm_host_claim(s.host, s.owner, &request, NOW, true, &s.pending), -EINVAL);
	request.slot = ~0u;
	ck_assert_int_eq(xm_host_claim(s.host, s.owner, &request, NOW, true, &s.pending), -EINVAL);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_UNDO, s.token, 0, 0), -EINVAL);
	ck_assert_int_eq(claim(&s, s.owner, ~0u, s.token, 1, 0), -EINVAL);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_TAKE, s.token, 0, 0), -EINVAL);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_TAKE, s.token, 1, 1), -EINVAL);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 1, 0), -EINVAL);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 0, 1), -EINVAL);
	scene_end(&s);
}
END_TEST

START_TEST(who_may_do_what)
{
	struct scene s = scene_make();
	u32 third = world_join(s.world, XMEM_ROLE_READER, 0);

	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_ADD, s.token, 1, 60 * SECOND + 1), -EPERM);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_ADD, s.token, 3, 60 * SECOND), 0);
	/* without a hold: the client that added it may, and so may the owner */
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_TAKE, s.token, 1, 0), -EPERM);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_TAKE, s.token, 1, 0), 0);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_TAKE, s.token, 1, 0), 0);
	ck_assert_int_eq(xm_get(s.map, third, s.token), 0);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_TAKE, s.token, 1, 0), 0);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_TAKE, s.token, 1, 0), -ERANGE);
	ck_assert_uint_eq(left(&s), 0);
	ck_assert_uint_eq(s.map->pool->claimed, 0);
	world_put(s.world, third, s.slot[0]);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 0, 0), -ENOENT);
	ck_assert_int_eq(add(&s, s.reader, s.token, 1), 0);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_VOID, s.token, 0, 0), -EPERM);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_VOID, s.token, 0, 0), 0);
	ck_assert_int_eq(add(&s, s.reader, s.token, 1), 0);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 0, 0), 0);
	ck_assert_uint_eq(left(&s), 0);
	world_end(s.world, third);
	scene_end(&s);
}
END_TEST

/*
 * Only the owner adds claims to a slot that is being written, and makes it LIVE without an entry.
 */
START_TEST(claims_of_a_slot_that_is_written)
{
	struct scene s = scene_make();
	u64 tail = xm_ring(s.map, s.owner)->tail, token;
	struct xm_own own = xm_own(s.map, s.slot[1]);

	ck_assert_int_eq(xm_take(s.map, s.slot[1]), 0);
	token = xm_token(xm_generation(own.word->state), s.slot[1]);
	own.word->position = XMEM_POSITION_IN_HAND;
	ck_assert_int_eq(add(&s, s.reader, token, 1), -ESTALE);
	ck_assert_int_eq(add(&s, s.owner, token, 2), 0);
	ck_assert_int_eq(xm_get(s.map, s.reader, token), -ESTALE);
	world_put(s.world, s.reader, s.slot[1]);
	ck_assert_uint_eq(xm_make_live(&own), token);
	ck_assert_uint_eq(own.word->position, 0);
	ck_assert_uint_eq(xm_ring(s.map, s.owner)->tail, tail);
	ck_assert_int_eq(xm_get(s.map, s.reader, token), 0);
	ck_assert(!world_scan(s.world, s.owner, s.slot[1], true, 0));
	ck_assert_int_eq(xm_claim_take(s.map, s.slot[1], ~0ULL, 2), 0);
	world_put(s.world, s.reader, s.slot[1]);
	ck_assert(world_scan(s.world, s.owner, s.slot[1], true, 0));
	scene_end(&s);
}
END_TEST

/* ---- get and scan ---- */

START_TEST(a_get_finds_contents_with_claims_and_nothing_else)
{
	static const u32 counts[] = { 1, 2, 255, 256, 32768, 65535 };
	struct scene s = scene_make();
	u64 first = xm_slot_row(s.map, s.slot[0])->generation_first;
	u64 forged[] = { 0, 1, first - 1, first + 1, first + (1ULL << XMEM_TENANCY_SHIFT),
			 (1ULL << 48) - 1 };
	u32 i, k;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		ck_assert_int_eq(add(&s, s.owner, s.token, counts[i]), 0);
		ck_assert_int_eq(xm_look_at_once(s.map, s.token), -EAGAIN);
		ck_assert_int_eq(xm_get(s.map, s.reader, s.token), 0);
		world_put(s.world, s.reader, s.slot[0]);
		for (k = 0; k < ARRAY_SIZE(forged); k++) {
			u64 token = xm_token(forged[k], s.slot[0]);

			if (token == s.token)
				continue;
			ck_assert_int_eq(xm_get(s.map, s.reader, token), -ESTALE);
			world_put(s.world, s.reader, s.slot[0]);
		}
		ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], ~0ULL, counts[i]), 0);
		ck_assert_int_eq(xm_look_at_once(s.map, s.token), 0);
	}
	/* A slot without an owner has neither generations nor claims. */
	ck_assert_uint_eq(xm_claims_of(s.map, 63), 0);
	xm_slot(s.map, 63)->state = xm_word((1ULL << 48) - 1, 0, XMEM_SLOT_LIVE);
	ck_assert_int_eq(xm_get(s.map, s.reader, xm_token((1ULL << 48) - 1, 63)), -ESTALE);
	world_put(s.world, s.reader, 63);
	ck_assert_int_eq(xm_claim_take(s.map, 63, ~0ULL, 1), -ERANGE);
	xm_slot(s.map, 63)->state = 0;
	scene_end(&s);
}
END_TEST

START_TEST(what_has_claims_is_in_use)
{
	struct scene s = scene_make();

	ck_assert_int_eq(add(&s, s.reader, s.token, 1), 0);
	ck_assert_uint_eq(xm_group_claimed(s.map, 0, ~0ULL), 1ULL << s.slot[0]);
	ck_assert(!world_scan(s.world, s.owner, s.slot[0], true, 0));
	ck_assert_int_eq(xm_look(s.map, s.token), 0);
	/* also when it is the host's */
	world_end(s.world, s.owner);
	ck_assert_uint_eq(world_reap(s.world), 0);
	ck_assert_uint_eq(left(&s), 1);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_TAKE, s.token, 1, 0), 0);
	ck_assert_int_eq(s.pending.what, XM_RECLAIM_SLOT);
	ck_assert_uint_eq(world_reap(s.world), 1);
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	scene_end(&s);
}
END_TEST

START_TEST(what_is_freed_or_renewed_has_no_claims_any_more)
{
	struct scene s = scene_make();
	struct xmem_slot_request request = { .slot = s.slot[1] };
	u64 token;

	xm_take(s.map, s.slot[1]);
	token = xm_token(xm_generation(xm_slot(s.map, s.slot[1])->state), s.slot[1]);
	ck_assert_int_eq(add(&s, s.owner, token, 5), 0);
	ck_assert_uint_eq(s.map->pool->claimed, 1);
	ck_assert_int_eq(xm_host_renew(s.host, s.owner, 1, &request), 0);
	ck_assert_uint_eq(xm_claims_of(s.map, s.slot[1]), 0);
	ck_assert_uint_eq(s.map->pool->claimed, 0);
	world_is_valid(s.world);
	/* Its owner dies between the claims and LIVE. */
	token = xm_token(request.generation, s.slot[1]);
	ck_assert_int_eq(add(&s, s.owner, token, 5), 0);
	world_end(s.world, s.owner);
	ck_assert_uint_eq(xm_slot_row(s.map, s.slot[1])->owner, XMEM_OWNER_NONE);
	ck_assert_uint_eq(s.map->pool->claimed, 0);
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	scene_end(&s);
}
END_TEST

/* ---- races ---- */

static struct scene *racing;
static int race_step, race_err;

static void add_at_step(int step, void *arg)
{
	if (step != race_step)
		return;
	unit_step = NULL;
	race_err = add(racing, racing->reader, racing->token, 1);
}

START_TEST(claims_added_within_a_scan)
{
	u32 before;
	int step;

	for (step = XM_STEP_SCAN_CURSORS; step <= XM_STEP_SCAN_HOLDS; step++) {
		for (before = 0; before < 2; before++) {
			struct scene s = scene_make();
			bool mine;

			if (before)
				add(&s, s.owner, s.token, 1);
			racing = &s;
			race_step = step;
			unit_step = add_at_step;
			mine = world_scan(s.world, s.owner, s.slot[0], true, 0);
			unit_step = NULL;
			if (before || step == XM_STEP_SCAN_CURSORS) {
				ck_assert_int_eq(race_err, 0);
				ck_assert(!mine);
				ck_assert_uint_eq(left(&s), before + 1);
			} else {
				ck_assert_int_eq(race_err, -EAGAIN);
				ck_assert(mine);
				ck_assert_uint_eq(left(&s), 0);
			}
			scene_end(&s);
		}
	}
}
END_TEST

static bool scan_mine;

static void scan_at_step(int step, void *arg)
{
	if (step != XM_STEP_CLAIM_ADDED)
		return;
	unit_step = NULL;
	scan_mine = world_scan(racing->world, racing->owner, racing->slot[0], true, 0);
}

/* The owner marks the slot, and a claim is added before it checks the claims. */
static void mark_at_step(int step, void *arg)
{
	struct xmem_slot_word *word = xm_slot(racing->map, racing->slot[0]);

	if (step != XM_STEP_CLAIM_ADDED)
		return;
	unit_step = NULL;
	word->state += XMEM_SLOT_SCANNING - XMEM_SLOT_LIVE;
}

START_TEST(a_scan_within_the_adding_of_claims)
{
	struct scene s = scene_make();

	racing = &s;
	unit_step = scan_at_step;
	ck_assert_int_eq(add(&s, s.reader, s.token, 1), 0);
	ck_assert(!scan_mine);
	ck_assert_uint_eq(left(&s), 1);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_TAKE, s.token, 1, 0), 0);

	xm_arm(&xm_client_row(s.map, s.owner)->slots_waiters);
	unit_step = mark_at_step;
	ck_assert_int_eq(add(&s, s.reader, s.token, 1), -EAGAIN);
	unit_step = NULL;
	ck_assert_uint_eq(left(&s), 0);
	ck_assert_uint_eq(s.map->pool->claimed, 0);
	/* The owner may have seen the claim. */
	ck_assert_int_eq(s.pending.what, XM_WAKE_OWNER);
	xm_slot(s.map, s.slot[0])->state += XMEM_SLOT_LIVE - XMEM_SLOT_SCANNING;
	scene_end(&s);
}
END_TEST

/* ---- ends ---- */

static u32 timed(const struct scene *s)
{
	return s->host->claims->timed;
}

START_TEST(claims_expire_at_their_deadlines)
{
	static const u64 timeouts[4] = { 3 * SECOND, SECOND, ~0ULL, 2 * SECOND };
	struct scene s = scene_make();
	u64 token[4];
	u32 i;

	token[0] = s.token;
	for (i = 1; i < 4; i++)
		token[i] = world_take_publish(s.world, s.owner, s.slot[i]);
	ck_assert_int_eq(tick(&s, ~0ULL - 1), -ENOENT);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_ADD, token[i], i + 1, timeouts[i]),
				 0);
	ck_assert_uint_eq(timed(&s), 3);
	ck_assert_int_eq(tick(&s, NOW + SECOND - 1), -ENOENT);
	/* A shorter time changes nothing; a longer one counts. */
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_ADD, token[3], 1, 1), 0);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_ADD, token[1], 0, 4 * SECOND), 0);
	ck_assert_int_eq(tick(&s, NOW + 2 * SECOND - 1), -ENOENT);
	ck_assert_int_eq(tick(&s, NOW + 2 * SECOND), s.slot[3]);
	ck_assert_int_eq(tick(&s, NOW + 2 * SECOND), -ENOENT);
	/* Those of slot 0 are taken without the host. The next tick sees that early. */
	ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], ~0ULL, 1), 0);
	ck_assert_uint_eq(timed(&s), 2);
	ck_assert_int_eq(tick(&s, NOW + 2 * SECOND), -ENOENT);
	ck_assert_uint_eq(timed(&s), 1);
	ck_assert_int_eq(tick(&s, NOW + 5 * SECOND), s.slot[1]);
	ck_assert_int_eq(tick(&s, ~0ULL - 1), -ENOENT);
	ck_assert_uint_eq(timed(&s), 0);		/* no tick is needed any more */
	ck_assert_uint_eq(s.map->pool->claimed, 1);
	ck_assert_uint_eq(xm_claims_of(s.map, s.slot[2]), 3);
	/* Claims with an end become claims without one. */
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_ADD, token[0], 1, SECOND), 0);
	ck_assert_uint_eq(timed(&s), 1);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_ADD, token[0], 1, ~0ULL), 0);
	ck_assert_uint_eq(timed(&s), 0);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, token[0], 0, 0), 0);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, token[2], 0, 0), 0);
	scene_end(&s);
}
END_TEST

#define MANY	256u

/*
 * A part of a tick voids claims of one slot, or looks at 64 slots. So the lock is free again soon,
 * however many claims there are. Each tick voids what has expired by then, and nothing else.
 */
START_TEST(a_tick_looks_at_many_claims_in_parts)
{
	struct world *world = world_make(MANY, 2, 64);
	struct scene s = { .world = world, .host = &world->host, .map = &world->host.map };
	u64 token[MANY], end[MANY] = { 0 }, random = 1, now;
	u32 slot[MANY], at, i, n;
	int next;

	s.owner = world_join(world, XMEM_ROLE_WRITER, 0);
	for (i = 0; i < MANY; i += 64)
		world_attach(world, s.owner, 64, slot + i);
	for (i = 0; i < MANY; i++)
		token[i] = world_take_publish(world, s.owner, slot[i]);
	for (n = 0; n < 8000; n++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		i = random >> 40 & (MANY - 1);
		now = 1 + (random >> 50 & 1023);
		if (random >> 60 < 14) {
			claim(&s, s.owner, XMEM_CLAIM_ADD, token[i], 1, now);
			end[i] = now > end[i] ? now : end[i];
		} else if (random >> 60 < 15) {
			claim(&s, s.owner, XMEM_CLAIM_VOID, token[i], 0, 0);
			end[i] = 0;
		} else if (!xm_claim_take(s.map, slot[i], ~0ULL, 1) &&
			   !xm_claims_of(s.map, slot[i])) {
			end[i] = 0;
		}
		world_is_valid(world);
	}
	for (now = 0; now < 1024 + 100; now += 100) {
		u32 voided = 0, looked = s.host->claims->count;

		for (at = n = 0; (next = xm_host_expire_claims(s.host, NOW + now, &at)) != -ENOENT;
		     n += next == -EAGAIN)
			voided += next >= 0;
		ck_assert_uint_ge(n + voided, looked / 64);
		ck_assert(now || n == looked / 64);
		for (i = 0; i < MANY; i++)
			ck_assert(!xm_claims_of(s.map, slot[i]) == (end[i] <= now));
		world_is_valid(world);
	}
	ck_assert_uint_eq(s.map->pool->claimed, 0);
	ck_assert_uint_eq(timed(&s), 0);
	world_end(world, s.owner);
	world_is_clean(world);
	world_free(world);
}
END_TEST

START_TEST(claims_end_when_nobody_is_left_to_take_them)
{
	struct scene s = scene_make();
	u32 third = world_join(s.world, XMEM_ROLE_READER, 0);
	u64 other = world_take_publish(s.world, s.owner, s.slot[1]);

	ck_assert_int_eq(add(&s, s.reader, s.token, 2), 0);
	ck_assert_int_eq(add(&s, s.owner, other, 1), 0);
	world_end(s.world, s.reader);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);	/* the third is */
	world_end(s.world, third);
	ck_assert_int_eq(left_by(&s, NOW), s.slot[0]);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);
	ck_assert_uint_eq(left(&s), 0);
	ck_assert_uint_eq(xm_claims_of(s.map, s.slot[1]), 1);	/* its owner has added it */

	/* The owner is gone, but a client that may take it is left; then none is. */
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	world_end(s.world, s.owner);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);
	world_end(s.world, s.reader);
	ck_assert_int_eq(left_by(&s, NOW), s.slot[1]);
	ck_assert_int_eq(xm_put_pending(&s.host->map, s.slot[1]).what, XM_RECLAIM_SLOT);
	ck_assert_uint_eq(world_reap(s.world), 1);
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	scene_end(&s);
}
END_TEST

/* ---- rights of clients that have added some ---- */

/* The next client with the id of an ended one has added none. */
START_TEST(what_an_ended_client_has_added_is_nobodys)
{
	struct scene s = scene_make();
	u32 third = world_join(s.world, XMEM_ROLE_READER, 0);

	ck_assert_int_eq(add(&s, third, s.token, 2), 0);
	world_end(s.world, third);
	ck_assert_uint_eq(left(&s), 2);
	ck_assert_uint_eq(world_join(s.world, XMEM_ROLE_READER, 0), third);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_TAKE, s.token, 1, 0), -EPERM);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_VOID, s.token, 0, 0), -EPERM);
	world_end(s.world, third);
	ck_assert_uint_eq(left(&s), 2);
	scene_end(&s);
}
END_TEST

/* The claims that are there then were set aside by others. */
START_TEST(who_has_added_what_was_void_or_taken_has_no_right_to_later_ones)
{
	u32 taken;

	for (taken = 0; taken < 2; taken++) {
		struct scene s = scene_make();

		ck_assert_int_eq(add(&s, s.reader, s.token, 2), 0);
		if (taken)
			ck_assert_int_eq(xm_claim_take(s.map, s.slot[0], ~0ULL, 2), 0);
		else
			ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 0, 0), 0);
		ck_assert_int_eq(add(&s, s.owner, s.token, 1), 0);
		ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_TAKE, s.token, 1, 0), -EPERM);
		ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_VOID, s.token, 0, 0), -EPERM);
		ck_assert_uint_eq(left(&s), 1);
		scene_end(&s);
	}
}
END_TEST

/* Asking for more time for other clients' claims gives no right to them. */
START_TEST(adding_no_claims_gives_no_right)
{
	struct scene s = scene_make();

	ck_assert_int_eq(add(&s, s.owner, s.token, 2), 0);
	ck_assert_int_eq(add(&s, s.reader, s.token, 0), 0);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_VOID, s.token, 0, 0), -EPERM);
	ck_assert_int_eq(claim(&s, s.reader, XMEM_CLAIM_TAKE, s.token, 1, 0), -EPERM);
	ck_assert_uint_eq(left(&s), 2);
	scene_end(&s);
}
END_TEST

START_TEST(all_who_have_added_count_and_not_the_last_alone)
{
	struct scene s = scene_make();

	ck_assert_int_eq(add(&s, s.owner, s.token, 2), 0);
	ck_assert_int_eq(add(&s, s.reader, s.token, 1), 0);
	world_end(s.world, s.reader);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);
	ck_assert_uint_eq(left(&s), 3);
	/* Those are void; a claim that a reader adds then belongs to the reader alone. */
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_VOID, s.token, 0, 0), 0);
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	ck_assert_int_eq(add(&s, s.reader, s.token, 1), 0);
	world_end(s.world, s.reader);
	ck_assert_int_eq(left_by(&s, NOW), s.slot[0]);
	s.reader = world_join(s.world, XMEM_ROLE_READER, 0);
	scene_end(&s);
}
END_TEST

/* Only the owner may ask for claims without end, and it cannot void them any more after its end. */
START_TEST(claims_without_end_have_one_once_their_owner_has_ended)
{
	const u64 bound = NOW + XMEM_CLAIM_LONGEST_NS;
	struct scene s = scene_of(128);	/* for two writers */
	u32 third = world_join(s.world, XMEM_ROLE_WRITER, 0), theirs;
	u64 other;

	world_attach(s.world, third, 1, &theirs);
	other = world_take_publish(s.world, third, theirs);
	ck_assert_int_eq(claim(&s, s.owner, XMEM_CLAIM_ADD, s.token, 2, ~0ULL), 0);
	ck_assert_int_eq(claim(&s, third, XMEM_CLAIM_ADD, other, 1, ~0ULL), 0);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);
	ck_assert_uint_eq(timed(&s), 0);			/* both live */

	world_end(s.world, s.owner);
	ck_assert_int_eq(left_by(&s, NOW), -ENOENT);
	/* A later end does not prolong them. */
	ck_assert_int_eq(left_by(&s, NOW + 1), -ENOENT);
	ck_assert_uint_eq(timed(&s), 1);
	ck_assert_int_eq(tick(&s, bound - 1), -ENOENT);
	ck_assert_int_eq(tick(&s, bound), s.slot[0]);
	ck_assert_int_eq(xm_put_pending(&s.host->map, s.slot[0]).what, XM_RECLAIM_SLOT);
	ck_assert_uint_eq(world_reap(s.world), 1);
	ck_assert_int_eq(tick(&s, ~0ULL - 1), -ENOENT);
	ck_assert_uint_eq(xm_claims_of(s.map, theirs), 1);
	world_end(s.world, third);
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	scene_end(&s);
}
END_TEST

void claims_tests(Suite *suite)
{
	TCase *tcase = tcase_create("claims");

	tcase_add_test(tcase, claims_are_counted_and_their_range_is_kept);
	tcase_add_test(tcase, claims_without_end_have_one_once_their_owner_has_ended);
	tcase_add_test(tcase, claims_of_contents_that_are_not_there_are_ESTALE);
	tcase_add_test(tcase, fields_out_of_range_are_EINVAL);
	tcase_add_test(tcase, who_may_do_what);
	tcase_add_test(tcase, claims_of_a_slot_that_is_written);
	tcase_add_test(tcase, a_get_finds_contents_with_claims_and_nothing_else);
	tcase_add_test(tcase, what_has_claims_is_in_use);
	tcase_add_test(tcase, what_is_freed_or_renewed_has_no_claims_any_more);
	tcase_add_test(tcase, claims_added_within_a_scan);
	tcase_add_test(tcase, a_scan_within_the_adding_of_claims);
	tcase_add_test(tcase, claims_expire_at_their_deadlines);
	tcase_add_test(tcase, a_tick_looks_at_many_claims_in_parts);
	tcase_add_test(tcase, claims_end_when_nobody_is_left_to_take_them);
	tcase_add_test(tcase, what_an_ended_client_has_added_is_nobodys);
	tcase_add_test(tcase, who_has_added_what_was_void_or_taken_has_no_right_to_later_ones);
	tcase_add_test(tcase, adding_no_claims_gives_no_right);
	tcase_add_test(tcase, all_who_have_added_count_and_not_the_last_alone);
	suite_add_tcase(suite, tcase);
}
