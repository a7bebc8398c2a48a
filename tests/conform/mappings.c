// SPDX-License-Identifier: MIT
/*
 * Which client may map which of a pool's pages, and how (P4). These tests need the kernel module:
 * the daemon's clients trust each other and map one memfd.
 */
#include <sys/mman.h>

#include "harness.h"

#define PAGE	page_size()
#define WHY	"the daemon's clients map one memfd, whole"

static struct raw a, b;		/* two clients of one pool; a is a writer with a group */
static struct xmem_attach_request attached;
static struct xmem_pool_header *pool;

static void scene_start(void)
{
	const char *name = new_name();
	int file = new_memfd(PAGE, GOOD_SEALS);

	raw_start(&a, name, XMEM_ROLE_WRITER);
	raw_start(&b, name, XMEM_ROLE_WRITER);
	SAME(raw_attach(&a, file, 1, &attached), 0);
	close(file);
	pool = a.map.pool;
}

static void scene_end(void)
{
	raw_close(&a);
	raw_close(&b);
}

static void *map(struct raw *who, uint64_t offset, size_t bytes, int protection, int flags)
{
	return mmap(NULL, bytes, protection, flags, who->link.file, offset);
}

static void refused(struct raw *who, uint64_t offset, size_t bytes, int protection, int flags,
		    int want)
{
	void *p = map(who, offset, bytes, protection, flags);

	if (p != MAP_FAILED)
		FAIL("mmap of 0x%zx bytes from 0x%llx on succeeded", bytes,
		     (unsigned long long)offset);
	if (errno != want)
		FAIL("mmap of 0x%zx bytes from 0x%llx on: %d and not %d", bytes,
		     (unsigned long long)offset, errno, want);
}

static uint64_t area_of(struct raw *who)
{
	return pool->areas_offset + who->link.join.client * pool->area_stride;
}

static uint64_t group_of(uint32_t slot)
{
	return pool->groups_offset + slot / XMEM_GROUP_SLOTS * pool->group_stride;
}

#define RW	(PROT_READ | PROT_WRITE)

TEST(P4_mmap_before_joining_is_ENODEV)
{
	struct raw raw;

	kernel_only(WHY);
	raw_open(&raw);
	refused(&raw, 0, PAGE, PROT_READ, MAP_SHARED, ENODEV);
	refused(&raw, 0, PAGE, RW, MAP_SHARED, ENODEV);
	raw_close(&raw);
}

TEST(P4_mmap_outside_the_layout_is_EINVAL)
{
	kernel_only(WHY);
	scene_start();
	refused(&a, pool->total_bytes, PAGE, PROT_READ, MAP_SHARED, EINVAL);
	refused(&a, pool->total_bytes - PAGE, 2 * PAGE, PROT_READ, MAP_SHARED, EINVAL);
	refused(&a, 0, pool->total_bytes + PAGE, PROT_READ, MAP_SHARED, EINVAL);
	refused(&a, 1ULL << 46, PAGE, PROT_READ, MAP_SHARED, EINVAL);
	refused(&a, (uint64_t)INT64_MAX & ~(PAGE - 1ULL), PAGE, PROT_READ, MAP_SHARED, EINVAL);
	scene_end();
}

TEST(P4_mmap_of_others_pages_for_writing_is_EACCES)
{
	uint64_t area, group;

	kernel_only(WHY);
	scene_start();
	area = area_of(&a);
	group = group_of(attached.slot[0]);
	refused(&a, 0, PAGE, RW, MAP_SHARED, EACCES);				/* the host's */
	refused(&a, 0, PAGE, PROT_WRITE, MAP_SHARED, EACCES);
	refused(&b, area, pool->area_stride, RW, MAP_SHARED, EACCES);		/* another's area */
	refused(&b, group, pool->group_stride, RW, MAP_SHARED, EACCES);	/* another's group */
	refused(&a, group + pool->group_stride, PAGE, RW, MAP_SHARED, EACCES);	/* no owner */
	refused(&a, 0, pool->total_bytes, RW, MAP_SHARED, EACCES);	/* own ones among others */
	refused(&a, area - PAGE, 2 * PAGE, RW, MAP_SHARED, EACCES);
	refused(&a, area, pool->area_stride + PAGE, RW, MAP_SHARED, EACCES);
	refused(&a, group, pool->group_stride + PAGE, RW, MAP_SHARED, EACCES);
	scene_end();
}

