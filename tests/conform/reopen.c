// SPDX-License-Identifier: MIT
/*
 * xmem_pool_reopen: a child that has inherited a handle joins again, as its parent did, whatever
 * the parent's threads were doing. A process that has lost its host, or wants a second client, can
 * do so, too.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "harness.h"

#define BYTES	4096

struct heir {
	const char *name;
	struct xmem_pool *pool, *second;
	int fd;
	unsigned int generations;
};

static struct xmem_client_info client_of(struct xmem_pool *pool)
{
	struct xmem_client_info info = { .size = sizeof(info) };

	WORKED(xmem_pool_client_info(pool, xmem_pool_client(pool), &info));
	return info;
}

/* Publish, let the parent receive, and wait for its message. */
static void publish_for_parent(struct xmem_pool *pool, uint64_t stamp)
{
	struct xmem_buffer *kept;

	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	tell_parent(xmem_pool_client(pool));
	SAME(hear_parent(), 1);
	tell_parent(publish_kept(pool, stamp, &kept));
	hear_parent();
	xmem_release(kept);
}

static void reopen_as_writer(void *argument)
{
	struct heir *heir = argument;
	struct xmem_pool *pool = xmem_pool_reopen(heir->pool);
	struct xmem_client_info info;

	CHECK(pool && pool != heir->pool);
	/* The inherited handle is as dead as before. */
	SAME(xmem_pool_client(heir->pool), -ECHILD);
	xmem_pool_close(heir->pool);
	info = client_of(pool);
	SAME(info.role, XMEM_CLIENT_WRITER);
	SAME(info.wait_bound_ns, 7 * MS);
	SAME(info.pid, getpid());
	CHECK(!strcmp(info.label, "parent"));
	publish_for_parent(pool, 0xc1);
	xmem_pool_close(pool);
}

/*
 * The parent's side of a child that publishes: it receives the contents, then lets the child end.
 */
static void receive_from_child(struct child *child, struct xmem_pool *pool, uint64_t stamp)
{
	int client = hear(child);
	struct xmem_subscription *s;
	struct xmem_buffer *b;

	CHECK(client != xmem_pool_client(pool));
	s = follow(pool, client, 0);
	tell(child, 1);
	b = xmem_get(pool, hear(child));
	CHECK(b);
	SAME(stamp_of(b), stamp);
	xmem_release(b);
	xmem_release(receive_one(s));
	xmem_unsubscribe(s);
}

TEST(P2_a_child_joins_anew_as_its_parent_did)
{
	struct heir heir = { .name = new_name() };
	char label[] = "parent";
	struct child *child;

	heir.pool = OPEN(heir.name, .flags = XMEM_OPEN_WRITER | XMEM_OPEN_EXCLUSIVE, .slots = 256,
			 .label = label, .wait_bound_ns = 7 * MS);
	label[0] = 'x';		/* the text was the caller's */
	WORKED(xmem_preallocate(heir.pool, BYTES, 2, NULL));
	child = spawn(reopen_as_writer, &heir);
	receive_from_child(child, heir.pool, 0xc1);
	tell(child, 1);
	finish_child(child);
	/* Another child is killed in the middle, and it leaves nothing either. */
	child = spawn(reopen_as_writer, &heir);
	receive_from_child(child, heir.pool, 0xc1);
	kill_child(child);
	check_quiet(heir.pool, 1);
	EVENTUALLY(stat_of(heir.pool).attached == 2);
	publish_stamp(heir.pool, 1);
	xmem_pool_close(heir.pool);
}

static void reopen_and_receive(void *argument)
{
	struct heir *heir = argument;
	struct xmem_pool *pool = xmem_pool_reopen(heir->pool);
	struct xmem_subscription *s;
	struct xmem_buffer *b;
	unsigned int i;

	CHECK(pool);
	SAME(client_of(pool).role, XMEM_CLIENT_READER);
	s = xmem_subscribe(pool, NULL);
	CHECK(s);
	tell_parent(1);
	b = xmem_receive(s, patience_ns());
	CHECK(b);
	SAME(stamp_of(b), 0xd2);
	xmem_release(b);
	xmem_unsubscribe(s);
	/* Each generation passes on what it has opened, and what it has inherited. */
	if (heir->generations--) {
		struct heir next = *heir;
		struct child *child;

		if (heir->generations & 1)
			next.pool = pool;
		child = spawn(reopen_and_receive, &next);
		for (i = 0; i <= next.generations; i++)
			tell_parent(hear(child));
		finish_child(child);
	}
	xmem_pool_close(pool);
}

