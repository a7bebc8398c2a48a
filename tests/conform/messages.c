// SPDX-License-Identifier: MIT
/*
 * Errors name what is wrong: the field, the host that was asked, both numbers, and the clients that
 * hold the buffers.
 */
#include <stdlib.h>

#include "harness.h"

#define BYTES	4096
#define TEN	"0123456789"

/* The thread's error is @error and its message has all words, and none of @not. */
static void says(int error, const char *not, const char *const *word)
{
	const char *why = last_message();

	SAME(xmem_get_last_error(NULL), -error);
	for (; *word; word++)
		if (!strstr(why, *word))
			FAIL("the message does not contain '%s': %s", *word, why);
	if (not && strstr(why, not))
		FAIL("the message contains '%s': %s", not, why);
}
#define SAYS(error, not, ...)	says(error, not, (const char *const []){ __VA_ARGS__, NULL })

/* ---- opening ---- */

static void refuse(const char *name, const struct xmem_pool_options *options)
{
	if (xmem_pool_open(name, options))
		FAIL("opening %s succeeded", name);
}
#define OPTIONS(...)                                                                               \
	&(struct xmem_pool_options)                                                                \
	{                                                                                          \
		.size = sizeof(struct xmem_pool_options), __VA_ARGS__                              \
	}

TEST(API_EINVAL_names_the_field)
{
	const uint32_t both = XMEM_OPEN_EXISTING | XMEM_OPEN_EXCLUSIVE;
	const char *name = new_name();

	refuse("no:user", NULL);
	SAYS(EINVAL, "slash", "no:user", "user", "colon", "number");
	refuse("0:", NULL);
	SAYS(EINVAL, NULL, "'0:'", "user", "no name");
	refuse("a/.hidden", NULL);
	SAYS(EINVAL, "A-Z", "a/.hidden", "dot");
	refuse("a//b", NULL);
	SAYS(EINVAL, "A-Z", "a//b", "empty");
	refuse("a!b", NULL);
	SAYS(EINVAL, "dot", "a!b", "A-Za-z0-9._/-", "position 1 ");
	refuse("/" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "12345678", NULL);
	SAYS(EINVAL, NULL, "name", "128", "129");
	refuse(name, OPTIONS(.slots = 65537));
	SAYS(EINVAL, "A-Z", "slots", "65537", "65536");
	refuse(name, OPTIONS(.clients = 257));
	SAYS(EINVAL, "A-Z", "clients", "257", "256");
	refuse(name, OPTIONS(.ring_entries = 5));
	SAYS(EINVAL, "A-Z", "ring_entries", "5", "power of two");
	refuse(name, OPTIONS(.ring_entries = 2));
	SAYS(EINVAL, "A-Z", "ring_entries");
	refuse(name, OPTIONS(.ring_entries = 8192));
	SAYS(EINVAL, "A-Z", "ring_entries", "8192");
	refuse(name, OPTIONS(.flags = XMEM_OPEN_READER, .wait_bound_ns = 5));
	SAYS(EINVAL, "A-Z", "wait_bound_ns", "XMEM_OPEN_READER");
	refuse(name, OPTIONS(.flags = XMEM_OPEN_WRITER, .wait_bound_ns = -5));
	SAYS(EINVAL, "A-Z", "wait_bound_ns", "negative");
	refuse(name, OPTIONS(.label = "sixteen letters."));
	SAYS(EINVAL, "A-Z", "label", "15");
	refuse(name, OPTIONS(.label = "two\nlines"));
	SAYS(EINVAL, "A-Z", "label", "printable");
	refuse(name, OPTIONS(.flags = 1u << 30));
	SAYS(EINVAL, "A-Z", "flags", "0x40000000");
	refuse(name, OPTIONS(.flags = both));
	SAYS(EINVAL, "A-Z", "flags", "XMEM_OPEN_EXCLUSIVE");
	refuse(NULL, OPTIONS(.flags = XMEM_OPEN_EXISTING));
	SAYS(ENOENT, "no an", "anonymous", "XMEM_OPEN_EXISTING");
	CHECK(!open_by_fd(0, XMEM_OPEN_EXCLUSIVE));
	SAYS(EINVAL, NULL, "flags", "XMEM_OPEN_EXCLUSIVE", "descriptor");
	refuse(name, OPTIONS(.flags = XMEM_OPEN_FD));
	SAYS(EINVAL, NULL, "XMEM_OPEN_FD", "no name");
	refuse(NULL, OPTIONS(.fd = 3));
	SAYS(EINVAL, NULL, "fd is 3", "XMEM_OPEN_FD");
	refuse(NULL, OPTIONS(.reserved = 1));
	SAYS(EINVAL, NULL, "reserved");
}

