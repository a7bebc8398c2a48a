// SPDX-License-Identifier: MIT
/*
 * Tests of what can never change: the sizes and offsets of the structs in a pool's pages, and how a
 * pool's layout follows from its numbers.
 */
#include "unit.h"

_Static_assert(sizeof(struct xmem_pool_header) == 512, "pool header");
_Static_assert(sizeof(struct xmem_client_row) == 192, "client row");
_Static_assert(sizeof(struct xmem_slot_row) == 64, "slot row");
_Static_assert(sizeof(struct xmem_entry) == 64, "entry");
_Static_assert(sizeof(struct xmem_cursor) == 64, "cursor");
_Static_assert(sizeof(struct xmem_ring) == 128, "ring, without its entries");
_Static_assert(sizeof(struct xmem_metadata) == 512, "metadata");
_Static_assert(sizeof(struct xmem_device_row) == 64, "device row");
_Static_assert(sizeof(struct xmem_attach_request) == 264, "attach");
_Static_assert(sizeof(struct xmem_payload_request) == 112, "payload");
_Static_assert(sizeof(struct xmem_join_request) == 240, "join");
_Static_assert(sizeof(struct xmem_pool_fd_request) == 24, "pool_fd");
_Static_assert(sizeof(struct xmem_access_request) == 24, "access");
_Static_assert(sizeof(struct xmem_grant_request) == 32, "grant");
_Static_assert(sizeof(struct xmem_group_row) == 64, "group row");
_Static_assert(sizeof(struct xmem_slot_word) == 16, "slot word");
_Static_assert(sizeof(struct xmem_group) == 1024, "group, without its metadata");

#define AT(type, field, offset) \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

