// SPDX-License-Identifier: MIT
/*
 * The host's slots: attaching, detaching, reclaiming, groups, resolving and new generations; also
 * the waiters words.
 */
#include "core/limbo.h"
#include "unit.h"

/* ---- attach ---- */

#define FILE_OF(id_, bytes_)	(&(struct xm_payload){ .id = (id_), .bytes = (bytes_) })

static struct xmem_attach_request attach_of(u32 count)
{
	return (struct xmem_attach_request){
		.fd = 3, .offset = 128, .stride = 192, .length = 100, .count = count,
	};
}

/* Only shared files in ordinary pages, and only on request. */
START_TEST(few_files_are_truncated)
{
	const u32 asked = XMEM_ATTACH_TRUNCATE | XMEM_ATTACH_SHARED;
	struct xmem_attach_request attach = attach_of(2);

	ck_assert(xm_attach_truncates(asked, XMEM_TRAIT_SHARED));
	ck_assert(!xm_attach_truncates(asked, XMEM_TRAIT_SHARED | XMEM_TRAIT_HUGE));
	ck_assert(!xm_attach_truncates(XMEM_ATTACH_SHARED, XMEM_TRAIT_SHARED));
	ck_assert(!xm_attach_truncates(XMEM_ATTACH_TRUNCATE, 0));
	attach.flags = asked;
	ck_assert_int_eq(xm_host_attach_check(&attach), 0);
	attach.flags = XMEM_ATTACH_TRUNCATE;
	ck_assert_int_eq(xm_host_attach_check(&attach), -EINVAL);
	attach.flags = asked | XMEM_ATTACH_CUDA;
	attach.bytes = 4096;
	attach.device[0] = attach.handle[0] = 1;
	ck_assert_int_eq(xm_host_attach_check(&attach), -EINVAL);
	attach.flags &= ~XMEM_ATTACH_TRUNCATE;
	ck_assert_int_eq(xm_host_attach_check(&attach), 0);
	attach = attach_of(2);		/* more slots of a payload that is there */
	attach.payload = 5;
	attach.fd = -1;
	attach.flags = asked;
	ck_assert_int_eq(xm_host_attach_check(&attach), -EINVAL);
}
END_TEST

START_TEST(attach_fields_out_of_range_are_EINVAL)
{
	struct xmem_attach_request good = attach_of(2), bad;

	ck_assert_int_eq(xm_host_attach_check(&good), 0);
	bad = good, bad.count = 0;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.count = XMEM_GROUP_SLOTS + 1;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.length = 0;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.offset = 1;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.stride = 100;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.stride = 64;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.slot[63] = 1;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.fd = -1;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.payload = 5;
	ck_assert_int_eq(xm_host_attach_check(&bad), -EINVAL);
	bad = good, bad.payload = 5, bad.fd = -1;
	ck_assert_int_eq(xm_host_attach_check(&bad), 0);
}
END_TEST

START_TEST(slots_beyond_the_file_are_ERANGE)
{
	struct world *world = world_make(64, 2, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u64 need = 128 + 192 + 100;
	struct xmem_attach_request request = attach_of(2), huge = attach_of(2);

	xm_host_give_group(&world->host, 0, me);
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(1, need - 1), 1, &request),
			 -ERANGE);
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(1, 0), 1, &request), -ERANGE);
	ck_assert_uint_eq(world_count(world, me), 0);
	/* sums that wrap */
	huge.stride = ~0ULL - 63;
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(1, need), 1, &huge), -ERANGE);
	huge = attach_of(2), huge.offset = ~0ULL - 63;
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(1, need), 1, &huge), -ERANGE);
	huge = attach_of(3), huge.stride = 1ULL << 63;
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(1, need), 1, &huge), -ERANGE);
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(1, need), 1, &request), 0);
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(attach_fills_rows_in_order)
{
	struct world *world = world_make(64, 2, 4);
	const struct xm_map *map = &world->host.map;
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), i;
	struct xmem_attach_request request = attach_of(3);

	/* no group */
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(9, 1 << 20), 1, &request),
			 -ENOSPC);
	xm_host_give_group(&world->host, xm_host_free_group(&world->host, me, 3), me);
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(9, 1 << 20), 1, &request), 0);
	ck_assert_uint_eq(request.payload, 9);
	for (i = 0; i < 3; i++) {
		const struct xmem_slot_row *row = xm_slot_row(map, request.slot[i]);

		ck_assert_uint_eq(row->owner, me);
		ck_assert_uint_eq(row->tenant, me);
		ck_assert_uint_eq(row->payload, 9);
		ck_assert_uint_eq(row->offset, 128 + 192 * i);
		ck_assert_uint_eq(row->length, 100);
		ck_assert_uint_eq(row->payload_bytes, 1 << 20);
		ck_assert_uint_ne(row->generation_first >> XMEM_TENANCY_SHIFT, 0);
		ck_assert(xm_in_tenancy(row->generation_first + (1ULL << (XMEM_TENANCY_SHIFT - 1)),
					row->generation_first));
		ck_assert_uint_eq(xm_slot(map, request.slot[i])->state,
				  xm_word(row->generation_first, 0, XMEM_SLOT_FREE));
	}
	ck_assert_uint_eq(xm_host_spare_slots(&world->host, me, false), 61);
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(too_few_spare_slots_are_ENOSPC)
{
	struct world *world = world_make(64, 2, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), slot[60];
	struct xmem_attach_request request = attach_of(5);

	world_attach(world, me, 60, slot);
	ck_assert_int_eq(xm_host_free_group(&world->host, me, 5), -ENOSPC);
	ck_assert_int_eq(xm_host_attach(&world->host, me, FILE_OF(2, 1 << 20), 1, &request),
			 -ENOSPC);
	ck_assert_uint_eq(world_count(world, me), 60);
	world_free(world);
}
END_TEST