TEST(API_EINVAL_names_the_number_of_a_preallocate)
{
	struct xmem_pool *pool = OPEN(new_name(), .flags = XMEM_OPEN_WRITER, .slots = 64);

	SAME(xmem_preallocate(pool, BYTES, 0, NULL), -EINVAL);
	SAYS(EINVAL, "bytes", "count is 0", "64");
	SAME(xmem_preallocate(pool, BYTES, 65, NULL), -EINVAL);
	SAYS(EINVAL, "bytes", "count is 65", "64");
	SAME(xmem_preallocate(pool, 0, 1, NULL), -EINVAL);
	SAYS(EINVAL, "count", "bytes is 0");
	SAME(xmem_preallocate(pool, 1ULL << 46, 2, NULL), -EINVAL);
	SAYS(EINVAL, "count", "bytes is 70368744177664", "2 buffers together");
	xmem_pool_close(pool);
}

TEST(API_EINVAL_of_receive_has_one_cause)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader = open_reader(name);
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);

	CHECK(!xmem_receive(NULL, 0));
	SAYS(EINVAL, "timeout", "no subscription");
	CHECK(!xmem_receive(s, -1));
	SAYS(EINVAL, "no subscription", "negative timeout");
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_a_descriptor_of_an_ended_pool_is_EBADF)
{
	struct xmem_pool *pool = open_reader(new_name());
	int fd = xmem_pool_fd(pool);

	daemon_only("with the kernel the descriptor keeps the pool");
	CHECK(fd >= 0);
	xmem_pool_close(pool);
	CHECK(!open_by_fd(fd, 0));
	SAYS(EBADF, NULL, "xmem_pool_fd", "has ended");
	close(fd);
}

/* The client does not become a writer, so waiting for it would never end. */
TEST(API_subscribing_to_a_reader_is_refused_at_once)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_reader(name), *reader = open_reader(name);
	int client = xmem_pool_client(reader);

	CHECK(!subscribe_for(pool, client, 0, 0));
	SAYS(ENOENT, NULL, name, "is a reader, not a writer");
	CHECK(!subscribe_for(pool, client, 0, XMEM_FOREVER));
	SAYS(ENOENT, NULL, name, "is a reader, not a writer");
	xmem_pool_close(reader);
	/* The id is free now: a writer may join and get it. */
	CHECK(!subscribe_for(pool, client, 0, MS));
	SAYS(ETIMEDOUT, NULL, name, "did not come in time");
	xmem_pool_close(pool);
}

TEST(API_EINVAL_names_the_field_of_a_subscription)
{
	struct xmem_pool *pool = open_reader(new_name());
	static const struct { struct xmem_subscribe_options o; const char *field; } wrong[] = {
		{ { .flags = 1u << 9 }, "flags" },
		{ { .publisher = 3 }, "publisher" },
		{ { .publisher = 64, .flags = XMEM_SUBSCRIBE_PUBLISHER }, "publisher" },
		{ { .timeout_ns = -5 }, "timeout_ns" },
		{ { .timeout_ns = 1, .flags = XMEM_SUBSCRIBE_NOWAIT }, "timeout_ns" },
	};
	unsigned int i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct xmem_subscribe_options options = wrong[i].o;

		options.size = sizeof(options);
		CHECK(!xmem_subscribe(pool, &options));
		SAYS(EINVAL, NULL, wrong[i].field);
	}
	xmem_pool_close(pool);
}

TEST(API_a_pool_that_is_not_or_is_there_is_named_with_its_host)
{
	const char *name = new_name(), *host = on_kernel() ? "kernel" : "daemon";
	struct xmem_pool *pool;

	refuse(name, OPTIONS(.flags = XMEM_OPEN_EXISTING));
	SAYS(ENOENT, "XMEM_", name, host);
	pool = open_reader(name);
	refuse(name, OPTIONS(.flags = XMEM_OPEN_EXCLUSIVE));
	SAYS(EEXIST, "XMEM_", name, host);
	xmem_pool_close(pool);
}

TEST(API_a_pool_that_is_too_small_is_ERANGE_and_both_numbers)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .slots = 128, .clients = 8, .ring = 16), *same;

	refuse(name, OPTIONS(.slots = 4096));
	SAYS(ERANGE, NULL, name, "128", "4096");
	refuse(name, OPTIONS(.clients = 9));
	SAYS(ERANGE, NULL, "8 clients", "9");
	refuse(name, OPTIONS(.ring_entries = 32));
	SAYS(ERANGE, NULL, "16 ring", "32");
	same = xmem_pool_open(name, OPTIONS(.slots = 100, .clients = 2, .ring_entries = 4));
	CHECK(same);
	SAME(stat_of(same).slots, 128);
	SAME(stat_of(same).clients_max, 8);
	xmem_pool_close(same);
	xmem_pool_close(pool);
}

