// SPDX-License-Identifier: MIT
/*
 * Making buffers when an acquire needs them: which sizes they have, how many share a file, and
 * how far the limit allows it.
 */
#include <sys/mman.h>

#include "attach.h"
#include "demand.h"
#include "files.h"
#include "holders.h"
#include "pages.h"
#include "payload/payload.h"
#include "request.h"

#define GRAIN		64u		/* classes are multiples of it */
#define PAGE		xl_page_bytes()
#define SHARED_BYTES	(48ULL << 10)
#define UNKNOWN		(~0ULL)		/* the limit is found when it is first needed */

/* ---- sizes ---- */

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
static u64 stride_of(u64 class)
{
	return class < XL_AT_PAGES ? class : whole_pages(class);
}

static u64 file_bytes(u64 class, u32 count)
{
	return whole_pages(stride_of(class) * count);
}

/* A file in huge pages of the system's pool, of which at most an eighth is unused; else 0. */
static u64 huge_file_bytes(const struct xl_demand *demand, u64 bytes)
{
	u64 page = demand->huge_page, whole;

	if (!page)
		return 0;
	whole = (bytes + page - 1) / page * page;
	return whole - bytes <= bytes / 8 ? whole : 0;
}

/* ---- limits ---- */

void xl_demand_init(struct xmem_pool *pool, const struct xmem_pool_options *options)
{
	struct xl_demand *demand = &pool->owned.demand;

	*demand = (struct xl_demand){
		.on = pool->role != XMEM_ROLE_READER && options->demand_bytes != XMEM_NO_DEMAND,
		.by_default = !options->demand_bytes,
		.limit = options->demand_bytes ? options->demand_bytes : UNKNOWN,
		.memory = options->memory,
		.huge_page = options->memory & XMEM_MEMORY_HUGE ? xl_huge_page_bytes() : 0,
		.cache_bytes = options->cache_bytes,
		.cache_ns = options->cache_ns ? (u64)options->cache_ns : XL_CACHE_NS,
	};
	if (demand->on)
		xm_store(&pool->owned.words.ring->makes, xl_class_below(demand->limit));
}

void xl_demand_end(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	if (owned->demand.by_default) {
		__atomic_store_n(&owned->demand.on, false, __ATOMIC_RELAXED);
		xm_store(&owned->words.ring->makes, 0);
		xm_store(&owned->words.ring->lacks, 0);
		xm_store(&owned->words.ring->lacks_slots, 0);
		xl_owned_tidy(owned);	/* no size needs a fence now */
	}
	xl_unlock(&owned->lock);
}

/* By default a writer takes a quarter of what is left when it makes its first buffer. */
static u64 default_limit(void)
{
	struct xl_room room;

	xl_room_find("/proc", "/sys/fs/cgroup", &room);
	return room.left == ~0ULL ? UNKNOWN - 1 : room.left / 4;
}

/*
 * What the ring says to those who poll. @need: of the file that is wanted; 0: none is. A file
 * comes free with the last of its buffers, and has more bytes than these. So what is lacking are
 * bytes of buffers, as if the rest of each file were free: never too many, or nobody would be told.
 * Where slots are lacking, each buffer that comes free may be the one that has kept them.
 */
static void say(struct xmem_pool *pool, u64 need)
{
	const struct xl_demand *demand = &pool->owned.demand;
	struct xmem_ring *ring = pool->owned.words.ring;
	u64 left = demand->limit > demand->used ? demand->limit - demand->used : 0, lacks;

	if (pool->owned.asked != &pool->owned.cpu)
		return;		/* the ring speaks of a GPU now */
	xm_store(&ring->lacks_slots, demand->no_slots);
	if (demand->no_slots) {
		xm_store(&ring->makes, 0);
		xm_store(&ring->lacks, 1);
		return;
	}
	xm_store(&ring->makes, xl_class_below(left / PAGE * PAGE));
	lacks = need + demand->busy > demand->limit ? need + demand->busy - demand->limit : 1;
	xm_store(&ring->lacks, need > left ? lacks : 0);
}

void xl_demand_say(struct xmem_pool *pool)
{
	u64 wanted = xm_load(&pool->owned.words.ring->wanted);

	if (pool->owned.demand.on)
		say(pool, pool->owned.refused ? file_bytes(xl_class(wanted), 1) : 0);
}

void xl_demand_detached(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	if (owned->demand.no_slots) {
		owned->demand.no_slots = false;
		xl_demand_say(pool);
		owned->none = false;
	}
	xl_unlock(&owned->lock);
}

