// SPDX-License-Identifier: MIT
/*
 * Writing in place: an owner of a shared slot, a writer that holds and upgrades it, and a third
 * client that is in the way.
 */
#include "core/publish.h"
#include "unit.h"

struct stage {
	struct world *world;
	const struct xm_map *map;
	u32 owner, me, other;
	struct xm_follow follow;
	u32 slot[2];
	u64 token;
};

/* The owner has published slot 0; @me has received it, and is the only holder. */
static struct stage stage_make(void)
{
	struct stage s = { .world = world_make(64, 4, 8) };
	struct xm_publication what;
	u32 i;

	s.map = &s.world->host.map;
	s.owner = world_join(s.world, XMEM_ROLE_WRITER, 0);
	s.me = world_join(s.world, XMEM_ROLE_WRITER, 0);
	s.other = world_join(s.world, XMEM_ROLE_WRITER, 0);
	world_attach(s.world, s.owner, 2, s.slot);
	for (i = 0; i < 2; i++)
		xm_slot_row(s.map, s.slot[i])->traits = XMEM_TRAIT_SHARED;
	s.follow = world_subscribe(s.world, s.me, s.owner, 0);
	s.token = world_take_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(world_receive(s.world, s.me, &s.follow, &what), 0);
	return s;
}

static int ask(struct stage *s, u32 who, u32 flags, u64 generation)
{
	struct xmem_upgrade_request request = {
		.flags = flags, .slot = s->slot[0], .generation = generation,
	};
	int err;

	request.metadata.id = 4711;
	err = xm_host_upgrade(&s->world->host, who, &request);
	if (!err && !flags)
		ck_assert_uint_eq(request.generation, generation + 1);
	world_is_valid(s->world);
	return err;
}

static int begin(struct stage *s)
{
	return ask(s, s->me, 0, xm_generation(s->token));
}

static int end(struct stage *s, u32 flags)
{
	return ask(s, s->me, flags, xm_generation(s->token) + 1);
}

static u64 word_of(const struct stage *s)
{
	return xm_load(&xm_slot(s->map, s->slot[0])->state);
}

static u32 upgrader_of(const struct stage *s)
{
	return xm_slot_row(s->map, s->slot[0])->upgrader;
}

static bool taken(struct stage *s)
{
	return world_scan(s->world, s->owner, s->slot[0], true, 0);
}

void unit_upgrade(void)
{
	struct stage s = stage_make();

	ck_assert(!taken(&s));
	world_free(s.world);
}

/* ---- its states ---- */

START_TEST(upgrade_counts_the_generation_and_keeps_the_position)
{
	struct stage s = stage_make();
	u64 generation = xm_generation(s.token), number = xm_scan_number(word_of(&s));

	ck_assert_int_eq(begin(&s), 0);
	ck_assert_uint_eq(word_of(&s), xm_word(generation + 1, number + 1, XMEM_SLOT_UPGRADED));
	ck_assert_uint_eq(upgrader_of(&s), s.me + 1);
	ck_assert(!taken(&s));
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), -EBUSY);
	ck_assert_int_eq(xm_get(s.map, s.other, s.token), -ESTALE);
	world_put(s.world, s.other, s.slot[0]);
	ck_assert_int_eq(end(&s, XMEM_UPGRADE_PUBLISH), 0);
	ck_assert_uint_eq(word_of(&s), xm_word(generation + 1, number + 1, XMEM_SLOT_LIVE));
	ck_assert_uint_eq(upgrader_of(&s), 0);
	ck_assert_uint_eq(xm_load(&xm_slot(s.map, s.slot[0])->position), 1);
	ck_assert_uint_eq(xm_metadata(s.map, s.slot[0])->id, 4711);
	ck_assert(!taken(&s));
	world_put(s.world, s.me, s.slot[0]);
	ck_assert(taken(&s));
	world_free(s.world);
}
END_TEST

START_TEST(what_is_given_up_is_free_and_what_is_cancelled_is_as_before)
{
	struct stage s = stage_make();

	ck_assert_int_eq(begin(&s), 0);
	ck_assert_int_eq(end(&s, XMEM_UPGRADE_CANCEL), 0);
	ck_assert_int_eq(xm_look(s.map, s.token), 0);
	ck_assert_int_eq(begin(&s), 0);
	ck_assert_int_eq(end(&s, XMEM_UPGRADE_GIVE_UP), 0);
	ck_assert_uint_eq(xm_state(word_of(&s)), XMEM_SLOT_FREE);
	ck_assert_uint_eq(xm_metadata(s.map, s.slot[0])->id, 0);
	ck_assert_int_eq(end(&s, XMEM_UPGRADE_GIVE_UP), -EPERM);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	ck_assert_uint_eq(xm_generation(word_of(&s)), xm_generation(s.token) + 2);
	world_free(s.world);
}
END_TEST

