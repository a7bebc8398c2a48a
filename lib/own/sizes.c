// SPDX-License-Identifier: MIT
/*
 * Sizes of buffers that are made on demand, and how many buffers share a file: demand.h says what
 * a class and a fence are.
 */
#include "lib/own/demand.h"
#include "lib/payload/payload.h"

#define GRAIN		64u		/* classes are multiples of it */

#define PAGE		xl_page_bytes()

#define SHARED_BYTES	(48ULL << 10)

/* How far apart classes are: an eighth of the power of two below @bytes. */
static u64 step_of(u64 bytes)
{
	u64 step = 1ULL << (63 - __builtin_clzll(bytes)) >> 3;

	return step > GRAIN ? step : GRAIN;
}

u64 xl_class(u64 bytes)
{
	u64 step = step_of(bytes);

	return (bytes + step - 1) / step * step;
}

u64 xl_class_below(u64 bytes)
{
	return bytes < GRAIN ? 0 : bytes / step_of(bytes) * step_of(bytes);
}

static u64 near_to(u64 class)
{
	return class + class / 4;
}

u64 xl_near(u64 bytes)
{
	return near_to(xl_class(bytes));
}

u64 xl_fence(u64 bytes)
{
	u64 class = xl_class_below(bytes - 1);

	while (class && near_to(class) >= bytes)
		class = xl_class_below(class - 1);
	return class;
}

static u64 whole_pages(u64 bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* From one buffer to the next in a file. */
u64 xl_stride_of(u64 class)
{
	return class < XL_AT_PAGES ? class : whole_pages(class);
}

u64 xl_file_bytes(u64 class, u32 count)
{
	return whole_pages(xl_stride_of(class) * count);
}

/* A file in huge pages of the system's pool, of which at most an eighth is unused; else 0. */
u64 xl_huge_file_bytes(const struct xl_demand *demand, u64 bytes)
{
	u64 page = demand->huge_page, whole;

	if (!page)
		return 0;
	whole = (bytes + page - 1) / page * page;
	return whole - bytes <= bytes / 8 ? whole : 0;
}

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 most(u64 a, u64 b)
{
	return a > b ? a : b;
}

/*
 * How long may a file be that small buffers share, although few of their size are there yet? The
 * first ones have files of their own; then it is half as long as all files together, up to
 * SHARED_BYTES, and beyond that a 512th. What nobody asks for later is lost to other sizes. So it
 * is a 2048th of what may still be made at most: with a low limit, or near it, nothing is made
 * but what is needed.
 */
static u64 shared_bytes(const struct xl_demand *demand)
{
	u64 bytes = least(demand->bytes / 2, most(SHARED_BYTES, demand->bytes / 512));
	u64 left = demand->limit > demand->used ? demand->limit - demand->used : 0;

	return least(bytes, left / 2048);
}

/* How many slots may this writer still get, and how many of those are in groups that it has? */
static u64 slots_left(const struct xmem_pool *pool, u64 *ret_spare)
{
	u64 left = 0;
	u32 g;

	*ret_spare = 0;
	for (g = 0; g < pool->map.groups; g++) {
		u32 whose = xm_load(&xm_slot_row(&pool->map, g * XMEM_GROUP_SLOTS)->group_owner);
		u32 spare = whose ? xm_spare_slots(&pool->map, pool->me, g) : XMEM_GROUP_SLOTS;

		left += spare;
		*ret_spare += whose == pool->me + 1 ? spare : 0;
	}
	return left;
}

/*
 * The same in slots. No further group is taken for it, unless many are had. It is a 512th of what
 * the pool has left at most, and so nothing in a small pool, which has fewer slots than a host has
 * files. Older hosts do not say whose groups are: then all seem to be left.
 */
static u64 shared_slots(const struct xmem_pool *pool)
{
	u64 has = pool->owned.slots + pool->owned.attached, spare;
	u64 left = slots_left(pool, &spare);

	return least(most(spare / 4, has / 64), left / 512);
}

/* As many of a small class are made at first, so that its first publications stay as history. */
#define FIRST_OF_A_CLASS	8

/*
 * How many may be made because a page has them, if @there of the class are there? The bytes would
 * be lost otherwise, but the slots are lost to other sizes. So they are no more than there are (or
 * the first few), and a 32nd of the slots that are left: else a page of each size would take more
 * slots than a small pool has, or one of a default size where pages are large. But where bytes are
 * scarcer than slots they are as many as it takes to have all these slots.
 */
static u64 page_slots(const struct xmem_pool *pool, u64 stride, u64 there)
{
	const struct xl_demand *demand = &pool->owned.demand;
	u64 bytes = demand->limit > demand->used ? demand->limit - demand->used : 0;
	u64 pages = most(bytes / PAGE, 1), left, spare, few;

	if (PAGE / stride <= 1)
		return 1;
	left = slots_left(pool, &spare);
	few = least(most(there, FIRST_OF_A_CLASS), left / 32);
	return least(PAGE / stride, most(few, (left + pages - 1) / pages));
}

/*
 * How many buffers of a class are made at once? They can go only together, so they are few: as
 * many as a page has, and a 64th of those that there are; or as many as small ones share a file,
 * because a pool may have a few thousand files only; or as many as a huge page has, if that is an
 * eighth of them at most.
 */
u32 xl_file_buffers(const struct xmem_pool *pool, u64 class)
{
	const struct xl_owned *owned = &pool->owned;
	const struct xl_size *size = xl_size_for(owned, class);
	u64 there = size->bytes == class ? size->slots : 0, stride = xl_stride_of(class);
	u64 count = most(there / 64, page_slots(pool, stride, there));
	u64 shared = shared_bytes(&owned->demand) / stride, huge = owned->demand.huge_page / stride;

	if (count < shared)
		count = most(count, least(shared, shared_slots(pool)));
	count = least(least(count, XMEM_GROUP_SLOTS), XL_FILE_BYTES / stride);
	if (count < huge && huge <= XMEM_GROUP_SLOTS && huge <= there / 8)
		count = huge;
	return most(1, count);
}