TEST(P2_children_of_children_join_anew)
{
	struct heir heir = { .name = new_name(), .generations = 3 };
	struct xmem_pool *writer = open_writer(heir.name, 2, BYTES);
	struct child *child;
	unsigned int i;

	heir.pool = open_reader(heir.name);
	child = spawn(reopen_and_receive, &heir);
	for (i = 0; i < 4; i++) {	/* the messages of all generations come by the first one */
		SAME(hear(child), 1);
		publish_stamp(writer, 0xd2);
	}
	finish_child(child);
	xmem_pool_close(heir.pool);
	check_quiet(writer, 1);
	xmem_pool_close(writer);
}

static void reopen_is(void *argument)
{
	struct heir *heir = argument;
	struct xmem_pool *pool;

	hear_parent();		/* the parent has closed the pool by now */
	pool = xmem_pool_reopen(heir->pool);
	/* After success there is no last error, although the pool was not found at first. */
	CHECK(!pool == !!xmem_peek_last_error(NULL));
	tell_parent(-xmem_peek_last_error(NULL));
	hear_parent();
}

/* The pool has ended with the parent's client. A new one is made, or not. */
static void reopen_what_has_ended(uint32_t flags, int error)
{
	struct heir heir = { .name = new_name() };
	struct xmem_pool *first = open_reader(heir.name);
	struct child *child;

	heir.pool = OPEN(heir.name, .flags = flags);
	child = spawn(reopen_is, &heir);
	xmem_pool_close(heir.pool);
	xmem_pool_close(first);
	tell(child, 1);
	SAME(hear(child), error);
	tell(child, 1);
	finish_child(child);
}

TEST(API_reopen_makes_a_pool_that_has_ended)
{
	reopen_what_has_ended(0, 0);
}

TEST(API_reopen_of_a_pool_that_must_be_there_does_not_make_it)
{
	reopen_what_has_ended(XMEM_OPEN_EXISTING, ENOENT);
}

static void join_without_a_name(void *argument)
{
	struct heir *heir = argument;
	const char *why = "";
	struct xmem_pool *pool;

	REFUSED(xmem_pool_reopen(heir->pool), EOPNOTSUPP);
	why = last_message();
	CHECK(strstr(why, "XMEM_OPEN_INHERIT"));
	/* A program can do so by hand: */
	pool = open_by_fd(heir->fd, 0);
	CHECK(pool);
	SAME(stat_of(pool).clients, 2);
	xmem_pool_close(pool);
}

TEST(API_reopen_of_an_anonymous_pool_says_what_to_do)
{
	struct heir heir = { .pool = xmem_pool_open(NULL, NULL) };

	CHECK(heir.pool);
	heir.fd = xmem_pool_fd(heir.pool);
	CHECK(heir.fd >= 0);
	REFUSED(xmem_pool_reopen(heir.pool), EOPNOTSUPP);
	finish_child(spawn(join_without_a_name, &heir));
	check_quiet(heir.pool, 1);
	close(heir.fd);
	xmem_pool_close(heir.pool);
}

static void join_by_what_was_inherited(void *argument)
{
	struct heir *heir = argument;
	struct xmem_pool *pool = xmem_pool_reopen(heir->pool);
	struct xmem_pool *second = xmem_pool_reopen(heir->pool);
	unsigned int files;

	CHECK(pool && second);
	SAME(client_of(pool).role, XMEM_CLIENT_WRITER);
	SAME(stat_of(pool).clients, heir->generations);
	xmem_pool_close(second);
	/* The descriptor is closed with the inherited handle, once. */
	files = open_files();
	xmem_pool_close(heir->pool);
	SAME(open_files(), files - 1);
	xmem_pool_close(heir->pool);
	SAME(open_files(), files - 1);
	REFUSED(xmem_pool_reopen(heir->pool), EBADF);
	if (heir->generations < 5) {
		struct heir next = { .pool = pool, .generations = heir->generations + 1 };

		finish_child(spawn(join_by_what_was_inherited, &next));
	}
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	publish_stamp(pool, 1);
	xmem_pool_close(pool);
}

TEST(P2_a_child_joins_an_anonymous_pool_anew)
{
	struct heir heir = {
		.pool = OPEN(NULL, .flags = XMEM_OPEN_WRITER | XMEM_OPEN_INHERIT),
		.generations = 3,
	};

	finish_child(spawn(join_by_what_was_inherited, &heir));
	finish_child(spawn(join_by_what_was_inherited, &heir));
	check_quiet(heir.pool, 1);
	xmem_pool_close(heir.pool);
}

/* By its descriptor a child joins that pool, or none. */
TEST(API_reopen_by_a_descriptor_makes_no_pool)
{
	struct heir heir = { .name = new_name() };
	struct child *child;

	heir.pool = OPEN(heir.name, .flags = XMEM_OPEN_INHERIT);
	child = spawn(reopen_is, &heir);
	xmem_pool_close(heir.pool);
	tell(child, 1);
	/* Where the kernel is the host, the descriptor has kept the pool. */
	SAME(hear(child), on_kernel() ? 0 : EBADF);
	tell(child, 1);
	finish_child(child);
}

