// SPDX-License-Identifier: MIT
/*
 * How much limbo of ended clients may one client hold? All clients see how much each one holds. The
 * kernel evicts a client that holds more than the pool's maker, or the administrator, allows. A
 * client that holds less keeps it.
 */
#include <string.h>

#include "harness.h"

#define BYTES	4096
#define BUFFERS	4

static uint64_t ended_bytes(struct xmem_pool *pool, unsigned int client)
{
	struct xmem_client_info info;

	memset(&info, 0xcc, sizeof(info));
	info.size = sizeof(info);
	WORKED(xmem_pool_client_info(pool, client, &info));
	return info.bytes_ended;
}

static struct xmem_pool *open_capped(const char *name, uint64_t limbo_bytes)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .limbo_bytes = limbo_bytes,
	};

	return xmem_pool_open(name, &options);
}

/* ---- a publisher that dies, and clients that hold what it has published ---- */

struct scene {
	const char *name;
	struct xmem_pool *owner;		/* of the pool; it only watches */
	struct child *publisher;
	uint64_t token[BUFFERS];
	struct {
		unsigned int first, count;	/* which buffers it holds */
		struct child *child;
		unsigned int id;
	} holder[2];
};

static void publish_and_stay(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_writer(scene->name, BUFFERS, BYTES);
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < BUFFERS; i++)
		tell_parent(publish_kept(pool, i + 1, &kept));
	hear_parent();
}

static struct xmem_buffer *get(struct xmem_pool *pool, uint64_t token)
{
	struct xmem_buffer *buffer = xmem_get(pool, token);

	CHECK(buffer);
	return buffer;
}

/*
 * A client holds some of the buffers. When told 1, it must still have them; 2: it gets all others
 * too; 3: it releases all; 0: it has been evicted.
 */
static void hold(struct scene *scene, int which)
{
	unsigned int first = scene->holder[which].first, count = scene->holder[which].count, i;
	struct xmem_pool *pool = open_reader(scene->name);
	struct xmem_buffer *held[BUFFERS] = { NULL };
	uint64_t what;

	for (i = first; i < first + count; i++)
		held[i] = get(pool, scene->token[i]);
	tell_parent(xmem_pool_client(pool));
	while ((what = hear_parent())) {
		for (i = 0; i < BUFFERS; i++) {
			if (what == 2 && !held[i])
				held[i] = get(pool, scene->token[i]);
			if (held[i])
				SAME(stamp_of(held[i]), i + 1);
		}
		if (what == 1) {
			xmem_release(get(pool, scene->token[first]));
			SAME(xmem_pool_drain(pool, 1u << 31), -EINVAL);
		}
		for (i = 0; what == 3 && i < BUFFERS; i++) {
			xmem_release(held[i]);
			held[i] = NULL;
		}
		tell_parent(0);
	}
	SAME(xmem_pool_drain(pool, 0), -ENOTCONN);
	error_says("limbo_bytes");
	/* It got no signal, and can go on. */
	for (i = 0; i < BUFFERS; i++)
		xmem_release(held[i]);
	xmem_pool_close(pool);
	xmem_pool_close(open_reader(scene->name));
	tell_parent(0);
}

static void hold_first(void *scene)
{
	hold(scene, 0);
}

static void hold_second(void *scene)
{
	hold(scene, 1);
}

static void set(struct scene *scene, uint64_t limbo_bytes)
{
	unsigned int i;

	scene->name = new_name();
	scene->owner = open_capped(scene->name, limbo_bytes);
	CHECK(scene->owner);
	scene->publisher = spawn(publish_and_stay, scene);
	for (i = 0; i < BUFFERS; i++)
		scene->token[i] = hear(scene->publisher);
	for (i = 0; i < 2; i++) {
		scene->holder[i].child = spawn(i ? hold_second : hold_first, scene);
		scene->holder[i].id = hear(scene->holder[i].child);
	}
}

static void ask(struct scene *scene, int which, uint64_t what)
{
	tell(scene->holder[which].child, what);
	SAME(hear(scene->holder[which].child), 0);
}

/* The buffers that nobody held are gone, so the host has handled the end completely. */
static void publisher_dies(struct scene *scene, unsigned int left)
{
	kill_child(scene->publisher);
	EVENTUALLY(stat_of(scene->owner).limbo == left);
}

static bool is_alive(struct scene *scene, int which)
{
	struct xmem_client_info info = { .size = sizeof(info) };

	return !xmem_pool_client_info(scene->owner, scene->holder[which].id, &info) && info.alive;
}

