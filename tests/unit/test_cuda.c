// SPDX-License-Identifier: MIT
/*
 * CUDA payloads: the fields of an attach, devices and their bytes, who may open one and when it is
 * closed (I8), and clients in quarantine (I9). Ready words end with their owner.
 */
#include "unit.h"

#define ONE	((const u8[XMEM_UUID_BYTES]){ 1, [15] = 9 })
#define TWO	((const u8[XMEM_UUID_BYTES]){ 1, [15] = 8 })
#define THREE	((const u8[XMEM_UUID_BYTES]){ 3 })

/* ---- attach ---- */

static struct xmem_attach_request good_attach(u32 flags)
{
	return (struct xmem_attach_request){
		.flags = XMEM_ATTACH_CUDA | flags, .fd = 3, .stride = 64, .length = 64, .count = 1,
		.bytes = 64, .device = { 1 }, .handle = { [63] = 1 },
	};
}

static int check(u32 flags, int fd)
{
	struct xmem_attach_request request = good_attach(flags);

	request.fd = fd;
	return xm_host_attach_check(&request);
}

#define BAD(...) do { \
	struct xmem_attach_request r = good_attach(0); \
	__VA_ARGS__; \
	ck_assert_int_eq(xm_host_attach_check(&r), -EINVAL); \
} while (0)

START_TEST(attach_of_device_memory_says_all_and_nothing_else)
{
	ck_assert_int_eq(check(0, 3), 0);
	ck_assert_int_eq(check(0, -1), -EINVAL);
	ck_assert_int_eq(check(XMEM_ATTACH_HANDLE, -1), 0);
	ck_assert_int_eq(check(XMEM_ATTACH_HANDLE, 0), 0);
	ck_assert_int_eq(check(XMEM_ATTACH_HANDLE, -2), -EINVAL);
	ck_assert_int_eq(check(XMEM_ATTACH_SHARED | XMEM_ATTACH_READERS | XMEM_ATTACH_ONCE, 3), 0);
	ck_assert_int_eq(check(XMEM_ATTACH_SHARED | XMEM_ATTACH_HANDLE, 3), -EINVAL);
	BAD(r.bytes = 0);
	BAD(r.bytes = XMEM_MAX_DEVICE_BYTES + 1);
	BAD(r.device[0] = 0);
	BAD(r.handle[63] = 0);
	BAD(r.flags = 0);
	BAD(r.flags = XMEM_ATTACH_READERS);
	BAD(r.flags = XMEM_ATTACH_HANDLE);
	BAD(r.payload = 1);
	BAD(r.payload = 1; r.fd = -1);
	BAD(r.payload = 1; r.fd = -1; r.flags = r.bytes = 0);
	BAD(r.payload = 1; r.fd = -1; r.flags = r.bytes = r.device[0] = 0);
	BAD(r.payload = 1; r.fd = -1; r.bytes = r.device[0] = r.handle[63] = 0);
}
END_TEST

START_TEST(requests_know_their_flags)
{
	const struct xm_request_kind *attach = xm_request_find(XMEM_IOC_ATTACH);
	const struct xm_request_kind *payload = xm_request_find(XMEM_IOC_PAYLOAD);
	union xm_request request = { .attach = good_attach(XMEM_ATTACH_HANDLE) };

	ck_assert_int_eq(xm_request_check(attach, &request), 0);
	request.flags |= 1u << 31;
	ck_assert_int_eq(xm_request_check(attach, &request), -EINVAL);
	request = (union xm_request){ .payload.flags = 7 };
	ck_assert_int_eq(xm_request_check(payload, &request), 0);
	request = (union xm_request){ .payload.flags = 8 };
	ck_assert_int_eq(xm_request_check(payload, &request), -EINVAL);
}
END_TEST

/* ---- devices ---- */