/* ---- generations ---- */

START_TEST(tenancies_of_a_slot_do_not_share_generations)
{
	struct world *world = world_make(64, 2, 4);
	const struct xm_map *map = &world->host.map;
	u64 first[20];
	u32 i, k, me, slot;

	for (i = 0; i < 20; i++) {
		me = world_join(world, XMEM_ROLE_WRITER, 0);
		world_attach(world, me, 1, &slot);
		ck_assert_uint_eq(slot, 0);
		first[i] = xm_slot_row(map, 0)->generation_first;
		for (k = 0; k < i; k++)
			ck_assert(!xm_in_tenancy(first[i], first[k]) &&
				  !xm_in_tenancy(first[k], first[i]));
		world_end(world, me);
		ck_assert(!xm_in_tenancy(first[i], xm_slot_row(map, 0)->generation_first));
	}
	world_free(world);
}
END_TEST

START_TEST(two_like_pools_do_not_share_tokens)
{
	struct world *a = world_make(64, 2, 4), *b = world_make(64, 2, 4);
	u32 me = world_join(a, XMEM_ROLE_WRITER, 0), slot;

	b->random = a->random + 1;
	world_join(b, XMEM_ROLE_WRITER, 0);
	world_attach(a, me, 1, &slot);
	world_attach(b, me, 1, &slot);
	ck_assert_uint_ne(xm_slot_row(&a->host.map, 0)->generation_first,
			  xm_slot_row(&b->host.map, 0)->generation_first);
	world_free(a);
	world_free(b);
}
END_TEST

START_TEST(slot_requests_name_a_slot_and_mostly_no_generation)
{
	struct world *world = world_make(64, 1, 4);
	const struct xm_map *map = &world->host.map;
	struct xmem_slot_request request = { .slot = 63 };
	u32 op;

	for (op = XMEM_OP_RESOLVE; op <= XMEM_OP_DETACH_FILE; op++) {
		request = (struct xmem_slot_request){ .op = op, .slot = 63 };
		ck_assert_int_eq(xm_slot_check(map, &request), 0);
		request.generation = 1;
		ck_assert_int_eq(xm_slot_check(map, &request), op ? -EINVAL : 0);
		request = (struct xmem_slot_request){ .op = op, .slot = 64 };
		ck_assert_int_eq(xm_slot_check(map, &request), -EINVAL);
	}
	world_free(world);
}
END_TEST

START_TEST(renew_gives_a_range_of_its_own)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 other = world_join(world, XMEM_ROLE_WRITER, 0), slot;
	struct xmem_slot_request request;
	u64 before, token;

	world_attach(world, me, 1, &slot);
	before = xm_slot_row(map, slot)->generation_first;
	request = (struct xmem_slot_request){ .slot = slot };
	ck_assert_int_eq(xm_host_renew(&world->host, other, 5, &request), -EPERM);
	/* the range ends in the middle of the work: WRITING stays WRITING */
	xm_slot(map, slot)->state = xm_word((before | ((1ULL << XMEM_TENANCY_SHIFT) - 1)), 3,
					    XMEM_SLOT_FREE);
	ck_assert_int_eq(xm_take(map, slot), 0);
	ck_assert(!xm_in_tenancy(xm_generation(xm_slot(map, slot)->state), before));
	ck_assert_int_eq(xm_host_renew(&world->host, me, 5, &request), 0);
	ck_assert_uint_eq(request.generation, xm_slot_row(map, slot)->generation_first);
	ck_assert(!xm_in_tenancy(before, request.generation));
	ck_assert_uint_eq(xm_slot(map, slot)->state,
			  xm_word(request.generation, 0, XMEM_SLOT_WRITING));
	token = world_publish(world, me, slot);
	ck_assert_int_eq(xm_get(map, other, token), 0);
	request.generation = 0;
	ck_assert_int_eq(xm_host_renew(&world->host, me, 5, &request), -ESTALE);	/* LIVE */
	world_is_valid(world);
	world_free(world);
}
END_TEST

