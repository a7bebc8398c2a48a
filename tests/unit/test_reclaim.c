// SPDX-License-Identifier: MIT
/*
 * Sweeps: the host reclaims the slots of an ended owner. One sweep serves all slots, and used slots
 * stay. Garbage in other clients' areas does not make it longer than one check of each ring.
 */
#include "core/publish.h"
#include "unit.h"

#define RING	8
#define CROWD	5			/* writers that mark every slot as forwarded */
#define SLOTS	130			/* in three groups */
/* The place at the tail is checked too, and it is the only one in the rings of two others. */
#define LOOKS	(CROWD * (RING + 1) + 2)

struct crowd {
	struct world *world;
	struct xm_host *host;
	const struct xm_map *map;
	u32 owner, reader, other, member[CROWD];
	u32 slot[SLOTS];
	u64 token[SLOTS];
	u32 looks;
};

static struct crowd crowd_make(void)
{
	struct crowd c = { .world = world_make(256, CROWD + 4, RING) };
	u32 i;

	c.host = &c.world->host;
	c.map = &c.host->map;
	c.owner = world_join(c.world, XMEM_ROLE_WRITER, 0);
	c.reader = world_join(c.world, XMEM_ROLE_READER, 0);
	c.other = world_join(c.world, XMEM_ROLE_WRITER, 0);
	for (i = 0; i < CROWD; i++)
		c.member[i] = world_join(c.world, XMEM_ROLE_WRITER, 0);
	for (i = 0; i + 60 < SLOTS; i += 60)
		world_attach(c.world, c.owner, 60, c.slot + i);
	world_attach(c.world, c.owner, SLOTS - i, c.slot + i);
	for (i = 0; i < SLOTS; i++)
		c.token[i] = world_take_publish(c.world, c.owner, c.slot[i]);
	return c;
}

static void crowd_end(struct crowd *c)
{
	world_is_valid(c->world);
	world_free(c->world);
}

/*
 * All words that a client can write: every hold is marked, and a whole ring is there to be
 * received.
 */
static void be_hostile(struct crowd *c, u32 client, u64 garbage)
{
	u32 i;

	world_subscribe(c->world, c->reader, client, 0);
	for (i = 0; i < c->map->slots; i++)
		*xm_hold(c->map, client, i) = XM_HOLD_FORWARDED;
	for (i = 0; i < RING; i++) {
		xm_entry(c->map, client, i)->position = (i + 1) | XMEM_ENTRY_MARKED;
		xm_entry(c->map, client, i)->token = garbage * (i + 1);
	}
	xm_ring(c->map, client)->tail = RING;
}

static void count_looks(int step, void *arg)
{
	struct crowd *c = arg;

	c->looks += step == XM_STEP_RING_LOOK;
}

static void begin_to_count(struct crowd *c)
{
	c->looks = 0;
	unit_step_arg = c;
	unit_step = count_looks;
}

/* The owner ends, and one sweep follows. Returns how many slots it has freed. */
static u32 sweep_after_the_end(struct crowd *c)
{
	u32 freed;

	xm_host_end(c->host, c->owner);
	begin_to_count(c);
	freed = world_reap(c->world);
	unit_step = NULL;
	world_is_valid(c->world);
	return freed;
}

/* ---- costs ---- */

START_TEST(a_sweep_of_all_slots_looks_at_each_entry_of_a_ring_once)
{
	struct crowd c = crowd_make();
	u32 i;

	for (i = 0; i < CROWD; i++)
		be_hostile(&c, c.member[i], POISON);
	ck_assert_uint_eq(sweep_after_the_end(&c), SLOTS);
	ck_assert_uint_ge(c.looks, CROWD * RING);
	ck_assert_uint_le(c.looks, LOOKS);
	/* Nothing is left to check. */
	begin_to_count(&c);
	ck_assert_uint_eq(world_reap(c.world), 0);
	ck_assert_uint_eq(c.looks, 0);
	unit_step = NULL;
	crowd_end(&c);
}
END_TEST