/* Attach one slot of a payload on that device, and count it there. Returns its traits. */
static u32 attach_on(struct world *world, u32 me, const u8 *device)
{
	u32 slot, traits;

	world->device = device;
	world_attach(world, me, 1, &slot);
	traits = xm_slot_row(&world->host.map, slot)->traits;
	xm_host_payload_add(&world->host, me, 64, traits);
	return traits;
}

START_TEST(devices_are_entered_once_and_go_with_their_payloads)
{
	struct world *world = world_make(128, 4, 8);
	const struct xm_map *map = &world->host.map;
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0);

	ck_assert_uint_eq(attach_on(world, me, ONE), XMEM_TRAIT_CUDA | 1u << 24);
	ck_assert_uint_eq(attach_on(world, me, TWO), XMEM_TRAIT_CUDA | 2u << 24);
	ck_assert_uint_eq(attach_on(world, me, ONE), XMEM_TRAIT_CUDA | 1u << 24);
	ck_assert_int_eq(memcmp(xm_device_row(map, 2)->uuid, TWO, XMEM_UUID_BYTES), 0);
	/* The first device has no payload any more, and the second one has. */
	xm_device_row(&world->host.map, 1)->bytes = 0;
	ck_assert_uint_eq(attach_on(world, me, TWO), XMEM_TRAIT_CUDA | 2u << 24);
	ck_assert_uint_eq(attach_on(world, me, THREE), XMEM_TRAIT_CUDA | 1u << 24);
	ck_assert_uint_eq(attach_on(world, me, ONE), XMEM_TRAIT_CUDA | 3u << 24);
	world_free(world);
}
END_TEST

START_TEST(device_table_is_full_at_its_end)
{
	struct world *world = world_make(128, 4, 8);
	u32 me = world_join(world, XMEM_ROLE_WRITER, 0), i;
	struct xmem_attach_request request = good_attach(0);
	struct xm_payload payload = { .id = 99, .traits = XMEM_TRAIT_CUDA, .bytes = 64 };
	u8 uuid[XMEM_MAX_DEVICES + 1][XMEM_UUID_BYTES] = { { 0 } };

	for (i = 0; i < XMEM_MAX_DEVICES; i++) {
		uuid[i][i] = 1;
		ck_assert_uint_eq(xm_device(attach_on(world, me, uuid[i])), i + 1);
	}
	memset(uuid[i], 0xff, XMEM_UUID_BYTES);
	payload.device = uuid[i];
	ck_assert_int_eq(xm_host_attach(&world->host, me, &payload, 1, &request), -EDQUOT);
	ck_assert_uint_eq(world_count(world, me), XMEM_MAX_DEVICES);
	/* More slots would not help, so the host gives the client no group. */
	me = world_join(world, XMEM_ROLE_WRITER, 0);
	ck_assert_int_eq(xm_host_attach(&world->host, me, &payload, 1, &request), -EDQUOT);
	/* A refusal for another reason adds no device. */
	world_free(world);
	world = world_make(128, 4, 8);
	me = world_join(world, XMEM_ROLE_WRITER, 0);
	payload.device = uuid[0];
	ck_assert_int_eq(xm_host_attach(&world->host, me, &payload, 1, &request), -ENOSPC);
	payload.bytes = 63;
	ck_assert_int_eq(xm_host_attach(&world->host, me, &payload, 1, &request), -ERANGE);
	ck_assert_uint_eq(xm_device_row(&world->host.map, 1)->uuid[0], 0);
	world_free(world);
}
END_TEST

/* ---- openers ---- */

static struct xm_host *serving;	/* the host of the last payload */

/* A payload of 64 bytes on the first device, attached and counted. */
static struct xm_cuda make_cuda(struct world *world, u32 traits)
{
	struct xmem_attach_request request = good_attach(0);
	struct xm_payload payload = {
		.bytes = 64, .traits = XMEM_TRAIT_CUDA | traits | 1u << XMEM_TRAIT_DEVICE_SHIFT,
	};
	struct xm_cuda cuda = { .bytes = 0 };