/* The host is not running, and the query does not start it. */
#define SAYS_NOTHING_RUNS(not, ...) do { \
	struct xmem_host_info info_ = { .size = sizeof(info_) }; \
	SAME(xmem_host_query(&info_), -ENODEV); \
	SAYS(ENODEV, not, __VA_ARGS__); \
} while (0)

TEST(API_a_host_that_is_not_there_is_named)
{
	char name[40];

	snprintf(name, sizeof(name), "xmem-nobody-%d", getpid());
	setenv("XMEM_SOCKET", name, 1);
	setenv("XMEM_DAEMON", "none", 1);
	setenv("XMEM_DEVICE", "/nowhere/xmem", 1);
	setenv("XMEM_BACKEND", "kernel", 1);
	refuse(name, NULL);
	SAYS(ENODEV, "xmemd", "/nowhere/xmem", "XMEM_BACKEND=kernel");
	setenv("XMEM_BACKEND", "daemon", 1);
	refuse(name, NULL);
	SAYS(ENODEV, "device", "xmemd", "XMEM_BACKEND=daemon");
	SAYS_NOTHING_RUNS("XMEM_BACKEND", "daemon");
	unsetenv("XMEM_BACKEND");
	refuse(name, NULL);
	SAYS(ENODEV, "XMEM_BACKEND", "/nowhere/xmem", "xmemd", "XMEM_DAEMON=none forbids");
	SAYS_NOTHING_RUNS(NULL, "/nowhere/xmem", "daemon");
	setenv("XMEM_DAEMON", "/nonexist", 1);
	refuse(name, NULL);
	SAYS(ENODEV, NULL, "XMEM_DAEMON=/nonexist", "no xmemd");
	setenv("XMEM_DAEMON", "none", 1);
	setenv("XMEM_DEVICE", "", 1);		/* as if unset */
	setenv("XMEM_BACKEND", "kernel", 1);
	if (!on_kernel()) {
		refuse(name, NULL);
		SAYS(ENODEV, NULL, "/dev/xmem");
		SAYS_NOTHING_RUNS(NULL, "/dev/xmem");
	}
	setenv("XMEM_DEVICE", "/dev/null", 1);
	refuse(name, NULL);
	SAYS(ENOTTY, "ioctl", "/dev/null", "no xmem device", "XMEM_DEVICE");
	setenv("XMEM_BACKEND", "daemon", 1);
	setenv("XMEM_SOCKET", TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN, 1);
	refuse("a", NULL);
	SAYS(ENAMETOOLONG, NULL, "XMEM_SOCKET", "107");
	setenv("XMEM_BACKEND", "cloud", 1);
	refuse(name, NULL);
	SAYS(EINVAL, NULL, "XMEM_BACKEND", "cloud");
}

/* ---- buffers ---- */

TEST(API_ENOSPC_speaks_of_groups)
{
	const char *name = new_name();
	struct xmem_pool *a = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 128);
	struct xmem_pool *b = OPEN(name, .flags = XMEM_OPEN_WRITER);
	struct xmem_pool *c = OPEN(name, .flags = XMEM_OPEN_WRITER);

	WORKED(xmem_preallocate(a, BYTES, 1, NULL));
	WORKED(xmem_preallocate(b, BYTES, 1, NULL));
	/* 126 slots have no buffer, and the third writer gets none of them. */
	SAME(xmem_preallocate(c, BYTES, 1, NULL), -ENOSPC);
	SAYS(ENOSPC, NULL, name, "groups of 64", "2 of the 2 groups", "more slots");
	WORKED(xmem_preallocate(a, BYTES, 63, NULL));
	SAME(xmem_preallocate(a, BYTES, 1, NULL), -ENOSPC);
	xmem_pool_close(c);
	xmem_pool_close(b);
	xmem_pool_close(a);
}

TEST(API_a_buffer_that_large_is_not_there)
{
	const char *name = new_name();
	struct xmem_pool *pool = OPEN(name, .flags = XMEM_OPEN_WRITER,
				      .demand_bytes = XMEM_NO_DEMAND);

	CHECK(!xmem_acquire(pool, 1, 0));
	SAYS(ENOSPC, NULL, name, "no buffers", "preallocate");
	WORKED(xmem_preallocate(pool, BYTES, 1, NULL));
	CHECK(!xmem_acquire(pool, BYTES + 1, 0));
	SAYS(ENOSPC, NULL, name, "4097", "4096");
	xmem_pool_close(pool);
}