START_TEST(a_sweep_of_what_is_held_looks_at_no_ring)
{
	struct crowd c = crowd_make();
	u32 i;

	for (i = 0; i < CROWD; i++)
		be_hostile(&c, c.member[i], POISON);
	for (i = 0; i < SLOTS; i++)
		ck_assert_int_eq(xm_get(c.map, c.reader, c.token[i]), 0);
	ck_assert_uint_eq(sweep_after_the_end(&c), 0);
	ck_assert_uint_eq(c.looks, 0);
	/* The last put of one slot, which any client may post. */
	begin_to_count(&c);
	world_put(c.world, c.reader, c.slot[7]);
	unit_step = NULL;
	ck_assert_uint_le(c.looks, LOOKS);
	ck_assert_uint_eq(world_count(c.world, XMEM_OWNER_HOST), SLOTS - 1);
	crowd_end(&c);
}
END_TEST

START_TEST(an_upgrade_looks_at_each_entry_of_a_ring_once)
{
	struct crowd c = crowd_make();
	struct xmem_upgrade_request request = { .slot = c.slot[3] };
	u32 i;

	for (i = 0; i < CROWD; i++)
		be_hostile(&c, c.member[i], POISON);
	xm_slot_row(c.map, c.slot[3])->traits = XMEM_TRAIT_SHARED;
	request.generation = xm_generation(c.token[3]);
	ck_assert_int_eq(xm_get(c.map, c.other, c.token[3]), 0);
	begin_to_count(&c);
	ck_assert_int_eq(xm_host_upgrade(c.host, c.other, &request), 0);
	unit_step = NULL;
	ck_assert_uint_ge(c.looks, CROWD * RING);
	ck_assert_uint_le(c.looks, LOOKS);
	crowd_end(&c);
}
END_TEST

START_TEST(garbage_in_rings_frees_and_keeps_nothing)
{
	static const u64 garbage[] = { 0, 1, ~0ULL, 1ULL << 63, 255, 256, 0xffff, POISON };
	u32 i, k;

	for (k = 0; k < ARRAY_SIZE(garbage); k++) {
		struct crowd c = crowd_make();

		for (i = 0; i < CROWD; i++)
			be_hostile(&c, c.member[i], garbage[k]);
		ck_assert_int_eq(xm_get(c.map, c.reader, c.token[SLOTS - 1]), 0);
		ck_assert_uint_eq(sweep_after_the_end(&c), SLOTS - 1);
		ck_assert_int_eq(xm_look(c.map, c.token[SLOTS - 1]), 0);
		crowd_end(&c);
	}
}
END_TEST

/* ---- slots that stay ---- */

/* @client puts a slot that it holds into its own ring. */
static void forward(struct crowd *c, u32 client, u32 i)
{
	struct xm_publisher_words words = xm_publisher_words(c->map, client);
	struct xm_publication what = { .token = c->token[i], .length = 16 };

	xm_forward(c->map, client, &words, xm_load(&words.ring->tail), &what, 0);
}