AT(xmem_pool_header, magic, 0);
AT(xmem_pool_header, abi, 8);
AT(xmem_pool_header, compat, 16);
AT(xmem_pool_header, incompat, 24);
AT(xmem_pool_header, client_row_stride, 44);
AT(xmem_pool_header, metadata_stride, 60);
AT(xmem_pool_header, clients_offset, 64);
AT(xmem_pool_header, holds_offset, 136);
AT(xmem_pool_header, name, 152);
AT(xmem_pool_header, payloads, 288);
AT(xmem_pool_header, kept_bytes, 328);
AT(xmem_pool_header, huge_bytes, 336);
AT(xmem_pool_header, limbo_ns, 344);
AT(xmem_pool_header, ready_offset, 352);
AT(xmem_pool_header, devices_offset, 360);
AT(xmem_pool_header, devices_stride, 368);
AT(xmem_pool_header, group_rows_offset, 376);
AT(xmem_pool_header, counted, 384);
AT(xmem_pool_header, payloads_gone, 424);
AT(xmem_pool_header, payloads_closed, 456);
AT(xmem_device_row, bytes, 16);
AT(xmem_device_row, closing_bytes, 24);
AT(xmem_attach_request, payload, 16);
AT(xmem_attach_request, bytes, 176);
AT(xmem_attach_request, handle, 200);
AT(xmem_payload_request, payload, 8);
AT(xmem_payload_request, traits, 20);
AT(xmem_payload_request, handle, 48);
AT(xmem_metadata, order_kind, 332);
AT(xmem_client_row, incarnation, 0);
AT(xmem_client_row, state, 8);
AT(xmem_client_row, wait_bound_ns, 24);
AT(xmem_client_row, label, 32);
AT(xmem_client_row, subscribers, 64);
AT(xmem_client_row, waits, 96);
AT(xmem_client_row, ring_waiters, 128);
AT(xmem_client_row, slots_waiters, 132);
AT(xmem_client_row, holders, 136);
AT(xmem_group_row, stages, 32);
AT(xmem_slot_row, owner, 0);
AT(xmem_slot_row, tenant, 4);
AT(xmem_slot_row, payload, 8);
AT(xmem_slot_row, generation_first, 16);
AT(xmem_slot_row, tenancies, 40);
AT(xmem_slot_row, offset, 24);
AT(xmem_slot_row, length, 32);
AT(xmem_slot_row, payload_bytes, 48);
AT(xmem_slot_row, group_owner, 60);
AT(xmem_slot_word, state, 0);
AT(xmem_slot_word, position, 8);
AT(xmem_entry, position, 0);
AT(xmem_entry, token, 8);
AT(xmem_entry, sequence, 16);
AT(xmem_entry, timestamp_ns, 24);
AT(xmem_entry, offset, 32);
AT(xmem_entry, length, 40);
AT(xmem_ring, tail, 0);
AT(xmem_ring, mapped_bytes, 24);
AT(xmem_ring, vain, 16);
AT(xmem_ring, look_at_ns, 56);
AT(xmem_ring, limbo_ns, 72);
AT(xmem_ring, awaits_writer, 112);

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
	struct xmem_join_request join = {
		.slots = slots, .clients = clients, .ring_entries = ring,
	};
	struct xmem_pool_header h;

	memset(&h, 0xa5, sizeof(h));
	ck_assert_int_eq(xm_host_layout(&join, PAGE, &h), 0);
	ck_assert_uint_eq(h.magic, XMEM_MAGIC);
	ck_assert_uint_eq(h.abi, XMEM_ABI);
	ck_assert_uint_eq(h.slots % XMEM_GROUP_SLOTS, 0);
	ck_assert_uint_ge(h.slots, slots);
	ck_assert_uint_ge(h.clients_offset, sizeof(h));
	ck_assert_uint_eq(h.clients_offset % 64, 0);
	ck_assert_uint_ge(h.slots_offset,
			  h.clients_offset + h.clients * sizeof(struct xmem_client_row));
	ck_assert_uint_eq(h.slots_offset % 64, 0);
	ck_assert_uint_ge(h.groups_offset, h.slots_offset + h.slots * sizeof(struct xmem_slot_row));
	ck_assert_uint_ge(h.devices_offset,
			  h.slots_offset + h.slots * sizeof(struct xmem_slot_row));
	ck_assert_uint_ge(h.groups_offset,
			  h.devices_offset + XMEM_MAX_DEVICES * sizeof(struct xmem_device_row));
	ck_assert_uint_ge(h.ready_offset, sizeof(struct xmem_group));
	ck_assert_uint_ge(h.metadata_offset, h.ready_offset + XMEM_GROUP_SLOTS * sizeof(u64));
	/* A GPU that has an owner's ready words also has its state words, but no other owner's. */
	ck_assert_uint_eq(h.ready_offset / 4096, 0);
	ck_assert_uint_ge(h.group_stride, h.metadata_offset + XMEM_GROUP_SLOTS * 512);
	ck_assert_uint_ge(h.areas_offset,
			  h.groups_offset + h.slots / XMEM_GROUP_SLOTS * h.group_stride);
	ck_assert_uint_eq((h.groups_offset | h.group_stride | h.areas_offset) % PAGE, 0);
	ck_assert_uint_eq(h.area_stride % PAGE, 0);
	ck_assert_uint_ge(h.ring_offset, h.clients * sizeof(struct xmem_cursor));
	ck_assert_uint_ge(h.holds_offset, h.ring_offset + 64 + h.ring_entries * 64ULL);
	ck_assert_uint_eq((h.ring_offset | h.holds_offset) % 64, 0);
	/* also the holds of the client with the last colour */
	ck_assert_uint_ge(h.area_stride, h.holds_offset + 15 * 256 + h.slots * 4ULL);
	ck_assert_uint_eq(h.total_bytes, h.areas_offset + h.clients * h.area_stride);
}