/* Otherwise an owner could renew until an old range comes round, and revive its tokens. */
START_TEST(slot_whose_tenancies_are_used_up_is_not_used_again)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), slot, again;
	struct xmem_slot_request request = { 0 };

	world_attach(world, me, 1, &slot);
	xm_slot_row(map, slot)->tenancies = (1u << (XMEM_GENERATION_BITS - XMEM_TENANCY_SHIFT)) - 2;
	request.slot = slot;
	ck_assert_int_eq(xm_host_renew(&world->host, me, 5, &request), 0);
	request.generation = 0;
	ck_assert_int_eq(xm_host_renew(&world->host, me, 5, &request), -ENOSPC);
	ck_assert_uint_eq(request.generation, 0);
	world_end(world, me);
	me = world_join(world, XMEM_ROLE_WRITER, 0);
	world_attach(world, me, 1, &again);
	ck_assert_uint_ne(again, slot);
	ck_assert_uint_eq(xm_host_spare_slots(&world->host, me, false), 62);
	world_free(world);
}
END_TEST

/* Otherwise a client would keep a group that does not help it. */
START_TEST(group_whose_slots_are_used_up_is_given_to_nobody)
{
	struct world *world = world_make(128, 4, 4);
	u32 s, me = world_join(world, XMEM_ROLE_WRITER, 0);

	for (s = 10; s < 64; s++)
		xm_slot_row(&world->host.map, s)->tenancies =
			(1u << (XMEM_GENERATION_BITS - XMEM_TENANCY_SHIFT)) - 1;
	ck_assert_int_eq(xm_host_free_group(&world->host, me, 10), 0);
	ck_assert_int_eq(xm_host_free_group(&world->host, me, 11), 1);
	xm_host_give_group(&world->host, 1, me);
	ck_assert_int_eq(xm_host_free_group(&world->host, me, 74), 0);
	ck_assert_int_eq(xm_host_free_group(&world->host, me, 75), -ENOSPC);
	world_free(world);
}
END_TEST

/* ---- detach, reclaim, groups ---- */

START_TEST(detach_takes_free_slots_of_ones_own_only)
{
	struct world *world = world_make(64, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 other = world_join(world, XMEM_ROLE_WRITER, 0);
	u64 token, payload = 77;
	u32 slot;
	struct xmem_slot_request request = { .op = XMEM_OP_DETACH };

	world_attach(world, me, 1, &slot);
	request.slot = slot;
	ck_assert_int_eq(xm_host_detach(&world->host, other, &request, ~0u, &payload), -EPERM);
	token = world_take_publish(world, me, slot);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), -EBUSY);
	ck_assert_uint_eq(payload, 77);
	ck_assert(world_scan(world, me, slot, false, 0));
	ck_assert_int_eq(xm_give_up(&world->host.map, slot), 0);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), 1);
	ck_assert_uint_eq(payload, FIRST_ID);
	ck_assert_int_eq(xm_get(&world->host.map, other, token), -ESTALE);
	world_put(world, other, slot);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), -EPERM);
	ck_assert_uint_eq(xm_host_spare_slots(&world->host, me, false), 64);
	world_is_valid(world);
	world_free(world);
}
END_TEST

/*
 * Ids that differ only in their upper halves are those of two payloads; and an id whose lower half
 * is 0.
 */
