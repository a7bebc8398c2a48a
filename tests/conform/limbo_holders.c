// SPDX-License-Identifier: MIT
/*
 * How much limbo of ended clients does one client hold? All clients see how much each one holds,
 * and every client keeps its holds.
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

/* A client holds some of the buffers, and each time that it is told, it must still have them. */
static void hold(struct scene *scene, int which)
{
	unsigned int first = scene->holder[which].first, count = scene->holder[which].count, i;
	struct xmem_pool *pool = open_reader(scene->name);
	struct xmem_buffer *held[BUFFERS] = { NULL };

	for (i = first; i < first + count; i++)
		held[i] = get(pool, scene->token[i]);
	tell_parent(xmem_pool_client(pool));
	for (;;) {
		hear_parent();
		for (i = first; i < first + count; i++)
			SAME(stamp_of(held[i]), i + 1);
		xmem_release(get(pool, scene->token[first]));
		tell_parent(0);
	}
}

static void hold_first(void *scene)
{
	hold(scene, 0);
}

static void hold_second(void *scene)
{
	hold(scene, 1);
}

static void set(struct scene *scene)
{
	unsigned int i;

	scene->name = new_name();
	scene->owner = open_reader(scene->name);
	scene->publisher = spawn(publish_and_stay, scene);
	for (i = 0; i < BUFFERS; i++)
		scene->token[i] = hear(scene->publisher);
	for (i = 0; i < 2; i++) {
		scene->holder[i].child = spawn(i ? hold_second : hold_first, scene);
		scene->holder[i].id = hear(scene->holder[i].child);
	}
}

static void ask(struct scene *scene, int which)
{
	tell(scene->holder[which].child, 1);
	SAME(hear(scene->holder[which].child), 0);
}

/* The buffers that nobody held are gone, so the host has handled the end completely. */
static void publisher_dies(struct scene *scene, unsigned int left)
{
	kill_child(scene->publisher);
	EVENTUALLY(stat_of(scene->owner).limbo == left);
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

	set(&s);
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
	ask(&s, 0);
	ask(&s, 1);
	kill_child(s.holder[0].child);
	EVENTUALLY(stat_of(s.owner).limbo == 2);
	ask(&s, 1);
	kill_child(s.holder[1].child);
	raw_close(&raw);
	check_quiet(s.owner, 1);
	strike(&s);
}
