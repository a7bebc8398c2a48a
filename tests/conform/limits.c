// SPDX-License-Identifier: MIT
/*
 * P10: when something runs out the error names it; it is free again when its owners end; and a
 * refused request leaves nothing behind. Also many subscribers, many publishers and many pools at
 * once.
 */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "harness.h"

#define BYTES	4096

TEST(P10_a_full_client_table_is_EUSERS)
{
	const char *name = new_name(), *why;
	struct xmem_pool *pool[4], *more;
	unsigned int i;
	int fd;

	pool[0] = OPEN(name, .clients = 4);
	for (i = 1; i < 4; i++)
		pool[i] = open_reader(name);
	more = xmem_pool_open(name, NULL);
	CHECK(!more);
	why = last_message();
	SAME(xmem_get_last_error(NULL), -EUSERS);
	CHECK(strstr(why, name) && strstr(why, "clients"));
	CHECK(strstr(why, "which is 4: 4 are alive, and 0 have ended"));
	/* The host cannot look a pool up by the name of a descriptor. */
	fd = xmem_pool_fd(pool[0]);
	WORKED(fd);
	CHECK(!open_by_fd(fd, 0));
	why = last_message();
	SAME(xmem_get_last_error(NULL), -EUSERS);
	CHECK(strstr(why, "the pool has as many clients as it may have: 4 of 4"));
	close(fd);
	/* A place that becomes free can be taken. */
	xmem_pool_close(pool[2]);
	EVENTUALLY((pool[2] = xmem_pool_open(name, NULL)));
	REFUSED(xmem_pool_open(name, NULL), EUSERS);
	for (i = 0; i < 4; i++)
		xmem_pool_close(pool[i]);
}

TEST(P10_too_few_slots_is_ENOSPC_and_leaves_nothing)
{
	const char *name = new_name(), *why;
	struct xmem_pool *a = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 128);
	struct xmem_pool *b = OPEN(name, .flags = XMEM_OPEN_WRITER);
	unsigned int files = open_files();

	SAME(stat_of(a).slots, 128);
	WORKED(xmem_preallocate(a, BYTES, 60, NULL));
	/*
	 * 68 are left, 64 of them in one group. The buffers that were attached before the error are
	 * given back.
	 */
	SAME(xmem_preallocate(b, BYTES, 65, NULL), -ENOSPC);
	why = last_message();
	SAME(xmem_peek_last_error(NULL), -ENOSPC);
	CHECK(strstr(why, "slots"));
	SAME(stat_of(a).attached, 60);
	WORKED(xmem_preallocate(b, BYTES, 64, NULL));
	SAME(stat_of(a).attached, 124);
	SAME(xmem_preallocate(b, BYTES, 1, NULL), -ENOSPC);
	WORKED(xmem_preallocate(a, BYTES, 4, NULL));
	SAME(xmem_preallocate(a, BYTES, 1, NULL), -ENOSPC);
	SAME(open_files(), files);
	xmem_pool_close(a);
	EVENTUALLY(stat_of(b).attached == 64);
	WORKED(xmem_preallocate(b, BYTES, 64, NULL));
	xmem_pool_close(b);
}

