// SPDX-License-Identifier: MIT
/*
 * Names of pools: their lengths, slashes, and how many pools one user may have. users.c tests who
 * owns a name, fields.c the names that hosts refuse, and messages.c what errors say of names.
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "harness.h"

#define BYTES	4096

/* A name of @length characters, of this test's own, that differs from others in its last one. */
static const char *long_name(size_t length, char last)
{
	static char name[4][XMEM_NAME_BYTES + 1];
	static unsigned int count;
	char *place = name[count++ % 4];

	memset(place, 'n', length);
	place[snprintf(place, length, "/conform/%d/", getpid())] = 'n';
	place[length - 1] = last;
	place[length] = 0;
	return place;
}

/* How many clients the pool of exactly that name has; 0: the host lists none. */
static unsigned int clients_of(const char *name)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };

	while (!xmem_pool_next(entry.number, &entry)) {
		if (!strcmp(entry.name, name))
			return entry.clients;
		entry.size = sizeof(entry);
	}
	return 0;
}

/* Join by its whole name from another handle, publish, and find it in the list. */
static void use(const char *name)
{
	struct xmem_pool *writer = open_writer(name, 1, BYTES), *reader;
	struct xmem_subscription *s;
	struct xmem_buffer *b;

	reader = OPEN(name, .flags = XMEM_OPEN_EXISTING);
	s = follow(reader, xmem_pool_client(writer), 0);
	publish_stamp(writer, 7);
	b = receive_one(s);
	SAME(stamp_of(b), 7);
	SAME(clients_of(name), 2);
	xmem_release(b);
	xmem_unsubscribe(s);
	xmem_pool_close(reader);
	xmem_pool_close(writer);
}

TEST(API_a_name_has_128_characters)
{
	use(long_name(128, 'a'));
	use(long_name(127, 'a'));
	REFUSED(xmem_pool_open(long_name(129, 'a'), NULL), EINVAL);
}

TEST(API_a_name_has_slashes)
{
	char name[80];

	snprintf(name, sizeof(name), "/%s/front/image_raw", new_name());
	use(name);
	use(name + 1);
}

/* Each name has its own pool: all its characters count, from the first to the last. */
TEST(API_names_that_are_alike_are_two)
{
	const char *name[6];
	struct xmem_pool *pool[6];
	char with_slash[3][80];
	unsigned int i;

	name[0] = long_name(128, 'a');
	name[1] = long_name(128, 'b');
	name[2] = new_name();
	for (i = 0; i < 3; i++)
		name[3 + i] = with_slash[i];
	snprintf(with_slash[0], sizeof(*with_slash), "/%s", name[2]);
	snprintf(with_slash[1], sizeof(*with_slash), "%s/front", name[2]);
	snprintf(with_slash[2], sizeof(*with_slash), "/%s/front", name[2]);
	for (i = 0; i < 6; i++)
		pool[i] = OPEN(name[i], .flags = XMEM_OPEN_EXCLUSIVE);
	for (i = 0; i < 6; i++) {
		SAME(stat_of(pool[i]).clients, 1);
		SAME(clients_of(name[i]), 1);
	}
	for (i = 0; i < 6; i++)
		xmem_pool_close(pool[i]);
}

/* A forked child joins the pool by its name. */
static void reopen(void *pool)
{
	struct xmem_pool *again = xmem_pool_reopen(pool);

	CHECK(again);
	SAME(stat_of(again).clients, 2);
	xmem_pool_close(again);
	tell_parent(1);
	hear_parent();
}

TEST(API_a_long_name_is_reopened)
{
	struct xmem_pool *pool = open_reader(long_name(128, 'r'));
	struct child *child = spawn(reopen, pool);

	SAME(hear(child), 1);
	tell(child, 1);
	finish_child(child);
	xmem_pool_close(pool);
}

/* ---- by number ---- */

static uint64_t number_of_the_last(void)
{
	struct xmem_pool_entry entry = { .size = sizeof(entry) };
	uint64_t last = 0;

	while (!xmem_pool_next(last, &entry)) {
		last = entry.number;
		entry.size = sizeof(entry);
	}
	return last;
}

static int join_by(const char *tag, uint32_t role, uint32_t flags)
{
	struct raw raw;
	int err;

	raw_open(&raw);
	err = raw_join(&raw, tag, role, flags);
	raw_close(&raw);
	return err;
}