	xm_cuda_init(&cuda, &payload, &request);
	serving = &world->host;
	xm_host_payload_add(&world->host, 0, cuda.bytes, cuda.traits);
	return cuda;
}

static u64 number;	/* of the last request */

static int serve(struct xm_cuda *cuda, u32 client, u32 role, u32 flags)
{
	struct xm_asker asker = { .client = client, .role = role, .number = ++number };
	struct xmem_payload_request request = { .flags = flags, .handle = { 77 }, .fd = 5 };
	int err = xm_cuda_serve(serving, cuda, &asker, &request);

	if (err)
		return err;
	ck_assert_int_eq(request.fd, -1);
	ck_assert_uint_eq(request.bytes, cuda->bytes);
	ck_assert_uint_eq(request.traits, cuda->traits);
	ck_assert_uint_eq(request.device[0], 1);
	ck_assert_uint_eq(request.handle[0], 0);
	ck_assert_uint_eq(request.handle[63], flags == XMEM_PAYLOAD_OPEN);
	return 0;
}

#define WRITER	XMEM_ROLE_WRITER
#define READER	XMEM_ROLE_READER
#define OPEN	XMEM_PAYLOAD_OPEN
#define CLOSE	XMEM_PAYLOAD_CLOSE

START_TEST(who_may_open_device_memory)
{
	struct world *world = world_make(64, 4, 8);
	struct xm_cuda cuda = make_cuda(world, 0), readers = make_cuda(world, XMEM_TRAIT_READERS);
	struct xm_cuda handle = make_cuda(world, XMEM_TRAIT_HANDLE);

	ck_assert_int_eq(serve(&cuda, 1, READER, OPEN), -EACCES);
	ck_assert_int_eq(serve(&cuda, 1, READER, 0), -EACCES);
	ck_assert_int_eq(serve(&cuda, 1, READER, CLOSE), -ENOENT);
	ck_assert_int_eq(serve(&cuda, 1, WRITER, 0), 0);
	ck_assert_int_eq(serve(&readers, 1, READER, OPEN), 0);
	ck_assert_int_eq(serve(&cuda, 1, WRITER, XMEM_PAYLOAD_WRITE), -EMEDIUMTYPE);
	ck_assert_int_eq(serve(&cuda, 1, WRITER, OPEN | CLOSE), -EINVAL);
	ck_assert_int_eq(serve(&cuda, 1, WRITER, OPEN | XMEM_PAYLOAD_WRITE), -EINVAL);
	ck_assert(!xm_bit(cuda.openers, 1) && xm_bit(readers.openers, 1));
	cuda.ended = handle.ended = true;
	ck_assert_int_eq(serve(&handle, 1, WRITER, OPEN), -EOWNERDEAD);
	ck_assert_int_eq(serve(&handle, 1, READER, OPEN), -EACCES);
	ck_assert_int_eq(serve(&cuda, 1, WRITER, OPEN), 0);
	ck_assert(!xm_bit(handle.openers, 1));
	ck_assert_int_eq(xm_payload_file_check(&(struct xmem_payload_request){ .flags = OPEN }),
			 -EMEDIUMTYPE);
	world_free(world);
}
END_TEST

