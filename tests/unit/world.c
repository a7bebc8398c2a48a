// SPDX-License-Identifier: MIT
/*
 * The world of the unit tests: a pool in plain memory, the host's calls in the order in which a
 * real host makes them, and processes that die at a step.
 */
#include <setjmp.h>
#include <stdio.h>
#include <time.h>

#include "unit.h"

/* Lay a pool out as a newer host would: everything that may grow is longer, by odd amounts. */
void world_widen(struct xmem_pool_header *header)
{
	header->client_row_stride += 64;
	header->slot_row_stride += 8;
	header->cursor_stride += 64;
	header->entry_stride += 24;
	header->metadata_stride += 40;
	xm_layout_place(header, PAGE);
}

struct world *world_make(u32 slots, u32 clients, u32 ring_entries)
{
	struct xmem_join_request join = {
		.slots = slots, .clients = clients, .ring_entries = ring_entries,
	};
	struct world *world = calloc(1, sizeof(*world));
	struct xmem_pool_header header;

	ck_assert_int_eq(xm_host_layout(&join, PAGE, &header), 0);
	if (getenv("UNIT_WIDE"))
		world_widen(&header);
	ck_assert_int_eq(xm_layout_check(&header, header.total_bytes), 0);
	world->bytes = header.total_bytes;
	ck_assert_int_eq(posix_memalign(&world->base, PAGE, world->bytes), 0);
	memset(world->base, 0, world->bytes);
	*(struct xmem_pool_header *)world->base = header;
	xm_host_init(&world->host, world->base);
	xm_map_init(&world->host.map, world->base, &header);
	world->host.claims = calloc(1, xm_claims_bytes(&world->host.map));
	ck_assert_ptr_nonnull(world->host.claims);
	world->random = 88172645463325252ULL;
	world_is_valid(world);
	return world;
}

void world_free(struct world *world)
{
	free(world->host.claims);
	free(world->base);
	free(world);
}

/* By words and with atomics: other clients may still read them. */
static void zero(void *from, u64 bytes)
{
	u64 *word = from, i;

	for (i = 0; i < bytes / 8; i++)
		xm_store(&word[i], 0);
}

u32 world_join(struct world *world, u32 role, u64 wait_bound_ns)
{
	struct xmem_join_request join = {
		.role = role, .wait_bound_ns = wait_bound_ns, .label = "unit",
	};
	int id = xm_host_free_client(&world->host);
	struct xm_joiner who = {
		.pid = 1000 + id, .sibling = XM_NO_CLIENT, .user = world->user,
	};

	ck_assert_int_ge(id, 0);
	zero(world->host.map.area[id], world->host.map.pool->area_stride);
	ck_assert_int_eq(xm_host_join(&world->host, id, &join, &who), 0);
	ck_assert_uint_eq(join.client, (u32)id);
	world_is_valid(world);
	return id;
}

void world_attach(struct world *world, u32 me, u32 count, u32 *slot)
{
	struct xmem_attach_request request = {
		.fd = 3, .stride = 64, .length = 64, .count = count,
	};
	struct xm_payload payload = {
		.id = ++world->host.last_payload, .bytes = 64ULL * count, .device = world->device,
		.traits = world->device ? XMEM_TRAIT_CUDA : 0,
	};
	u32 i;

	while (xm_host_spare_slots(&world->host, me, false) < count) {
		int group = xm_host_free_group(&world->host, me, 1);

		ck_assert_int_ge(group, 0);
		if (world->host.group_owner[group] == XMEM_OWNER_NONE)
			zero(world->host.map.group[group], world->host.map.pool->group_stride);
		xm_host_give_group(&world->host, group, me);
	}
	ck_assert_int_eq(xm_host_attach_check(&request), 0);
	ck_assert_int_eq(xm_host_attach(&world->host, me, &payload, unit_random(&world->random),
					&request), 0);
	for (i = 0; i < count; i++)
		slot[i] = request.slot[i];
	world_is_valid(world);
}

struct xm_follow world_subscribe(struct world *world, u32 me, u32 publisher, u32 flags)
{
	struct xmem_subscribe_request request = {
		.publisher = publisher, .flags = flags, .position = POISON,
	};