START_TEST(ids_of_payloads_have_64_bits)
{
	static const u64 ids[] = { 7, (1ULL << 32) + 7, 1ULL << 32, ~0ULL };
	struct world *world = world_make(64, 2, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), i;
	struct xmem_slot_request request = { .op = XMEM_OP_DETACH_FILE };
	struct xm_host *host = &world->host;
	u32 slot[4][2];
	u64 payload;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		host->last_payload = ids[i] - 1;
		world_attach(world, me, 2, slot[i]);
		ck_assert_uint_eq(xm_slot_row(&host->map, slot[i][1])->payload, ids[i]);
	}
	request.slot = slot[0][0];
	ck_assert_int_eq(xm_host_detach(host, me, &request, ~0u, &payload), 2);
	ck_assert_uint_eq(payload, 7);
	request = (struct xmem_slot_request){ .slot = slot[1][1] };
	ck_assert_int_eq(xm_host_detach(host, me, &request, ~0u, &payload), 1);
	ck_assert_uint_eq(payload, (1ULL << 32) + 7);
	xm_host_end(host, me);
	ck_assert_uint_eq(world_reclaim(host, slot[2][0]), 1ULL << 32);
	ck_assert_uint_eq(world_reclaim(host, slot[3][1]), ~0ULL);
	ck_assert_uint_eq(world_reclaim(host, slot[1][0]), (1ULL << 32) + 7);
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(reclaim_leaves_the_slots_of_the_living)
{
	struct world *world = world_make(64, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), slot;

	world_attach(world, me, 1, &slot);
	world_take_publish(world, me, slot);
	ck_assert_uint_eq(world_reclaim(&world->host, slot), 0);
	ck_assert_uint_eq(world_reclaim(&world->host, slot + 1), 0);	/* it has no owner */
	ck_assert(!xm_host_idle_group(&world->host, 0));
	world_is_valid(world);
	world_free(world);
}
END_TEST

