// SPDX-License-Identifier: MIT
/*
 * Inspecting a pool: its clients, its slots, and which client holds what.
 */
#include <sched.h>

#include "harness.h"

#define BYTES	4096

/* ---- answers, poisoned before the call ---- */

static int client_of(struct xmem_pool *pool, uint32_t client, struct xmem_client_info *ret)
{
	memset(ret, 0xcc, sizeof(*ret));
	ret->size = sizeof(*ret);
	return xmem_pool_client_info(pool, client, ret);
}

static int slot_of(struct xmem_pool *pool, uint32_t slot, struct xmem_slot_info *ret)
{
	memset(ret, 0xcc, sizeof(*ret));
	ret->size = sizeof(*ret);
	return xmem_pool_slot_info(pool, slot, ret);
}

/* The slot with those contents. */
static struct xmem_slot_info slot_with(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_slot_info info;
	uint32_t s, slots = stat_of(pool).slots;

	for (s = 0; s < slots; s++) {
		SAME(slot_of(pool, s, &info), 0);
		if (info.token == token)
			return info;
	}
	FAIL("no slot has token 0x%llx", (unsigned long long)token);
}

/* ---- clients ---- */

TEST(API_clients_are_told_apart)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .label = "maker",
					.wait_bound_ns = 5 * MS);
	struct xmem_pool *reader = OPEN(name, .label = "viewer");
	struct xmem_client_info w, r;
	uint32_t c;

	WORKED(xmem_preallocate(writer, BYTES, 3, NULL));
	SAME(client_of(reader, xmem_pool_client(writer), &w), 0);
	SAME(client_of(reader, xmem_pool_client(reader), &r), 0);
	SAME(w.size, sizeof(w));
	SAME(w.id, xmem_pool_client(writer));
	SAME(w.role, XMEM_CLIENT_WRITER);
	SAME(w.alive, 1);
	SAME(w.uid, getuid());
	SAME(w.slots, 3);
	SAME(w.wait_bound_ns, 5 * MS);
	SAME(w.holds, 0);
	CHECK(!strcmp(w.label, "maker"));
	SAME(r.id, xmem_pool_client(reader));
	SAME(r.role, XMEM_CLIENT_READER);
	SAME(r.slots, 0);
	SAME(r.wait_bound_ns, 0);
	CHECK(!strcmp(r.label, "viewer"));
	CHECK(w.incarnation && r.incarnation > w.incarnation);
	SAME(w.pid, r.pid);
	CHECK(w.pid);
	for (c = 0; c < stat_of(reader).clients_max; c++)
		if (c != w.id && c != r.id)
			SAME(client_of(reader, c, &w), -ENOENT);
	SAME(client_of(reader, c, &w), -EINVAL);
	SAME(client_of(reader, XMEM_NOBODY, &w), -EINVAL);
	xmem_pool_close(reader);
	EVENTUALLY(client_of(writer, r.id, &w) == -ENOENT);
	xmem_pool_close(writer);
}

static u64 process_of(struct raw *raw, uint32_t client)
{
	return xm_client_row(&raw->map, client)->process;
}

static void join_and_wait(void *name)
{
	struct xmem_pool *pool = open_reader(name);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	xmem_pool_close(pool);
}

static void look_from_inside(void *name)
{
	struct xmem_pool *pool = open_reader(name);
	struct xmem_client_info outside, inside;

	SAME(getpid(), 1);
	SAME(client_of(pool, 0, &outside), 0);
	SAME(outside.pid, 0);
	SAME(client_of(pool, xmem_pool_client(pool), &inside), 0);
	SAME(inside.pid, 1);
	tell_parent(xmem_pool_client(pool));
	hear_parent();
}

/*
 * The pages have no pid, because a pid depends on the namespace. Each reader gets those of its own
 * namespace.
 */