START_TEST(parts_follow_each_other_without_overlap)
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
		{ .slots = XMEM_MAX_SLOTS + 1 }, { .slots = 0xffffffff },
		{ .clients = XMEM_MAX_CLIENTS + 1 }, { .ring_entries = 1 }, { .ring_entries = 2 },
		{ .ring_entries = 3 }, { .ring_entries = 6 }, { .ring_entries = XMEM_MAX_RING * 2 },
		{ .name = ".hidden" }, { .name = "a b" }, { .name = "a\x80" }, { .name = "a:b" },
		{ .name = "a!b" }, { .name = "/" }, { .name = "//a" }, { .name = "a//b" },
		{ .name = "a/" }, { .name = "/a/" }, { .name = "." }, { .name = ".." },
		{ .name = "/." }, { .name = "a/.." }, { .name = "a/../b" }, { .name = "a/.b" },
		{ .name = { [0 ... XMEM_NAME_MAX] = 'a' } },
		{ .name = { [0 ... XMEM_NAME_BYTES - 1] = 'a' } },
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
	static const char *const good[] = {
		"", "a", "camera.0", "A-z_9", "/camera/front/image_raw", "/a", "a/b", "-/_/9.",
		"a../b",
		"/234567890123456789012345678901234567890123456789012345678901234"
		"/234567890123456789012345678901234567890123456789012345678901234",
	};
	struct xmem_pool_header h;
	u32 i;

	ck_assert_uint_eq(strlen(good[ARRAY_SIZE(good) - 1]), XMEM_NAME_MAX);
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
		ck_assert((char *)(xm_entry(map, c, map->ring_mask) + 1) <=
			  (char *)xm_hold(map, c, 0));
		ck_assert((char *)(xm_hold(map, c, map->slots - 1) + 1) <= area + stride);
		ck_assert((char *)xm_cursor(map, c, 0) == area);
	}
	ck_assert((char *)(xm_metadata(map, map->slots - 1) + 1) <= (char *)map->area[0]);
	ck_assert((char *)map->area[map->clients - 1] + stride ==
		  (char *)world->base + world->bytes);
	world_free(world);
}
END_TEST

/* Each number of a header that a client must not believe, one at a time. */
START_TEST(a_header_that_makes_no_sense_is_refused)
{
	struct xmem_join_request join = { .slots = 128, .clients = 5, .ring_entries = 8 };
	struct xmem_pool_header good, bad;

	ck_assert_int_eq(xm_host_layout(&join, PAGE, &good), 0);
	ck_assert_int_eq(xm_layout_check(&good, good.total_bytes), 0);
	ck_assert_int_eq(xm_layout_check(&good, good.total_bytes - 1), -EPROTONOSUPPORT);
	ck_assert_int_eq(xm_layout_check(&good, 64), -EPROTONOSUPPORT);
#define REFUSED(change) do { \
	bad = good; \
	bad.change; \
	ck_assert_msg(xm_layout_check(&bad, bad.total_bytes) == -EPROTONOSUPPORT, "%s", #change); \
} while (0)
	REFUSED(magic++);
	REFUSED(abi = XMEM_ABI_OLDEST - 1);
	REFUSED(incompat = 1);
	REFUSED(incompat = 1ULL << 63);
	REFUSED(slots = 0);
	REFUSED(slots = 129);
	REFUSED(slots = XMEM_MAX_SLOTS + 64);
	REFUSED(slots *= 2);
	REFUSED(clients = 0);
	REFUSED(clients = XMEM_MAX_CLIENTS + 1);
	REFUSED(clients = 6);
	REFUSED(ring_entries = 0);
	REFUSED(ring_entries = 12);
	REFUSED(ring_entries = 16);
	REFUSED(client_row_stride--);
	REFUSED(slot_row_stride--);
	REFUSED(cursor_stride--);
	REFUSED(entry_stride--);
	REFUSED(metadata_stride--);
	REFUSED(metadata_stride += 4096);
	REFUSED(group_stride = 512);
	REFUSED(group_stride *= 2);
	REFUSED(area_stride -= PAGE);
	REFUSED(area_stride *= 2);
	REFUSED(clients_offset = ~0ULL);
	REFUSED(slots_offset = ~0ULL);
	REFUSED(groups_offset = ~0ULL);
	REFUSED(areas_offset = ~0ULL);
	REFUSED(ring_offset = ~0ULL);
	REFUSED(entries_offset = ~0ULL);
	REFUSED(holds_offset = ~0ULL);
	REFUSED(metadata_offset = ~0ULL);
	/* Words that lie across two places, and mappings that begin within a page. */
	REFUSED(client_row_stride++);
	REFUSED(slot_row_stride++);
	REFUSED(cursor_stride++);
	REFUSED(entry_stride++);
	REFUSED(metadata_stride++);
	REFUSED(clients_offset--);
	REFUSED(clients_offset -= 8);	/* within the header */
	REFUSED(slots_offset -= 4);
	REFUSED(metadata_offset -= 4);
	REFUSED(entries_offset -= 4);
	REFUSED(groups_offset += 64);
	REFUSED(areas_offset += 64);
#undef REFUSED
	bad = good;
	bad.compat = ~0ULL;	/* may be ignored */
	ck_assert_int_eq(xm_layout_check(&bad, bad.total_bytes), 0);
	bad = good;
	bad.abi = XMEM_ABI + 1;	/* newer, and with nothing that we must know */
	ck_assert_int_eq(xm_layout_check(&bad, bad.total_bytes), 0);
}
END_TEST