START_TEST(group_goes_back_with_its_last_slot)
{
	struct world *world = world_make(128, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[2];
	u64 token;

	world_attach(world, me, 2, slot);
	token = world_take_publish(world, me, slot[1]);
	ck_assert_int_eq(xm_get(&world->host.map, reader, token), 0);
	world_end(world, me);
	ck_assert_uint_eq(world->host.group_owner[0], XMEM_OWNER_HOST);
	ck_assert_uint_eq(world_count(world, XMEM_OWNER_HOST), 1); /* the FREE one is gone */
	ck_assert_int_eq(xm_host_free_group(&world->host, reader, 1), 1);
	world_put(world, reader, slot[1]);
	world_reap(world);
	ck_assert_int_eq(xm_host_free_group(&world->host, reader, 1), 0);
	world_is_clean(world);
	world_free(world);
}
END_TEST

/* ---- resolve ---- */

START_TEST(resolve_is_for_holders_and_only_when_the_word_stood_still)
{
	struct world *world = world_make(64, 4, 4);
	const struct xm_map *map = &world->host.map;
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot;
	u64 token, live, scanning;

	world_attach(world, me, 1, &slot);
	token = world_take_publish(world, me, slot);
	live = xm_slot(map, slot)->state;
	scanning = xm_word(xm_generation(live), 1, XMEM_SLOT_SCANNING);
	ck_assert_int_eq(xm_host_resolve(&world->host, reader, 64, scanning), -EINVAL);
	xm_slot(map, slot)->state = scanning;
	ck_assert_int_eq(xm_host_resolve(&world->host, reader, slot, scanning), -EPERM);
	ck_assert_int_eq(xm_get(map, reader, token), -EAGAIN);
	ck_assert_int_eq(xm_host_resolve(&world->host, reader, slot, live), -EAGAIN);
	/* another scan's */
	ck_assert_int_eq(xm_host_resolve(&world->host, reader, slot, scanning + (1 << 3)), -EAGAIN);
	ck_assert_uint_eq(xm_slot(map, slot)->state, scanning);
	ck_assert_int_eq(xm_host_resolve(&world->host, reader, slot, scanning), 0);
	ck_assert_uint_eq(xm_slot(map, slot)->state,
			  xm_word(xm_generation(live), 1, XMEM_SLOT_LIVE));
	ck_assert_int_eq(xm_look(map, token), 0);
	world_free(world);
}
END_TEST

void slot_tests(Suite *suite)
{
	TCase *tcase = tcase_create("slot");

	tcase_add_test(tcase, few_files_are_truncated);
	tcase_add_test(tcase, attach_fields_out_of_range_are_EINVAL);
	tcase_add_test(tcase, slots_beyond_the_file_are_ERANGE);
	tcase_add_test(tcase, attach_fills_rows_in_order);
	tcase_add_test(tcase, too_few_spare_slots_are_ENOSPC);
	tcase_add_test(tcase, tenancies_of_a_slot_do_not_share_generations);
	tcase_add_test(tcase, two_like_pools_do_not_share_tokens);
	tcase_add_test(tcase, slot_requests_name_a_slot_and_mostly_no_generation);
	tcase_add_test(tcase, renew_gives_a_range_of_its_own);
	tcase_add_test(tcase, slot_whose_tenancies_are_used_up_is_not_used_again);
	tcase_add_test(tcase, group_whose_slots_are_used_up_is_given_to_nobody);
	tcase_add_test(tcase, detach_takes_free_slots_of_ones_own_only);
	tcase_add_test(tcase, ids_of_payloads_have_64_bits);
	tcase_add_test(tcase, reclaim_leaves_the_slots_of_the_living);
	tcase_add_test(tcase, group_goes_back_with_its_last_slot);
	tcase_add_test(tcase, resolve_is_for_holders_and_only_when_the_word_stood_still);
	suite_add_tcase(suite, tcase);
}

/* ---- waiters words ---- */

START_TEST(armed_word_changes_when_it_is_disarmed)
{
	u32 word = 0, a, b;

	ck_assert(!xm_disarm(&word));
	ck_assert_uint_eq(word, 0);
	a = xm_arm(&word);
	b = xm_arm(&word);
	ck_assert_uint_eq(a, b);
	ck_assert(xm_still_armed(&word, a));
	ck_assert(xm_disarm(&word));
	ck_assert(!xm_still_armed(&word, a) && !xm_still_armed(&word, b));
	ck_assert(!xm_disarm(&word));		/* no client sleeps: no second wake */
	b = xm_arm(&word);
	ck_assert(xm_still_armed(&word, b));
	ck_assert(!xm_still_armed(&word, a));	/* awake whatever the second does */
}
END_TEST

/* A waker is stopped while it wakes the clients: the next one sees an armed word. */
START_TEST(word_stays_armed_while_clients_are_woken)
{
	u32 word = 0, first = xm_arm(&word), claim, other, second;

	ck_assert(xm_wake_begin(&word, &claim));
	ck_assert(word & XMEM_WAITERS_ARMED && !xm_still_armed(&word, first));
	ck_assert(xm_wake_begin(&word, &other));
	ck_assert_uint_eq(other, claim);
	second = xm_arm(&word);
	ck_assert_uint_ne(second, claim);
	ck_assert(xm_still_armed(&word, second));
	xm_wake_end(&word, claim);		/* a client sleeps that neither of them has woken */
	ck_assert(xm_still_armed(&word, second) && word & XMEM_WAITERS_ARMED);
	ck_assert(xm_wake_begin(&word, &claim));
	ck_assert(!xm_still_armed(&word, second));
	xm_wake_end(&word, claim);
	ck_assert(!(word & XMEM_WAITERS_ARMED) && !xm_wake_begin(&word, &claim));
}
END_TEST

START_TEST(waiters_count_wraps)
{
	u32 word = 0xfffffffc, value = xm_arm(&word);

	ck_assert(xm_disarm(&word));
	ck_assert_uint_eq(word, 0);
	ck_assert(!xm_still_armed(&word, value));
}
END_TEST

static u32 *waiters(struct world *world, u32 me, u32 kind, u32 client, u32 op,
		    int *err)
{
	struct xmem_wait_request request = { .op = op, .kind = kind, .client = client };

	*err = 0x5a5a;
	return xm_host_waiters(&world->host, me, &request, err);
}

START_TEST(waiters_words_and_who_may_arm_them)
{
	struct world *world = world_make(64, 4, 4);
	struct xmem_client_row *row = xm_client_row(&world->host.map, 0);
	u32 writer = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0);
	int err;

	ck_assert_ptr_eq(waiters(world, reader, XMEM_WAIT_CLIENTS, 0, XMEM_OP_ARM, &err),
			 &world->host.map.pool->clients_waiters);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_CLIENTS, 1, XMEM_OP_ARM, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_RING, 4, XMEM_OP_ARM, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_ptr_null(waiters(world, reader, 3, 0, XMEM_OP_ARM, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_RING, writer, XMEM_OP_ARM, &err));
	ck_assert_int_eq(err, -ENOENT);
	world_subscribe(world, reader, writer, 0);
	ck_assert_ptr_eq(waiters(world, reader, XMEM_WAIT_RING, writer, XMEM_OP_ARM, &err),
			 &row[writer].ring_waiters);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_SLOTS, writer, XMEM_OP_ARM, &err));
	ck_assert_int_eq(err, -EPERM);
	ck_assert_ptr_eq(waiters(world, writer, XMEM_WAIT_SLOTS, writer, XMEM_OP_ARM, &err),
			 &row[writer].slots_waiters);
	/*
	 * A client that may hold something wakes an owner, only the publisher wakes its
	 * subscribers, and only the host the rest.
	 */
	ck_assert_ptr_eq(waiters(world, reader, XMEM_WAIT_SLOTS, writer, XMEM_OP_WAKE, &err),
			 &row[writer].slots_waiters);
	xm_set_bit(row[writer].holders, reader, false);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_SLOTS, writer, XMEM_OP_WAKE, &err));
	ck_assert_int_eq(err, -EPERM);
	ck_assert_ptr_eq(waiters(world, reader, XMEM_WAIT_SLOTS, reader, XMEM_OP_WAKE, &err),
			 &xm_client_row(&world->host.map, reader)->slots_waiters);
	xm_set_bit(row[writer].holders, reader, true);
	ck_assert_ptr_eq(waiters(world, writer, XMEM_WAIT_RING, writer, XMEM_OP_WAKE, &err),
			 &row[writer].ring_waiters);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_RING, writer, XMEM_OP_WAKE, &err));
	ck_assert_int_eq(err, -EPERM);
	ck_assert_ptr_null(waiters(world, writer, XMEM_WAIT_CLIENTS, 0, XMEM_OP_WAKE, &err));
	ck_assert_int_eq(err, -EPERM);
	ck_assert_ptr_null(waiters(world, writer, XMEM_WAIT_CLIENTS, 1, XMEM_OP_WAKE, &err));
	ck_assert_int_eq(err, -EINVAL);
	ck_assert_ptr_null(waiters(world, reader, XMEM_WAIT_SLOTS, writer, XMEM_OP_WAIT, &err));
	ck_assert_int_eq(err, -EPERM);
	ck_assert_ptr_eq(waiters(world, writer, XMEM_WAIT_SLOTS, writer, XMEM_OP_WAIT, &err),
			 &row[writer].slots_waiters);
	ck_assert_ptr_eq(waiters(world, reader, XMEM_WAIT_RING, writer, XMEM_OP_WAIT, &err),
			 &row[writer].ring_waiters);
	ck_assert_ptr_eq(waiters(world, reader, XMEM_WAIT_CLIENTS, 0, XMEM_OP_WAIT, &err),
			 &world->host.map.pool->clients_waiters);
	world_free(world);
}
END_TEST