START_TEST(a_payload_is_closed_by_its_last_opener)
{
	struct world *world = world_make(64, 256, 8);
	struct xm_host *host = &world->host;
	struct xm_cuda cuda = make_cuda(world, 0);
	const struct xmem_device_row *row = xm_device_row(&host->map, 1);

	ck_assert_uint_eq(row->bytes, 64);
	ck_assert_int_eq(serve(&cuda, 0, WRITER, OPEN), 0);
	ck_assert_int_eq(serve(&cuda, 255, WRITER, OPEN), 0);
	ck_assert_int_eq(serve(&cuda, 255, WRITER, OPEN), 0);
	ck_assert(!xm_cuda_is_closed(host, &cuda));
	xm_host_payload_drop(host, 0, 1, cuda.bytes, cuda.traits);
	xm_cuda_retire(host, &cuda);
	ck_assert_uint_eq(row->bytes, 64);
	ck_assert_uint_eq(row->closing_bytes, 64);
	ck_assert(!xm_cuda_is_closed(host, &cuda));
	ck_assert_int_eq(serve(&cuda, 3, WRITER, 0), -EBUSY);
	ck_assert_int_eq(serve(&cuda, 3, WRITER, OPEN), -ENOENT);
	ck_assert_int_eq(serve(&cuda, 255, WRITER, OPEN), -ENOENT);
	ck_assert_int_eq(serve(&cuda, 255, WRITER, 0), -EBUSY);
	ck_assert_int_eq(serve(&cuda, 255, WRITER, CLOSE), 0);
	ck_assert_int_eq(serve(&cuda, 255, WRITER, CLOSE), -ENOENT);
	ck_assert(!xm_cuda_is_closed(host, &cuda));
	ck_assert_uint_eq(host->map.pool->payloads_closed, 0);
	xm_cuda_unopen(host, &cuda, 0);
	ck_assert(xm_cuda_is_closed(host, &cuda));
	ck_assert_uint_eq(host->map.pool->payloads_closed, 1);
	ck_assert_uint_eq(host->map.pool->payloads_gone, 1);
	ck_assert_uint_eq(host->map.pool->payloads, 0);
	ck_assert_uint_eq(row->bytes, 0);
	ck_assert_uint_eq(row->closing_bytes, 0);
	world_free(world);
}
END_TEST

START_TEST(an_opening_is_undone_by_its_number_alone)
{
	struct world *world = world_make(64, 4, 8);
	struct xm_cuda cuda = make_cuda(world, 0);
	u64 first;

	ck_assert(!xm_cuda_is_opened_by(&cuda, 1, 0));
	ck_assert_int_eq(serve(&cuda, 1, WRITER, OPEN), 0);
	first = number;
	ck_assert(xm_cuda_is_opened_by(&cuda, 1, first));
	ck_assert(!xm_cuda_is_opened_by(&cuda, 2, first));
	/* Requests of other clients change nothing, and neither do questions. */
	ck_assert_int_eq(serve(&cuda, 2, WRITER, OPEN), 0);
	ck_assert_int_eq(serve(&cuda, 1, WRITER, 0), 0);
	ck_assert(xm_cuda_is_opened_by(&cuda, 1, first));
	ck_assert(xm_cuda_is_opened_by(&cuda, 2, first + 1));
	/* Two handles of the client have opened it, so it stays open if one of them is undone. */
	ck_assert_int_eq(serve(&cuda, 1, WRITER, OPEN), 0);
	ck_assert(!xm_cuda_is_opened_by(&cuda, 1, first));
	ck_assert(!xm_cuda_is_opened_by(&cuda, 1, number));
	ck_assert(!xm_cuda_is_opened_by(&cuda, 1, 0));
	ck_assert_int_eq(serve(&cuda, 1, WRITER, CLOSE), 0);
	ck_assert(!xm_cuda_is_opened_by(&cuda, 1, 0));
	ck_assert_int_eq(serve(&cuda, 1, WRITER, OPEN), 0);
	ck_assert(xm_cuda_is_opened_by(&cuda, 1, number));
	world_free(world);
}
END_TEST

/* No client has opened it, so no client ever sees it closing. */
START_TEST(what_nobody_has_open_is_closed_when_it_goes)
{
	struct world *world = world_make(64, 4, 8);
	struct xm_cuda cuda = make_cuda(world, 0);

	xm_host_payload_drop(&world->host, 0, 1, cuda.bytes, cuda.traits);
	xm_cuda_retire(&world->host, &cuda);
	ck_assert(xm_cuda_is_closed(&world->host, &cuda));
	ck_assert_uint_eq(xm_device_row(&world->host.map, 1)->bytes, 0);
	world_free(world);
}
END_TEST