static void is_evicted(struct scene *scene, int which)
{
	EVENTUALLY(!is_alive(scene, which));
	ask(scene, which, 0);
	finish_child(scene->holder[which].child);
}

static void strike(struct scene *scene)
{
	xmem_pool_close(scene->owner);
}

/* ---- who sees it? ---- */

static uint64_t asked_of_the_host(struct raw *raw, unsigned int client, uint32_t flags)
{
	struct xmem_client_request request = {
		.size = sizeof(request), .client = client, .flags = flags, .limbo_bytes = 77,
	};

	SAME(raw_request(raw, XMEM_IOC_CLIENT, &request), 0);
	return request.limbo_bytes;
}

TEST(P10_holders_of_limbo_are_shown)
{
	struct scene s = { .holder = { { 0, 3, NULL, 0 }, { 2, 2, NULL, 0 } } };
	struct raw raw;

	set(&s, 0);
	raw_start(&raw, s.name, XMEM_ROLE_READER);
	/* Their owner lives. */
	SAME(ended_bytes(s.owner, s.holder[0].id), 0);
	SAME(asked_of_the_host(&raw, s.holder[0].id, XMEM_CLIENT_LIMBO), 0);
	publisher_dies(&s, 4);
	/* A buffer that both hold counts for each. */
	SAME(ended_bytes(s.owner, s.holder[0].id), 3 * BYTES);
	SAME(ended_bytes(s.owner, s.holder[1].id), 2 * BYTES);
	SAME(ended_bytes(s.owner, xmem_pool_client(s.owner)), 0);
	SAME(asked_of_the_host(&raw, s.holder[0].id, XMEM_CLIENT_LIMBO), 3 * BYTES);
	SAME(asked_of_the_host(&raw, s.holder[1].id, XMEM_CLIENT_LIMBO), 2 * BYTES);
	SAME(asked_of_the_host(&raw, raw.link.join.client, XMEM_CLIENT_LIMBO), 0);
	SAME(asked_of_the_host(&raw, s.holder[0].id, 0), 0);
	/* By default there is no limit. */
	ask(&s, 0, 1);
	ask(&s, 1, 1);
	kill_child(s.holder[0].child);
	EVENTUALLY(stat_of(s.owner).limbo == 2);
	ask(&s, 1, 1);
	kill_child(s.holder[1].child);
	raw_close(&raw);
	check_quiet(s.owner, 1);
	strike(&s);
}

/* ---- who is evicted? ---- */

TEST(P10_who_holds_too_much_of_limbo_is_evicted)
{
	struct scene s = { .holder = { { 0, 3, NULL, 0 }, { 2, 2, NULL, 0 } } };

	kernel_only("the daemon cannot take pages from a live process");
	set(&s, 2 * BYTES);
	/* As long as the publisher lives, the limit does not apply. */
	xmem_pool_close(open_reader(s.name));
	EVENTUALLY(stat_of(s.owner).clients == 4);
	ask(&s, 0, 1);
	/*
	 * Buffers that only the evicted client held are freed. The other one holds as much as it
	 * may, and keeps it.
	 */
	publisher_dies(&s, 2);
	is_evicted(&s, 0);
	ask(&s, 1, 1);
	SAME(ended_bytes(s.owner, s.holder[1].id), 2 * BYTES);
	kill_child(s.holder[1].child);
	check_quiet(s.owner, 1);
	strike(&s);
}

/*
 * A publisher chooses how long its slots are, and when it ends. So they alone are no reason to
 * evict a client at once.
 */
TEST(P10_limbo_that_is_released_in_time_evicts_nobody)
{
	struct scene s = { .holder = { { 0, 3, NULL, 0 }, { 2, 2, NULL, 0 } } };

	kernel_only("the daemon cannot take pages from a live process");
	set(&s, 2 * BYTES);
	publisher_dies(&s, 4);
	CHECK(is_alive(&s, 0));
	ask(&s, 0, 3);
	EVENTUALLY(stat_of(s.owner).limbo == 2);
	/* Another end leads to another check. */
	kill_child(s.holder[1].child);
	EVENTUALLY(stat_of(s.owner).limbo == 0);
	CHECK(is_alive(&s, 0));
	kill_child(s.holder[0].child);
	check_quiet(s.owner, 1);
	strike(&s);
}