/* Hosts count what others let go; this is what the owner itself does. */
void xl_demand_given_up(struct xmem_pool *pool, u64 bytes)
{
	struct xmem_ring *ring = pool->owned.words.ring;
	u64 lacks = xm_load(&ring->lacks);

	if (lacks > bytes) {
		xm_store(&ring->lacks, lacks - bytes);
	} else if (lacks) {
		xm_store(&ring->makes, xm_load(&ring->wanted));
		xm_store(&ring->lacks, 0);
	}
}

/* ---- making ---- */

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
static u32 count_of(const struct xmem_pool *pool, u64 class)
{
	const struct xl_owned *owned = &pool->owned;
	const struct xl_size *size = xl_size_for(owned, class);
	u64 there = size->bytes == class ? size->slots : 0, stride = stride_of(class);
	u64 count = most(there / 64, page_slots(pool, stride, there));
	u64 shared = shared_bytes(&owned->demand) / stride, huge = owned->demand.huge_page / stride;

	if (count < shared)
		count = most(count, least(shared, shared_slots(pool)));
	count = least(least(count, XMEM_GROUP_SLOTS), XL_FILE_BYTES / stride);
	if (count < huge && huge <= XMEM_GROUP_SLOTS && huge <= there / 8)
		count = huge;
	return most(1, count);
}

/* Has a look found a buffer that is near, or another thread made one? */
static bool is_there(const struct xl_owned *owned, u64 bytes)
{
	const struct xl_size *size = xl_size_for(owned, bytes);

	for (; size->larger && size->bytes <= xl_near(bytes); size = size->larger)
		if (xl_has_ready(size) || size->free.first)
			return true;
	return false;
}

/*
 * Evict what is in one file, so that it becomes idle: that with the oldest publications. Nothing
 * goes in vain: all files that could become idle have at least so many bytes. @demand: only those
 * made on demand. After a look. Returns whether a file is idle now.
 */
static bool evict_file(struct xmem_pool *pool, u64 lacks, bool demand)
{
	struct xl_mapping *file, *oldest = NULL;
	struct xm_waited waited;
	u64 bytes = 0;

	xm_look_at_waited(&pool->map, pool->me, &waited);
	xl_count_evictable(pool, &waited);
	for (file = pool->owned.files; file; file = file->next_file) {
		if (file->idle_ns || file->idle + file->evictable < file->slots ||
		    (demand && !file->demand))
			continue;
		bytes += file->bytes;
		if (!oldest || file->newest < oldest->newest)
			oldest = file;
	}
	if (!oldest || bytes < lacks)
		return false;
	xl_evict_file(pool, &waited, oldest);
	xl_cache_look(pool);
	return oldest->idle_ns;
}

static int too_large(const struct xl_demand *demand, u64 bytes)
{
	if (demand->limit == UNKNOWN)
		return xl_fail(ENOSPC, "acquire: a buffer of %llu bytes is more than any may have, "
			       "which is %llu", (unsigned long long)bytes,
			       (unsigned long long)XL_MAX_BYTES);
	if (bytes <= demand->limit)
		return xl_fail(ENOSPC, "acquire: a buffer of %llu bytes takes %llu, for sizes are "
			       "rounded up, and this writer may make %llu on demand "
			       "(demand_bytes); preallocate it", (unsigned long long)bytes,
			       (unsigned long long)file_bytes(xl_class(bytes), 1),
			       (unsigned long long)demand->limit);
	return xl_fail(ENOSPC, "acquire: a buffer of %llu bytes is more than this writer may make "
		       "on demand, which is %llu bytes in all (demand_bytes); preallocate it",
		       (unsigned long long)bytes, (unsigned long long)demand->limit);
}

/* Make room for a file of @need bytes: what is to go is put into *list. Under owned.lock. */
static int make_room(struct xmem_pool *pool, u64 need, bool evict, struct xl_mapping **list)
{
	struct xl_demand *demand = &pool->owned.demand;
	u64 keep;

	while (evict && demand->used + need > demand->limit &&
	       evict_file(pool, demand->used + need - demand->limit, true))
		;
	if (demand->used + need > demand->limit) {
		demand->no_slots = false;	/* bytes are what is lacking */
		demand->failed = 0;
		say(pool, need);
		return -EAGAIN;
	}
	say(pool, need);
	if (demand->peak < demand->used + need)
		demand->peak = demand->used + need;
	keep = demand->limit - demand->used - need;
	if (keep > xl_cache_limit(demand))
		keep = xl_cache_limit(demand);
	*list = xl_cache_shrink(pool, keep, true);
	return 0;
}