/* Slots in use in each of the ways, in every group: held, claimed, forwarded, in flight. */
START_TEST(one_sweep_keeps_what_is_used_in_any_way)
{
	struct crowd c = crowd_make();
	struct xm_follow last = world_subscribe(c.world, c.member[0], c.owner, 0), follow;
	struct xmem_claim_request claim = { .op = XMEM_CLAIM_ADD, .count = 1 };
	struct xm_pending pending;
	struct xm_publication what;
	u32 i, kept = 0;

	follow = world_subscribe(c.world, c.reader, c.other, 0);
	for (i = 0; i < SLOTS; i += 50) {
		ck_assert_int_eq(xm_get(c.map, c.reader, c.token[i]), 0);
		claim.slot = c.slot[i + 1];
		claim.generation = xm_generation(c.token[i + 1]);
		ck_assert_int_eq(xm_host_claim(c.host, c.owner, &claim, 1, false, &pending), 0);
		ck_assert_int_eq(xm_get(c.map, c.other, c.token[i + 2]), 0);
		forward(&c, c.other, i + 2);
		world_put(c.world, c.other, c.slot[i + 2]);
		kept += 3;
	}
	/* Two that come late into the owner's ring. */
	for (i = 10; i < 12; i++) {
		ck_assert(world_scan(c.world, c.owner, c.slot[i], false, 0));
		c.token[i] = world_publish(c.world, c.owner, c.slot[i]);
	}
	ck_assert_uint_eq(sweep_after_the_end(&c), SLOTS - kept - 2);
	for (i = 0; i < SLOTS; i++)
		ck_assert_int_eq(xm_look(c.map, c.token[i]),
				 i % 50 < 3 || i == 10 || i == 11 ? 0 : -ESTALE);
	/* They are freed one by one. */
	for (i = 10; i < 12; i++) {
		ck_assert_int_eq(world_receive(c.world, c.member[0], &last, &what), 0);
		ck_assert_uint_eq(what.token, c.token[i]);
		world_put(c.world, c.member[0], c.slot[i]);
		ck_assert_int_eq(xm_look(c.map, c.token[i]), -ESTALE);
	}
	for (i = 0; i < SLOTS; i += 50) {
		world_put(c.world, c.reader, c.slot[i]);
		ck_assert_int_eq(xm_look(c.map, c.token[i]), -ESTALE);
		ck_assert_int_eq(world_receive(c.world, c.reader, &follow, &what), 0);
		ck_assert_uint_eq(what.token, c.token[i + 2]);
		world_put(c.world, c.reader, c.slot[i + 2]);
		ck_assert_int_eq(xm_look(c.map, what.token), -ESTALE);
	}
	ck_assert_uint_eq(world_count(c.world, XMEM_OWNER_HOST), kept / 3);
	crowd_end(&c);
}
END_TEST

/* ---- other clients act meanwhile ---- */

/* Sweep all, and do @what before the @nth call. Returns how many slots were freed. */
static u32 sweep_while(struct crowd *c, u32 nth, void (*what)(struct crowd *c), u32 *ret_calls)
{
	struct xm_sweep sweep = { .stage = 0 };
	u32 freed = 0;
	u64 payload;
	int slot;

	*ret_calls = 0;
	xm_host_suspect_all(c->host);
	do {
		if ((*ret_calls)++ == nth)
			what(c);
		slot = xm_host_sweep(c->host, &sweep, &payload);
		freed += slot >= 0;
	} while (slot != -ENOENT);
	return freed;
}

/* The hold becomes an entry, which only the reader of that ring sees. */
static void pass_on(struct crowd *c)
{
	forward(c, c->other, 100);
	xm_put(c->map, c->other, c->slot[100]);
}

START_TEST(a_sweep_sees_what_is_forwarded_while_it_runs)
{
	u32 nth, calls = 1;

	for (nth = 0; nth < calls; nth++) {
		struct crowd c = crowd_make();
		struct xm_follow follow = world_subscribe(c.world, c.reader, c.other, 0);
		struct xm_publication what;

		ck_assert_int_eq(xm_get(c.map, c.other, c.token[100]), 0);
		xm_host_end(c.host, c.owner);
		ck_assert_uint_eq(sweep_while(&c, nth, pass_on, &calls), SLOTS - 1);
		ck_assert_int_eq(xm_look(c.map, c.token[100]), 0);
		ck_assert_int_eq(world_receive(c.world, c.reader, &follow, &what), 0);
		ck_assert_uint_eq(what.token, c.token[100]);
		world_put(c.world, c.reader, c.slot[100]);
		ck_assert_uint_eq(world_reap(c.world), 0);
		ck_assert_int_eq(xm_look(c.map, what.token), -ESTALE);
		crowd_end(&c);
	}
	ck_assert_uint_gt(nth, 3 * SLOTS / XMEM_GROUP_SLOTS);
}
END_TEST

static int got;

/* A client gets a slot by its token; if the slot is being scanned, it asks the host. */
static void get_one(struct crowd *c)
{
	u64 word = xm_load(&xm_slot(c->map, c->slot[100])->state);

	got = xm_get(c->map, c->reader, c->token[100]);
	if (got == -EAGAIN)
		got = xm_host_resolve(c->host, c->reader, c->slot[100], word);
}