/* Use a daemon of this test alone from now on, which is started with @files descriptors. */
static void use_limited_daemon(unsigned int files)
{
	struct rlimit limit = { files, files };

	use_own_daemon();
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

/* One process may not have all of a daemon's connections. */
static void make_40_pools(void *argument)
{
	struct raw raw[40];
	unsigned int i;

	(void)argument;
	for (i = 0; i < 40; i++) {
		raw_open(&raw[i]);
		SAME(raw_join(&raw[i], "", XMEM_ROLE_READER, 0), 0);
	}
	tell_parent(1);
	hear_parent();
}

TEST(P10_too_many_pools_is_EDQUOT)
{
	enum { MOST = 30 };
	struct xmem_host_info info = { .size = sizeof(info) };
	struct raw *raw = calloc(MOST, sizeof(*raw));
	struct child *child = NULL;
	struct xmem_pool *one;
	char old[32];
	const char *why;
	unsigned int i;
	int err = 0;

	CHECK(raw);
	if (on_kernel()) {
		set_parameter("max_pools", "20", old);
	} else {
		use_limited_daemon(1024);
		child = spawn(make_40_pools, NULL);
		hear(child);
		WORKED(xmem_host_query(&info));
		SAME(info.max_pools, 64);
	}
	for (i = 0; i < MOST && !err; i++) {
		raw_open(&raw[i]);
		err = raw_join(&raw[i], "", XMEM_ROLE_READER, 0);
	}
	if (!err)
		FAIL("%d pools, and no limit", MOST);
	SAME(err, -EDQUOT);
	CHECK(!xmem_pool_open(NULL, NULL));
	why = last_message();
	SAME(xmem_get_last_error(NULL), -EDQUOT);
	CHECK(strstr(why, "as many pools") && !strstr(why, "connections"));
	if (on_kernel()) {
		CHECK(strstr(why, "all users together have as many pools as they may have: "
				  "20 of 20"));
		CHECK(strstr(why, "root raises it in /sys/module/xmem/parameters/max_pools"));
		set_parameter("max_pools", old, NULL);
	} else {
		CHECK(strstr(why, "has as many pools as it may have: 64 of 64"));
		CHECK(strstr(why, "and 1024 from 16384 on (ulimit -Hn)"));
		SAME(i - 1, 64 - 40);
		kill_child(child);
	}
	while (i--)
		raw_close(&raw[i]);
	EVENTUALLY((one = xmem_pool_open(NULL, NULL)));
	xmem_pool_close(one);
	free(raw);
}

static void says(int error, const char *word)
{
	const char *why = last_message();

	SAME(xmem_get_last_error(NULL), -error);
	if (!strstr(why, word))
		FAIL("the message does not contain '%s': %s", word, why);
}

/* No client can join, and no call can ask the host. Each message names the limit. */
static void nobody_gets_in(const char *why)
{
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_limit_info limit = { .size = sizeof(limit) };
	struct xmem_pool_entry entry = { .size = sizeof(entry) };

	CHECK(!xmem_pool_open(NULL, NULL));
	says(EDQUOT, why);
	SAME(xmem_host_query(&info), -EDQUOT);
	says(EDQUOT, why);
	SAME(xmem_pool_next(0, &entry), -EDQUOT);
	says(EDQUOT, why);
	SAME(xmem_limit_next(NULL, 0, &limit), -EDQUOT);
	says(EDQUOT, why);
	CHECK(!xmem_pool_open(NULL, NULL));
	says(EDQUOT, "ulimit -Hn");
}

TEST(P10_too_many_connections_are_EDQUOT_for_every_question)
{
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_limit_info limit = { .size = sizeof(limit) };
	struct xmem_pool *pool[4];
	unsigned int i;

	daemon_only("the kernel has no connections");
	use_limited_daemon(256);		/* 16 connections, 4 of one process */
	for (i = 0; i < 4; i++)
		pool[i] = open_reader(new_name());
	nobody_gets_in("the host has as many connections of this process as it may have: 4 of 4; "
		       "close pools that are not used");
	WORKED(xmem_limit_next(pool[0], XMEM_QUOTA_PROCESS_CONNECTIONS, &limit));
	SAME(limit.number, XMEM_QUOTA_PROCESS_CONNECTIONS);
	SAME(limit.used, 4);
	SAME(limit.most, 4);
	xmem_pool_close(pool[0]);
	WORKED(xmem_host_query(&info));
	for (i = 1; i < 4; i++)
		xmem_pool_close(pool[i]);
}

static void four_connections(void *unused)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		open_reader(new_name());
	tell_parent(1);
	hear_parent();
}