TEST(API_reopen_of_what_was_joined_by_a_descriptor)
{
	const char *name = new_name();
	struct xmem_pool *first = open_reader(name), *second, *third;
	int fd = xmem_pool_fd(first);

	CHECK(fd >= 0);
	second = open_by_fd(fd, 0);
	CHECK(second);
	close(fd);
	third = xmem_pool_reopen(second);
	CHECK(third);
	SAME(stat_of(first).clients, 3);
	xmem_pool_close(third);
	xmem_pool_close(second);
	xmem_pool_close(first);
}

TEST(API_reopen_in_the_same_process_is_a_second_client)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER), *again;

	again = xmem_pool_reopen(pool);
	CHECK(again && again != pool);
	CHECK(xmem_pool_client(again) != xmem_pool_client(pool));
	SAME(client_of(again).role, XMEM_CLIENT_WRITER);
	SAME(stat_of(pool).clients, 2);
	xmem_pool_close(pool);
	REFUSED(xmem_pool_reopen(pool), EBADF);
	REFUSED(xmem_pool_reopen(NULL), EINVAL);
	pool = xmem_pool_reopen(again);
	CHECK(pool);
	xmem_pool_close(again);
	check_quiet(pool, 1);
	xmem_pool_close(pool);
}

TEST(P9_reopen_finds_the_host_that_came_after)
{
	struct xmem_pool *pool, *again;
	pid_t daemon;

	daemon_only("the kernel does not end");
	use_own_daemon();
	pool = open_writer(new_name(), 1, BYTES);
	daemon = stop_daemon();
	continue_daemon(daemon);
	CHECK(!kill(daemon, SIGKILL));
	EVENTUALLY(xmem_preallocate(pool, BYTES, 1, NULL) == -ENOTCONN);
	again = xmem_pool_reopen(pool);
	CHECK(again);
	WORKED(xmem_preallocate(again, BYTES, 1, NULL));
	publish_stamp(again, 3);
	check_quiet(again, 1);
	xmem_pool_close(pool);
	xmem_pool_close(again);
}

/* ---- while the parent's threads are at work ---- */

static struct {
	struct xmem_pool *writer, *reader;
	const char *name;
	bool over;			/* atomic */
} busy;

static void *work(void *argument)
{
	while (!__atomic_load_n(&busy.over, __ATOMIC_ACQUIRE)) {
		struct xmem_buffer *kept, *got;
		struct xmem_pool *pool = open_reader(busy.name);
		uint64_t token = publish_kept(busy.writer, 5, &kept);

		got = xmem_get(busy.reader, token);
		CHECK(got);
		xmem_release(got);
		xmem_release(kept);
		xmem_pool_close(pool);
	}
	return NULL;
}

/*
 * In the child: do all that a client can do, with a pool that it joins again. Returns 0, or where
 * it stopped.
 */
static int live_anew(void)
{
	struct xmem_pool *writer = xmem_pool_reopen(busy.writer);
	struct xmem_pool *reader = xmem_pool_reopen(busy.reader);
	struct xmem_subscribe_options options = {
		.size = sizeof(options), .flags = XMEM_SUBSCRIBE_PUBLISHER,
	};
	struct xmem_subscription *s;
	struct xmem_buffer *b;

	if (!writer || !reader || xmem_preallocate(writer, BYTES, 1, NULL))
		return 1;
	options.publisher = xmem_pool_client(writer);
	s = xmem_subscribe(reader, &options);
	b = xmem_acquire(writer, BYTES, 0);
	if (!s || !b || xmem_publish(b, NULL, NULL))
		return 2;
	b = xmem_receive(s, 0);
	if (!b || !xmem_data(b))
		return 3;
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
	return 0;
}

TEST_WITHIN(P2_children_join_anew_whatever_threads_were_doing, 120)
{
	unsigned int forks = scaled(150), i;
	pthread_t thread[2];

#ifdef __SANITIZE_ADDRESS__
	skip("ASan keeps its allocator's lock in a child if another thread had it in the fork");
#endif
	busy.name = new_name();
	busy.over = false;
	busy.writer = open_writer(busy.name, 8, BYTES);
	busy.reader = open_reader(busy.name);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, work, NULL));
	for (i = 0; i < forks; i++) {
		int status = 0;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			alarm(patience_ns() / SECOND);	/* in case it hangs */
			_exit(live_anew());
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		if (status)
			FAIL("child %u of %u: status 0x%x", i, forks, status);
	}
	__atomic_store_n(&busy.over, true, __ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
	xmem_pool_close(busy.reader);
	check_quiet(busy.writer, 1);
	xmem_pool_close(busy.writer);
}