	ck_assert_int_eq(xm_host_subscribe(&world->host, me, &request), 0);
	world_is_valid(world);
	return (struct xm_follow){
		.publisher = publisher, .waits = flags & XMEM_SUBSCRIBE_WAIT,
		.incarnation = xm_client_row(&world->host.map, publisher)->incarnation,
		 .place = request.position,
	};
}

void world_unsubscribe(struct world *world, u32 me, const struct xm_follow *follow)
{
	struct xmem_unsubscribe_request request = {
		.publisher = follow->publisher, .incarnation = follow->incarnation,
	};

	ck_assert_int_eq(xm_host_unsubscribe(&world->host, me, &request), 0);
	world_reap(world);
	world_is_valid(world);
}

u32 world_reap(struct world *world)
{
	struct xm_host *host = &world->host;
	struct xm_sweep sweep = { .stage = 0 };
	u32 i, freed = 0;
	u64 payload;
	int slot;

	for (i = 0; i < host->map.clients; i++)
		if (xm_host_bury(host, i) == XM_BURIED)
			zero(host->map.area[i], host->map.pool->area_stride);
	xm_host_suspect_all(host);
	while ((slot = xm_host_sweep(host, &sweep, &payload)) != -ENOENT)
		freed += slot >= 0;
	for (i = 0; i < host->map.groups; i++)
		if (xm_host_idle_group(host, i)) {
			zero(host->map.group[i], host->map.pool->group_stride);
			xm_host_give_group(host, i, XMEM_OWNER_NONE);
		}
	return freed;
}

u64 world_reclaim(struct xm_host *host, u32 slot)
{
	struct xm_sweep sweep = { .stage = 0 };
	u64 payload = 0;

	xm_host_suspect(host, slot);
	while (xm_host_sweep(host, &sweep, &payload) != -ENOENT)
		;
	return payload;
}

void world_end(struct world *world, u32 client)
{
	xm_host_end(&world->host, client);
	xm_host_exited(&world->host, client);
	world_reap(world);
	world_is_valid(world);
}

void world_do(struct world *world, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER)
		xm_disarm(&xm_client_row(&world->host.map, pending.who)->slots_waiters);
	else if (pending.what == XM_RECLAIM_SLOT)
		world_reclaim(&world->host, pending.who);
}

/* ---- a client's steps ---- */

u64 world_publish(struct world *world, u32 me, u32 slot)
{
	struct xm_publication what = { .timestamp_ns = 7, .offset = 8, .length = 16 };

	xm_publish(&world->host.map, me, slot, &what);
	return what.token;
}

u64 world_take_publish(struct world *world, u32 me, u32 slot)
{
	ck_assert_int_eq(xm_take(&world->host.map, slot), 0);
	return world_publish(world, me, slot);
}

int world_receive(struct world *world, u32 me, struct xm_follow *follow,
		  struct xm_publication *what)
{
	struct xm_pending pending;
	int err, tries = 0;

	do {
		memset(what, 0xa5, sizeof(*what));
		memset(&pending, 0xa5, sizeof(pending));
		err = xm_receive(&world->host.map, me, follow, what, &pending);
		world_do(world, pending);
	} while (err == -EBUSY && ++tries < 10000);
	return err;
}

void world_put(struct world *world, u32 me, u32 slot)
{
	world_do(world, xm_put(&world->host.map, me, slot));
}

struct xm_scan_rules world_rules(struct world *world, u32 owner, bool evict, u32 depth)
{
	const struct xm_map *map = &world->host.map;
	struct xm_scan_rules how = { .owner = owner, .evicts = evict };
	struct xm_waited waited;
	u32 culprit;

	how.passed = how.evictable = xm_passed(map, owner, &culprit);
	xm_read_waited(map, owner, &waited);
	how.tail = waited.tail;
	if (how.tail <= depth)
		waited.evictable = 0;
	else if (waited.evictable > how.tail - depth)
		waited.evictable = how.tail - depth;
	if (evict && waited.evictable > how.passed)
		how.evictable = waited.evictable;
	return how;
}

u64 scan_slots(const struct xm_map *map, const struct xm_scan_rules *how, const u32 *slot,
	       u32 count, u8 *ret_holder)
{
	struct xm_own of[64], *own[64];
	u32 n;

	for (n = 0; n < count; n++) {
		of[n] = xm_own(map, slot[n]);
		own[n] = &of[n];
	}
	return count ? xm_scan(map, how, own, count, ret_holder) : 0;
}

