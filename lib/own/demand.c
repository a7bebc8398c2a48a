// SPDX-License-Identifier: MIT
/*
 * Making buffers on demand: eviction and limits before a file is made, and what to do if that
 * fails. sizes.c says which sizes buffers have and how many share a file; make.c makes the file.
 */
#include <sys/mman.h>

#include "lib/base/files.h"
#include "lib/hold/attach.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/host/taken.h"
#include "lib/own/demand.h"
#include "lib/own/holders.h"
#include "lib/payload/payload.h"

#define PAGE		xl_page_bytes()
#define UNKNOWN		(~0ULL)		/* the limit is computed at the first need */

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

/*
 * By default the limit is a quarter of the memory that is left when the writer makes its first
 * buffer on demand.
 */
static u64 default_limit(void)
{
	struct xl_room room;

	xl_room_find("/proc", "/sys/fs/cgroup", &room);
	return room.left == ~0ULL ? UNKNOWN - 1 : room.left / 4;
}

/* ---- making ---- */

/*
 * Is there a buffer that is near to @bytes? The refresh may have found one, or another thread may
 * have made one.
 */
static bool is_there(const struct xl_owned *owned, u64 bytes)
{
	const struct xl_size *size = xl_size_for(owned, bytes);

	for (; size->larger && size->bytes <= xl_near(bytes); size = size->larger)
		if (xl_has_ready(size) || size->free.first)
			return true;
	return false;
}

/*
 * Evict all publications in one file, so that the file becomes idle: the file with the oldest
 * publications. Nothing is evicted unless all files that could become idle have at least @lacks
 * bytes together. @demand: only files that were made on demand. The cache must be fresh (demand.h).
 * Returns whether a file is idle now.
 */
static bool evict_file(struct xmem_pool *pool, u64 lacks, bool demand)
{
	struct xl_mapping *file, *oldest = NULL;
	struct xm_waited waited;
	u64 bytes = 0;

	xm_read_waited(&pool->map, pool->me, &waited);
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
	xl_cache_refresh(pool);
	return oldest->idle_ns;
}

static int too_large(const struct xl_demand *demand, u64 bytes)
{
	if (demand->limit == UNKNOWN)
		return xl_fail(ENOSPC, "acquire: a buffer of %llu bytes is larger than any may be, "
			       "which is %llu", (unsigned long long)bytes,
			       (unsigned long long)XL_MAX_BYTES);
	if (bytes <= demand->limit)
		return xl_fail(ENOSPC, "acquire: a buffer of %llu bytes takes %llu, because sizes "
			       "are rounded up, and this writer may make %llu on demand "
			       "(demand_bytes); preallocate it", (unsigned long long)bytes,
			       (unsigned long long)xl_file_bytes(xl_class(bytes), 1),
			       (unsigned long long)demand->limit);
	return xl_fail(ENOSPC, "acquire: a buffer of %llu bytes is more than this writer may make "
		       "on demand, which is %llu bytes in all (demand_bytes); preallocate it",
		       (unsigned long long)bytes, (unsigned long long)demand->limit);
}

/*
 * Make room for a file of @need bytes. The files that must go for it are put into *list. Under
 * owned.lock.
 */
static int make_room(struct xmem_pool *pool, u64 need, bool evict, struct xl_mapping **list)
{
	struct xl_demand *demand = &pool->owned.demand;
	u64 keep;

	while (evict && demand->used + need > demand->limit &&
	       evict_file(pool, demand->used + need - demand->limit, true))
		;
	if (demand->used + need > demand->limit) {
		demand->no_slots = false;	/* bytes are lacking, not slots */
		demand->failed = 0;
		xl_lacks_update(pool, need);
		return -EAGAIN;
	}
	xl_lacks_update(pool, need);
	if (demand->peak < demand->used + need)
		demand->peak = demand->used + need;
	keep = demand->limit - demand->used - need;
	if (keep > xl_cache_limit(demand))
		keep = xl_cache_limit(demand);
	*list = xl_cache_shrink(pool, keep, true);
	return 0;
}

/* Is @err a shortage that dropping an idle file may end? */
static bool is_scarce(int err)
{
	return err == -ENOMEM || err == -EDQUOT || err == -ENOSPC || err == -EMFILE ||
	       err == -ENFILE;
}

/*
 * Evict publications until the slot of an attached file, or the slots of a whole file, come free.
 */
static bool evict_for_slots(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;
	bool any;

	xl_lock(&owned->lock);
	xm_read_waited(&pool->map, pool->me, &waited);
	any = owned->once && xl_evict(pool, owned->once, &waited);
	if (!any) {
		xl_cache_refresh(pool);
		any = evict_file(pool, 0, false);
	}
	xl_unlock(&owned->lock);
	return any;
}