TEST(API_an_anonymous_pool_is_looked_at_by_its_number)
{
	struct xmem_pool *pool = OPEN(NULL, .flags = XMEM_OPEN_WRITER), *named, *look;
	struct xmem_pool_options writer = {
		.size = sizeof(writer), .flags = XMEM_OPEN_WRITER,
	};
	char tag[40], full[80];
	const char *why;

	snprintf(tag, sizeof(tag), "@%llu", (unsigned long long)number_of_the_last());
	snprintf(full, sizeof(full), "%u:%s", geteuid(), tag);
	look = OPEN(tag, .flags = XMEM_OPEN_EXISTING);
	SAME(stat_of(pool).clients, 2);
	xmem_pool_close(look);
	look = xmem_pool_open(full, NULL);	/* it makes none, whatever the flags are */
	CHECK(look);
	SAME(stat_of(pool).clients, 2);
	xmem_pool_close(look);
	REFUSED(xmem_pool_open(tag, &writer), EINVAL);
	why = last_message();
	CHECK(strstr(why, tag) && strstr(why, "only a reader can join by it"));
	SAME(join_by(tag, XMEM_ROLE_READER, XMEM_JOIN_EXISTING), 0);
	SAME(join_by(tag, XMEM_ROLE_READER, 0), -EINVAL);
	SAME(join_by(tag, XMEM_ROLE_READER, XMEM_JOIN_EXCLUSIVE), -EINVAL);
	SAME(join_by(tag, XMEM_ROLE_WRITER, XMEM_JOIN_EXISTING), -EINVAL);
	SAME(join_by(tag, XMEM_ROLE_EITHER, XMEM_JOIN_EXISTING), -EINVAL);
	xmem_pool_close(pool);
	EVENTUALLY(join_by(tag, XMEM_ROLE_READER, XMEM_JOIN_EXISTING) == -ENOENT);
	REFUSED(xmem_pool_open(tag, NULL), ENOENT);

	named = open_reader(new_name());
	snprintf(tag, sizeof(tag), "@%llu", (unsigned long long)number_of_the_last());
	look = OPEN(tag, .flags = 0);
	SAME(stat_of(named).clients, 2);
	xmem_pool_close(look);
	xmem_pool_close(named);
}

TEST(P4_a_number_is_one)
{
	static const char *const bad[] = {
		"@", "@0", "@x", "@1x", "@-1", "@ 1", "1@", "@@1", "@1/", "/@1",
		"@12345678901234567890",
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (join_by(bad[i], XMEM_ROLE_READER, XMEM_JOIN_EXISTING) != -EINVAL)
			FAIL("the host takes the number '%s'", bad[i]);
	SAME(join_by("@1234567890123456789", XMEM_ROLE_READER, XMEM_JOIN_EXISTING), -ENOENT);
}

/* Root's pool has mode 0600: neither its number nor anything else lets other users in. */
static void look_at(void *tag)
{
	be_user(65534);
	REFUSED(xmem_pool_open(tag, NULL), ENOENT);
	tell_parent(1);
	hear_parent();
}

TEST(P4_a_pool_number_lets_in_no_more_than_the_mode)
{
	struct xmem_pool *pool;
	char tag[2][40];
	unsigned int i;

	several_users_or_skip();
	pool = OPEN(NULL, .flags = XMEM_OPEN_WRITER);
	snprintf(tag[0], sizeof(*tag), "@%llu", (unsigned long long)number_of_the_last());
	snprintf(tag[1], sizeof(*tag), "0:@%llu", (unsigned long long)number_of_the_last());
	for (i = 0; i < 2; i++) {
		struct child *child = spawn(look_at, tag[i]);

		hear(child);
		kill_child(child);
	}
	SAME(stat_of(pool).clients, 1);
	xmem_pool_close(pool);
}

/* ---- as many as one user may have ---- */

#define POOLS		1024u
#define PROCESSES	4u	/* a daemon gives all its connections to none of them */

/* The module's limits do not bind root. */
static void be_one_user(void)
{
	if (on_kernel())
		be_user(65534);
}

static void make_pools(void *argument)
{
	struct raw *raw = calloc(POOLS / PROCESSES, sizeof(*raw));
	char name[60];
	unsigned int i;

	(void)argument;
	CHECK(raw);
	be_one_user();
	for (i = 0; i < POOLS / PROCESSES; i++) {
		snprintf(name, sizeof(name), "/conform/%d/%u", getpid(), i);
		raw_open(&raw[i]);
		SAME(raw_join(&raw[i], name, XMEM_ROLE_WRITER, XMEM_JOIN_EXCLUSIVE), 0);
	}
	SAME(clients_of(name), 1);
	tell_parent(1);
	hear_parent();
}

static void make_one_more(void *argument)
{
	const char *why;

	(void)argument;
	be_one_user();
	REFUSED(xmem_pool_open(NULL, NULL), EDQUOT);
	why = last_message();
	if (!strstr(why, "has as many pools as it may have: 1024 of 1024"))
		FAIL("the message is: %s", why);
	tell_parent(1);
	hear_parent();
}

TEST_WITHIN(P10_a_user_may_have_1024_pools, 600)
{
	struct child *child[PROCESSES], *last;
	struct rlimit files;
	unsigned int i;

	CHECK(!getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	if (on_kernel())
		several_users_or_skip();
	else
		use_own_daemon();
	if (!on_kernel() && files.rlim_max < 16384)
		skip("xmemd has 1024 pools from a hard limit of 16384 open files on (ulimit -Hn)");
	CHECK(!setrlimit(RLIMIT_NOFILE, &files));
	for (i = 0; i < PROCESSES; i++) {
		child[i] = spawn(make_pools, NULL);
		hear(child[i]);
	}
	last = spawn(make_one_more, NULL);
	hear(last);
	kill_child(last);
	for (i = 0; i < PROCESSES; i++)
		kill_child(child[i]);
}