/* ---- quarantine ---- */

struct pair {
	struct world *world;
	struct xm_host *host;
	const struct xm_map *map;
	u32 owner, reader, slot[2];	/* the first one is used by a GPU */
	u64 token[2];
};

/* The reader holds both slots, and sets the GPU bit in its hold of the first one. */
static void pair_make(struct pair *p, bool shared)
{
	u32 i;

	p->world = world_make(128, 4, 8);
	p->host = &p->world->host;
	p->map = &p->host->map;
	p->owner = world_join(p->world, XMEM_ROLE_WRITER, 0);
	p->reader = world_join(p->world, XMEM_ROLE_WRITER, 0);
	p->world->device = ONE;
	world_attach(p->world, p->owner, 1, &p->slot[0]);
	p->world->device = NULL;
	world_attach(p->world, p->owner, 1, &p->slot[1]);
	if (shared)
		xm_slot_row(p->map, p->slot[0])->traits |= XMEM_TRAIT_SHARED;
	for (i = 0; i < 2; i++) {
		p->token[i] = world_take_publish(p->world, p->owner, p->slot[i]);
		ck_assert_int_eq(xm_get(p->map, p->reader, p->token[i]), 0);
		*xm_hold(p->map, p->reader, p->slot[i]) |= XM_HOLD_DEVICE;
	}
}

static void leave(struct pair *p, u32 client, bool opens)
{
	p->host->books[client].opens = opens;
	xm_host_end(p->host, client);
	world_reap(p->world);
	world_is_valid(p->world);
}

START_TEST(device_holds_stay_until_the_process_has_exited)
{
	struct pair p;

	pair_make(&p, false);
	ck_assert_int_eq(xm_get(p.map, p.reader, p.token[0]), 0);
	leave(&p, p.reader, false);
	ck_assert(xm_host_is_quarantined(p.host, p.reader));
	ck_assert_uint_eq(*xm_hold(p.map, p.reader, p.slot[0]), XM_HOLD_DEVICE | 1);
	/* The bit is from earlier contents of the slot: these are the CPU's. */
	ck_assert_uint_eq(*xm_hold(p.map, p.reader, p.slot[1]), 0);
	ck_assert_uint_eq(xm_client_row(p.map, p.reader)->state, XMEM_CLIENT_ZOMBIE);
	ck_assert(!world_scan(p.world, p.owner, p.slot[0], true, 0));
	ck_assert(world_scan(p.world, p.owner, p.slot[1], true, 0));
	/* No other client gets its id. */
	ck_assert_uint_eq(world_join(p.world, XMEM_ROLE_READER, 0), 2);
	xm_host_exited(p.host, p.reader);
	ck_assert(!xm_host_is_quarantined(p.host, p.reader));
	world_reap(p.world);
	ck_assert_uint_eq(xm_client_row(p.map, p.reader)->state, XMEM_CLIENT_NONE);
	ck_assert(world_scan(p.world, p.owner, p.slot[0], true, 0));
	world_is_valid(p.world);
	world_free(p.world);
}
END_TEST

START_TEST(a_bit_without_a_count_keeps_nothing)
{
	struct pair p;

	pair_make(&p, false);
	world_put(p.world, p.reader, p.slot[0]);
	ck_assert_uint_eq(*xm_hold(p.map, p.reader, p.slot[0]), XM_HOLD_DEVICE);
	ck_assert(world_scan(p.world, p.owner, p.slot[0], true, 0));
	leave(&p, p.reader, false);
	ck_assert_uint_eq(xm_client_row(p.map, p.reader)->state, XMEM_CLIENT_NONE);
	world_free(p.world);
}
END_TEST

