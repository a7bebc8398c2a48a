// SPDX-License-Identifier: MIT
/*
 * Asking the host without joining a pool: what it says of itself, and which pools it lists. A
 * listing changes nothing in the listed pools.
 */
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096

static bool find_pool(const char *name, struct xmem_pool_entry *ret)
{
	uint64_t after = 0;

	for (;;) {
		int err;

		memset(ret, 0xcc, sizeof(*ret));
		ret->size = sizeof(*ret);
		err = xmem_pool_next(after, ret);
		if (err) {
			SAME(err, -ENOENT);
			SAME(xmem_peek_last_error(NULL), -ENOENT);
			return false;
		}
		CHECK(ret->number > after);
		after = ret->number;
		if (!strcmp(ret->name, name))
			return true;
	}
}

/* ---- the host ---- */

TEST(API_the_host_says_what_it_is)
{
	struct xmem_pool *pool = open_reader(new_name());
	struct xmem_host_info info, less;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_host_query(&info));
	SAME(info.size, sizeof(info));
	CHECK(info.abi >= info.abi_oldest && info.abi_oldest);
	SAME(info.max_slots, 65536);
	SAME(info.max_clients, 256);
	SAME(info.max_ring_entries, 4096);
	SAME(info.group_slots, 64);
	CHECK(info.pools >= 1 && info.max_pools >= info.pools);
	CHECK(info.max_payloads);
	SAME(info.reserved, 0);
	CHECK(!strcmp(info.backend, on_kernel() ? "kernel" : "daemon"));
	CHECK(*info.version && strlen(info.version) < sizeof(info.version));
	memset(&less, 0xcc, sizeof(less));
	less.size = offsetof(struct xmem_host_info, features);
	WORKED(xmem_host_query(&less));
	SAME(less.abi_oldest, info.abi_oldest);
	SAME(less.features, 0xccccccccccccccccULL);
	less.size = 7;
	SAME(xmem_host_query(&less), -EINVAL);
	SAME(xmem_host_query(NULL), -EINVAL);
	SAME(xmem_pool_next(0, NULL), -EINVAL);
	xmem_pool_close(pool);
}

/* Programs compare and hash whole structs, so an answer leaves no byte of the caller's. */
TEST(API_a_query_fills_the_whole_version)
{
	struct xmem_query_request request;
	struct xmem_pool *pool = open_reader(new_name());
	struct raw raw;
	size_t i;

	raw_open(&raw);
	memset(&request, 0xcc, sizeof(request));
	request.size = sizeof(request);
	request.flags = request.reserved = 0;
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &request), 0);
	for (i = strlen((char *)request.version); i < sizeof(request.version); i++)
		SAME(request.version[i], 0);
	raw_close(&raw);
	xmem_pool_close(pool);
}

TEST(API_a_query_says_the_limits_as_they_are_now)
{
	struct xmem_host_info info = { .size = sizeof(info) };
	char pools[32], payloads[32];

	kernel_only("the daemon's limits are constants");
	set_parameter("max_pools", "71", pools);
	set_parameter("user_max_files", "72", payloads);
	WORKED(xmem_host_query(&info));
	set_parameter("max_pools", pools, NULL);
	set_parameter("user_max_files", payloads, NULL);
	SAME(info.max_pools, 71);
	SAME(info.max_payloads, 72);
}

TEST(API_looking_starts_no_daemon)
{
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	char name[40];
	int i;

	daemon_only("a query does not start the kernel");
	snprintf(name, sizeof(name), "xmem-nobody-%d", getpid());
	setenv("XMEM_SOCKET", name, 1);
	for (i = 0; i < 2; i++) {
		SAME(xmem_host_query(&info), -ENODEV);
		SAME(xmem_pool_next(0, &entry), -ENOENT);
	}
}

/* ---- its pools ---- */

TEST(API_pools_are_listed_without_joining_them)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 128, .clients = 5,
					.ring = 16);
	struct xmem_pool *other = open_reader(new_name()), *reader;
	struct xmem_pool_entry entry;

	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	CHECK(find_pool(name, &entry));
	SAME(entry.size, sizeof(entry));
	SAME(entry.owner_uid, getuid());
	SAME(entry.slots, 128);
	SAME(entry.clients_max, 5);
	SAME(entry.clients, 1);
	SAME(entry.ring_entries, 16);
	SAME(entry.bytes, 2 * BYTES);
	SAME(entry.reserved, 0);
	reader = open_reader(name);
	CHECK(find_pool(name, &entry));
	SAME(entry.clients, 2);
	SAME(stat_of(reader).clients, 2);	/* nobody joined in order to list */
	SAME(stat_of(reader).clients_max, 5);
	SAME(stat_of(reader).ring_entries, 16);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
	EVENTUALLY(!find_pool(name, &entry));
	xmem_pool_close(other);
}

