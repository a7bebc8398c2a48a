// SPDX-License-Identifier: MIT
/*
 * Claims keep slots of ended owners, too. They count for the client that has made them last that
 * long, as if it held the slots; and for all ended clients together.
 */
#include "claims.h"
#include "core/limbo.h"

#define BYTES	64	/* of a slot of a world */
#define OLD	(NOW + XM_LIMBO_GRACE_NS)

/* All four slots of an owner have been published, and there are two more readers. */
struct kept {
	struct scene s;
	u32 third, fourth;
	u64 token[4];
};

static struct kept kept_make(void)
{
	struct kept k = { .s = scene_of(128) };
	u32 i;

	k.third = world_join(k.s.world, XMEM_ROLE_READER, 0);
	k.fourth = world_join(k.s.world, XMEM_ROLE_WRITER, 0);
	k.token[0] = k.s.token;
	for (i = 1; i < 4; i++)
		k.token[i] = world_take_publish(k.s.world, k.s.owner, k.s.slot[i]);
	return k;
}

/* The owner ends, and its unused slots are freed. */
static void owner_ends(struct kept *k)
{
	xm_host_end(k->s.host, k->s.owner, false);
	xm_host_exited(k->s.host, k->s.owner);
	xm_host_limbo(k->s.host, NOW);
	ck_assert_int_eq(left_by(&k->s, NOW), -ENOENT);
	world_reap(k->s.world);
	world_is_valid(k->s.world);
}

/* Ends the scene. The owner and any of the others may have ended before. */
static void kept_end(struct kept *k)
{
	k->s.owner = world_join(k->s.world, XMEM_ROLE_WRITER, 0);
	scene_end(&k->s);
}

/* @seconds: how long from NOW on they are to last. */
static int keep(struct kept *k, u32 me, u32 i, u32 count, u64 seconds)
{
	return claim(&k->s, me, XMEM_CLAIM_ADD, k->token[i], count, seconds * SECOND);
}

static u64 limbo(const struct kept *k, u32 client)
{
	world_is_valid(k->s.world);
	return xm_limbo_of(k->s.map, k->s.host->claims, client);
}

START_TEST(what_claims_keep_counts_for_who_makes_them_last_longer)
{
	struct kept k = kept_make();
	u32 reader = k.s.reader, third = k.third;

	ck_assert_int_eq(keep(&k, k.s.owner, 0, 2, 30), 0);
	ck_assert_int_eq(keep(&k, reader, 1, 1, 30), 0);
	ck_assert_uint_eq(limbo(&k, reader), 0);		/* its owner lives */
	owner_ends(&k);
	ck_assert_uint_eq(limbo(&k, reader), BYTES);
	ck_assert_uint_eq(limbo(&k, third), 0);
	/* A time that the owner has set, or a shorter one, counts for no client. */
	ck_assert_int_eq(keep(&k, reader, 0, 1, 20), 0);
	ck_assert_int_eq(keep(&k, reader, 0, 1, 30), 0);
	ck_assert_uint_eq(limbo(&k, reader), BYTES);
	/* A client that adds some with a shorter time does not answer for the others. */
	ck_assert_int_eq(keep(&k, reader, 0, 0, 50), 0);
	ck_assert_uint_eq(limbo(&k, reader), 2 * BYTES);
	ck_assert_int_eq(keep(&k, third, 0, 1, 10), 0);
	ck_assert_int_eq(keep(&k, third, 0, 1, 50), 0);
	ck_assert_uint_eq(limbo(&k, third), 0);
	ck_assert_uint_eq(limbo(&k, reader), 2 * BYTES);
	ck_assert_int_eq(keep(&k, third, 0, 0, 51), 0);
	ck_assert_uint_eq(limbo(&k, third), BYTES);
	ck_assert_uint_eq(limbo(&k, reader), BYTES);
	/* It counts only once for a client that also holds it. */
	ck_assert_int_eq(xm_get(k.s.map, third, k.token[0]), 0);
	ck_assert_uint_eq(limbo(&k, third), BYTES);
	ck_assert_int_eq(claim(&k.s, third, XMEM_CLAIM_VOID, k.token[0], 0, 0), 0);
	ck_assert_uint_eq(limbo(&k, third), BYTES);
	/* If there are no claims any more, the first later ones belong to another client. */
	ck_assert_int_eq(keep(&k, reader, 0, 1, 1), 0);
	ck_assert_uint_eq(limbo(&k, reader), 2 * BYTES);
	/* Claims that have been taken keep nothing. */
	ck_assert_int_eq(xm_get(k.s.map, reader, k.token[1]), 0);
	ck_assert_int_eq(claim(&k.s, reader, XMEM_CLAIM_TAKE, k.token[1], 1, 0), 0);
	world_put(k.s.world, reader, k.s.slot[1]);
	ck_assert_uint_eq(limbo(&k, reader), BYTES);
	ck_assert_uint_eq(world_count(k.s.world, XMEM_OWNER_HOST), 1);
	world_put(k.s.world, third, k.s.slot[0]);
	world_end(k.s.world, third);
	world_end(k.s.world, k.fourth);
	kept_end(&k);
}
END_TEST