TEST(P4_mmap_private_is_EINVAL)
{
	kernel_only(WHY);
	scene_start();
	/* A private copy would be an old snapshot. */
	refused(&a, 0, PAGE, PROT_READ, MAP_PRIVATE, EINVAL);
	refused(&a, area_of(&a), PAGE, RW, MAP_PRIVATE, EINVAL);
	scene_end();
}

TEST(P4_mmap_executable_is_EPERM)
{
	kernel_only(WHY);
	scene_start();
	refused(&a, 0, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, EPERM);
	refused(&a, area_of(&a), PAGE, RW | PROT_EXEC, MAP_SHARED, EPERM);
	scene_end();
}

TEST(P4_mprotect_gives_no_more)
{
	void *p, *own;

	kernel_only(WHY);
	scene_start();
	p = map(&a, 0, pool->total_bytes, PROT_READ, MAP_SHARED);
	CHECK(p != MAP_FAILED);
	SAME(mprotect(p, PAGE, RW), -1);
	SAME(errno, EACCES);
	SAME(mprotect(p, PAGE, PROT_READ | PROT_EXEC), -1);
	SAME(errno, EACCES);
	SAME(mprotect((char *)p + area_of(&b), PAGE, RW), -1);
	munmap(p, pool->total_bytes);
	own = a.map.area[a.link.join.client];
	SAME(mprotect(own, PAGE, RW | PROT_EXEC), -1);
	SAME(errno, EACCES);
	scene_end();
}

TEST(P4_mremap_gives_no_more)
{
	void *p, *q;

	kernel_only(WHY);
	scene_start();
	p = map(&a, 0, PAGE, PROT_READ, MAP_SHARED);
	CHECK(p != MAP_FAILED);
	SAME((intptr_t)mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE), -1);	/* it does not grow */
	SAME((intptr_t)mremap(p, 0, PAGE, MREMAP_MAYMOVE), -1);		/* nor double */
	q = mremap(p, PAGE, PAGE, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	munmap(q, PAGE);
	scene_end();
}

TEST(P2_a_moved_and_split_area_keeps_the_client_to_its_last_part)
{
	struct xmem_pool *watcher;
	const char *name = new_name();
	struct raw raw;
	size_t bytes;
	char *place, *moved;

	kernel_only(WHY);
	watcher = OPEN(name, .ring = XMEM_MAX_RING);	/* so its areas have some pages */
	raw_start(&raw, name, XMEM_ROLE_WRITER);
	bytes = raw.map.pool->area_stride;
	place = raw.map.area[raw.link.join.client];
	moved = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(moved != MAP_FAILED);
	SAME((intptr_t)mremap(place, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, moved),
	     (intptr_t)moved);
	SAME(stat_of(watcher).clients, 2);
	CHECK(bytes >= 3 * PAGE);
	CHECK(!munmap(moved + PAGE, PAGE));
	SAME(stat_of(watcher).clients, 2);
	CHECK(!munmap(moved, PAGE));
	SAME(stat_of(watcher).clients, 2);
	CHECK(!munmap(moved + 2 * PAGE, bytes - 2 * PAGE));
	EVENTUALLY(stat_of(watcher).clients == 1);
	raw_close(&raw);
	xmem_pool_close(watcher);
}

TEST(P2_closing_the_file_keeps_the_client_while_its_area_is_mapped)
{
	struct xmem_pool *watcher;
	const char *name = new_name();
	struct raw raw;

	kernel_only(WHY);
	watcher = open_reader(name);
	raw_start(&raw, name, XMEM_ROLE_READER);
	CHECK(!close(raw.link.file));
	raw.link.file = -1;
	SAME(stat_of(watcher).clients, 2);
	CHECK(!munmap(raw.map.area[raw.link.join.client], raw.map.pool->area_stride));
	EVENTUALLY(stat_of(watcher).clients == 1);
	raw_close(&raw);
	xmem_pool_close(watcher);
}

static int kept;	/* a duplicate: the library closes its own descriptors in a child */