/* ---- clients in the way ---- */

START_TEST(another_hold_is_EBUSY)
{
	struct stage s = stage_make();
	u64 word = word_of(&s);

	ck_assert_int_eq(xm_get(s.map, s.other, s.token), 0);
	ck_assert_int_eq(begin(&s), -EBUSY);
	ck_assert_uint_eq(word_of(&s), word);	/* with its number: see upgrade.c */
	ck_assert_uint_eq(upgrader_of(&s), 0);
	world_put(s.world, s.other, s.slot[0]);
	ck_assert_int_eq(xm_hold_more(s.map, s.me, s.slot[0]), 0);
	ck_assert_int_eq(begin(&s), -EBUSY);
	world_put(s.world, s.me, s.slot[0]);
	ck_assert_int_eq(begin(&s), 0);
	world_free(s.world);
}
END_TEST

/* It follows since before the publication; and it does not receive a void entry. */
START_TEST(what_another_has_yet_to_receive_is_EBUSY)
{
	struct stage s = stage_make();
	struct xm_follow late = world_subscribe(s.world, s.other, s.owner, 0);
	struct xm_publication what;
	u64 *position;

	world_put(s.world, s.me, s.slot[0]);
	ck_assert(taken(&s));
	s.token = world_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(world_receive(s.world, s.me, &s.follow, &what), 0);
	ck_assert_int_eq(begin(&s), -EBUSY);
	position = &xm_entry(s.map, s.owner, what.sequence)->position;
	*position |= XMEM_ENTRY_VOID;
	ck_assert_int_eq(begin(&s), 0);
	ck_assert_int_eq(end(&s, XMEM_UPGRADE_CANCEL), 0);
	*position &= ~XMEM_ENTRY_VOID;
	ck_assert_int_eq(begin(&s), -EBUSY);
	ck_assert_int_eq(world_receive(s.world, s.other, &late, &what), 0);
	ck_assert_int_eq(begin(&s), -EBUSY);
	world_put(s.world, s.other, s.slot[0]);
	ck_assert_int_eq(begin(&s), 0);
	world_free(s.world);
}
END_TEST

struct fast {
	struct stage *s;
	struct xm_follow late;
	int err;
};

/* The entry is complete, so a fast client receives it before the tail moves. */
static void receive_and_begin(int step, void *arg)
{
	struct fast *fast = arg;
	struct xm_publication what;

	if (step != XM_STEP_PUBLISH_ENTRY)
		return;
	unit_step = NULL;
	ck_assert_int_eq(world_receive(fast->s->world, fast->s->me, &fast->s->follow, &what), 0);
	fast->s->token = what.token;
	fast->err = begin(fast->s);
}

START_TEST(what_another_receives_when_the_tail_has_moved_is_EBUSY)
{
	struct stage s = stage_make();
	struct fast fast = { &s, world_subscribe(s.world, s.other, s.owner, 0), 1 };
	struct xm_publication what;

	world_put(s.world, s.me, s.slot[0]);
	ck_assert(taken(&s));
	unit_step_arg = &fast;
	unit_step = receive_and_begin;
	world_publish(s.world, s.owner, s.slot[0]);
	ck_assert_int_eq(fast.err, -EBUSY);
	ck_assert_int_eq(world_receive(s.world, s.other, &fast.late, &what), 0);
	ck_assert_uint_eq(what.token, s.token);
	ck_assert_int_eq(begin(&s), -EBUSY);
	world_put(s.world, s.other, s.slot[0]);
	ck_assert_int_eq(begin(&s), 0);
	world_free(s.world);
}
END_TEST

START_TEST(what_was_forwarded_and_not_received_is_EBUSY)
{
	struct stage s = stage_make();
	struct xm_follow follow = world_subscribe(s.world, s.other, s.me, 0);
	struct xm_publisher_words words = xm_publisher_words(s.map, s.me);
	struct xm_publication what = { .token = s.token, .length = 8 };

	xm_forward(s.map, s.me, &words, xm_load(&words.ring->tail), &what, 0);
	ck_assert_int_eq(begin(&s), -EBUSY);
	ck_assert_int_eq(world_receive(s.world, s.other, &follow, &what), 0);
	world_put(s.world, s.other, s.slot[0]);
	ck_assert_int_eq(begin(&s), 0);
	world_free(s.world);
}
END_TEST