/* One check of what @client has. true: another check follows. */
static bool look_once(const struct kept *k, struct xm_limbo_look *look, u32 client, u64 now_ns)
{
	memset(look, 0xa5, sizeof(*look));
	look->client = client;
	look->most = BYTES;
	look->bytes = look->first = look->group = 0;
	look->again = false;
	look->since_ns = k->s.host->limbo_ns;
	look->claims = k->s.host->claims;
	look->now_ns = now_ns;
	while (!look->again)
		if (xm_limbo_step(k->s.map, look))
			return false;
	return true;
}

static u64 look_again(const struct kept *k, struct xm_limbo_look *look)
{
	while (!xm_limbo_step(k->s.map, look))
		;
	return look->bytes;
}

START_TEST(too_much_is_what_is_kept_in_both_looks)
{
	struct kept k = kept_make();
	struct xm_limbo_look look;
	u32 reader = k.s.reader, third = k.third, i;

	for (i = 0; i < 3; i++)
		ck_assert_int_eq(keep(&k, reader, i, 1, 50), 0);
	ck_assert_int_eq(xm_get(k.s.map, reader, k.token[3]), 0);
	owner_ends(&k);
	ck_assert(!look_once(&k, &look, reader, OLD - 1));
	ck_assert(!look_once(&k, &look, third, OLD));
	ck_assert(look_once(&k, &look, reader, OLD));
	ck_assert_uint_eq(look_again(&k, &look), 4 * BYTES);
	/* Meanwhile one is taken, one is added, and one that claims had kept is held now. */
	ck_assert(look_once(&k, &look, reader, OLD));
	ck_assert_int_eq(xm_get(k.s.map, third, k.token[1]), 0);
	ck_assert_int_eq(claim(&k.s, third, XMEM_CLAIM_TAKE, k.token[1], 1, 0), 0);
	ck_assert_int_eq(xm_get(k.s.map, reader, k.token[0]), 0);
	ck_assert_int_eq(claim(&k.s, reader, XMEM_CLAIM_TAKE, k.token[0], 1, 0), 0);
	ck_assert_int_eq(keep(&k, reader, 3, 1, 60), 0);
	ck_assert_uint_eq(look_again(&k, &look), 3 * BYTES);
	/* One is gone, and by now another client answers for another one. */
	ck_assert(look_once(&k, &look, reader, OLD));
	ck_assert_int_eq(claim(&k.s, reader, XMEM_CLAIM_VOID, k.token[3], 0, 0), 0);
	world_put(k.s.world, reader, k.s.slot[3]);
	ck_assert_int_eq(keep(&k, third, 2, 1, 60), 0);
	ck_assert_uint_eq(look_again(&k, &look), BYTES);
	ck_assert_uint_eq(limbo(&k, third), 2 * BYTES);	/* and one that it holds */
	world_put(k.s.world, third, k.s.slot[1]);
	world_put(k.s.world, reader, k.s.slot[0]);
	world_end(k.s.world, reader);
	k.s.reader = third;
	world_end(k.s.world, k.fourth);
	kept_end(&k);
}
END_TEST

/*
 * Void claims of ended clients beyond so many bytes. Returns how many slots; *ret_over is also set.
 */
static u32 void_kept(struct kept *k, u64 most, u64 now_ns, u64 *ret_over)
{
	struct xm_kept kept = { .most = most, .now_ns = now_ns };
	u32 voided = 0, groups = 0;
	int slot;

	while ((slot = xm_host_void_kept(k->s.host, &kept)) != -ENOENT) {
		groups += slot == -EAGAIN;
		voided += slot >= 0;
		if (slot >= 0)
			world_do(k->s.world, xm_claims_pending(k->s.host, slot));
	}
	ck_assert_uint_le(groups, k->s.map->groups);
	world_is_valid(k->s.world);
	*ret_over = kept.over;
	return voided;
}