START_TEST(detach_takes_whole_files)
{
	struct world *world = world_make(64, 4, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 other = world_join(world, XMEM_ROLE_READER, 0);
	struct xmem_slot_request request = { .op = XMEM_OP_DETACH_FILE };
	u32 slot[3], more[2];
	u64 payload = 77;

	world_attach(world, me, 3, slot);
	world_attach(world, me, 2, more);
	request.slot = slot[1];
	ck_assert_int_eq(xm_host_detach(&world->host, other, &request, ~0u, &payload), -EPERM);
	/* All of them, or none. */
	ck_assert_int_eq(xm_take(&world->host.map, slot[2]), 0);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), -EBUSY);
	ck_assert_uint_eq(payload, 77);
	ck_assert_uint_eq(xm_host_spare_slots(&world->host, me, false), 59);
	ck_assert_int_eq(xm_give_up(&world->host.map, slot[2]), 0);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), 3);
	ck_assert_uint_eq(payload, FIRST_ID);
	ck_assert_uint_eq(xm_host_spare_slots(&world->host, me, false), 62);
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), -EPERM);
	request.slot = more[0];
	ck_assert_int_eq(xm_host_detach(&world->host, me, &request, ~0u, &payload), 2);
	world_is_valid(world);
	world_free(world);
}
END_TEST

/* ---- limbo ---- */