START_TEST(who_may_not_upgrade_is_refused)
{
	struct stage s = stage_make();
	u64 generation = xm_generation(s.token), last;

	ck_assert_int_eq(ask(&s, s.other, 0, generation), -EPERM);
	ck_assert_int_eq(ask(&s, s.me, 0, generation + 1), -ESTALE);
	ck_assert_int_eq(ask(&s, s.me, XMEM_UPGRADE_PUBLISH, generation), -EPERM);
	ck_assert_int_eq(ask(&s, s.me, 3, generation), -EINVAL);
	xm_slot_row(s.map, s.slot[0])->traits = 0;
	ck_assert_int_eq(begin(&s), -EOPNOTSUPP);
	xm_slot_row(s.map, s.slot[0])->traits = XMEM_TRAIT_SHARED;
	/* The tenancy's last generation: its owner renews them when it acquires the slot. */
	last = generation | ((1ULL << XMEM_TENANCY_SHIFT) - 1);
	xm_store(&xm_slot(s.map, s.slot[0])->state, xm_word(last, 0, XMEM_SLOT_LIVE));
	ck_assert_int_eq(ask(&s, s.me, 0, last), -ENOSPC);
	ck_assert_int_eq(ask(&s, s.me, 0, last + 1), -ESTALE);
	world_free(s.world);
}
END_TEST

/* ---- in the midst of the owner's scan ---- */

struct midst {
	struct stage *s;
	int step, want, err;
	bool resolve;
	u32 times;
};

static void in_the_midst(int step, void *arg)
{
	struct midst *m = arg;

	if (step != m->step || m->times++)
		return;
	if (m->resolve)
		ck_assert_int_eq(xm_host_resolve(&m->s->world->host, m->s->me, m->s->slot[0],
						 word_of(m->s)), 0);
	m->err = begin(m->s);
}

static void upgrade_in(int step, bool resolve, int want)
{
	struct stage s = stage_make();
	struct midst m = { .s = &s, .step = step, .resolve = resolve };
	u64 generation = xm_generation(s.token);

	unit_step_arg = &m;
	unit_step = in_the_midst;
	ck_assert(!taken(&s));
	unit_step = NULL;
	ck_assert_uint_eq(m.times, 1);
	ck_assert_int_eq(m.err, want);
	if (want) {
		ck_assert_int_eq(xm_look(s.map, s.token), 0);
	} else {
		ck_assert_uint_eq(xm_state(word_of(&s)), XMEM_SLOT_UPGRADED);
		ck_assert_uint_eq(xm_generation(word_of(&s)), generation + 1);
	}
	world_free(s.world);
}

START_TEST(upgrade_in_the_midst_of_the_owners_scan)
{
	static const int marked[] = {
		XM_STEP_SCAN_SCANNING, XM_STEP_SCAN_VOID, XM_STEP_SCAN_HOLDS,
	};
	u32 i;

	upgrade_in(XM_STEP_SCAN_CURSORS, false, 0);
	upgrade_in(XM_STEP_SCAN_SHARED, false, 0);
	for (i = 0; i < ARRAY_SIZE(marked); i++) {
		upgrade_in(marked[i], false, -EAGAIN);
		upgrade_in(marked[i], true, 0);
	}
}
END_TEST

/* ---- ends ---- */

START_TEST(the_writers_end_frees_the_slot)
{
	struct stage s = stage_make();

	ck_assert_int_eq(begin(&s), 0);
	world_end(s.world, s.me);
	ck_assert_uint_eq(xm_state(word_of(&s)), XMEM_SLOT_FREE);
	ck_assert_uint_eq(upgrader_of(&s), 0);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	world_end(s.world, s.owner);
	world_end(s.world, s.other);
	world_is_clean(s.world);
	world_free(s.world);
}
END_TEST

static void the_owner_ends(u32 flags)
{
	struct stage s = stage_make();
	u64 *state = &xm_slot(s.map, s.slot[0])->state;

	ck_assert_int_eq(begin(&s), 0);
	/* The client can leave any value in the word. */
	if (flags & XMEM_UPGRADE_CANCEL)
		xm_store(state, xm_word(xm_generation(*state), 0, XMEM_SLOT_WRITING));
	world_end(s.world, s.owner);
	ck_assert_uint_eq(world_reap(s.world), 0);
	ck_assert_uint_eq(xm_state(word_of(&s)), XMEM_SLOT_UPGRADED);
	ck_assert_uint_eq(xm_slot_row(s.map, s.slot[0])->owner, XMEM_OWNER_HOST);
	if (flags)
		ck_assert_int_eq(end(&s, flags & ~XMEM_UPGRADE_CANCEL), 0);
	if (flags & XMEM_UPGRADE_PUBLISH) {
		ck_assert_uint_eq(world_reap(s.world), 0);	/* it still holds it */
		world_put(s.world, s.me, s.slot[0]);
	}
	world_end(s.world, s.me);
	world_reap(s.world);
	ck_assert_uint_eq(xm_slot_row(s.map, s.slot[0])->owner, XMEM_OWNER_NONE);
	world_end(s.world, s.other);
	world_is_clean(s.world);
	world_free(s.world);
}