START_TEST(all_who_have_ended_keep_as_much_as_one)
{
	struct kept k = kept_make();
	u32 reader = k.s.reader, left, again;
	u64 over;

	ck_assert_uint_eq(void_kept(&k, 0, OLD, &over), 0);	/* nobody has ever asked */
	ck_assert_int_eq(keep(&k, k.s.owner, 0, 1, 60), 0);
	ck_assert_int_eq(keep(&k, reader, 1, 1, 60), 0);
	ck_assert_int_eq(keep(&k, k.third, 2, 1, 60), 0);
	ck_assert_int_eq(keep(&k, reader, 3, 1, 60), 0);
	left = k.fourth;
	owner_ends(&k);
	world_end(k.s.world, k.third);
	world_end(k.s.world, reader);
	/* The clients that have their ids now have nothing to do with it. */
	again = world_join(k.s.world, XMEM_ROLE_READER, 0);
	ck_assert(again == k.third || again == reader || again == k.s.owner);
	k.s.reader = world_join(k.s.world, XMEM_ROLE_READER, 0);
	ck_assert_uint_eq(limbo(&k, again), 0);
	ck_assert_uint_eq(limbo(&k, k.s.reader), 0);
	ck_assert_uint_eq(world_count(k.s.world, XMEM_OWNER_HOST), 4);
	/*
	 * First not yet; then exactly the limit; then the excess is voided, but not the claims of
	 * the owner.
	 */
	ck_assert_uint_eq(void_kept(&k, 0, OLD - 1, &over), 0);
	ck_assert_uint_eq(void_kept(&k, 3 * BYTES, OLD, &over), 0);
	ck_assert_uint_eq(over, 0);
	ck_assert_uint_eq(void_kept(&k, 3 * BYTES - 1, OLD, &over), 1);
	ck_assert_uint_eq(over, 3 * BYTES);
	ck_assert_uint_eq(world_count(k.s.world, XMEM_OWNER_HOST), 3);
	/* A living client makes one of them last longer, and answers for it now. */
	ck_assert_int_eq(keep(&k, left, 1, 0, 60), 0);
	ck_assert_uint_eq(limbo(&k, left), 0);
	ck_assert_int_eq(xm_host_claim(k.s.host, left, &(struct xmem_claim_request){
		.size = sizeof(struct xmem_claim_request), .op = XMEM_CLAIM_ADD,
		.slot = k.s.slot[1], .generation = xm_generation(k.token[1]),
		.timeout_ns = 60 * SECOND }, NOW + 1, false, &k.s.pending), 0);
	ck_assert_uint_eq(limbo(&k, left), BYTES);
	ck_assert_uint_eq(void_kept(&k, 0, OLD, &over), 1);
	ck_assert_uint_eq(over, BYTES);
	ck_assert_uint_eq(world_count(k.s.world, XMEM_OWNER_HOST), 2);
	ck_assert_uint_eq(xm_claims_of(k.s.map, k.s.slot[0]), 1);
	ck_assert_uint_eq(xm_claims_of(k.s.map, k.s.slot[1]), 1);
	world_end(k.s.world, left);
	ck_assert_uint_eq(void_kept(&k, 0, OLD, &over), 1);
	world_end(k.s.world, again);
	kept_end(&k);
}
END_TEST

/* Slots of living owners do not count. Publishers may write any length. */
START_TEST(what_ended_clients_keep_does_not_wrap)
{
	struct kept k = kept_make();
	u64 over;
	u32 i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(keep(&k, k.s.reader, i, 1, 60), 0);
	world_end(k.s.world, k.s.reader);
	ck_assert_uint_eq(void_kept(&k, 0, OLD, &over), 0);
	owner_ends(&k);
	for (i = 0; i < 4; i++)
		xm_store(&xm_slot_row(k.s.map, k.s.slot[i])->length, ~0ULL - BYTES);
	ck_assert_uint_eq(void_kept(&k, ~0ULL - 1, OLD, &over), 3);
	ck_assert_uint_eq(over, ~0ULL);
	world_end(k.s.world, k.third);
	k.s.reader = k.fourth;
	kept_end(&k);
}
END_TEST

void kept_tests(Suite *suite)
{
	TCase *tcase = tcase_create("kept");

	tcase_add_test(tcase, what_claims_keep_counts_for_who_makes_them_last_longer);
	tcase_add_test(tcase, too_much_is_what_is_kept_in_both_looks);
	tcase_add_test(tcase, all_who_have_ended_keep_as_much_as_one);
	tcase_add_test(tcase, what_ended_clients_keep_does_not_wrap);
	suite_add_tcase(suite, tcase);
}