START_TEST(limbo_is_as_old_as_its_first_owners_end)
{
	struct world *world = world_make(256, 8, 4);
	u32 first = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 second = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 reader = world_join(world, XMEM_ROLE_READER, 0), slot[2];
	const struct xm_map *map = &world->host.map;
	struct xm_limbo limbo;
	u64 token[2];

	world_attach(world, first, 1, &slot[0]);
	world_attach(world, second, 1, &slot[1]);
	token[0] = world_take_publish(world, first, slot[0]);
	token[1] = world_take_publish(world, second, slot[1]);
	ck_assert_int_eq(xm_get(map, reader, token[0]), 0);
	ck_assert_int_eq(xm_get(map, reader, token[1]), 0);
	/* They are held, and no acquire lacks them. */
	xm_limbo_count(map, &limbo);
	ck_assert_uint_eq(limbo.ended + limbo.overdue, 0);
	ck_assert_uint_eq(limbo.ended_ns | limbo.overdue_ns, 0);
	xm_ring(map, second)->limbo_ns = 500;
	xm_limbo_count(map, &limbo);
	ck_assert_uint_eq(limbo.overdue, 1);
	ck_assert_uint_eq(limbo.overdue_bytes, 64);
	ck_assert_uint_eq(limbo.overdue_ns, 500);
	ck_assert(xm_is_overdue(map, slot[1]));
	ck_assert(!xm_is_overdue(map, slot[0]));
	xm_host_end(&world->host, first);
	xm_host_limbo(&world->host, 1000);
	xm_host_end(&world->host, second);
	xm_host_limbo(&world->host, 2000);
	ck_assert_uint_eq(map->pool->limbo_ns, 1000);
	xm_limbo_count(map, &limbo);
	ck_assert_uint_eq(limbo.ended, 2);
	ck_assert_uint_eq(limbo.ended_bytes, 128);
	ck_assert_uint_eq(limbo.ended_ns, 1000);
	ck_assert_uint_eq(limbo.overdue, 0);
	world_put(world, reader, slot[0]);
	world_reclaim(&world->host, slot[0]);
	ck_assert(xm_host_idle_group(&world->host, slot[0] / XMEM_GROUP_SLOTS));
	xm_host_give_group(&world->host, slot[0] / XMEM_GROUP_SLOTS, XMEM_OWNER_NONE);
	ck_assert_uint_eq(map->pool->limbo_ns, 2000);
	world_put(world, reader, slot[1]);
	world_reclaim(&world->host, slot[1]);
	ck_assert(xm_host_idle_group(&world->host, slot[1] / XMEM_GROUP_SLOTS));
	xm_host_give_group(&world->host, slot[1] / XMEM_GROUP_SLOTS, XMEM_OWNER_NONE);
	ck_assert_uint_eq(map->pool->limbo_ns, 0);
	world_free(world);
}
END_TEST

/* ---- payload files ---- */

START_TEST(payload_files_are_counted_until_they_go)
{
	struct world *world = world_make(64, 4, 8);
	struct xmem_pools_request said = { .size = sizeof(said) };
	const struct xmem_pool_header *pool = world->host.map.pool;
	u32 one = world_join(world, XMEM_ROLE_WRITER, 0);
	u32 two = world_join(world, XMEM_ROLE_WRITER, 0);

	xm_host_payload_add(&world->host, one, 4096, 0);
	xm_host_payload_add(&world->host, two, 8192, XMEM_TRAIT_HUGE);
	xm_host_payload_add(&world->host, two, 16384, 0);
	ck_assert_uint_eq(pool->payloads, 3);
	ck_assert_uint_eq(pool->payload_bytes, 28672);
	ck_assert_uint_eq(pool->huge_bytes, 8192);
	ck_assert_uint_eq(pool->kept_bytes, 0);
	/* A file that goes before its owner's end is never kept. */
	xm_host_payload_drop(&world->host, two, 2, 16384, 0);
	ck_assert(xm_host_lives(&world->host, two, 2));
	xm_host_end(&world->host, two);
	ck_assert(!xm_host_lives(&world->host, two, 2));
	xm_host_describe(&world->host, &said);
	ck_assert_uint_eq(said.payloads, 2);
	ck_assert_uint_eq(said.payload_bytes, 12288);
	ck_assert_uint_eq(said.kept_bytes, 8192);
	ck_assert_uint_eq(pool->payloads_gone, 1);
	/* Another client has its id by now. */
	world_reap(world);
	ck_assert_uint_eq(world_join(world, XMEM_ROLE_WRITER, 0), two);
	xm_host_payload_drop(&world->host, two, 2, 8192, XMEM_TRAIT_HUGE);
	ck_assert_uint_eq(pool->huge_bytes, 0);
	ck_assert_uint_eq(pool->kept_bytes, 0);
	xm_host_payload_drop(&world->host, one, 1, 4096, 0);
	ck_assert_uint_eq(pool->payloads, 0);
	ck_assert_uint_eq(pool->payload_bytes, 0);
	ck_assert_uint_eq(pool->payloads_gone, 3);
	world_free(world);
}
END_TEST