TEST(API_pids_are_those_of_the_readers_namespace)
{
	const char *name = new_name();
	struct xmem_client_info info;
	struct xmem_pool *pool;
	struct child *child;
	struct raw raw;
	unsigned int i;
	int inside;

	kernel_only("the daemon reports the pids that it sees");
	pool = open_writer(name, 1, BYTES);
	SAME(xmem_pool_client(pool), 0);
	SAME(unshare(CLONE_NEWPID), 0);
	child = spawn(look_from_inside, (void *)name);
	inside = hear(child);
	SAME(client_of(pool, inside, &info), 0);
	SAME(info.pid, child->pid);
	raw_start(&raw, name, XMEM_ROLE_READER);
	SAME(raw.map.pool->owner_uid, 0);
	for (i = 0; i < raw.map.clients; i++) {
		SAME(xm_client_row(&raw.map, i)->pid, 0);
		SAME(xm_client_row(&raw.map, i)->uid, 0);
	}
	raw_close(&raw);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(pool);
}

/* Several clients of one process are recognized, even if their pid is not known. */
TEST(API_clients_of_one_process_are_known)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 1, BYTES), *again;
	struct child *child = spawn(join_and_wait, (void *)name);
	u64 mine, other, next;
	struct raw raw;

	raw_start(&raw, name, XMEM_ROLE_READER);
	mine = process_of(&raw, xmem_pool_client(pool));
	other = process_of(&raw, hear(child));
	CHECK(mine && other && mine != other);
	SAME(process_of(&raw, raw.link.join.client), mine);
	xmem_pool_close(pool);		/* the first client ends, and the number stays */
	again = open_reader(name);
	SAME(process_of(&raw, xmem_pool_client(again)), mine);
	tell(child, 1);
	finish_child(child);
	child = spawn(join_and_wait, (void *)name);
	next = process_of(&raw, hear(child));
	CHECK(next != mine && next != other);
	tell(child, 1);
	finish_child(child);
	raw_close(&raw);
	xmem_pool_close(again);
}

static void publish_and_die(void *name)
{
	struct xmem_pool *pool = open_writer(name, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	tell_parent(publish_stamp(pool, 3));
	hear_parent();
}

TEST(API_a_client_that_ended_in_flight_is_not_alive)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(publish_and_die, (void *)name);
	uint32_t id = hear(child);
	struct xmem_subscription *s = follow(reader, id, 0);
	struct xmem_client_info info;
	struct xmem_slot_info slot;
	struct xmem_buffer *b;
	uint64_t token;

	SAME(client_of(reader, id, &info), 0);
	SAME(info.alive, 1);
	tell(child, 1);
	token = hear(child);
	kill_child(child);
	EVENTUALLY(!client_of(reader, id, &info) && !info.alive);
	SAME(info.slots, 0);
	if (on_kernel())
		SAME(info.pid, 0);	/* another process may have that pid by now */
	EVENTUALLY(slot_with(reader, token).state == XMEM_USE_LIMBO);
	slot = slot_with(reader, token);
	SAME(slot.owner, XMEM_NOBODY);
	b = receive_one(s);
	SAME(slot_with(reader, token).holds, 1);
	xmem_release(b);
	xmem_unsubscribe(s);
	EVENTUALLY(client_of(reader, id, &info) == -ENOENT);
	EVENTUALLY(!slot_of(reader, slot.slot, &slot) && slot.state == XMEM_USE_NONE);
	xmem_pool_close(reader);
}

static void publish_three_and_die(void *name)
{
	struct xmem_pool *pool = open_writer(name, 4, BYTES);
	int i;

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	for (i = 0; i < 3; i++)
		publish_stamp(pool, i);
	tell_parent(1);
	hear_parent();
}

