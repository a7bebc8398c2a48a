// SPDX-License-Identifier: MIT
/*
 * Sizes of buffers that are made on demand, and how many buffers share a file. demand.h defines
 * classes and fences; demand.c makes the buffers.
 */
#include "lib/cuda/memory.h"
#include "lib/own/demand.h"
#include "lib/payload/payload.h"

#define GRAIN		64u		/* classes are multiples of it */

#define PAGE		xl_page_bytes()

#define SHARED_BYTES	(48ULL << 10)

/* The distance between classes: an eighth of the power of two below @bytes. */
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

/* The largest class that is not above @bytes; 0: none. */
static u64 class_below(u64 bytes)
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
	u64 class = class_below(bytes - 1);

	while (class && near_to(class) >= bytes)
		class = class_below(class - 1);
	return class;
}

static u64 whole_pages(u64 bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* The bytes from one buffer to the next in a file. */
u64 xl_stride_of(const struct xl_chain *chain, u64 class)
{
	if (chain->gpu)
		return (class + xl_place_gpu.alignment - 1) & -xl_place_gpu.alignment;
	return class < XL_AT_PAGES ? class : whole_pages(class);
}

u64 xl_whole_bytes(const struct xl_chain *chain, u64 bytes)
{
	return chain->gpu ? xl_memory_bytes(chain->gpu, bytes) : whole_pages(bytes);
}

u64 xl_file_bytes(const struct xl_chain *chain, u64 class, u32 count)
{
	return xl_whole_bytes(chain, xl_stride_of(chain, class) * count);
}

/*
 * The bytes of a file in huge pages of the system's pool, if at most an eighth is unused; else 0.
 */
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
 * How long may a file be that small buffers share while few of their size exist? The first buffers
 * have files of their own. Then a shared file is half as long as all files together, up to
 * SHARED_BYTES, and beyond that a 512th. Memory in it that no acquire asks for is lost to other
 * sizes. So it is at most a 2048th of the bytes that may still be made: with a low limit, or near
 * it, only needed buffers are made.
 */
static u64 shared_bytes(const struct xl_demand *demand)
{
	u64 bytes = least(demand->bytes / 2, most(SHARED_BYTES, demand->bytes / 512));
	u64 left = demand->limit > demand->used ? demand->limit - demand->used : 0;

	return least(bytes, left / 2048);
}

/*
 * The number of slots that this writer may still get; *ret_spare is the number of those in groups
 * that it has.
 */
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
 * How many slots may such a file take? It takes no further group unless this writer has many slots.
 * It takes at most a 512th of the slots that the pool has left, so none in a small pool, which has
 * fewer slots than a host has files. Older hosts do not say which client has a group: then all
 * groups seem to be free.
 */
static u64 shared_slots(const struct xmem_pool *pool)
{
	u64 has = pool->owned.slots + pool->owned.attached, spare;
	u64 left = slots_left(pool, &spare);

	return least(most(spare / 4, has / 64), left / 512);
}

/*
 * the number of buffers of a small class that are made at first, so that its first publications
 * stay as history
 */
#define FIRST_OF_A_CLASS	8

/*
 * How many buffers may be made because a page (on a GPU: a block) has room for them, if there are
 * @there of the class? Otherwise the bytes of the page would be lost; but slots that are made are
 * lost to other sizes. So there are no more new ones than there are already (or FIRST_OF_A_CLASS),
 * and at most a 32nd of the slots that are left. Without that limit a page of each size would take
 * more slots than a small pool has, and where pages are large, a page of one size more than a pool
 * of the default size has. But where bytes are scarcer than slots, there are as many as all bytes
 * need to use all slots.
 */
static u64 page_slots(const struct xmem_pool *pool, const struct xl_chain *chain, u64 stride,
		      u64 there)
{
	const struct xl_demand *demand = &chain->demand;
	u64 page = xl_whole_bytes(chain, 1);
	u64 bytes = demand->limit > demand->used ? demand->limit - demand->used : 0;
	u64 pages = most(bytes / page, 1), left, spare, few;

	if (page / stride <= 1)
		return 1;
	left = slots_left(pool, &spare);
	few = least(most(there, FIRST_OF_A_CLASS), left / 32);
	return least(page / stride, most(few, (left + pages - 1) / pages));
}

/*
 * How many buffers of a class are made at once? They can be given back only together, so they are
 * few: a 64th of the existing ones, or as many as a page has. Small buffers share a larger file,
 * because a pool may have only a few thousand files. A file has as many as a huge page if that is
 * at most an eighth of the existing ones.
 */
u32 xl_file_buffers(const struct xmem_pool *pool, const struct xl_chain *chain, u64 class)
{
	const struct xl_size *size = xl_size_in(chain, class);
	u64 there = size->bytes == class ? size->slots : 0, stride = xl_stride_of(chain, class);
	u64 count = most(there / 64, page_slots(pool, chain, stride, there));
	u64 shared = shared_bytes(&chain->demand) / stride, huge = chain->demand.huge_page / stride;

	if (count < shared)
		count = most(count, least(shared, shared_slots(pool)));
	count = least(least(count, XMEM_GROUP_SLOTS), XL_FILE_BYTES / stride);
	if (count < huge && huge <= XMEM_GROUP_SLOTS && huge <= there / 8)
		count = huge;
	return most(1, count);
}