/* Whatever the sizes of the structs here, the strides are the host's. */
START_TEST(places_follow_the_strides_of_the_header)
{
	struct world *world = world_make(128, 5, 8);
	struct xmem_pool_header header = *world->host.map.pool;
	struct xm_map map;
	char *base;

	world_free(world);
	world_widen(&header);
	base = calloc(1, header.total_bytes);
	ck_assert_ptr_nonnull(base);
	memcpy(base, &header, sizeof(header));
	ck_assert_int_eq(xm_map_take(&map, base, header.total_bytes, 0, &header), 0);
#define APART(a, b)	((u64)((char *)(b) - (char *)(a)))
	ck_assert_uint_eq(APART(xm_client_row(&map, 0), xm_client_row(&map, 4)),
			  4ULL * header.client_row_stride);
	ck_assert_uint_eq(APART(xm_slot_row(&map, 0), xm_slot_row(&map, 127)),
			  127ULL * header.slot_row_stride);
	ck_assert_uint_eq(APART(xm_cursor(&map, 1, 0), xm_cursor(&map, 1, 4)),
			  4ULL * header.cursor_stride);
	ck_assert_uint_eq(APART(xm_entry(&map, 1, 0), xm_entry(&map, 1, 7)),
			  7ULL * header.entry_stride);
	ck_assert_uint_eq(APART(xm_metadata(&map, 64), xm_metadata(&map, 127)),
			  63ULL * header.metadata_stride);
	ck_assert_uint_eq(APART(map.group[0], xm_metadata(&map, 0)), header.metadata_offset);
	ck_assert_uint_eq(APART(map.area[1], xm_entry(&map, 1, 0)), header.entries_offset);
#undef APART
	free(base);
}
END_TEST

/* A foreign daemon may write anything into the header and the client's id. */
START_TEST(a_client_takes_a_map_only_if_its_id_is_in_the_table)
{
	struct world *world = world_make(64, 3, 4);
	struct xmem_pool_header header;
	struct xm_map map;

	ck_assert_int_eq(xm_map_take(&map, world->base, world->bytes, 2, &header), 0);
	ck_assert_ptr_eq(map.area[2], world->host.map.area[2]);
	ck_assert_ptr_eq(xm_slot_row(&map, 63), xm_slot_row(&world->host.map, 63));
	ck_assert_int_eq(xm_map_take(&map, world->base, world->bytes, 3, &header),
			 -EPROTONOSUPPORT);
	ck_assert_int_eq(xm_map_take(&map, world->base, world->bytes, ~0u, &header),
			 -EPROTONOSUPPORT);
	ck_assert_int_eq(xm_map_take(&map, world->base, 8, 0, &header), -EPROTONOSUPPORT);
	world_free(world);
}
END_TEST