TEST(API_the_number_of_a_pool_is_never_used_again)
{
	struct xmem_pool *kept = open_reader(new_name()), *pool;
	struct xmem_pool_entry entry;
	uint64_t last = 0;
	int i;

	for (i = 0; i < 4; i++) {
		const char *name = new_name();

		pool = open_reader(name);
		CHECK(find_pool(name, &entry));
		if (entry.number <= last)
			FAIL("number %llu after %llu", (unsigned long long)entry.number,
			     (unsigned long long)last);
		last = entry.number;
		xmem_pool_close(pool);
		EVENTUALLY(!find_pool(name, &entry));
	}
	xmem_pool_close(kept);
}

static void publish_and_die(void *name)
{
	struct xmem_pool *pool = open_writer(name, 2, BYTES);

	tell_parent(xmem_pool_client(pool));
	hear_parent();
	publish_stamp(pool, 1);
	tell_parent(1);
	hear_parent();
}

TEST(API_a_client_that_ended_in_flight_is_not_counted)
{
	const char *name = new_name();
	struct xmem_pool *reader = open_reader(name);
	struct child *child = spawn(publish_and_die, (void *)name);
	struct xmem_client_info client = { .size = sizeof(client) };
	uint32_t id = hear(child);
	struct xmem_subscription *s = follow(reader, id, 0);
	struct xmem_pool_entry entry;

	CHECK(find_pool(name, &entry));
	SAME(entry.clients, 2);
	tell(child, 1);
	hear(child);
	kill_child(child);
	EVENTUALLY(!xmem_pool_client_info(reader, id, &client) && !client.alive);
	CHECK(find_pool(name, &entry));
	SAME(entry.clients, 1);
	SAME(xmem_pool_client_info(reader, id, &client), 0);	/* its ring is still there */
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
}

static void list_for_ever(void *argument)
{
	struct raw raw;

	(void)argument;
	raw_open(&raw);
	tell_parent(1);
	for (;;) {
		struct xmem_pools_request request = { .size = sizeof(request) };

		while (!raw_request(&raw, XMEM_IOC_POOLS, &request))
			request = (struct xmem_pools_request){
				.size = sizeof(request), .number = request.number,
			};
	}
}

static void be_the_only_client(void *name)
{
	OPEN(name, .slots = 65536);	/* it takes long to describe */
	tell_parent(1);
	hear_parent();
}

TEST_WITHIN(P1_listing_pools_keeps_none_alive, 60)
{
	enum { LISTERS = 4 };
	const char *name = new_name();
	struct child *lister[LISTERS];
	unsigned int i;

	kernel_only("the daemon does one request at a time");
	for (i = 0; i < LISTERS; i++) {
		lister[i] = spawn(list_for_ever, NULL);
		hear(lister[i]);
	}
	for (i = 0; i < scaled(200); i++) {
		struct child *child = spawn(be_the_only_client, (void *)name);
		struct raw raw;

		hear(child);
		kill_child(child);
		raw_open(&raw);
		SAME(raw_join(&raw, name, XMEM_ROLE_READER, XMEM_JOIN_EXISTING), -ENOENT);
		raw_close(&raw);
	}
	for (i = 0; i < LISTERS; i++)
		kill_child(lister[i]);
}

static void look_from_another_network(void *name)
{
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_pool_entry entry;
	struct xmem_pool *pool;
	struct raw raw;

	CHECK(!unshare(CLONE_NEWNET));
	CHECK(!find_pool(name, &entry));
	WORKED(xmem_host_query(&info));
	SAME(info.pools, 0);
	raw_open(&raw);
	SAME(raw_join(&raw, name, XMEM_ROLE_READER, XMEM_JOIN_EXISTING), -ENOENT);
	raw_close(&raw);
	pool = OPEN(name, .flags = XMEM_OPEN_EXCLUSIVE);
	CHECK(find_pool(name, &entry));
	SAME(entry.clients, 1);
	WORKED(xmem_host_query(&info));
	SAME(info.pools, 1);
	tell_parent(1);
	hear_parent();
	xmem_pool_close(pool);
}

TEST(P4_pools_of_another_network_namespace_are_not_there)
{
	const char *name = new_name();
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_pool_entry entry;
	struct xmem_pool *pool;
	struct child *child;
	uint32_t before;

	kernel_only("the daemon's pools are those of a folder, not of a network");
	if (geteuid())
		skip("only root may make a network namespace");
	if (access("/proc/self/ns/net", F_OK))
		skip("this kernel has no network namespaces");
	pool = open_reader(name);
	WORKED(xmem_host_query(&info));
	before = info.pools;
	child = spawn(look_from_another_network, (void *)name);
	hear(child);
	CHECK(find_pool(name, &entry));
	SAME(entry.clients, 1);
	SAME(stat_of(pool).clients, 1);
	WORKED(xmem_host_query(&info));
	SAME(info.pools, before);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(pool);
}