/* Is that what an idle file's end may mend? */
static bool is_scarce(int err)
{
	return err == -ENOMEM || err == -EDQUOT || err == -ENOSPC || err == -EMFILE ||
	       err == -ENFILE;
}

/* Evict publications until the slots of one that was attached, or of a whole file, come free. */
static bool evict_for_slots(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;
	bool any;

	xl_lock(&owned->lock);
	xm_look_at_waited(&pool->map, pool->me, &waited);
	any = owned->once && xl_evict(pool, owned->once, &waited);
	if (!any) {
		xl_cache_look(pool);
		any = evict_file(pool, 0, false);
	}
	xl_unlock(&owned->lock);
	return any;
}

/* Has anybody slots, or another client a group of them, so that waiting may help? */
static bool are_slots_in_use(const struct xmem_pool *pool)
{
	u32 s;

	for (s = 0; s < pool->map.slots; s++) {
		const struct xmem_slot_row *row = xm_slot_row(&pool->map, s);
		u32 group = xm_load(&row->group_owner);

		if (xm_load(&row->owner) != XMEM_OWNER_NONE || (group && group != pool->me + 1))
			return true;
	}
	return false;
}

/*
 * Does this client itself keep an ended owner's group, so that this writer gets no slot of it? One
 * slot is enough if the group comes free only as a whole. If the group is left, or may be once its
 * ring is over, the client keeps it only by holding all of its slots.
 */
static bool keeps_group(const struct xmem_pool *pool, u32 group)
{
	const struct xm_map *map = &pool->map;
	u32 slot = group * XMEM_GROUP_SLOTS, end = slot + XMEM_GROUP_SLOTS, kept = 0, held = 0;
	bool left = xm_load(&xm_slot_row(map, slot)->group_owner) == XMEM_OWNER_LEFT + 1;

	for (; slot < end; slot++) {
		bool keeps = xl_keeps(map, pool->me, slot);

		kept += keeps;
		held += keeps && xl_holds(map, pool->me, slot);
		left |= xm_load(&xm_slot_row(map, slot)->tenant) < map->clients;
	}
	return left && kept == held && xm_is_counted(map, pool->me) ?
		held == XMEM_GROUP_SLOTS : kept;
}

/*
 * Is each group another writer's until it ends, or an ended writer's and kept by this client?
 * Then this writer does not wait for one: mostly that would be for ever. Groups of ended writers
 * that other clients keep come free when those let go.
 */
static bool waits_in_vain(const struct xmem_pool *pool)
{
	u32 g;

	for (g = 0; g < pool->map.groups; g++) {
		u64 slot = g * XMEM_GROUP_SLOTS;
		u32 whose = xm_load(&xm_slot_row(&pool->map, slot)->group_owner);

		if (!whose || whose == pool->me + 1 ||
		    (whose > pool->map.clients && !keeps_group(pool, g)))
			return false;
	}
	return true;
}

/* As xl_make_slots, but no file is made that would get no slots: that takes long. */
static int make_slots(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	if (!xm_has_slots(&pool->map, pool->me, buffers->count))
		return xl_fail(ENOSPC, "acquire: the pool has no slots left for %u buffers; open "
			       "it with more", buffers->count);
	return xl_make_slots(pool, buffers);
}

/*
 * Just after the end of a client the rows still say that it has its groups. But before the host
 * refuses an attach for want of slots it waits for ends that are under way. So a file of one page
 * asks it: one that is as long as the buffer may take long to make, in vain. Its slot goes back,
 * and the group that it has brought stays this writer's.
 */
static bool host_finds_slots(struct xmem_pool *pool, u64 answer_by)
{
	struct xl_mapping mapping = { .slots = 1 };
	struct xmem_attach_request attach = {
		.size = sizeof(attach), .count = 1, .stride = PAGE, .length = PAGE,
		.fd = xl_payload_memfd.make(&mapping, PAGE),
	};
	struct xmem_slot_request detach = { .size = sizeof(detach) };
	int err;

	if (attach.fd < 0)
		return false;
	err = xl_request_until(pool, XMEM_IOC_ATTACH, &attach, answer_by);
	munmap(mapping.base, mapping.bytes);
	xl_file_close(attach.fd);
	if (err)
		return false;
	detach.slot = attach.slot[0];
	xl_post(pool, XMEM_IOC_DETACH, &detach);
	xl_settle_posts(pool);
	return true;
}

/*
 * It is choose_file's, or if that cannot be made, the smallest one. 0 or -errno, noted: -ENOSPC
 * if no slot was to be had, and *ret_used if any were in use before or after the last attempt:
 * between the two the last of them may have come free.
 */