/* Receive @count publications, and hold them until told otherwise. */
struct holder {
	const char *name, *label;
	int publisher, count;
};

static void hold(void *argument)
{
	const struct holder *holder = argument;
	struct xmem_pool *pool = OPEN(holder->name, .label = holder->label);
	struct xmem_subscription *s = follow(pool, holder->publisher, 0);
	int i;

	tell_parent(1);
	hear_parent();
	for (i = 0; i < holder->count; i++)
		CHECK(xmem_receive(s, 0));
	tell_parent(1);
	hear_parent();
}

TEST(API_acquire_names_who_has_the_buffers)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 8, BYTES), *reader = open_reader(name);
	struct holder viewer = { name, "viewer", xmem_pool_client(writer), 5 };
	struct holder logger = { name, "logger", xmem_pool_client(writer), 3 };
	struct child *child[2] = { spawn(hold, &viewer), spawn(hold, &logger) };
	char holders[2][64];
	struct xmem_buffer *b[3];
	int i;

	for (i = 0; i < 2; i++)
		hear(child[i]);
	for (i = 0; i < 6; i++)
		publish_stamp(writer, i);
	for (i = 0; i < 2; i++) {
		tell(child[i], 1);
		hear(child[i]);
		CHECK((b[i] = xmem_acquire(writer, 10, 0)));
	}
	/* The sixth is still in flight, but only for subscribers that may lose it. */
	CHECK((b[2] = xmem_acquire(writer, 10, 0)));
	/* Their ids depend on which of them joined first. */
	snprintf(holders[0], sizeof(holders[0]), " viewer pid %d: 5, client ", child[0]->pid);
	snprintf(holders[1], sizeof(holders[1]), " logger pid %d: 3)", child[1]->pid);
	CHECK(!xmem_acquire(writer, 10, 20 * MS));
	SAYS(ETIMEDOUT, "free,", name, "no free buffer", "5 of 8 held (client ", holders[0],
	     holders[1], "3 being written");
	CHECK(!xmem_acquire(writer, 10, 0));
	SAYS(EAGAIN, NULL, name, "5 of 8 held (client ", holders[0], holders[1]);
	xmem_release(b[2]);
	for (i = 0; i < 2; i++) {
		xmem_release(b[i]);
		kill_child(child[i]);
	}
	EVENTUALLY((b[0] = xmem_acquire(writer, 10, 0)));
	xmem_release(b[0]);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

/* Follow a writer, and receive nothing until it is killed. */
struct laggard {
	const char *name;
	int publisher;
	uint32_t flags;
};

static void lag(void *argument)
{
	const struct laggard *laggard = argument;
	struct xmem_pool *pool = OPEN(laggard->name, .label = "laggard");

	follow(pool, laggard->publisher, laggard->flags);
	tell_parent(1);
	hear_parent();
}

TEST(API_acquire_names_who_lags)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER,
					.wait_bound_ns = 3600 * SECOND);
	struct laggard laggard = { name, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS };
	struct child *child = spawn(lag, &laggard);
	char who[80];
	int i;

	WORKED(xmem_preallocate(writer, BYTES, 4, NULL));
	hear(child);
	for (i = 0; i < 4; i++)
		publish_stamp(writer, i);
	snprintf(who, sizeof(who), "4 in flight (client 1 laggard pid %d has yet to receive 4)",
		 child->pid);
	CHECK(!xmem_acquire(writer, 10, 0));
	SAYS(EAGAIN, NULL, name, "0 of 4 held", who);
	CHECK(!xmem_acquire(writer, 10, 20 * MS));
	SAYS(ETIMEDOUT, NULL, who);
	kill_child(child);
	xmem_pool_close(writer);
}

TEST(API_acquire_says_when_the_ring_is_full)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .ring = 4,
					.wait_bound_ns = 3600 * SECOND);
	struct laggard laggard = { name, xmem_pool_client(writer), XMEM_SUBSCRIBE_WAITS };
	struct child *child = spawn(lag, &laggard);
	struct xmem_buffer *b[4];
	char who[80];
	int i;

	WORKED(xmem_preallocate(writer, BYTES, 8, NULL));
	hear(child);
	for (i = 0; i < 4; i++)
		CHECK((b[i] = xmem_acquire(writer, 10, 0)));
	/* The subscriber is not behind: the writer itself has filled the ring. */
	CHECK(!xmem_acquire(writer, 10, 0));
	SAYS(EAGAIN, "yet to", name, "4 being written by this writer itself, 4 free",
	     "at most 4 buffers (ring_entries)", "acquired and unpublished, and 4 are");
	for (i = 0; i < 3; i++)
		WORKED(xmem_publish(b[i], NULL, NULL));
	snprintf(who, sizeof(who), "(client 1 laggard pid %d has yet to receive 3)", child->pid);
	CHECK(!xmem_acquire(writer, 10, 0));
	SAYS(EAGAIN, NULL, "4 free", "ring of 4 entries", "1 acquired", who);
	xmem_release(b[3]);
	kill_child(child);
	xmem_pool_close(writer);
}

