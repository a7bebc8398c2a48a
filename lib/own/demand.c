// SPDX-License-Identifier: MIT
/*
 * Making buffers on demand: eviction and limits before a file is made, and what to do if that
 * fails. sizes.c says which sizes buffers have and how many share a file; make.c makes the file.
 */
#include <sys/mman.h>

#include "lib/base/files.h"
#include "lib/cuda/memory.h"
#include "lib/hold/attach.h"
#include "lib/host/pages.h"
#include "lib/host/request.h"
#include "lib/host/taken.h"
#include "lib/own/demand.h"
#include "lib/own/holders.h"
#include "lib/payload/payload.h"

#define PAGE		xl_page_bytes()
#define FOR_CPU		(XMEM_MEMORY_HUGE | XMEM_MEMORY_SEALED)

/* ---- limits ---- */

void xl_demand_init(struct xmem_pool *pool, const struct xmem_pool_options *options)
{
	u64 option = pool->role == XMEM_ROLE_READER ? XMEM_NO_DEMAND : options->demand_bytes;
	struct xl_demand *demand = &pool->owned.cpu.demand;

	*demand = (struct xl_demand){
		.on = option != XMEM_NO_DEMAND, .by_default = !option, .option = option,
		.limit = option ? option : XL_UNKNOWN_LIMIT,
		.memory = options->memory,
		.huge_page = options->memory & XMEM_MEMORY_HUGE ? xl_huge_page_bytes() : 0,
		.cache_bytes = options->cache_bytes,
		.cache_ns = options->cache_ns ? (u64)options->cache_ns : XL_CACHE_NS,
	};
	pool->owned.on_demand = demand->on;
}

/* By default the limit is a quarter of the memory that is left. 0 or -errno, noted. */
static int default_limit(struct xl_gpu *gpu, u64 *ret)
{
	struct xl_room room;
	int err = 0;

	if (gpu)
		err = xl_memory_free_bytes(gpu, &room.left);
	else
		xl_room_find("/proc", "/sys/fs/cgroup", &room);
	if (!err)
		*ret = room.left == ~0ULL ? XL_UNKNOWN_LIMIT - 1 : room.left / 4;
	return err;
}

/*
 * The limit of a place is found when the writer makes its first buffer there on demand. Under no
 * lock, because the driver is asked.
 */
static int find_limit(struct xmem_pool *pool, struct xl_chain *chain)
{
	struct xl_owned *owned = &pool->owned;
	bool known;
	u64 limit;
	int err;

	xl_lock(&owned->lock);
	known = chain->demand.limit != XL_UNKNOWN_LIMIT;
	xl_unlock(&owned->lock);
	err = known ? 0 : default_limit(chain->gpu, &limit);
	if (known || err)
		return err;
	xl_lock(&owned->lock);
	if (chain->demand.limit == XL_UNKNOWN_LIMIT)
		chain->demand.limit = limit;
	xl_unlock(&owned->lock);
	return 0;
}

/* ---- making ---- */

/*
 * Is there a buffer that is near to @bytes? The refresh may have found one, or another thread may
 * have made one.
 */
static bool is_there(const struct xl_chain *chain, u64 bytes)
{
	const struct xl_size *size = xl_size_in(chain, bytes);

	for (; size->larger && size->bytes <= xl_near(bytes); size = size->larger)
		if (xl_has_ready(size) || size->free.first)
			return true;
	return false;
}

/*
 * Evict all publications in one file, so that the file becomes idle: the file with the oldest
 * publications. Nothing is evicted unless all files that could become idle have at least @lacks
 * bytes together. @chain: only files of this place that were made on demand; NULL: all files. The
 * cache must be fresh (demand.h).
 * Returns whether a file is idle now.
 */