START_TEST(the_owners_end_leaves_the_slot_to_its_writer)
{
	the_owner_ends(0);
	the_owner_ends(XMEM_UPGRADE_PUBLISH);
	the_owner_ends(XMEM_UPGRADE_GIVE_UP);
	the_owner_ends(XMEM_UPGRADE_PUBLISH | XMEM_UPGRADE_CANCEL);
}
END_TEST

/* Whatever the owner writes into the word, the slot never has two writers, and all ends well. */
START_TEST(garbage_words_end_well)
{
	static const u32 how[] = { XMEM_UPGRADE_PUBLISH, XMEM_UPGRADE_GIVE_UP };
	u32 state, i;

	for (state = 0; state < 8; state++) {
		for (i = 0; i < ARRAY_SIZE(how); i++) {
			struct stage s = stage_make();
			struct xmem_slot_request slot = { .slot = s.slot[0] };
			u64 payload;

			ck_assert_int_eq(begin(&s), 0);
			xm_store(&xm_slot(s.map, s.slot[0])->state, ~7ULL | state);
			ck_assert_int_eq(xm_host_detach(&s.world->host, s.owner, &slot, ~0u,
							&payload), -EBUSY);
			ck_assert_int_eq(xm_host_renew(&s.world->host, s.owner, 1, &slot),
					 -ESTALE);
			ck_assert_int_eq(end(&s, how[i]),
					 how[i] == XMEM_UPGRADE_GIVE_UP ? 0 : -ESTALE);
			world_end(s.world, s.me);
			ck_assert_uint_eq(upgrader_of(&s), 0);
			world_end(s.world, s.owner);
			world_end(s.world, s.other);
			world_is_clean(s.world);
			world_free(s.world);
		}
	}
}
END_TEST

static int add_claims(struct stage *s, u32 count)
{
	struct xmem_claim_request request = {
		.size = sizeof(request), .op = XMEM_CLAIM_ADD, .slot = s->slot[0],
		.generation = xm_generation(s->token) + 1, .count = count,
	};
	struct xm_pending pending;

	return xm_host_claim(&s->world->host, s->me, &request, 1, false, &pending);
}

/* A client that names a wrong generation harms no other client, and loses nothing. */
START_TEST(ends_with_a_wrong_generation)
{
	static const u32 how[] = { XMEM_UPGRADE_PUBLISH, XMEM_UPGRADE_CANCEL };
	struct stage s = stage_make();
	u64 wrong = xm_generation(s.token) + 7;
	u32 i;

	ck_assert_int_eq(begin(&s), 0);
	for (i = 0; i < ARRAY_SIZE(how); i++) {
		u64 before = word_of(&s);

		ck_assert_int_eq(add_claims(&s, 2), 0);
		ck_assert_int_eq(ask(&s, s.me, how[i], wrong), -ESTALE);
		ck_assert_uint_eq(word_of(&s), before);
		ck_assert_uint_eq(upgrader_of(&s), s.me + 1);
		ck_assert_uint_eq(xm_claims_of(s.map, s.slot[0]), 2 * (i + 1));
	}
	/* The owner gets the slots that the writer gives up. */
	ck_assert_int_eq(ask(&s, s.me, XMEM_UPGRADE_GIVE_UP, wrong), 0);
	ck_assert_uint_eq(upgrader_of(&s), 0);
	ck_assert_uint_eq(xm_state(word_of(&s)), XMEM_SLOT_FREE);
	ck_assert_uint_eq(xm_claims_of(s.map, s.slot[0]), 0);
	world_put(s.world, s.me, s.slot[0]);
	ck_assert_int_eq(xm_take(s.map, s.slot[0]), 0);
	world_free(s.world);
}
END_TEST

void upgrade_tests(Suite *suite)
{
	TCase *tcase = tcase_create("upgrade");

	tcase_add_test(tcase, upgrade_counts_the_generation_and_keeps_the_position);
	tcase_add_test(tcase, what_is_given_up_is_free_and_what_is_cancelled_is_as_before);
	tcase_add_test(tcase, another_hold_is_EBUSY);
	tcase_add_test(tcase, what_another_has_yet_to_receive_is_EBUSY);
	tcase_add_test(tcase, what_another_receives_when_the_tail_has_moved_is_EBUSY);
	tcase_add_test(tcase, what_was_forwarded_and_not_received_is_EBUSY);
	tcase_add_test(tcase, who_may_not_upgrade_is_refused);
	tcase_add_test(tcase, upgrade_in_the_midst_of_the_owners_scan);
	tcase_add_test(tcase, the_writers_end_frees_the_slot);
	tcase_add_test(tcase, the_owners_end_leaves_the_slot_to_its_writer);
	tcase_add_test(tcase, garbage_words_end_well);
	tcase_add_test(tcase, ends_with_a_wrong_generation);
	suite_add_tcase(suite, tcase);
}