static void map_as_child(void *argument)
{
	a.link.file = kept;
	refused(&a, 0, PAGE, PROT_READ, MAP_SHARED, EPERM);
	refused(&a, area_of(&a), pool->area_stride, RW, MAP_SHARED, EPERM);
}

TEST(P4_mmap_by_another_address_space_is_EPERM)
{
	struct xmem_pool_header copy;

	kernel_only(WHY);
	scene_start();
	copy = *pool;
	pool = &copy;			/* mappings are not inherited */
	kept = dup(a.link.file);
	CHECK(kept >= 0);
	finish_child(spawn(map_as_child, NULL));
	close(kept);
	scene_end();
}

static void store_as_child(void *argument)
{
	CHECK(touch(argument, true));
}

TEST(P4_a_child_that_was_given_the_area_cannot_store_there)
{
	uint32_t *hold;

	kernel_only(WHY);
	scene_start();
	hold = xm_hold(&a.map, a.link.join.client, 0);
	/*
	 * By default a child inherits nothing. With MADV_DOFORK it would inherit pages that its
	 * parent was tricked into sharing. Newer kernels refuse that for memory that mremap() may
	 * not enlarge.
	 */
	finish_child(spawn(store_as_child, hold));
	if (madvise(a.map.area[a.link.join.client], pool->area_stride, MADV_DOFORK))
		SAME(errno, EINVAL);
	finish_child(spawn(store_as_child, hold));
	SAME(xm_load(hold), 0);
	SAME(touch(hold, true), 0);	/* its own page: nothing is broken */
	xm_store(hold, 0);
	scene_end();
}

TEST(P4_stores_to_what_is_not_ones_own_do_not_reach_it)
{
	kernel_only(WHY);
	scene_start();
	CHECK(touch((uint32_t *)a.map.pool, true));
	CHECK(touch((uint32_t *)xm_hold(&a.map, b.link.join.client, 0), true));
	CHECK(touch((uint32_t *)xm_slot(&b.map, attached.slot[0]), true));
	SAME(a.map.pool->magic, XMEM_MAGIC);
	SAME(xm_load(xm_hold(&a.map, b.link.join.client, 0)), 0);
	scene_end();
}

TEST(P4_reading_where_nobody_is_finds_zeros)
{
	uint64_t i, sum = 0;
	volatile char *p;

	kernel_only(WHY);
	scene_start();
	p = map(&b, 0, pool->total_bytes, PROT_READ, MAP_SHARED);
	CHECK(p != MAP_FAILED);
	for (i = 0; i < pool->total_bytes; i += PAGE)
		sum += p[i] != 0;
	CHECK(sum > 0);
	for (i = area_of(&b) + pool->area_stride; i < pool->total_bytes; i += PAGE)
		SAME(p[i], 0);
	munmap((void *)p, pool->total_bytes);
	scene_end();
}

TEST(P4_pages_of_a_dead_client_are_not_the_next_ones)
{
	const char *name = new_name();
	struct raw dead, next;
	uint64_t *view;
	uint64_t offset;
	void *own;

	kernel_only(WHY);
	raw_start(&dead, name, XMEM_ROLE_READER);
	raw_start(&a, name, XMEM_ROLE_READER);
	pool = a.map.pool;
	own = dead.map.area[dead.link.join.client];
	memset((char *)own + pool->ring_offset, 0xee, 64);
	offset = area_of(&dead);
	view = map(&a, offset, pool->area_stride, PROT_READ, MAP_SHARED);
	CHECK(view != MAP_FAILED);
	SAME(view[pool->ring_offset / 8], 0xeeeeeeeeeeeeeeeeULL);
	raw_close(&dead);
	EVENTUALLY(view[pool->ring_offset / 8] == 0);
	raw_start(&next, name, XMEM_ROLE_READER);
	SAME(area_of(&next), offset);
	SAME(view[pool->ring_offset / 8], 0);
	/* The old mapping shows the new client's pages. */
	memset((char *)next.map.area[next.link.join.client] + pool->ring_offset, 0xdd, 64);
	SAME(view[pool->ring_offset / 8], 0xddddddddddddddddULL);
	munmap(view, pool->area_stride);
	raw_close(&next);
	raw_close(&a);
}
