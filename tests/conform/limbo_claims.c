// SPDX-License-Identifier: MIT
/*
 * Claims keep limbo of ended clients, too, and claims do not name a client. But the host knows
 * which client has made them last that long. They count for that client as if it held the buffers,
 * and the kernel evicts it if it keeps more than one client may. All clients that end meanwhile
 * together keep no more than that.
 */
#include <string.h>

#include "claims.h"

#define BUFFERS	4
#define LONG	(60 * SECOND)
#define SHORTER	(40 * SECOND)

struct scene {
	const char *name;
	struct xmem_pool *owner;		/* of the pool; it only watches */
	struct child *publisher;
	uint64_t token[BUFFERS];
	struct keeper {
		unsigned int which;		/* bitmap of the buffers that it keeps */
		int64_t timeout_ns;
		struct child *child;
		unsigned int id;
	} keeper[2];
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

/*
 * A client sets one reference to each aside, and holds nothing. When told 1, it must still be
 * there; 2: it ends; 3: it has been evicted.
 */
static void keep(struct scene *scene, const struct keeper *keeper)
{
	struct xmem_pool *pool = open_reader(scene->name);
	struct xmem_buffer *b;
	uint64_t what;
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		if (!(keeper->which & 1u << i))
			continue;
		b = xmem_get(pool, scene->token[i]);
		CHECK(b);
		WORKED(xmem_offer(b, 1, keeper->timeout_ns));
		xmem_release(b);
	}
	tell_parent(xmem_pool_client(pool));
	while ((what = hear_parent()) == 1) {
		SAME(xmem_pool_drain(pool, 1u << 31), -EINVAL);
		tell_parent(0);
	}
	if (what == 3) {
		SAME(xmem_pool_drain(pool, 0), -ENOTCONN);
		error_says("limbo_bytes");
	}
	xmem_pool_close(pool);
	tell_parent(0);
}

static void keep_first(void *scene)
{
	keep(scene, &((struct scene *)scene)->keeper[0]);
}

static void keep_second(void *scene)
{
	keep(scene, &((struct scene *)scene)->keeper[1]);
}

/* The second keeper sets its claims before the first one does. */
static void set(struct scene *scene, uint64_t limbo_bytes)
{
	struct xmem_pool_options options = {
		.size = sizeof(options), .limbo_bytes = limbo_bytes,
	};
	unsigned int i;

	scene->name = new_name();
	scene->owner = xmem_pool_open(scene->name, &options);
	CHECK(scene->owner);
	scene->publisher = spawn(publish_and_stay, scene);
	for (i = 0; i < BUFFERS; i++)
		scene->token[i] = hear(scene->publisher);
	for (i = 2; i-- > 0;) {
		scene->keeper[i].child = spawn(i ? keep_second : keep_first, scene);
		scene->keeper[i].id = hear(scene->keeper[i].child);
	}
}

static void ask(struct scene *scene, int which, uint64_t what)
{
	tell(scene->keeper[which].child, what);
	SAME(hear(scene->keeper[which].child), 0);
	if (what != 1)
		finish_child(scene->keeper[which].child);
}

static void publisher_dies(struct scene *scene)
{
	kill_child(scene->publisher);
	EVENTUALLY(stat_of(scene->owner).limbo > 0);
}

static void strike(struct scene *scene)
{
	unsigned int i;

	for (i = 0; i < BUFFERS; i++)
		xmem_void_claims(scene->owner, scene->token[i]);
	EVENTUALLY(stat_of(scene->owner).limbo == 0);
	check_quiet(scene->owner, 1);
	xmem_pool_close(scene->owner);
}

static uint64_t limbo_of(struct raw *raw, unsigned int client)
{
	struct xmem_client_request request = {
		.size = sizeof(request), .client = client, .flags = XMEM_CLIENT_LIMBO,
	};

	SAME(raw_request(raw, XMEM_IOC_CLIENT, &request), 0);
	return request.limbo_bytes;
}

TEST(P10_keepers_of_limbo_by_claims_are_shown)
{
	struct scene s = { .keeper = {
		{ .which = 7, .timeout_ns = LONG }, { .which = 14, .timeout_ns = SHORTER },
	} };
	struct raw raw;

	set(&s, 0);
	raw_start(&raw, s.name, XMEM_ROLE_READER);
	/* The owner lives, and its slots are its own. */
	SAME(limbo_of(&raw, s.keeper[0].id), 0);
	publisher_dies(&s);
	EVENTUALLY(stat_of(s.owner).limbo == BUFFERS);
	/*
	 * Claims on the two that both keep would have ended earlier if the first one had not
	 * renewed them.
	 */
	SAME(limbo_of(&raw, s.keeper[0].id), 3 * BYTES);
	SAME(limbo_of(&raw, s.keeper[1].id), BYTES);
	SAME(limbo_of(&raw, raw.link.join.client), 0);
	/* By default no client is evicted. */
	ask(&s, 0, 1);
	ask(&s, 1, 1);
	/* Its claims stay, and count for no client that is there. */
	ask(&s, 0, 2);
	EVENTUALLY(stat_of(s.owner).clients == 3);
	SAME(stat_of(s.owner).limbo, BUFFERS);
	SAME(limbo_of(&raw, s.keeper[1].id), BYTES);
	SAME(limbo_of(&raw, xmem_pool_client(s.owner)), 0);
	ask(&s, 1, 2);
	raw_close(&raw);
	strike(&s);
}

/* A client within its limit is not evicted for what others keep of those buffers. */
TEST(P10_who_keeps_too_much_of_limbo_by_claims_is_evicted)
{
	struct scene s = { .keeper = {
		{ .which = 7, .timeout_ns = LONG }, { .which = 15, .timeout_ns = SHORTER },
	} };
	struct xmem_client_info info = { .size = sizeof(info) };
	struct xmem_buffer *b;

	kernel_only("the daemon cannot take pages from a live process");
	set(&s, 2 * BYTES);
	publisher_dies(&s);
	EVENTUALLY(xmem_pool_client_info(s.owner, s.keeper[0].id, &info) || !info.alive);
	ask(&s, 0, 3);
	/* Its claims reach the limit for one client, and the other keeps its own. */
	EVENTUALLY(stat_of(s.owner).limbo == 3);
	ask(&s, 1, 1);
	b = xmem_get(s.owner, s.token[3]);
	CHECK(b);
	SAME(stamp_of(b), 4);
	xmem_release(b);
	EVENTUALLY(stat_of(s.owner).limbo == 2);
	ask(&s, 1, 1);
	ask(&s, 1, 2);
	strike(&s);
}

/*
 * Otherwise a process could join, renew the claims, end, and keep the buffers for ever, and there
 * would be no client to evict.
 */
TEST(P10_all_who_have_ended_keep_as_much_limbo_by_claims_as_one)
{
	struct scene s = { .keeper = {
		{ .which = 3, .timeout_ns = LONG }, { .which = 12, .timeout_ns = LONG },
	} };
	struct xmem_buffer *b;

	kernel_only("the daemon bounds no limbo");
	set(&s, 2 * BYTES);
	publisher_dies(&s);
	ask(&s, 0, 2);
	ask(&s, 1, 2);
	EVENTUALLY(stat_of(s.owner).limbo == 2);
	/* Any client can take the claims that they left. */
	b = xmem_get(s.owner, s.token[0]);
	CHECK(b);
	SAME(stamp_of(b), 1);
	xmem_release(b);
	EVENTUALLY(stat_of(s.owner).limbo == 1);
	REFUSED(xmem_get(s.owner, s.token[2]), ESTALE);
	strike(&s);
}
