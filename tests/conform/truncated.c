// SPDX-License-Identifier: MIT
/*
 * When the last slot of a payload has gone, its pages go, even if other processes have the file
 * open or mapped: they read zeros. So a reader that keeps descriptors keeps no memory of a
 * publisher that has ended (P10). Files of the program lose their contents only if it says so.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "harness.h"

#define BYTES	4096
#define BUFFERS	4

/* ---- a reader that keeps what it can get, without a hold ---- */

struct keeper {
	struct raw raw;
	unsigned int count;
	struct kept {
		const volatile uint64_t *word;	/* the first one of the buffer */
		int file;
		uint64_t *copy;			/* a private mapping of the file */
	} kept[BUFFERS];
};

/* Map the payload of the buffer with this token, by a descriptor that stays open. */
static void keep(struct keeper *keeper, uint64_t token)
{
	struct kept *kept = &keeper->kept[keeper->count++];
	const struct xmem_slot_row *row = xm_slot_row(&keeper->raw.map, token & 0xffff);
	struct xmem_payload_request request = { .size = sizeof(request), .payload = row->payload };
	char *base;

	SAME(raw_request(&keeper->raw, XMEM_IOC_PAYLOAD, &request), 0);
	base = mmap(NULL, request.bytes, PROT_READ, MAP_SHARED, request.fd, 0);
	CHECK(base != MAP_FAILED);
	kept->word = (const volatile uint64_t *)(base + row->offset);
	kept->file = request.fd;
	kept->copy = mmap(NULL, request.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, request.fd, 0);
	CHECK(kept->copy != MAP_FAILED);
	*kept->copy = ~0ULL;
}

static void keeper_start(struct keeper *keeper, const char *name)
{
	raw_start(&keeper->raw, name, XMEM_ROLE_READER);
	keeper->count = 0;
}

static bool all_are_zero(const struct keeper *keeper)
{
	uint64_t any = 0;
	unsigned int i;

	for (i = 0; i < keeper->count; i++)
		any |= *keeper->kept[i].word;
	return !any;
}

/* Its private copies still have the words that it has written. */
static void keeper_end(struct keeper *keeper)
{
	unsigned int i;

	for (i = 0; i < keeper->count; i++) {
		SAME(*keeper->kept[i].copy, ~0ULL);
		close(keeper->kept[i].file);
	}
	raw_close(&keeper->raw);
}

/* ---- a publisher that ends ---- */

struct scene {
	const char *name;
	struct xmem_pool *reader;
	struct keeper keeper;
	struct child *publisher;
	uint64_t token[BUFFERS];
};

static void publish_all(void *argument)
{
	struct scene *scene = argument;
	struct xmem_pool *pool = open_writer(scene->name, BUFFERS, BYTES);
	struct xmem_buffer *kept;
	unsigned int i;

	for (i = 0; i < BUFFERS; i++)
		tell_parent(publish_kept(pool, i + 1, &kept));
	hear_parent();
}

static void set(struct scene *scene)
{
	unsigned int i;

	scene->name = new_name();
	scene->reader = open_reader(scene->name);
	keeper_start(&scene->keeper, scene->name);
	scene->publisher = spawn(publish_all, scene);
	for (i = 0; i < BUFFERS; i++) {
		scene->token[i] = hear(scene->publisher);
		keep(&scene->keeper, scene->token[i]);
		SAME(*scene->keeper.kept[i].word, i + 1);
	}
}

static void strike(struct scene *scene)
{
	keeper_end(&scene->keeper);
	check_quiet(scene->reader, 1);
	xmem_pool_close(scene->reader);
}

TEST(P10_what_an_ended_publisher_left_is_truncated)
{
	struct scene scene;

	set(&scene);
	kill_child(scene.publisher);
	EVENTUALLY(all_are_zero(&scene.keeper));
	strike(&scene);
}

/* All buffers are in one file, so one of them keeps it. */
TEST(P1_what_is_held_is_not_truncated)
{
	struct xmem_buffer *held;
	struct scene scene;

	set(&scene);
	held = xmem_get(scene.reader, scene.token[1]);
	CHECK(held);
	kill_child(scene.publisher);
	EVENTUALLY(stat_of(scene.reader).attached == 1);
	SAME(stamp_of(held), 2);
	SAME(*scene.keeper.kept[0].word, 1);
	xmem_release(held);
	EVENTUALLY(all_are_zero(&scene.keeper));
	strike(&scene);
}

static void hold_one(void *argument)
{
	const struct scene *scene = argument;
	struct xmem_pool *pool = open_reader(scene->name);

	CHECK(xmem_get(pool, scene->token[1]));
	tell_parent(xmem_pool_client(pool));
	hear_parent();
}