START_TEST(a_pool_fits_who_asks_for_no_more_than_it_has)
{
	struct world *world = world_make(128, 5, 8);
	const struct xm_map *map = &world->host.map;
	struct xmem_join_request join = { 0 };

	ck_assert_int_eq(xm_host_fits(map, &join), 0);
	join = (struct xmem_join_request){ .slots = 128, .clients = 5, .ring_entries = 8 };
	ck_assert_int_eq(xm_host_fits(map, &join), 0);
	join = (struct xmem_join_request){ .slots = 129 };
	ck_assert_int_eq(xm_host_fits(map, &join), -ERANGE);
	join = (struct xmem_join_request){ .clients = 6 };
	ck_assert_int_eq(xm_host_fits(map, &join), -ERANGE);
	join = (struct xmem_join_request){ .ring_entries = 16 };
	ck_assert_int_eq(xm_host_fits(map, &join), -ERANGE);
	world_free(world);
}
END_TEST

/* Minimum, flags and reserved field of each kind of request, and that no kind is missing. */
START_TEST(requests_are_taken_from_their_minimum_on)
{
	u32 nr, known = 0;

	for (nr = 0; nr < 256; nr++) {
		const struct xm_request_kind *kind = xm_request_find(_IO(XMEM_IOC_TYPE, nr));
		union xm_request request;

		ck_assert_ptr_null(xm_request_find(_IO('x', nr)));
		ck_assert_ptr_null(xm_request_find(_IOR(XMEM_IOC_TYPE, nr, int)));
		if (!kind)
			continue;
		known++;
		ck_assert_uint_ge(kind->least, 8);
		ck_assert_uint_le(kind->least, kind->bytes);
		ck_assert_uint_le(kind->bytes, sizeof(request));
		ck_assert_int_eq(xm_request_size(kind, 0), -EINVAL);
		ck_assert_int_eq(xm_request_size(kind, kind->least - 1), -EINVAL);
		ck_assert_int_eq(xm_request_size(kind, kind->least), 0);
		ck_assert_int_eq(xm_request_size(kind, kind->bytes + 8), 0);
		ck_assert_int_eq(xm_request_size(kind, XM_REQUEST_BYTES + 1), -E2BIG);
		memset(&request, 0, sizeof(request));
		ck_assert_int_eq(xm_request_check(kind, &request), 0);
		request.flags = kind->flags;
		ck_assert_int_eq(xm_request_check(kind, &request), 0);
		request.flags = 1u << 31;
		ck_assert_int_eq(xm_request_check(kind, &request), -EINVAL);
		request.flags = 0;
		/* Without ops, this word may have any value, and only the request says which. */
		request.op = kind->ops;
		ck_assert_int_eq(xm_request_check(kind, &request), kind->ops ? -EINVAL : 0);
		request.op = 0;
		memset((char *)&request + kind->reserved, 1, kind->reserved ? 4 : 0);
		ck_assert_int_eq(xm_request_check(kind, &request), kind->reserved ? -EINVAL : 0);
	}
	ck_assert_uint_eq(known, 18);
}
END_TEST

void layout_tests(Suite *suite)
{
	TCase *tcase = tcase_create("layout");

	tcase_add_test(tcase, counted_and_waiters_have_lines_of_their_own);
	tcase_add_test(tcase, parts_follow_each_other_without_overlap);
	tcase_add_test(tcase, a_header_that_makes_no_sense_is_refused);
	tcase_add_test(tcase, places_follow_the_strides_of_the_header);
	tcase_add_test(tcase, a_client_takes_a_map_only_if_its_id_is_in_the_table);
	tcase_add_test(tcase, a_pool_fits_who_asks_for_no_more_than_it_has);
	tcase_add_test(tcase, requests_are_taken_from_their_minimum_on);
	tcase_add_test(tcase, numbers_out_of_range_are_EINVAL);
	tcase_add_test(tcase, good_names_are_taken);
	tcase_add_test(tcase, every_place_lies_in_its_own_part);
	suite_add_tcase(suite, tcase);
}
