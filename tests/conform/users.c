// SPDX-License-Identifier: MIT
/*
 * Several users on one host: nobody joins another user's pool by mistake, and
 * another user's client harms only itself (P4). These tests need the kernel
 * module, and a machine on which the device's mode may be changed.
 */
#include <poll.h>
#include <sys/stat.h>

#include "harness.h"

#define BYTES		4096
#define SOMEBODY_ELSE	65534

static void several_users_or_skip(void)
{
	kernel_only("the daemon is one user's");
	if (!in_vm() || geteuid())
		skip("the device is the whole machine's: only as root in the virtual machine");
	CHECK(!chmod("/dev/xmem", 0666));
}

static void be_somebody_else(void)
{
	CHECK(!setgid(SOMEBODY_ELSE) && !setuid(SOMEBODY_ELSE));
}

static struct xmem_pool_options foreign = { .size = sizeof(foreign), .flags = XMEM_OPEN_FOREIGN };

static void join_roots(void *argument)
{
	struct xmem_pool *pool;
	const char *why;

	be_somebody_else();
	CHECK(!xmem_pool_open(argument, NULL));
	SAME(xmem_peek_last_error(&why), -EPERM);
	CHECK(strstr(why, "XMEM_OPEN_FOREIGN"));
	pool = xmem_pool_open(argument, &foreign);
	CHECK(pool);
	SAME(stat_of(pool).clients, 2);
	tell_parent(1);
	hear_parent();
}

static void make_a_trap(void *argument)
{
	be_somebody_else();
	open_writer(argument, 2, BYTES);
	tell_parent(1);
	hear_parent();
}

TEST(P4_a_pool_that_another_user_made_is_EPERM)
{
	const char *name = new_name(), *squatted = new_name();
	struct xmem_pool *pool, *theirs;
	struct child *child;

	several_users_or_skip();
	pool = open_reader(name);
	child = spawn(join_roots, (void *)name);
	hear(child);
	kill_child(child);
	check_quiet(pool, 1);
	xmem_pool_close(pool);

	/* Nor does root scan into one. */
	child = spawn(make_a_trap, (void *)squatted);
	hear(child);
	REFUSED(xmem_pool_open(squatted, NULL), EPERM);
	theirs = xmem_pool_open(squatted, &foreign);
	CHECK(theirs);
	xmem_pool_close(theirs);
	kill_child(child);
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
	EVENTUALLY(xm_load(&row->ring_waiters) & XMEM_WAITERS_ARMED);
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
	CHECK(readable(&raw, 10000));
	raw_close(&raw);
}