TEST(API_acquire_in_a_large_pool_counts_the_buffers)
{
	const char *name = new_name();
	struct xmem_pool *writer = OPEN(name, .flags = XMEM_OPEN_WRITER, .slots = 128,
					.clients = 64, .ring = 128);
	struct xmem_buffer *b[80];
	int i;

	WORKED(xmem_preallocate(writer, BYTES, 80, NULL));
	for (i = 0; i < 80; i++)
		CHECK((b[i] = xmem_acquire(writer, 10, 0)));
	CHECK(!xmem_acquire(writer, 10, 0));
	SAYS(EAGAIN, "in flight", name, "no free buffer", "0 of 80 held, 80 being written");
	for (i = 0; i < 20; i++) {
		struct xmem_publish_options keep = { sizeof(keep), .flags = XMEM_PUBLISH_KEEP };

		WORKED(xmem_publish(b[i], &keep, NULL));
	}
	CHECK(!xmem_acquire(writer, 10, 0));
	SAYS(EAGAIN, NULL, name, "20 of 80 held (client 0", ": 20), 60 being written");
	for (i = 0; i < 80; i++)
		xmem_release(b[i]);
	xmem_pool_close(writer);
}

static void read_in_child(void *nothing)
{
	(void)nothing;
	SAYS(EAGAIN, "held", "acquire: the pool has been closed since");
}

/* The message is made when it is read: it says how things are then, and needs the pool for it. */
TEST(API_acquire_describes_the_pool_when_its_message_is_read)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 2, BYTES), *reader = open_reader(name), *other;
	struct xmem_buffer *b = xmem_acquire(writer, BYTES, 0), *got;
	struct xmem_subscription *s = follow(reader, xmem_pool_client(writer), 0);

	publish_stamp(writer, 1);
	got = receive_one(s);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	finish_child(spawn(read_in_child, NULL));
	xmem_release(got);
	SAYS(EAGAIN, "free,", "acquire: pool ", name, "0 of 2 held", "1 being written",
	     "1 in flight");
	got = xmem_acquire(writer, BYTES, 0);
	CHECK(got);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	xmem_release(b);
	xmem_release(got);
	xmem_unsubscribe(s);
	xmem_pool_close(writer);
	other = open_writer(name, 2, BYTES);
	SAYS(EAGAIN, "held", "acquire: the pool has been closed since");
	xmem_pool_close(other);
	xmem_pool_close(reader);
	/* The first client of one pool has the incarnation of the first client of another. */
	writer = open_writer(new_name(), 1, BYTES);
	b = xmem_acquire(writer, BYTES, 0);
	REFUSED(xmem_acquire(writer, BYTES, 0), EAGAIN);
	xmem_release(b);
	xmem_pool_close(writer);
	other = open_writer(new_name(), 2, BYTES);
	SAYS(EAGAIN, "held", "acquire: the pool has been closed since");
	xmem_pool_close(other);
}

TEST(API_acquire_counts_those_that_are_large_enough)
{
	const char *name = new_name();
	struct xmem_pool *writer = open_writer(name, 5, 100);
	struct xmem_buffer *b[2];
	int i;

	WORKED(xmem_preallocate(writer, BYTES, 2, NULL));
	for (i = 0; i < 2; i++)
		CHECK((b[i] = xmem_acquire(writer, BYTES, 0)));
	CHECK(!xmem_acquire(writer, 200, 0));
	SAYS(EAGAIN, "free,", name, "0 of 2 buffers of at least 200 bytes held", "2 being written");
	for (i = 0; i < 2; i++)
		xmem_release(b[i]);
	xmem_pool_close(writer);
}

TEST(API_no_control_character_reaches_a_message)
{
	const char *why, *c;

	refuse("a\033[2J\n\177pool", NULL);
	why = last_message();
	SAME(xmem_get_last_error(NULL), -EINVAL);
	for (c = why; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			FAIL("the message has the character 0x%x", *c);
	CHECK(strstr(why, "a?[2J??pool"));
}