START_TEST(a_get_meanwhile_is_good_or_the_slot_is_freed)
{
	u32 nth, calls = 1, good = 0, stale = 0, freed;

	for (nth = 0; nth < calls; nth++) {
		struct crowd c = crowd_make();

		xm_host_end(c.host, c.owner);
		freed = sweep_while(&c, nth, get_one, &calls);
		ck_assert_int_eq(got, freed == SLOTS ? -ESTALE : 0);
		ck_assert_uint_ge(freed, SLOTS - 1);
		ck_assert_int_eq(xm_look(c.map, c.token[100]), got);
		good += !got;
		stale += got == -ESTALE;
		world_put(c.world, c.reader, c.slot[100]);
		world_reap(c.world);
		ck_assert_uint_eq(world_count(c.world, XMEM_OWNER_HOST), 0);
		crowd_end(&c);
	}
	ck_assert_uint_gt(good, 0);
	ck_assert_uint_gt(stale, 0);
}
END_TEST

/* The next sweep, of slots that were named since the last one began. */
static u32 sweep_again(struct crowd *c)
{
	struct xm_sweep sweep = { .stage = 0 };
	u64 payload;
	u32 freed = 0;
	int slot;

	while ((slot = xm_host_sweep(c->host, &sweep, &payload)) != -ENOENT)
		freed += slot >= 0;
	return freed;
}

/* The last holder puts, and tells the host. */
static void put_one(struct crowd *c)
{
	struct xm_pending pending = xm_put(c->map, c->reader, c->slot[100]);

	ck_assert_int_eq(pending.what, XM_RECLAIM_SLOT);
	xm_host_suspect(c->host, c->slot[100]);
}

START_TEST(a_put_meanwhile_is_found_by_this_sweep_or_the_next)
{
	u32 nth, calls = 1, late = 0, freed;

	for (nth = 0; nth < calls; nth++) {
		struct crowd c = crowd_make();

		ck_assert_int_eq(xm_get(c.map, c.reader, c.token[100]), 0);
		xm_host_end(c.host, c.owner);
		freed = sweep_while(&c, nth, put_one, &calls);
		late += freed == SLOTS - 1;
		ck_assert_uint_eq(freed + sweep_again(&c), SLOTS);
		crowd_end(&c);
	}
	ck_assert_uint_gt(late, 0);
	ck_assert_uint_lt(late, calls);
}
END_TEST

static int upgraded;

/* The only holder begins to write in place. It tries again once, if it must. */
static void write_one(struct crowd *c)
{
	struct xmem_upgrade_request request = { .slot = c->slot[100] };

	request.generation = xm_generation(c->token[100]);
	upgraded = xm_host_upgrade(c->host, c->other, &request);
	if (upgraded != -EAGAIN)
		return;
	xm_host_resolve(c->host, c->other, c->slot[100],
			xm_load(&xm_slot(c->map, c->slot[100])->state));
	upgraded = xm_host_upgrade(c->host, c->other, &request);
}

START_TEST(what_is_written_in_place_meanwhile_is_not_freed)
{
	struct xmem_upgrade_request up = { .flags = XMEM_UPGRADE_GIVE_UP };
	u32 nth, calls = 1;

	for (nth = 0; nth < calls; nth++) {
		struct crowd c = crowd_make();

		xm_slot_row(c.map, c.slot[100])->traits = XMEM_TRAIT_SHARED;
		ck_assert_int_eq(xm_get(c.map, c.other, c.token[100]), 0);
		xm_host_end(c.host, c.owner);
		ck_assert_uint_eq(sweep_while(&c, nth, write_one, &calls), SLOTS - 1);
		ck_assert_int_eq(upgraded, 0);
		ck_assert_uint_eq(xm_slot_row(c.map, c.slot[100])->owner, XMEM_OWNER_HOST);
		ck_assert_uint_eq(xm_slot_row(c.map, c.slot[100])->upgrader, c.other + 1);
		up.slot = c.slot[100];
		ck_assert_int_eq(xm_host_upgrade(c.host, c.other, &up), 0);
		ck_assert_int_eq(xm_put(c.map, c.other, c.slot[100]).what, XM_RECLAIM_SLOT);
		ck_assert_uint_eq(world_reap(c.world), 1);
		crowd_end(&c);
	}
}
END_TEST