/* The evicted client goes on, and still has the file mapped. */
TEST(P10_what_an_evicted_client_held_is_truncated)
{
	struct xmem_client_info info = { .size = sizeof(info) };
	struct child *holder;
	struct scene scene;
	unsigned int id;

	kernel_only("the daemon cannot take pages from a live process");
	set(&scene);
	holder = spawn(hold_one, &scene);
	id = hear(holder);
	kill_child(scene.publisher);
	EVENTUALLY(stat_of(scene.reader).limbo == 1);
	SAME(*scene.keeper.kept[1].word, 2);
	WORKED(xmem_pool_client_info(scene.reader, id, &info));
	WORKED(xmem_pool_evict(scene.reader, id, info.incarnation));
	EVENTUALLY(all_are_zero(&scene.keeper));
	tell(holder, 0);
	finish_child(holder);
	strike(&scene);
}

/* ---- a publisher that lives ---- */

TEST(P1_what_is_used_again_is_not_truncated)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 1, BYTES);
	struct keeper keeper;
	unsigned int i;

	keeper_start(&keeper, name);
	keep(&keeper, publish_stamp(pool, 1));
	for (i = 2; i < 10; i++) {
		publish_stamp(pool, i);
		SAME(*keeper.kept[0].word, i);
	}
	keeper_end(&keeper);
	xmem_pool_close(pool);
}

TEST(P10_what_an_owner_gives_back_is_truncated)
{
	const char *name = new_name();
	struct xmem_pool *pool = open_writer(name, 1, BYTES);
	struct keeper keeper;

	keeper_start(&keeper, name);
	keep(&keeper, publish_stamp(pool, 1));
	SAME(*keeper.kept[0].word, 1);
	CHECK(trim_pool(pool, 0) > 0);
	EVENTUALLY(!*keeper.kept[0].word);
	keeper_end(&keeper);
	xmem_pool_close(pool);
}

/* ---- files of the program ---- */

static int shared_memfd(void)
{
	int file = new_memfd(BYTES, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	uint64_t stamp = 7;

	SAME(pwrite(file, &stamp, sizeof(stamp), 0), sizeof(stamp));
	return file;
}

static int attach_flags(struct raw *raw, int file, uint32_t flags, uint32_t *ret_slot)
{
	struct xmem_attach_request request = {
		.size = sizeof(request), .flags = flags, .fd = file, .count = 1,
		.stride = BYTES, .length = BYTES,
	};
	int err = raw_request(raw, XMEM_IOC_ATTACH, &request);

	*ret_slot = request.slot[0];
	return err;
}

static uint64_t stamp_in(int file)
{
	uint64_t stamp = 0;

	SAME(pread(file, &stamp, sizeof(stamp), 0), sizeof(stamp));
	return stamp;
}

static bool has_pages(int file)
{
	struct stat info;

	CHECK(!fstat(file, &info));
	SAME(info.st_size, BYTES);
	return info.st_blocks;
}

TEST(P10_a_file_of_the_program_is_truncated_on_request)
{
	const char *name = new_name();
	struct raw raw;
	uint32_t slot;
	int stays = shared_memfd(), goes = shared_memfd();

	raw_start(&raw, name, XMEM_ROLE_WRITER);
	SAME(attach_flags(&raw, stays, XMEM_ATTACH_SHARED, &slot), 0);
	SAME(raw_slot(&raw, XMEM_OP_DETACH, slot), 0);
	SAME(attach_flags(&raw, goes, XMEM_ATTACH_SHARED | XMEM_ATTACH_TRUNCATE, &slot), 0);
	SAME(stamp_in(goes), 7);
	SAME(raw_slot(&raw, XMEM_OP_DETACH, slot), 0);
	EVENTUALLY(!has_pages(goes));
	SAME(stamp_in(stays), 7);
	raw_close(&raw);
	close(stays);
	close(goes);
}

/* A reader that attaches what it has received would destroy the contents of its publisher. */
TEST(P4_only_a_file_that_the_caller_can_write_is_truncated)
{
	const uint32_t shared = XMEM_ATTACH_SHARED | XMEM_ATTACH_TRUNCATE;
	int file = shared_memfd(), sealed = new_memfd(BYTES, GOOD_SEALS), reader;
	struct raw raw;
	uint32_t slot;
	char path[32];

	raw_start(&raw, new_name(), XMEM_ROLE_WRITER);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(reader >= 0);
	SAME(attach_flags(&raw, reader, shared, &slot), -EACCES);
	SAME(attach_flags(&raw, file, XMEM_ATTACH_TRUNCATE, &slot), -EINVAL);
	SAME(attach_flags(&raw, sealed, XMEM_ATTACH_TRUNCATE, &slot), -EINVAL);
	SAME(attach_flags(&raw, sealed, shared, &slot), -ENOEXEC);
	SAME(stamp_in(file), 7);
	raw_close(&raw);
	close(reader);
	close(sealed);
	close(file);
}