TEST(API_a_client_that_lags_is_seen)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4);
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(publish_three_and_die, (void *)name);
	struct xmem_subscription *ended = follow(reader, hear(child), 0);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);
	uint32_t me = xmem_pool_client(reader), i;
	struct xmem_client_info info;

	WORKED(xmem_preallocate(writer, BYTES, 8, NULL));
	SAME(client_of(writer, me, &info), 0);
	SAME(info.follows, 2);
	SAME(info.followers, 0);
	SAME(info.behind, 0);
	tell(child, 1);
	hear(child);
	kill_child(child);
	publish_stamp(writer, 0);
	SAME(client_of(writer, me, &info), 0);
	SAME(info.follows, 2);
	SAME(info.behind, 4);
	xmem_release(receive_one(s));
	xmem_release(receive_one(ended));
	SAME(client_of(writer, me, &info), 0);
	SAME(info.behind, 2);
	for (i = 0; i < 6; i++)
		publish_stamp(writer, i);
	SAME(client_of(writer, me, &info), 0);
	SAME(info.behind, 2 + 4);	/* the ring has four entries, so the others are lost */
	xmem_unsubscribe(ended);
	SAME(client_of(writer, me, &info), 0);
	SAME(info.follows, 1);
	SAME(info.behind, 4);
	SAME(client_of(reader, xmem_pool_client(writer), &info), 0);
	SAME(info.follows, 0);
	SAME(info.followers, 1);
	SAME(info.behind, 0);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- slots ---- */

TEST(API_a_slot_is_followed_through_its_life)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_slot_info info;
	struct xmem_buffer *b, *kept;
	uint32_t slot = 0, me = xmem_pool_client(writer);
	uint64_t token;

	while (!slot_of(reader, slot, &info) && info.state == XMEM_USE_NONE)
		slot++;
	SAME(info.slot, slot);
	SAME(info.state, XMEM_USE_FREE);
	SAME(info.owner, me);
	SAME(info.bytes, BYTES);
	SAME(info.token, 0);
	SAME(info.holds, 0);
	SAME(info.position, 0);
	CHECK(info.payload);
	b = xmem_acquire(writer, 100, 0);
	CHECK(b);
	SAME(slot_of(reader, slot, &info), 0);
	SAME(info.state, XMEM_USE_WRITING);
	SAME(info.token, 0);
	xmem_release(b);
	token = publish_kept(writer, 1, &kept);
	SAME(slot_of(reader, slot, &info), 0);
	SAME(info.state, XMEM_USE_LIVE);
	SAME(info.token, token);
	SAME(info.holds, 1);
	SAME(info.position, 1);
	SAME(slot_of(reader, slot + 1, &info), 0);
	SAME(info.state, XMEM_USE_NONE);
	SAME(info.owner, XMEM_NOBODY);
	SAME(info.payload, 0);
	SAME(info.bytes, 0);
	SAME(slot_of(reader, stat_of(reader).slots, &info), -EINVAL);
	xmem_release(kept);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* ---- holds ---- */

TEST(API_holds_are_counted_by_client_and_slot)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct xmem_buffer *kept, *b[3];
	struct xmem_client_info info;
	uint64_t token = publish_kept(writer, 1, &kept);
	uint32_t slot = slot_with(reader, token).slot, r = xmem_pool_client(reader), i;

	SAME(xmem_pool_holds(writer, xmem_pool_client(writer), slot), 1);
	for (i = 0; i < 3; i++) {
		SAME(xmem_pool_holds(writer, r, slot), i);
		CHECK((b[i] = xmem_get(reader, token)));
	}
	SAME(xmem_pool_holds(writer, r, slot), 3);
	SAME(client_of(writer, r, &info), 0);
	SAME(info.holds, 3);
	SAME(slot_with(writer, token).holds, 4);
	SAME(xmem_pool_holds(writer, r, (slot + 1) % 1024), 0);
	SAME(xmem_pool_holds(writer, 60, slot), -ENOENT);
	SAME(xmem_pool_holds(writer, 64, slot), -EINVAL);
	SAME(xmem_pool_holds(writer, r, 1024), -EINVAL);
	for (i = 0; i < 3; i++)
		xmem_release(b[i]);
	xmem_release(kept);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}