/*
 * A stage is killed after its entry, and before its tail. Its holds end, and other clients
 * continue.
 */
static void die_in_forward(struct crowd *c)
{
	u64 holds;

	forward(c, c->other, 100);
	xm_store(&xm_ring(c->map, c->other)->tail, 0);
	ck_assert(xm_client_release(c->map, c->other, &holds));
	ck_assert_uint_eq(holds, 1);
}

static void sweep_at_that_step(int step, void *arg)
{
	struct crowd *c = arg;

	if (step != XM_STEP_LETS_GO)
		return;
	unit_step = NULL;
	ck_assert_uint_eq(xm_load(&xm_ring(c->map, c->other)->tail), 1);
	ck_assert_uint_eq(xm_load(xm_hold(c->map, c->other, c->slot[100])) & XM_HOLD_COUNT, 1);
	c->looks = world_reap(c->world);
}

/* A sweep that finds that the hold is gone then checks the ring, and finds the entry. */
START_TEST(an_ending_client_repairs_its_ring_first)
{
	struct crowd c = crowd_make();

	world_subscribe(c.world, c.reader, c.other, 0);
	ck_assert_int_eq(xm_get(c.map, c.other, c.token[100]), 0);
	xm_host_end(c.host, c.owner);
	unit_step_arg = &c;
	unit_step = sweep_at_that_step;
	die_in_forward(&c);
	ck_assert(!unit_step);
	ck_assert_uint_eq(c.looks, SLOTS - 1);
	ck_assert_uint_eq(world_reap(c.world), 0);	/* now only the entry keeps it */
	ck_assert_int_eq(xm_look(c.map, c.token[100]), 0);
	crowd_end(&c);
}
END_TEST

START_TEST(what_the_dead_have_forwarded_while_a_sweep_runs_is_not_lost)
{
	u32 nth, calls = 1;

	for (nth = 0; nth < calls; nth++) {
		struct crowd c = crowd_make();
		struct xm_follow follow = world_subscribe(c.world, c.reader, c.other, 0);
		struct xm_publication what;

		ck_assert_int_eq(xm_get(c.map, c.other, c.token[100]), 0);
		xm_host_end(c.host, c.owner);
		ck_assert_uint_eq(sweep_while(&c, nth, die_in_forward, &calls), SLOTS - 1);
		ck_assert_int_eq(xm_look(c.map, c.token[100]), 0);
		xm_host_end(c.host, c.other);
		ck_assert_int_eq(world_receive(c.world, c.reader, &follow, &what), 0);
		ck_assert_uint_eq(what.token, c.token[100]);
		world_put(c.world, c.reader, c.slot[100]);
		ck_assert_int_eq(xm_look(c.map, c.token[100]), -ESTALE);
		crowd_end(&c);
	}
}
END_TEST

void reclaim_tests(Suite *suite)
{
	TCase *tcase = tcase_create("reclaim");

	tcase_add_test(tcase, a_sweep_of_all_slots_looks_at_each_entry_of_a_ring_once);
	tcase_add_test(tcase, a_sweep_of_what_is_held_looks_at_no_ring);
	tcase_add_test(tcase, an_upgrade_looks_at_each_entry_of_a_ring_once);
	tcase_add_test(tcase, garbage_in_rings_frees_and_keeps_nothing);
	tcase_add_test(tcase, one_sweep_keeps_what_is_used_in_any_way);
	tcase_add_test(tcase, a_sweep_sees_what_is_forwarded_while_it_runs);
	tcase_add_test(tcase, a_put_meanwhile_is_found_by_this_sweep_or_the_next);
	tcase_add_test(tcase, what_is_written_in_place_meanwhile_is_not_freed);
	tcase_add_test(tcase, an_ending_client_repairs_its_ring_first);
	tcase_add_test(tcase, what_the_dead_have_forwarded_while_a_sweep_runs_is_not_lost);
	tcase_add_test(tcase, a_get_meanwhile_is_good_or_the_slot_is_freed);
	suite_add_tcase(suite, tcase);
}