/* A hold is a store, and nothing else happens in this pool: the host checks by itself. */
TEST(P10_who_gets_too_much_of_limbo_later_is_evicted)
{
	struct scene s = { .holder = { { 0, 1, NULL, 0 }, { 0, 3, NULL, 0 } } };
	struct raw raw;
	struct xmem_quota_request quota = {
		.size = sizeof(quota), .quota = XMEM_QUOTA_CLIENT_LIMBO,
	};

	kernel_only("the daemon cannot take pages from a live process");
	s.holder[1].first = 1;
	set(&s, 3 * BYTES);
	publisher_dies(&s, 4);
	ask(&s, 0, 1);
	ask(&s, 1, 1);
	raw_start(&raw, s.name, XMEM_ROLE_READER);
	SAME(raw_request(&raw, XMEM_IOC_QUOTA, &quota), 0);
	SAME(quota.quota, XMEM_QUOTA_CLIENT_LIMBO);
	SAME(quota.scope, XMEM_QUOTA_OF_CLIENT);
	SAME(quota.used, 0);
	SAME(quota.most, 3 * BYTES);
	raw_hold(&raw, s.token[3]);
	SAME(raw_request(&raw, XMEM_IOC_QUOTA, &quota), 0);
	SAME(quota.used, BYTES);
	raw_close(&raw);
	EVENTUALLY(stat_of(s.owner).clients == 3);
	tell(s.holder[0].child, 2);
	EVENTUALLY(!is_alive(&s, 0));
	SAME(hear(s.holder[0].child), 0);
	is_evicted(&s, 0);
	ask(&s, 1, 1);
	SAME(stat_of(s.owner).limbo, 3);
	kill_child(s.holder[1].child);
	check_quiet(s.owner, 1);
	strike(&s);
}

TEST(P10_the_administrator_says_how_much_limbo)
{
	struct scene s = { .holder = { { 0, 3, NULL, 0 }, { 2, 2, NULL, 0 } } };
	char before[32];

	kernel_only("the daemon cannot take pages from a live process");
	if (!in_vm())
		skip("parameters are the whole machine's: only in the virtual machine");
	set(&s, 0);
	publisher_dies(&s, 4);
	/* No client ends now, and no slot becomes free: setting the parameter is enough. */
	set_parameter("max_limbo_bytes", "8192", before);
	is_evicted(&s, 0);
	ask(&s, 1, 1);
	SAME(stat_of(s.owner).limbo, 2);
	/* The limit of a pool's maker counts only if it is lower. */
	kill_child(s.holder[1].child);
	strike(&s);
	set(&s, UINT64_MAX);
	publisher_dies(&s, 4);
	is_evicted(&s, 0);
	ask(&s, 1, 1);
	set_parameter("max_limbo_bytes", before, NULL);
	kill_child(s.holder[1].child);
	strike(&s);
}

/* ---- the option ---- */

TEST(API_limbo_bytes_of_a_pool_that_is_there)
{
	const char *name = new_name();
	struct xmem_pool *pool, *same;
	int fd;

	kernel_only("the daemon evicts nobody");
	pool = open_capped(name, 1 << 20);
	CHECK(pool);
	fd = xmem_pool_fd(pool);
	CHECK(fd >= 0);
	REFUSED(open_capped(name, (1 << 20) - 1), ERANGE);
	error_says("limbo_bytes");
	same = open_capped(name, 1 << 20);
	CHECK(same);
	xmem_pool_close(same);
	same = open_capped(name, 0);
	CHECK(same);
	xmem_pool_close(same);
	same = xmem_pool_open(NULL, XMEM_OPTIONS(xmem_pool_options, .flags = XMEM_OPEN_FD, .fd = fd,
						 .limbo_bytes = 1));
	REFUSED(same, ERANGE);
	close(fd);
	xmem_pool_close(pool);
	/* By default there is no limit. */
	name = new_name();
	pool = open_reader(name);
	REFUSED(open_capped(name, 1ULL << 40), ERANGE);
	same = open_capped(name, UINT64_MAX);
	CHECK(same);
	xmem_pool_close(same);
	xmem_pool_close(pool);
}

TEST(API_the_daemon_evicts_nobody_because_of_limbo)
{
	const char *name = new_name();
	struct xmem_pool *pool;

	daemon_only("the kernel evicts");
	REFUSED(open_capped(name, 1 << 20), EOPNOTSUPP);
	error_says("limbo_bytes");
	pool = open_capped(name, UINT64_MAX);
	CHECK(pool);
	REFUSED(open_capped(name, 1 << 20), EOPNOTSUPP);
	xmem_pool_close(pool);
}