/* Both the sweep and the owner's end see the hold. */
START_TEST(the_hosts_slots_wait_for_the_quarantine_too)
{
	struct pair p;

	pair_make(&p, false);
	leave(&p, p.reader, false);
	leave(&p, p.owner, false);
	ck_assert_uint_eq(world_count(p.world, XMEM_OWNER_HOST), 1);
	ck_assert_uint_eq(world_reap(p.world), 0);
	xm_host_exited(p.host, p.reader);
	ck_assert_uint_eq(world_reap(p.world), 1);
	world_is_clean(p.world);
	world_free(p.world);
}
END_TEST

START_TEST(what_is_open_keeps_a_client_without_holds)
{
	struct pair p;

	pair_make(&p, false);
	world_put(p.world, p.reader, p.slot[0]);
	leave(&p, p.reader, true);
	ck_assert(xm_host_is_quarantined(p.host, p.reader));
	ck_assert_uint_eq(xm_client_row(p.map, p.reader)->state, XMEM_CLIENT_ZOMBIE);
	xm_host_exited(p.host, p.reader);
	world_reap(p.world);
	ck_assert_uint_eq(xm_client_row(p.map, p.reader)->state, XMEM_CLIENT_NONE);
	/* A second report, or one of a client that lives, changes nothing. */
	xm_host_exited(p.host, p.reader);
	*xm_hold(p.map, p.owner, p.slot[0]) = 1;
	xm_host_exited(p.host, p.owner);
	ck_assert_uint_eq(*xm_hold(p.map, p.owner, p.slot[0]), 1);
	world_free(p.world);
}
END_TEST

/* Buffers that only its ring kept are free after they have been received, whatever its GPU does. */
START_TEST(the_ring_of_a_client_in_quarantine_goes_by_itself)
{
	struct pair p;
	struct xm_follow follow;
	u32 mine;

	pair_make(&p, false);
	world_attach(p.world, p.reader, 1, &mine);
	follow = world_subscribe(p.world, p.owner, p.reader, 0);
	world_take_publish(p.world, p.reader, mine);
	xm_host_end(p.host, p.reader);
	ck_assert_int_eq(xm_host_bury(p.host, p.reader), XM_BURIED_NOT);
	ck_assert_uint_eq(world_reap(p.world), 0);
	xm_store(xm_cursor(p.map, p.owner, p.reader), follow.place + 1);
	ck_assert_int_eq(xm_host_bury(p.host, p.reader), XM_BURIED_RING);
	ck_assert_int_eq(xm_host_bury(p.host, p.reader), XM_BURIED_NOT);
	ck_assert(!xm_bit(xm_client_row(p.map, p.reader)->subscribers, p.owner));
	ck_assert_uint_eq(world_reap(p.world), 1);
	xm_host_exited(p.host, p.reader);
	ck_assert_int_eq(xm_host_bury(p.host, p.reader), XM_BURIED);
	world_is_valid(p.world);
	world_free(p.world);
}
END_TEST

START_TEST(nobody_upgrades_what_is_in_quarantine)
{
	struct pair p;
	struct xmem_upgrade_request upgrade;

	pair_make(&p, true);
	ck_assert_int_eq(xm_get(p.map, p.owner, p.token[0]), 0);
	upgrade = (struct xmem_upgrade_request){
		.slot = p.slot[0], .generation = xm_generation(p.token[0]),
	};
	leave(&p, p.reader, false);
	ck_assert_int_eq(xm_host_upgrade(p.host, p.owner, &upgrade), -EBUSY);
	xm_host_exited(p.host, p.reader);
	ck_assert_int_eq(xm_host_upgrade(p.host, p.owner, &upgrade), 0);
	world_free(p.world);
}
END_TEST

