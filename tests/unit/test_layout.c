// SPDX-License-Identifier: MIT
/*
 * What is fixed for ever: sizes and offsets of what lies in the pages, and how
 * a pool's layout follows from its numbers.
 */
#include "unit.h"

_Static_assert(sizeof(struct xmem_pool_header) == 384, "pool header");
_Static_assert(sizeof(struct xmem_client_row) == 192, "client row");
_Static_assert(sizeof(struct xmem_slot_row) == 64, "slot row");
_Static_assert(sizeof(struct xmem_entry) == 64, "entry");
_Static_assert(sizeof(struct xmem_cursor) == 64, "cursor");
_Static_assert(sizeof(struct xmem_ring) == 64, "ring, without its entries");
_Static_assert(sizeof(struct xmem_metadata) == 512, "metadata");
_Static_assert(sizeof(struct xmem_slot_word) == 16, "slot word");
_Static_assert(sizeof(struct xmem_group) == 36864, "group");
_Static_assert(sizeof(struct xmem_group) % PAGE == 0, "a group is whole pages");

#define AT(type, field, offset)	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

AT(xmem_pool_header, magic, 0);
AT(xmem_pool_header, abi, 8);
AT(xmem_pool_header, clients_offset, 32);
AT(xmem_pool_header, holds_offset, 88);
AT(xmem_pool_header, name, 104);
AT(xmem_client_row, incarnation, 0);
AT(xmem_client_row, state, 8);
AT(xmem_client_row, wait_bound_ns, 24);
AT(xmem_client_row, label, 32);
AT(xmem_client_row, subscribers, 64);
AT(xmem_client_row, waits, 96);
AT(xmem_client_row, ring_waiters, 128);
AT(xmem_client_row, slots_waiters, 132);
AT(xmem_slot_row, owner, 0);
AT(xmem_slot_row, tenant, 4);
AT(xmem_slot_row, payload, 8);
AT(xmem_slot_row, generation_first, 16);
AT(xmem_slot_row, offset, 24);
AT(xmem_slot_row, length, 32);
AT(xmem_slot_word, state, 0);
AT(xmem_slot_word, position, 8);
AT(xmem_group, metadata, 4096);
AT(xmem_entry, position, 0);
AT(xmem_entry, token, 8);
AT(xmem_entry, sequence, 16);
AT(xmem_entry, timestamp_ns, 24);
AT(xmem_entry, offset, 32);
AT(xmem_entry, length, 40);
AT(xmem_ring, tail, 0);
AT(xmem_ring, entry, 64);

/* Each struct of a request begins with its size. */
AT(xmem_join_request, size, 0);
AT(xmem_pool_fd_request, size, 0);
AT(xmem_attach_request, size, 0);
AT(xmem_payload_request, size, 0);
AT(xmem_subscribe_request, size, 0);
AT(xmem_unsubscribe_request, size, 0);
AT(xmem_wait_request, size, 0);
AT(xmem_slot_request, size, 0);

/* The words that all scans read are in lines of their own. */
START_TEST(counted_and_waiters_have_lines_of_their_own)
{
	ck_assert_uint_eq(offsetof(struct xmem_pool_header, counted) % 64, 0);
	ck_assert_uint_eq(offsetof(struct xmem_pool_header, clients_waiters) % 64, 0);
	ck_assert_uint_eq(offsetof(struct xmem_client_row, subscribers) % 64, 0);
	ck_assert_uint_eq(offsetof(struct xmem_client_row, ring_waiters) % 64, 0);
}
END_TEST