static int make_file(struct xmem_pool *pool, struct xl_buffers *buffers, bool evict, u64 *need,
		     bool *ret_used)
{
	int err = make_slots(pool, buffers);

	if (!is_scarce(err))
		return err;
	if (buffers->count > 1) {
		buffers->count = 1;
		buffers->ordinary = true;
		*need = file_bytes(buffers->bytes, 1);
	}
	*ret_used = are_slots_in_use(pool);
	do {
		xl_attached_sweep(pool);
		xl_cache_drop_idle(pool, false);
		err = make_slots(pool, buffers);
	} while (err == -ENOSPC && evict && evict_for_slots(pool));
	*ret_used = *ret_used || are_slots_in_use(pool);
	return err;
}

/*
 * So much has been made; 0: what could not be made is nothing to poll for, unless slots that are
 * in use are lacking. Returns whether that is so.
 */
static bool say_made(struct xmem_pool *pool, u64 made, int err, bool used)
{
	struct xl_owned *owned = &pool->owned;
	bool no_slots = err == -ENOSPC && used;

	xl_lock(&owned->lock);
	owned->demand.used += made;
	if (err != -ETIMEDOUT) {	/* then it is not known */
		owned->demand.no_slots = no_slots;
		owned->demand.failed = no_slots ? 0 : err;
	}
	say(pool, 0);
	if (!made)
		xm_store(&owned->words.ring->makes, 0);
	xl_unlock(&owned->lock);
	return no_slots;
}

/*
 * Choose the file for buffers of this size: how many it has, and which pages, within the limit.
 * Returns its bytes. Under owned.lock.
 */
static u64 choose_file(const struct xmem_pool *pool, struct xl_buffers *buffers)
{
	const struct xl_demand *demand = &pool->owned.demand;
	u64 bytes, whole;

	buffers->count = count_of(pool, buffers->bytes);
	if (demand->used + file_bytes(buffers->bytes, buffers->count) > demand->limit)
		buffers->count = 1;
	bytes = file_bytes(buffers->bytes, buffers->count);
	whole = huge_file_bytes(demand, bytes);
	buffers->ordinary = !whole || demand->used + whole > demand->limit;
	return buffers->ordinary ? bytes : whole;
}

/* Under pool->slow. */
static int make(struct xmem_pool *pool, u64 bytes, bool evict, u64 answer_by)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_demand *demand = &owned->demand;
	struct xl_buffers buffers = {
		.bytes = xl_class(bytes), .stride = stride_of(xl_class(bytes)),
		.flags = demand->memory, .demand = true, .answer_by = answer_by,
	};
	u64 limit = demand->limit == UNKNOWN ? default_limit() : demand->limit;
	struct xl_mapping *list = NULL;
	bool used = false;
	u64 need;
	int err;

	xl_lock(&owned->lock);
	demand->limit = limit;
	if (file_bytes(buffers.bytes, 1) > limit) {
		xl_unlock(&owned->lock);
		return too_large(demand, bytes);
	}
	xl_cache_look(pool);
	if (is_there(owned, bytes)) {
		xl_unlock(&owned->lock);
		return 0;
	}
	need = choose_file(pool, &buffers);
	err = make_room(pool, need, evict, &list);
	xl_unlock(&owned->lock);
	xl_cache_drop(pool, list);
	if (err)
		return err;
	err = make_file(pool, &buffers, evict, &need, &used);
	if (err == -ENOSPC && waits_in_vain(pool) && host_finds_slots(pool, answer_by))
		err = make_slots(pool, &buffers);
	if (!say_made(pool, err ? 0 : need, err, used))
		return err;
	return waits_in_vain(pool) ? xl_fail_no_slots(pool) : -EAGAIN;
}

int xl_demand_lack(struct xmem_pool *pool, u64 bytes)
{
	u64 need = bytes > XL_MAX_BYTES ? ~0ULL : file_bytes(xl_class(bytes), 1);

	if (need > pool->owned.demand.limit || need > XL_MAX_BYTES)
		return too_large(&pool->owned.demand, bytes);
	xl_cache_look(pool);
	say(pool, need);
	return -EAGAIN;
}

int xl_demand_make(struct xmem_pool *pool, u64 bytes, bool evict, u64 answer_by)
{
	int err, cancel;

	if (bytes > XL_MAX_BYTES)
		return too_large(&pool->owned.demand, bytes);
	xl_unlock(&pool->owned.lock);
	/* A thread that is cancelled here would keep what it has made, and the turn. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = xl_slow_begin(pool, answer_by);
	if (!err) {
		err = make(pool, bytes, evict, answer_by);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	xl_lock(&pool->owned.lock);
	return err;
}