/* Is any slot owned, or does another client have a group? Then waiting may help. */
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
 * Does this client itself keep an ended owner's group, so that this writer gets no slot of it? A
 * group that comes free only as a whole is kept by one slot. A group that its owner has left, or
 * that can be left once its ring has ended, is kept by this client only if the client holds all of
 * its slots.
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
 * Does each group belong to a living writer, or to an ended writer whose group this client keeps?
 * Then this writer does not wait for a group, because the wait would mostly last for ever. A group
 * of an ended writer that other clients keep comes free when they release it.
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

/*
 * Fail at once if no slots are left for the file, because making a file takes long. Otherwise as
 * xl_make_slots.
 */
static int make_slots(struct xmem_pool *pool, const struct xl_buffers *buffers)
{
	if (!xm_has_slots(&pool->map, pool->me, buffers->count))
		return xl_fail(ENOSPC, "acquire: the pool has no slots left for %u buffers; open "
			       "it with more", buffers->count);
	return xl_make_slots(pool, buffers);
}

/*
 * Ask the host for a slot by attaching a file of one page. Just after the end of a client, the rows
 * still say that the client has its groups; but before the host refuses an attach for want of
 * slots, it waits for the clients that are ending. The file is small because a file as long as the
 * buffer may take long to make, in vain. The slot is detached again, and the group that came with
 * it stays this writer's.
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
	xl_drain_posts(pool);
	return true;
}

/*
 * Make the file that choose_file has chosen; if that fails, make the smallest one. Returns 0 or
 * -errno, noted. -ENOSPC: the host had no slot; *ret_used then says whether any slot was in use
 * before or after the last attempt. Both times count, because the last used slot may have come free
 * in between.
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
		*need = xl_file_bytes(buffers->bytes, 1);
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
 * Record that a file of @made bytes was made, or with 0 that making it failed with @err. After a
 * failure a polling program waits for nothing, unless slots are lacking and @used says that some
 * are in use. Returns whether that is so.
 */
static bool record_made(struct xmem_pool *pool, u64 made, int err, bool used)
{
	struct xl_owned *owned = &pool->owned;
	bool no_slots = err == -ENOSPC && used;

	xl_lock(&owned->lock);
	owned->demand.used += made;
	if (err != -ETIMEDOUT) {	/* after a timeout the cause is unknown */
		owned->demand.no_slots = no_slots;
		owned->demand.failed = no_slots ? 0 : err;
	}
	xl_lacks_update(pool, 0);
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

	buffers->count = xl_file_buffers(pool, buffers->bytes);
	if (demand->used + xl_file_bytes(buffers->bytes, buffers->count) > demand->limit)
		buffers->count = 1;
	bytes = xl_file_bytes(buffers->bytes, buffers->count);
	whole = xl_huge_file_bytes(demand, bytes);
	buffers->ordinary = !whole || demand->used + whole > demand->limit;
	return buffers->ordinary ? bytes : whole;
}

/* Under pool->slow. */
static int make(struct xmem_pool *pool, u64 bytes, bool evict, u64 answer_by)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_demand *demand = &owned->demand;
	struct xl_buffers buffers = {
		.place = &xl_place_cpu, .chain = &pool->owned.cpu,
		.bytes = xl_class(bytes), .stride = xl_stride_of(xl_class(bytes)),
		.flags = demand->memory, .demand = true, .answer_by = answer_by,
	};
	u64 limit = demand->limit == UNKNOWN ? default_limit() : demand->limit;
	struct xl_mapping *list = NULL;
	bool used = false;
	u64 need;
	int err;

	xl_lock(&owned->lock);
	demand->limit = limit;
	if (xl_file_bytes(buffers.bytes, 1) > limit) {
		xl_unlock(&owned->lock);
		return too_large(demand, bytes);
	}
	xl_cache_refresh(pool);
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
	if (!record_made(pool, err ? 0 : need, err, used))
		return err;
	return waits_in_vain(pool) ? xl_fail_no_slots(pool) : -EAGAIN;
}

int xl_demand_defer(struct xmem_pool *pool, u64 bytes)
{
	u64 need = bytes > XL_MAX_BYTES ? ~0ULL : xl_file_bytes(xl_class(bytes), 1);

	if (need > pool->owned.demand.limit || need > XL_MAX_BYTES)
		return too_large(&pool->owned.demand, bytes);
	xl_cache_refresh(pool);
	xl_lacks_update(pool, need);
	return -EAGAIN;
}

int xl_demand_make(struct xmem_pool *pool, u64 bytes, bool evict, u64 answer_by)
{
	int err, cancel;

	if (bytes > XL_MAX_BYTES)
		return too_large(&pool->owned.demand, bytes);
	xl_unlock(&pool->owned.lock);
	/*
	 * A thread that is cancelled here would keep the turn, and leak the file that it has made.
	 */
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
