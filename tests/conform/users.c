// SPDX-License-Identifier: MIT
/*
 * Several users on one host. Each has names of its own, so no user joins another user's pool by
 * mistake, or keeps another from a name (P4). access_modes.c tests who may join which pool. Also
 * what the device reports to poll. These tests need the kernel module, and the first one a machine
 * on which the device's mode may be changed.
 */
#include <poll.h>

#include "harness.h"

#define BYTES		4096
#define SOMEBODY_ELSE	65534

static void be_somebody_else(void)
{
	CHECK(!setgid(SOMEBODY_ELSE) && !setuid(SOMEBODY_ELSE));
}

static const char *name_of(uint32_t uid, const char *name)
{
	static char text[64];

	snprintf(text, sizeof(text), "%u:%s", uid, name);
	return text;
}

static struct xmem_pool_options existing = {
	.size = sizeof(existing), .flags = XMEM_OPEN_EXISTING,
};
static struct xmem_pool_options exclusive = {
	.size = sizeof(exclusive), .flags = XMEM_OPEN_EXCLUSIVE,
};

/* Take the name that root has, and one that root will want. */
static void take_names(void *argument)
{
	const char *const *names = argument, *why;
	struct xmem_pool *own[2];

	be_somebody_else();
	REFUSED(xmem_pool_open(names[0], &existing), ENOENT);
	REFUSED(xmem_pool_open(name_of(0, names[0]), NULL), ENOENT);
	why = last_message();
	CHECK(strstr(why, "user 0") && strstr(why, "0604") && strstr(why, "0640"));
	/* No flags make a pool for another user. */
	REFUSED(xmem_pool_open(name_of(0, names[1]), NULL), ENOENT);
	REFUSED(xmem_pool_open(name_of(0, names[1]), &exclusive), EPERM);
	own[0] = xmem_pool_open(names[0], &exclusive);
	own[1] = xmem_pool_open(names[1], &exclusive);
	CHECK(own[0] && own[1]);
	SAME(stat_of(own[0]).clients, 1);
	/* A user's own name may have the prefix, too. */
	REFUSED(xmem_pool_open(name_of(SOMEBODY_ELSE, names[0]), &exclusive), EEXIST);
	tell_parent(1);
	hear_parent();
}

TEST(P4_a_name_is_of_its_user)
{
	const char *names[2] = { new_name(), new_name() };
	struct xmem_pool *pool = open_reader(names[0]), *theirs;
	struct child *child;

	several_users_or_skip();
	child = spawn(take_names, names);
	hear(child);
	/* No other client has joined root's pool, and root's names are free for root. */
	check_quiet(pool, 1);
	xmem_pool_close(pool);
	pool = xmem_pool_open(names[0], &exclusive);
	CHECK(pool);
	xmem_pool_close(pool);
	REFUSED(xmem_pool_open(names[1], &existing), ENOENT);
	pool = xmem_pool_open(names[1], &exclusive);
	CHECK(pool);
	xmem_pool_close(pool);
	/* Root may join the other user's pool, by its prefix. */
	theirs = xmem_pool_open(name_of(SOMEBODY_ELSE, names[1]), NULL);
	CHECK(theirs);
	SAME(stat_of(theirs).clients, 2);
	xmem_pool_close(theirs);
	theirs = xmem_pool_open("nobody:no-such", NULL);
	REFUSED(theirs, ENOENT);
	kill_child(child);
	REFUSED(xmem_pool_open(name_of(SOMEBODY_ELSE, names[1]), NULL), ENOENT);
}

/* ---- poll ---- */

static bool readable(struct raw *raw, int timeout_ms)
{
	struct pollfd look = { .fd = raw->link.file, .events = POLLIN };

	CHECK(poll(&look, 1, timeout_ms) >= 0);
	return look.revents & POLLIN;
}

TEST(P9_poll_says_when_there_is_something_to_receive)
{
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	const char *name = new_name();
	struct xmem_pool *writer;
	struct raw raw;

	kernel_only("the daemon's socket is for its datagrams");
	writer = open_writer(name, 4, BYTES);
	raw_start(&raw, name, XMEM_ROLE_READER);
	CHECK(!readable(&raw, 0));
	subscribe.publisher = xmem_pool_client(writer);
	SAME(raw_request(&raw, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	CHECK(!readable(&raw, 0));
	publish_stamp(writer, 1);
	CHECK(readable(&raw, -1));
	xm_store_release(xm_cursor(&raw.map, raw.link.join.client, subscribe.publisher),
			 subscribe.position + 1);
	CHECK(!readable(&raw, 0));
	/* The publisher's end makes the file readable, too. */
	xmem_pool_close(writer);
	CHECK(readable(&raw, -1));
	raw_close(&raw);
}

static void publish_when_armed(void *argument)
{
	struct xmem_pool *writer = open_writer(argument, 4, BYTES);
	struct xmem_client_row *row;
	struct raw raw;

	raw_start(&raw, argument, XMEM_ROLE_READER);
	tell_parent(xmem_pool_client(writer));
	row = xm_client_row(&raw.map, xmem_pool_client(writer));
	until_asleep(&row->ring_waiters);
	publish_stamp(writer, 1);
	hear_parent();
}

TEST(P9_poll_sleeps_until_something_is_published)
{
	struct xmem_subscribe_request subscribe = { .size = sizeof(subscribe) };
	const char *name = new_name();
	struct child *child;
	struct raw raw;

	kernel_only("the daemon's socket is for its datagrams");
	raw_start(&raw, name, XMEM_ROLE_READER);
	child = spawn(publish_when_armed, (void *)name);
	subscribe.publisher = hear(child);
	SAME(raw_request(&raw, XMEM_IOC_SUBSCRIBE, &subscribe), 0);
	CHECK(readable(&raw, patience_ns() / MS));
	raw_close(&raw);
}