bool world_scan(struct world *world, u32 owner, u32 slot, bool evict, u32 depth)
{
	struct xm_scan_rules how = world_rules(world, owner, evict, depth);

	return xm_scan_one(&world->host.map, &how, slot);
}

/* ---- checking it ---- */

u32 world_count(const struct world *world, u32 owner)
{
	u32 i, count = 0;

	for (i = 0; i < world->host.map.slots; i++)
		count += xm_slot_row(&world->host.map, i)->owner == owner;
	return count;
}

u64 world_holds(const struct world *world)
{
	const struct xm_map *map = &world->host.map;
	u64 holds = 0;
	u32 c, s;

	for (c = 0; c < map->clients; c++)
		for (s = 0; s < map->slots; s++)
			if (xm_holds_count(map, c, s))
				holds += xm_load(xm_hold(map, c, s)) & XM_HOLD_COUNT;
	return holds;
}

void world_is_valid(const struct world *world)
{
	const char *wrong = xm_host_is_valid(&world->host);

	ck_assert_msg(!wrong, "the host's words: %s", wrong);
}

void world_is_clean(const struct world *world)
{
	const struct xm_map *map = &world->host.map;
	u32 i;

	world_is_valid(world);
	ck_assert_uint_eq(world_count(world, XMEM_OWNER_HOST), 0);
	ck_assert_uint_eq(world_holds(world), 0);
	for (i = 0; i < map->clients; i++)
		ck_assert_uint_ne(xm_client_row(map, i)->state, XMEM_CLIENT_ZOMBIE);
	for (i = 0; i < map->groups; i++)
		ck_assert_uint_ne(world->host.group_owner[i], XMEM_OWNER_HOST);
}

/* ---- steps ---- */

__thread void (*unit_step)(int step, void *arg);
__thread void *unit_step_arg;
static u64 steps_seen;

void xm_step(int step)
{
	if (!(xm_load(&steps_seen) >> step & 1))
		__atomic_fetch_or(&steps_seen, 1ULL << step, __ATOMIC_RELAXED);
	if (unit_step)
		unit_step(step, unit_step_arg);
}

bool unit_step_seen(int step)
{
	return xm_load(&steps_seen) >> step & 1;
}

const char *unit_step_name(int step)
{
	static const char *const name[XM_CORE_STEPS] = {
		"GET_HELD", "GET_DONE", "PUT_BEFORE", "PUT_DROPPED", "TAKE_WRITING",
		"SCAN_CURSORS", "SCAN_SCANNING", "SCAN_VOID", "SCAN_HOLDS", "PUBLISH_POSITION",
		"PUBLISH_LIVE", "PUBLISH_OPEN", "PUBLISH_FIELDS", "PUBLISH_ENTRY", "PUBLISH_TAIL",
		"RECEIVE_READ", "RECEIVE_HELD", "RECEIVE_VALID", "RECEIVE_CURSOR",
		"FORWARD_NOTED", "RETRACT_OPEN", "SCAN_SHARED",
	};

	return name[step];
}

struct death {
	jmp_buf grave;
	int step, left;
};

static void die(int step, void *arg)
{
	struct death *death = arg;

	if (step == death->step && !--death->left)
		longjmp(death->grave, 1);
}

bool unit_dies_at(int step, int nth, void (*what)(void *arg), void *arg)
{
	struct death death = { .step = step, .left = nth };

	if (setjmp(death.grave)) {
		unit_step = NULL;
		return true;
	}
	unit_step_arg = &death;
	unit_step = die;
	what(arg);
	unit_step = NULL;
	return false;
}

void xm_check_failed(const char *what, const char *file, int line)
{
	ck_abort_msg("%s:%d: %s", file, line, what);
}

/* ---- random numbers ---- */

u64 unit_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

u32 unit_scaled(u32 count)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	u64 scale = 10;
#else
	u64 scale = 100;
#endif
	const char *given = getenv("XMEM_TEST_SCALE");

	if (given && *given)
		scale = strtoull(given, NULL, 10);
	return scale * count / 100 ? scale * count / 100 : 1;
}

u64 unit_seed(void)
{
	const char *given = getenv("UNIT_SEED");
	struct timespec now;
	u64 seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = given ? strtoull(given, NULL, 0) : (u64)now.tv_sec * 1000003 ^ now.tv_nsec;
	seed = seed ? seed : 1;
	printf("seed: UNIT_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}