static bool evict_file(struct xmem_pool *pool, u64 lacks, const struct xl_chain *chain)
{
	struct xl_mapping *file, *oldest = NULL;
	struct xm_waited waited;
	u64 bytes = 0;

	xm_read_waited(&pool->map, pool->me, &waited);
	xl_count_evictable(pool, &waited);
	for (file = pool->owned.files; file; file = file->next_file) {
		if (file->idle_ns || file->idle + file->evictable < file->slots ||
		    (chain && (!file->demand || file->chain != chain)))
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

static int too_large(const struct xl_chain *chain, u64 bytes)
{
	const struct xl_demand *demand = &chain->demand;

	if (demand->limit == XL_UNKNOWN_LIMIT)
		return xl_fail(ENOSPC, "a buffer of %llu bytes is larger than any may be, "
			       "which is %llu", (unsigned long long)bytes,
			       (unsigned long long)XL_MAX_BYTES);
	if (bytes <= demand->limit)
		return xl_fail(ENOSPC, "a buffer of %llu bytes takes %llu, because sizes "
			       "are rounded up, and this writer may make %llu on demand "
			       "(demand_bytes); preallocate it", (unsigned long long)bytes,
			       (unsigned long long)xl_file_bytes(chain, xl_class(bytes), 1),
			       (unsigned long long)demand->limit);
	return xl_fail(ENOSPC, "a buffer of %llu bytes is more than this writer may make "
		       "on demand, which is %llu bytes in all (demand_bytes); preallocate it",
		       (unsigned long long)bytes, (unsigned long long)demand->limit);
}

/*
 * Make room for a file of @need bytes. The files that must go for it are put into *list. Under
 * owned.lock.
 */
static int make_room(struct xmem_pool *pool, struct xl_chain *chain, u64 need, bool evict,
		     struct xl_mapping **list)
{
	struct xl_demand *demand = &chain->demand;
	u64 keep;

	while (evict && demand->used + need > demand->limit &&
	       evict_file(pool, demand->used + need - demand->limit, chain))
		;
	if (demand->used + need > demand->limit) {
		demand->no_slots = false;	/* bytes are lacking, not slots */
		demand->failed = 0;
		return -EAGAIN;
	}
	if (demand->peak < demand->used + need)
		demand->peak = demand->used + need;
	keep = demand->limit - demand->used - need;
	if (keep > xl_cache_limit(demand))
		keep = xl_cache_limit(demand);
	*list = xl_cache_shrink(pool, chain, keep, true);
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
		any = evict_file(pool, 0, NULL);
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
static int make_slots(struct xmem_pool *pool, struct xl_buffers *buffers)
{
	if (!xm_has_slots(&pool->map, pool->me, buffers->count))
		return xl_fail(ENOSPC, "the pool has no slots left for %u buffers; open "
			       "it with more", buffers->count);
	return buffers->gpu ? xl_make_on_gpu(pool, buffers, buffers->chain->demand.memory) :
			      xl_make_slots(pool, buffers);
}

/*
 * Give back all idle files, for slots or memory. Under pool->slow, but with @gpu without it; then
 * the driver can free the memory.
 */
static void drop_idle(struct xmem_pool *pool, bool gpu, u64 answer_by)
{
	if (gpu && xl_slow_begin(pool, answer_by))
		return;
	xl_cache_drop_idle(pool, NULL, false);
	if (!gpu)
		return;
	xl_turn_end(&pool->slow);
	xl_cuda_reap(pool, 0);
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
	int err;

	if (attach.fd < 0)
		return false;
	err = xl_request_until(pool, XMEM_IOC_ATTACH, &attach, answer_by);
	munmap(mapping.base, mapping.bytes);
	xl_file_close(attach.fd);
	if (err)
		return false;
	xl_post_slot(pool, XMEM_OP_DETACH, attach.slot[0]);
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
		*need = xl_file_bytes(buffers->chain, buffers->bytes, 1);
	}
	*ret_used = are_slots_in_use(pool);
	do {
		xl_attached_sweep(pool);
		drop_idle(pool, buffers->gpu, buffers->answer_by);
		err = make_slots(pool, buffers);
	} while (err == -ENOSPC && evict && evict_for_slots(pool));
	*ret_used = *ret_used || are_slots_in_use(pool);
	return err;
}

/*
 * Record that a file of @made bytes was made, or with 0 that making it failed with @err. Returns
 * whether slots are lacking, and @used says that some are in use.
 */
static bool record_made(struct xmem_pool *pool, struct xl_chain *chain, u64 planned, u64 made,
			int err, bool used)
{
	struct xl_demand *demand = &chain->demand;
	struct xl_owned *owned = &pool->owned;
	bool no_slots = err == -ENOSPC && used;

	xl_lock(&owned->lock);
	demand->making -= planned;
	demand->used += made - planned;
	if (err != -ETIMEDOUT) {	/* after a timeout the cause is unknown */
		demand->no_slots = no_slots;
		demand->failed = no_slots ? 0 : err;
	}
	xl_unlock(&owned->lock);
	return no_slots;
}

/*
 * Choose the file for buffers of this size: how many it has, and which pages, within the limit.
 * Returns its bytes. Under owned.lock.
 */
static u64 choose_file(const struct xmem_pool *pool, struct xl_buffers *buffers)
{
	const struct xl_chain *chain = buffers->chain;
	const struct xl_demand *demand = &chain->demand;
	u64 bytes, whole;

	buffers->count = xl_file_buffers(pool, chain, buffers->bytes);
	if (demand->used + xl_file_bytes(chain, buffers->bytes, buffers->count) > demand->limit)
		buffers->count = 1;
	bytes = xl_file_bytes(chain, buffers->bytes, buffers->count);
	whole = xl_huge_file_bytes(demand, bytes);
	buffers->ordinary = !whole || demand->used + whole > demand->limit;
	return buffers->ordinary ? bytes : whole;
}

/*
 * Decide which file is to be made, and drop idle files for it. *ret_need: its bytes; 0: there is a
 * buffer, so none is needed. Memory of a GPU is made when this thread has left the turn, so its
 * bytes count as used from now on. 0 or -errno, noted unless it is -EAGAIN. Under pool->slow.
 */
static int plan(struct xmem_pool *pool, struct xl_buffers *buffers, u64 bytes, bool evict,
		u64 *ret_need)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_demand *demand = &buffers->chain->demand;
	struct xl_mapping *list = NULL;
	int err;

	*ret_need = 0;
	xl_lock(&owned->lock);
	if (xl_file_bytes(buffers->chain, buffers->bytes, 1) > demand->limit) {
		xl_unlock(&owned->lock);
		return too_large(buffers->chain, bytes);
	}
	xl_cache_refresh(pool);
	if (is_there(buffers->chain, bytes)) {
		xl_unlock(&owned->lock);
		return 0;
	}
	*ret_need = choose_file(pool, buffers);
	err = make_room(pool, buffers->chain, *ret_need, evict, &list);
	if (!err && buffers->gpu) {
		demand->making += *ret_need;
		demand->used += *ret_need;
	}
	xl_unlock(&owned->lock);
	xl_cache_drop(pool, list);
	return err;
}

/* Make what plan has decided. Under pool->slow, but memory of a GPU without it. */
static int make(struct xmem_pool *pool, struct xl_buffers *buffers, u64 need, bool evict)
{
	u64 planned = buffers->gpu ? need : 0;
	bool used = false;
	int err = make_file(pool, buffers, evict, &need, &used);

	if (err == -ENOSPC && waits_in_vain(pool) && host_finds_slots(pool, buffers->answer_by))
		err = make_slots(pool, buffers);
	if (!record_made(pool, buffers->chain, planned, err ? 0 : need, err, used))
		return err;
	return waits_in_vain(pool) ? xl_fail_no_slots(pool) : -EAGAIN;
}

static int plan_and_make(struct xmem_pool *pool, struct xl_buffers *buffers, u64 bytes, bool evict)
{
	int err = xl_slow_begin(pool, buffers->answer_by);
	u64 need = 0;

	if (err)
		return err;
	err = plan(pool, buffers, bytes, evict, &need);
	if (!err && need && !buffers->gpu)
		err = make(pool, buffers, need, evict);
	xl_turn_end(&pool->slow);
	if (!err && need && buffers->gpu)
		err = make(pool, buffers, need, evict);
	return err;
}

int xl_demand_defer(const struct xl_chain *chain, u64 bytes)
{
	u64 need = bytes > XL_MAX_BYTES ? ~0ULL : xl_file_bytes(chain, xl_class(bytes), 1);

	if (need > chain->demand.limit || need > XL_MAX_BYTES)
		return too_large(chain, bytes);
	return -EAGAIN;
}

int xl_demand_make(struct xmem_pool *pool, struct xl_chain *chain, u64 bytes, bool evict,
		   u64 answer_by)
{
	struct xl_buffers buffers = {
		.place = chain->gpu ? &xl_place_gpu : &xl_place_cpu, .chain = chain,
		.gpu = chain->gpu, .demand = true, .answer_by = answer_by,
		.flags = chain->demand.memory & (chain->gpu ? XMEM_MEMORY_SEALED : FOR_CPU),
	};
	int err, cancel;

	if (bytes > XL_MAX_BYTES)
		return too_large(chain, bytes);
	buffers.bytes = xl_class(bytes);
	buffers.stride = xl_stride_of(chain, buffers.bytes);
	xl_unlock(&pool->owned.lock);
	/*
	 * A thread that is cancelled here would keep the turn, and leak the file that it has made.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = find_limit(pool, chain);
	if (!err)
		err = plan_and_make(pool, &buffers, bytes, evict);
	pthread_setcancelstate(cancel, NULL);
	xl_lock(&pool->owned.lock);
	return err;
}