TEST(P10_too_many_connections_of_all_are_named)
{
	struct child *child[4];
	unsigned int i;

	daemon_only("the kernel has no connections");
	use_limited_daemon(256);		/* 16 connections, 4 of one process */
	for (i = 0; i < 4; i++) {
		child[i] = spawn(four_connections, NULL);
		hear(child[i]);
	}
	nobody_gets_in("the host has as many connections as it may have: 16 of 16");
	for (i = 0; i < 4; i++)
		kill_child(child[i]);
}

/* The lowest descriptor number that process @pid does not use. */
static unsigned int free_descriptor_of(pid_t pid)
{
	char path[40];
	unsigned int n = 0;

	do
		snprintf(path, sizeof(path), "/proc/%d/fd/%u", pid, n++);
	while (!faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW));
	return n - 1;
}

TEST(P10_a_daemon_without_a_descriptor_says_so)
{
	struct xmem_query_request query = { .size = sizeof(query) };
	struct rlimit limit = { .rlim_max = 256 };
	struct xmem_pool *pool;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct raw raw;

	daemon_only("the kernel needs no descriptor of its own");
	use_limited_daemon(256);
	raw_open(&raw);
	CHECK(!getsockopt(raw.link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	/* Once the daemon has answered, it has all descriptors for this connection. */
	SAME(raw_request(&raw, XMEM_IOC_QUERY, &query), 0);
	limit.rlim_cur = free_descriptor_of(peer.pid);
	CHECK(!prlimit(peer.pid, RLIMIT_NOFILE, &limit, NULL));
	nobody_gets_in("the host has as many descriptors of its own as it may have: 256 of 256");
	limit.rlim_cur = 256;
	CHECK(!prlimit(peer.pid, RLIMIT_NOFILE, &limit, NULL));
	CHECK((pool = xmem_pool_open(NULL, NULL)));
	xmem_pool_close(pool);
	raw_close(&raw);
}

TEST(P10_too_many_payload_files_are_named)
{
	struct xmem_pool *pool;
	unsigned int i;

	daemon_only("it is about a daemon's limits; quotas.c has the kernel's");
	use_limited_daemon(256);		/* 32 payload files */
	pool = open_writer(new_name(), 1, BYTES);
	for (i = 1; i < 32; i++)
		WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	SAME(xmem_preallocate(pool, BYTES, 1, NULL), -EDQUOT);
	says(EDQUOT, "has as many payload files as it may have: 32 of 32");
	xmem_pool_close(pool);
}

/* A closed one does not count any more, although no message has told the daemon. */
TEST(P10_too_many_descriptors_to_poll_are_EDQUOT)
{
	struct xmem_subscription *s[3];
	struct xmem_pool *writer[3], *pool;
	const char *name = new_name();
	unsigned int i;

	daemon_only("the kernel's are limited as all files are");
	use_limited_daemon(256);		/* 2 of one client */
	pool = open_reader(name);
	for (i = 0; i < 3; i++) {
		writer[i] = open_writer(name, 1, BYTES);
		s[i] = follow(pool, xmem_pool_client(writer[i]), 0);
	}
	WORKED(xmem_pool_poll_fd(pool));
	for (i = 0; i < 3; i++) {
		WORKED(xmem_subscription_poll_fd(s[i]));
		SAME(xmem_subscription_poll_fd(s[(i + 1) % 3]), -EDQUOT);
		says(EDQUOT, "this client has as many descriptors to poll as it may have: 2 of 2");
		xmem_unsubscribe(s[i]);
		s[i] = follow(pool, xmem_pool_client(writer[i]), 0);
	}
	for (i = 0; i < 3; i++) {
		xmem_unsubscribe(s[i]);
		xmem_pool_close(writer[i]);
	}
	xmem_pool_close(pool);
}

TEST(P10_after_the_hosts_end_the_messages_say_so)
{
	struct xmem_pool *writer, *reader;
	struct xmem_buffer *kept, *b;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	struct raw raw;
	const char *name = new_name();

	daemon_only("the kernel does not end");
	use_limited_daemon(1024);
	writer = open_writer(name, 1, BYTES);
	reader = open_reader(name);
	CHECK((b = xmem_get(reader, publish_kept(writer, 1, &kept))));
	raw_open(&raw);
	CHECK(!getsockopt(raw.link.file, SOL_SOCKET, SO_PEERCRED, &peer, &length));
	CHECK(peer.pid > 1 && !kill(peer.pid, SIGKILL));
	EVENTUALLY(xmem_preallocate(writer, BYTES, 1, NULL) == -ENOTCONN);
	says(ENOTCONN, "the host has gone");
	SAME(xmem_pool_fd(writer), -ENOTCONN);
	says(ENOTCONN, "the host has gone");
	CHECK(!xmem_data(b));
	says(ENOTCONN, "the host has gone");
	raw_close(&raw);
	xmem_release(b);
	xmem_release(kept);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Behave like a daemon that ends: accept connections and close them. */
static void leave_at_once(void *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", (char *)path);
	CHECK(!bind(listener, (struct sockaddr *)&address, sizeof(address)) &&
	      !listen(listener, 64));
	tell_parent(1);
	for (;;)
		close(accept(listener, NULL, NULL));
}

TEST(P10_a_daemon_that_leaves_while_it_is_asked_is_none)
{
	struct xmem_host_info info = { .size = sizeof(info) };
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	struct child *child;

	daemon_only("the kernel does not exit");
	use_limited_daemon(1024);
	child = spawn(leave_at_once, getenv("XMEM_SOCKET"));
	hear(child);
	SAME(xmem_host_query(&info), -ENODEV);
	SAME(xmem_pool_next(0, &entry), -ENOENT);
	kill_child(child);
}

TEST(P10_out_of_descriptors_is_EMFILE_and_the_buffer_stays)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name);
	struct rlimit old, low;
	struct xmem_buffer *kept, *b;
	uint64_t token = publish_kept(writer, 6, &kept);
	int highest = open("/dev/null", O_RDONLY | O_CLOEXEC);

	CHECK(highest >= 0 && !getrlimit(RLIMIT_NOFILE, &old));
	low = old;
	low.rlim_cur = highest;		/* no lower one is free, so the next open fails */
	CHECK(!setrlimit(RLIMIT_NOFILE, &low));
	b = xmem_get(reader, token);
	CHECK(b);			/* it needs no descriptor; its payload does */
	CHECK(!xmem_data(b));
	CHECK(xmem_peek_last_error(NULL) < 0);
	REFUSED(xmem_pool_open(new_name(), NULL), EMFILE);
	CHECK(!setrlimit(RLIMIT_NOFILE, &old));
	close(highest);
	SAME(stamp_of(b), 6);
	xmem_release(b);
	xmem_release(kept);
	check_quiet(writer, 2);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(P10_numbers_out_of_range_are_EINVAL)
{
	struct xmem_pool *writer = open_writer(new_name(), 2, BYTES);

	SAME(xmem_preallocate(writer, BYTES, 0, NULL), -EINVAL);
	SAME(xmem_preallocate(writer, 0, 1, NULL), -EINVAL);
	CHECK(xmem_preallocate(writer, SIZE_MAX / 2, 2, NULL) < 0);
	CHECK(xmem_preallocate(writer, 4096, ~0u, NULL) < 0);
	SAME(stat_of(writer).attached, 2);
	REFUSED(xmem_acquire(writer, BYTES, -1), EINVAL);
	REFUSED(xmem_acquire(writer, BYTES + 1, 0), ENOSPC);
	REFUSED(xmem_acquire(writer, BYTES + 1, XMEM_FOREVER), ENOSPC);
	xmem_pool_close(writer);
}

/* ---- many ---- */

#define MANY	20

struct crowd {
	const char *name;
	int publisher;
	unsigned int count;
};

static void one_of_many(void *argument)
{
	struct crowd *crowd = argument;
	struct xmem_pool *pool = open_reader(crowd->name);
	struct xmem_subscription *s = follow(pool, crowd->publisher, XMEM_SUBSCRIBE_WAITS);
	unsigned int i;

	tell_parent(1);
	for (i = 0; i < crowd->count; i++) {
		struct xmem_buffer *b = receive_one(s);

		SAME(stamp_of(b), i);
		SAME(info_of(b).sequence, i);
		xmem_release(b);
	}
	SAME(sub_info(s).lost, 0);
	tell_parent(2);
	hear_parent();
}

TEST_WITHIN(P3_many_subscribers_get_all, 60)
{
	struct crowd crowd = { .name = new_name(), .count = scaled(100) };
	struct xmem_pool *writer = OPEN(crowd.name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = 3600 * SECOND);
	struct child *child[MANY];
	unsigned int i;

	WORKED(xmem_preallocate(writer, BYTES, 4, NULL));
	crowd.publisher = xmem_pool_client(writer);
	for (i = 0; i < MANY; i++)
		child[i] = spawn(one_of_many, &crowd);
	for (i = 0; i < MANY; i++)
		hear(child[i]);
	for (i = 0; i < crowd.count; i++)
		publish_stamp(writer, i);
	for (i = 0; i < MANY; i++)
		SAME(hear(child[i]), 2);
	for (i = 0; i < MANY; i++)
		kill_child(child[i]);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

TEST(P4_two_publishers_in_one_pool)
{
	const char *name = new_name();
	struct xmem_pool *a = open_writer(name, 3, BYTES), *b = open_writer(name, 3, BYTES);
	struct xmem_pool *reader = open_reader(name);
	struct xmem_subscription *of_a = follow(reader, xmem_pool_client(a), 0);
	struct xmem_subscription *of_b = follow(reader, xmem_pool_client(b), 0);
	struct xmem_subscription *of_each_other = follow(a, xmem_pool_client(b), 0);
	struct xmem_buffer *x;
	unsigned int i;

	for (i = 0; i < 30; i++) {
		publish_stamp(a, 1000 + i);
		publish_stamp(b, 2000 + i);
		x = receive_one(of_a);
		SAME(stamp_of(x), 1000 + i);
		SAME(info_of(x).sequence, i);
		xmem_release(x);
		x = receive_one(of_b);
		SAME(stamp_of(x), 2000 + i);
		xmem_release(x);
		x = receive_one(of_each_other);
		SAME(stamp_of(x), 2000 + i);
		xmem_release(x);
	}
	/* Dropping one does not affect the other. */
	xmem_unsubscribe(of_each_other);
	xmem_pool_close(b);
	REFUSED(xmem_receive(of_b, patience_ns()), EPIPE);
	publish_stamp(a, 7);
	x = receive_one(of_a);
	SAME(stamp_of(x), 7);
	xmem_release(x);
	xmem_unsubscribe(of_a);
	xmem_unsubscribe(of_b);
	xmem_pool_close(reader);
	check_quiet(a, 1);
	SAME(stat_of(a).attached, 3);
	xmem_pool_close(a);
}

TEST(P10_every_resource_goes_back_with_its_pool)
{
	const char *name = new_name();
	unsigned int i, files = open_files();

	for (i = 0; i < scaled(50); i++) {
		struct xmem_pool *pool = OPEN(name,
					      .flags = XMEM_OPEN_WRITER | XMEM_OPEN_EXCLUSIVE);
		int file;

		WORKED(xmem_preallocate(pool, BYTES, 100, NULL));
		publish_stamp(pool, i);
		WORKED(file = xmem_pool_fd(pool));
		close(file);
		xmem_pool_close(pool);
	}
	SAME(open_files(), files);
}