static void check_parts(u32 slots, u32 clients, u32 ring)
{
	struct xmem_join_request join = { .slots = slots, .clients = clients, .ring_entries = ring };
	struct xmem_pool_header h;

	memset(&h, 0xa5, sizeof(h));
	ck_assert_int_eq(xm_host_layout(&join, PAGE, &h), 0);
	ck_assert_uint_eq(h.magic, XMEM_MAGIC);
	ck_assert_uint_eq(h.abi, XMEM_ABI);
	ck_assert_uint_eq(h.slots % XMEM_GROUP_SLOTS, 0);
	ck_assert_uint_ge(h.slots, slots);
	ck_assert_uint_ge(h.clients_offset, sizeof(h));
	ck_assert_uint_eq(h.clients_offset % 64, 0);
	ck_assert_uint_ge(h.slots_offset, h.clients_offset + h.clients * sizeof(struct xmem_client_row));
	ck_assert_uint_eq(h.slots_offset % 64, 0);
	ck_assert_uint_ge(h.groups_offset, h.slots_offset + h.slots * sizeof(struct xmem_slot_row));
	ck_assert_uint_ge(h.group_stride, sizeof(struct xmem_group));
	ck_assert_uint_ge(h.areas_offset, h.groups_offset + h.slots / XMEM_GROUP_SLOTS * h.group_stride);
	ck_assert_uint_eq((h.groups_offset | h.group_stride | h.areas_offset | h.area_stride) % PAGE, 0);
	ck_assert_uint_ge(h.ring_offset, h.clients * sizeof(struct xmem_cursor));
	ck_assert_uint_ge(h.holds_offset, h.ring_offset + 64 + h.ring_entries * 64ULL);
	ck_assert_uint_eq((h.ring_offset | h.holds_offset) % 64, 0);
	/* also the holds of the client with the last colour */
	ck_assert_uint_ge(h.area_stride, h.holds_offset + 15 * 256 + h.slots * 4ULL);
	ck_assert_uint_eq(h.total_bytes, h.areas_offset + h.clients * h.area_stride);
}

START_TEST(regions_follow_each_other_without_overlap)
{
	check_parts(0, 0, 0);
	check_parts(1, 1, 4);
	check_parts(65, 3, 8);
	check_parts(XMEM_MAX_SLOTS, XMEM_MAX_CLIENTS, XMEM_MAX_RING);
}
END_TEST

START_TEST(numbers_out_of_range_are_EINVAL)
{
	static const struct xmem_join_request bad[] = {
		{ .slots = XMEM_MAX_SLOTS + 1 }, { .slots = 0xffffffff }, { .clients = XMEM_MAX_CLIENTS + 1 },
		{ .ring_entries = 1 }, { .ring_entries = 2 }, { .ring_entries = 3 }, { .ring_entries = 6 },
		{ .ring_entries = XMEM_MAX_RING * 2 }, { .name = "a/b" }, { .name = ".hidden" }, { .name = "a b" },
		{ .name = "a\x80" }, { .name = { [0 ... XMEM_NAME_BYTES - 1] = 'a' } },
	};
	struct xmem_pool_header h;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(&h, 0xa5, sizeof(h));
		ck_assert_int_eq(xm_host_layout(&bad[i], PAGE, &h), -EINVAL);
		ck_assert_uint_eq(h.magic, POISON);	/* nothing has changed */
	}
}
END_TEST

START_TEST(good_names_are_taken)
{
	static const char *const good[] = { "", "a", "camera.0", "A-z_9", "0123456789012345678901234567890" };
	struct xmem_pool_header h;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct xmem_join_request join = { 0 };

		memcpy(join.name, good[i], strlen(good[i]));
		ck_assert_int_eq(xm_host_layout(&join, PAGE, &h), 0);
		ck_assert_str_eq((char *)h.name, good[i]);
	}
}
END_TEST

/* Two clients' words never share a place, whatever their colour. */
START_TEST(every_place_lies_in_its_own_part)
{
	struct world *world = world_make(128, 20, 16);
	const struct xm_map *map = &world->host.map;
	u64 stride = map->pool->area_stride;
	u32 c;

	for (c = 0; c < map->clients; c++) {
		char *area = map->area[c];

		ck_assert((char *)xm_cursor(map, c, map->clients - 1) < (char *)xm_ring(map, c));
		ck_assert((char *)(xm_entry(map, c, map->ring_mask) + 1) <= (char *)xm_hold(map, c, 0));
		ck_assert((char *)(xm_hold(map, c, map->slots - 1) + 1) <= area + stride);
		ck_assert((char *)xm_cursor(map, c, 0) == area);
	}
	ck_assert((char *)(xm_metadata(map, map->slots - 1) + 1) <= (char *)map->area[0]);
	ck_assert((char *)map->area[map->clients - 1] + stride == (char *)world->base + world->bytes);
	world_free(world);
}
END_TEST

void layout_tests(Suite *suite)
{
	TCase *tcase = tcase_create("layout");

	tcase_add_test(tcase, counted_and_waiters_have_lines_of_their_own);
	tcase_add_test(tcase, regions_follow_each_other_without_overlap);
	tcase_add_test(tcase, numbers_out_of_range_are_EINVAL);
	tcase_add_test(tcase, good_names_are_taken);
	tcase_add_test(tcase, every_place_lies_in_its_own_part);
	suite_add_tcase(suite, tcase);
}