/* P4: 1000 a second for a slot, whichever client asks, and whether it attaches or renews. */
START_TEST(a_slot_begins_one_tenancy_a_millisecond)
{
	static u32 born[64];
	struct world *world = world_make(64, 2, 4);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);
	struct xmem_attach_request all = attach_of(64), one = attach_of(1), more = attach_of(64);
	struct xmem_slot_request slot = { .size = sizeof(slot) };
	struct xm_host *host = &world->host;
	u64 payload;

	host->born_ms = born;
	host->now_ms = ~0u;
	xm_host_give_group(host, 0, me);
	/* The first tenancy of a slot is never too early. */
	ck_assert_int_eq(xm_host_attach(host, me, FILE_OF(1, 1 << 20), 1, &all), 0);
	slot.slot = all.slot[7];
	ck_assert_int_eq(xm_host_renew(host, me, 1, &slot), -EALREADY);
	ck_assert_uint_eq(xm_slot_row(&host->map, slot.slot)->tenancies, 1);
	host->now_ms++;
	ck_assert_int_eq(xm_host_renew(host, me, 1, &slot), 0);
	slot.generation = 0;
	ck_assert_int_eq(xm_host_renew(host, me, 1, &slot), -EALREADY);
	/*
	 * A client that detaches the slot does not get a further one by that, nor does one that
	 * attaches all slots.
	 */
	ck_assert_int_eq(xm_host_detach(host, me, &slot, ~0u, &payload), 1);
	ck_assert_int_eq(xm_host_attach(host, me, FILE_OF(2, 1 << 20), 1, &one), -EALREADY);
	ck_assert_uint_eq(xm_slot_row(&host->map, slot.slot)->tenancies, 2);
	ck_assert_int_eq(xm_host_attach(host, me, FILE_OF(2, 1 << 20), 1, &more), -ENOSPC);
	host->now_ms++;
	ck_assert_int_eq(xm_host_attach(host, me, FILE_OF(2, 1 << 20), 1, &one), 0);
	ck_assert_uint_eq(one.slot[0], slot.slot);
	ck_assert_uint_eq(xm_slot_row(&host->map, slot.slot)->tenancies, 3);
	/* Another slot that is old enough is taken instead. */
	slot.slot = all.slot[3];
	ck_assert_int_eq(xm_host_detach(host, me, &slot, ~0u, &payload), 1);
	slot.slot = one.slot[0];
	ck_assert_int_eq(xm_host_detach(host, me, &slot, ~0u, &payload), 1);
	one.slot[0] = 0;
	ck_assert_int_eq(xm_host_attach(host, me, FILE_OF(3, 1 << 20), 1, &one), 0);
	ck_assert_uint_eq(one.slot[0], all.slot[3]);
	host->born_ms = NULL;
	world_free(world);
}
END_TEST

START_TEST(capacities_are_told_as_limits)
{
	struct world *world = world_make(128, 4, 8);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), slot[3];
	struct xmem_quota_request quota = { .size = sizeof(quota) };
	struct xm_host *host = &world->host;

	world_attach(world, me, 3, slot);
	quota.quota = XMEM_QUOTA_POOL_SLOTS;
	ck_assert(xm_host_quota(host, &quota));
	ck_assert_uint_eq(quota.used, 3);
	ck_assert_uint_eq(quota.most, 128);
	ck_assert_uint_eq(quota.scope, XMEM_QUOTA_OF_POOL);
	ck_assert_uint_eq(quota.uid, ~0u);
	ck_assert_str_eq((char *)quota.name, "slots");
	quota.quota = XMEM_QUOTA_POOL_GROUPS;
	ck_assert(xm_host_quota(host, &quota));
	ck_assert_uint_eq(quota.used, 1);
	ck_assert_uint_eq(quota.most, 2);
	quota.quota = XMEM_QUOTA_POOL_CLIENTS;
	ck_assert(xm_host_quota(host, &quota));
	ck_assert_uint_eq(quota.used, 1);
	ck_assert_uint_eq(quota.most, 4);
	quota.quota = XMEM_QUOTA_POOL_DEVICES;
	ck_assert(xm_host_quota(host, &quota));
	ck_assert_uint_eq(quota.used, 0);
	quota.quota = XMEM_QUOTA_USER_POOLS;
	ck_assert(!xm_host_quota(host, &quota));
	world_free(world);
}
END_TEST

void waiters_tests(Suite *suite)
{
	TCase *tcase = tcase_create("waiters");

	tcase_add_test(tcase, armed_word_changes_when_it_is_disarmed);
	tcase_add_test(tcase, word_stays_armed_while_clients_are_woken);
	tcase_add_test(tcase, waiters_count_wraps);
	tcase_add_test(tcase, waiters_words_and_who_may_arm_them);
	tcase_add_test(tcase, detach_takes_whole_files);
	tcase_add_test(tcase, limbo_is_as_old_as_its_first_owners_end);
	tcase_add_test(tcase, payload_files_are_counted_until_they_go);
	tcase_add_test(tcase, a_slot_begins_one_tenancy_a_millisecond);
	tcase_add_test(tcase, capacities_are_told_as_limits);
	suite_add_tcase(suite, tcase);
}