/* The owner takes a FREE slot without checking holds, so this slot is not FREE yet. */
START_TEST(what_was_being_written_in_place_waits_for_the_quarantine)
{
	struct pair p;
	struct xmem_upgrade_request upgrade;
	struct xmem_slot_word *word;
	u32 ended;

	for (ended = 0; ended < 2; ended++) {
		pair_make(&p, true);
		upgrade = (struct xmem_upgrade_request){
			.slot = p.slot[0], .generation = xm_generation(p.token[0]),
		};
		word = xm_slot(p.map, p.slot[0]);
		ck_assert_int_eq(xm_host_upgrade(p.host, p.reader, &upgrade), 0);
		leave(&p, p.reader, false);
		ck_assert_uint_eq(xm_state(word->state), XMEM_SLOT_UPGRADED);
		ck_assert_int_eq(xm_take(p.map, p.slot[0]), -EBUSY);
		if (ended)
			leave(&p, p.owner, false);
		ck_assert_uint_eq(xm_slot_row(p.map, p.slot[0])->upgrader, p.reader + 1);
		xm_host_exited(p.host, p.reader);
		ck_assert_uint_eq(xm_state(word->state), XMEM_SLOT_FREE);
		ck_assert_uint_eq(xm_slot_row(p.map, p.slot[0])->upgrader, 0);
		if (ended) {
			ck_assert_uint_ge(world_reap(p.world), 1);
			world_is_clean(p.world);
		} else {
			ck_assert_int_eq(xm_take(p.map, p.slot[0]), 0);
		}
		world_free(p.world);
	}
}
END_TEST

/* ---- ready words ---- */

/* A publication on a stream needs a value: its contents are complete when the word has it. */
static void needs(const struct xm_map *map, u32 slot, u64 value, u64 word)
{
	xm_metadata(map, slot)->order_kind = value ? XMEM_ORDER_READY : XMEM_ORDER_NONE;
	xm_metadata(map, slot)->order_value = value;
	*xm_ready_word(map, slot) = word;
}

START_TEST(ready_words_end_with_their_owners_process)
{
	struct pair p;
	u32 other, s;

	pair_make(&p, false);
	s = p.slot[0] / 64 * 64;
	world_attach(p.world, p.reader, 1, &other);
	needs(p.map, other, 7, 6);
	needs(p.map, s, 8, 7);
	needs(p.map, s + 1, 8, 8);
	needs(p.map, s + 2, 0, 3);
	needs(p.map, s + 3, XMEM_READY_OVER - 1, 1);
	xm_host_end(p.host, p.owner);
	ck_assert(xm_host_is_quarantined(p.host, p.owner));
	ck_assert_uint_eq(*xm_ready_word(p.map, s), 7);
	ck_assert(!xm_host_idle_group(p.host, s / 64));
	xm_host_exited(p.host, p.owner);
	ck_assert_uint_eq(*xm_ready_word(p.map, s), XMEM_READY_ENDED);
	ck_assert_uint_eq(*xm_ready_word(p.map, s + 1), XMEM_READY_OVER);
	ck_assert_uint_eq(*xm_ready_word(p.map, s + 2), XMEM_READY_OVER);
	ck_assert_uint_eq(*xm_ready_word(p.map, s + 3), XMEM_READY_ENDED);
	ck_assert_uint_eq(*xm_ready_word(p.map, other), 6);
	ck_assert_uint_eq(xm_slot(p.map, p.slot[0])->state >> 16, xm_generation(p.token[0]));
	world_free(p.world);
}
END_TEST

/* A stream copies into contents that were never published, and then writes the word. */
static void ends_under_a_copy(bool given_up)
{
	struct pair p;
	u32 slot;

	pair_make(&p, false);
	p.world->device = ONE;
	world_attach(p.world, p.owner, 1, &slot);
	ck_assert_int_eq(xm_take(p.map, slot), 0);
	needs(p.map, slot, 5, 4);
	if (given_up)
		ck_assert_int_eq(xm_give_up(p.map, slot), 0);
	xm_host_end(p.host, p.owner);
	ck_assert(xm_host_is_quarantined(p.host, p.owner));
	ck_assert(!xm_host_idle_group(p.host, slot / 64));
	xm_host_exited(p.host, p.owner);
	ck_assert_uint_eq(*xm_ready_word(p.map, slot), XMEM_READY_ENDED);
	world_free(p.world);
}

