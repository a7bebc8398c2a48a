// SPDX-License-Identifier: MIT
/*
 * Slots of an ended owner stay without a hold if a client that has put its hold writes them in
 * place. They count as held by that client (P2, P10).
 */
#include <string.h>

#include "harness.h"
#include "../shown.h"

#define BYTES	4096
#define BUFFERS	4

/* ---- a publisher that dies, and a client that has held what it has published ---- */

struct scene {
	const char *name;
	struct xmem_pool *owner;		/* of the pool; it only watches */
	struct child *publisher;
	struct raw raw;
	unsigned int me;			/* the client of these */
	uint64_t token[BUFFERS];
};

static void publish_and_let_go(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = OPEN(scene->name, .flags = XMEM_OPEN_WRITER);
	struct xmem_buffer *kept[BUFFERS];
	unsigned int i;

	WORKED(xmem_preallocate(pool, BYTES, BUFFERS, NULL));
	for (i = 0; i < BUFFERS; i++)
		tell_parent(publish_kept(pool, i + 1, &kept[i]));
	hear_parent();
	for (i = 0; i < BUFFERS; i++)
		xmem_release(kept[i]);
	tell_parent(0);
	hear_parent();
}

/* The client is the only holder of all that is published. */
static void set(struct scene *scene)
{
	unsigned int i;

	scene->name = new_name();
	scene->owner = open_reader(scene->name);
	scene->publisher = spawn(publish_and_let_go, scene);
	for (i = 0; i < BUFFERS; i++)
		scene->token[i] = hear(scene->publisher);
	raw_start(&scene->raw, scene->name, XMEM_ROLE_WRITER);
	scene->me = scene->raw.link.join.client;
	for (i = 0; i < BUFFERS; i++)
		raw_hold(&scene->raw, scene->token[i]);
	tell(scene->publisher, 0);
	SAME(hear(scene->publisher), 0);
}

static unsigned int slot_of(const struct scene *scene, unsigned int i)
{
	return scene->token[i] & 0xffff;
}

/* Put as the library does, but without waking the owner, which is dead or does not wait. */
static void put(struct scene *scene, unsigned int i)
{
	xm_put(&scene->raw.map, scene->me, slot_of(scene, i));
}

static void strike(struct scene *scene)
{
	raw_close(&scene->raw);
	EVENTUALLY(stat_of(scene->owner).limbo == 0);
	check_quiet(scene->owner, 1);
	xmem_pool_close(scene->owner);
}

/* ---- writing in place ---- */

static uint64_t number_in_fdinfo(int file, const char *format)
{
	unsigned long long number = ~0ULL;
	char path[64], line[256];
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", file);
	info = fopen(path, "re");
	CHECK(info);
	while (fgets(line, sizeof(line), info))
		if (sscanf(line, format, &number) == 1)
			break;
	fclose(info);
	CHECK(number != ~0ULL);
	return number;
}

/* The files of the module show that the client keeps @count of the slots. */
static void is_shown(struct scene *scene, unsigned int count)
{
	int file = scene->raw.link.file;
	struct shown_slot slot;
	char folder[64];
	unsigned int i;

	snprintf(folder, sizeof(folder), "/sys/class/xmem/pool%u",
		 (unsigned int)number_in_fdinfo(file, "xmem-pool: %llu"));
	SAME(number_in_fdinfo(file, "xmem-holds: %llu"), count);
	for (i = 0; i < BUFFERS; i++) {
		slot = shown_slot(folder, slot_of(scene, i));
		SAME(slot.holds, i < count);
		SAME(shown_holds(&slot, scene->me), i < count);
	}
}

/* All clients see that the client keeps @count of the slots; @of_the_dead of them are limbo. */
static void is_seen(struct scene *scene, unsigned int count, unsigned int of_the_dead)
{
	struct xmem_client_request request = {
		.size = sizeof(request), .flags = XMEM_CLIENT_LIMBO, .client = scene->me,
	};
	struct xmem_client_info info = { .size = sizeof(info) };
	unsigned int i;

	WORKED(xmem_pool_client_info(scene->owner, scene->me, &info));
	SAME(info.holds, count);
	SAME(info.bytes_ended, of_the_dead * BYTES);
	/* The group becomes the host's a moment after its last slot. */
	EVENTUALLY(!raw_request(&scene->raw, XMEM_IOC_CLIENT, &request) &&
		   request.limbo_bytes == of_the_dead * BYTES);
	for (i = 0; i < BUFFERS; i++)
		SAME(xmem_pool_holds(scene->owner, scene->me, slot_of(scene, i)), i < count);
	if (on_kernel())
		is_shown(scene, count);
}

static int upgrade(struct scene *scene, unsigned int i, uint32_t flags)
{
	struct xmem_upgrade_request request = {
		.size = XMEM_UPGRADE_MIN, .flags = flags, .slot = slot_of(scene, i),
		.generation = (scene->token[i] >> 16) + (flags != 0),
	};

	return raw_request(&scene->raw, XMEM_IOC_UPGRADE, &request);
}

static void write_all(struct scene *scene)
{
	unsigned int i;

	for (i = 0; i < BUFFERS; i++) {
		SAME(upgrade(scene, i, 0), 0);
		put(scene, i);
	}
}

TEST(P10_writing_in_place_counts_as_a_hold)
{
	struct scene s;

	set(&s);
	is_seen(&s, BUFFERS, 0);
	write_all(&s);
	is_seen(&s, BUFFERS, 0);
	kill_child(s.publisher);
	EVENTUALLY(stat_of(s.owner).limbo == BUFFERS);
	is_seen(&s, BUFFERS, BUFFERS);
	/* Once the writing has ended, it keeps nothing. */
	SAME(upgrade(&s, BUFFERS - 1, XMEM_UPGRADE_GIVE_UP), 0);
	EVENTUALLY(stat_of(s.owner).limbo == BUFFERS - 1);
	is_seen(&s, BUFFERS - 1, BUFFERS - 1);
	strike(&s);
}