START_TEST(an_owner_ends_late_under_a_copy_into_what_it_writes)
{
	ends_under_a_copy(false);
}
END_TEST

START_TEST(an_owner_ends_late_under_a_copy_into_what_it_has_released)
{
	ends_under_a_copy(true);
}
END_TEST

START_TEST(an_owner_with_complete_contents_ends_at_once)
{
	struct pair p;
	u32 other, s;

	pair_make(&p, false);
	s = p.slot[0] / 64 * 64;
	world_attach(p.world, p.reader, 1, &other);
	needs(p.map, other, 7, 6);
	needs(p.map, s, 8, 8);
	xm_host_end(p.host, p.owner);
	ck_assert(!xm_host_is_quarantined(p.host, p.owner));
	ck_assert_uint_eq(*xm_ready_word(p.map, s), XMEM_READY_OVER);
	ck_assert_uint_eq(*xm_ready_word(p.map, other), 6);
	ck_assert_uint_eq(p.host->late_owner[s / 64], 0);
	world_free(p.world);
}
END_TEST

/* No client is left when its process exits. */
START_TEST(ready_words_end_with_the_pool)
{
	struct pair p;
	u32 other, s;

	pair_make(&p, false);
	s = p.slot[0] / 64 * 64;
	world_attach(p.world, p.reader, 1, &other);
	needs(p.map, other, 7, 6);
	needs(p.map, s, 8, 7);
	needs(p.map, s + 1, 8, 8);
	xm_host_end(p.host, p.owner);
	xm_ready_end_all(p.host);
	ck_assert_uint_eq(*xm_ready_word(p.map, s), XMEM_READY_ENDED);
	ck_assert_uint_eq(*xm_ready_word(p.map, s + 1), XMEM_READY_OVER);
	ck_assert_uint_eq(*xm_ready_word(p.map, other), 6);
	world_free(p.world);
}
END_TEST

void cuda_tests(Suite *suite)
{
	TCase *tcase = tcase_create("cuda");

	tcase_add_test(tcase, attach_of_device_memory_says_all_and_nothing_else);
	tcase_add_test(tcase, requests_know_their_flags);
	tcase_add_test(tcase, devices_are_entered_once_and_go_with_their_payloads);
	tcase_add_test(tcase, device_table_is_full_at_its_end);
	tcase_add_test(tcase, who_may_open_device_memory);
	tcase_add_test(tcase, a_payload_is_closed_by_its_last_opener);
	tcase_add_test(tcase, an_opening_is_undone_by_its_number_alone);
	tcase_add_test(tcase, what_nobody_has_open_is_closed_when_it_goes);
	tcase_add_test(tcase, device_holds_stay_until_the_process_has_exited);
	tcase_add_test(tcase, a_bit_without_a_count_keeps_nothing);
	tcase_add_test(tcase, the_hosts_slots_wait_for_the_quarantine_too);
	tcase_add_test(tcase, what_is_open_keeps_a_client_without_holds);
	tcase_add_test(tcase, the_ring_of_a_client_in_quarantine_goes_by_itself);
	tcase_add_test(tcase, nobody_upgrades_what_is_in_quarantine);
	tcase_add_test(tcase, what_was_being_written_in_place_waits_for_the_quarantine);
	tcase_add_test(tcase, ready_words_end_with_their_owners_process);
	tcase_add_test(tcase, an_owner_with_complete_contents_ends_at_once);
	tcase_add_test(tcase, an_owner_ends_late_under_a_copy_into_what_it_writes);
	tcase_add_test(tcase, an_owner_ends_late_under_a_copy_into_what_it_has_released);
	tcase_add_test(tcase, ready_words_end_with_the_pool);
	suite_add_tcase(suite, tcase);
}
