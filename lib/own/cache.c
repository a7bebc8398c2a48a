// SPDX-License-Identifier: MIT
/*
 * The cache of idle files: they stay for later acquires, within limits, and those that have been
 * idle longest are given back to the system. demand.h defines the terms; making files is in make.c
 * and demand.c.
 */
#include "lib/cuda/memory.h"
#include "lib/follow/wait.h"
#include "lib/gpu/order.h"
#include "lib/hold/attach.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/limbo.h"

#define LEAST_CACHE	(1ULL << 20)	/* by default; it keeps files of small buffers */

/* ---- refreshing ---- */

/*
 * Count a slot as idle, with two exceptions: the host may still change the word of a slot whose
 * renewal is open, and a stream of this process may have yet to write a slot.
 */
static void count_idle(const struct xmem_pool *pool, const struct xl_owned_slot *one)
{
	struct xl_mapping *file = one->file;

	if (one->renewing || !xl_order_is_idle(pool, one->own.slot))
		return;
	file->idle++;
	file->sum += xm_generation(xm_load(&one->own.word->state));
}

static void count_all_idle(const struct xmem_pool *pool)
{
	const struct xl_owned *owned = &pool->owned;
	const struct xl_owned_slot *one;
	const struct xl_size *size;
	u32 at;

	xl_each_size(owned, size) {
		for (one = size->free.first; one; one = one->next)
			count_idle(pool, one);
		for (at = size->ready; at != size->live; at++)
			count_idle(pool, xl_owned_slot(size->circle[at & size->mask]));
	}
}

/*
 * A file is still idle if it was idle at the last refresh and the sum of its generations has not
 * changed since.
 */
static void update_idle(struct xl_mapping *file, u64 sum_before, u64 now)
{
	if (file->idle != file->slots)
		file->idle_ns = 0;
	else if (!file->idle_ns || file->sum != sum_before)
		file->idle_ns = now;
}

u64 xl_cache_refresh(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_mapping *file;
	struct xl_chain *chain;
	u64 idle = 0, now = xl_now_ns();

	xl_collect_all(pool);
	for (file = owned->files; file; file = file->next_file) {
		file->sum_before = file->sum;
		file->sum = file->idle = 0;
	}
	count_all_idle(pool);
	for (chain = &owned->cpu; chain; chain = chain->next)
		chain->demand.used = chain->demand.making;
	for (file = owned->files; file; file = file->next_file) {
		update_idle(file, file->sum_before, now);
		idle += file->idle_ns ? file->bytes : 0;
		if (!file->demand || file->idle_ns)
			continue;
		file->chain->demand.used += file->bytes;
	}
	for (chain = &owned->cpu; chain; chain = chain->next)
		if (chain->demand.peak < chain->demand.used)
			chain->demand.peak = chain->demand.used;
	__atomic_store_n(&owned->looked_ns, now, __ATOMIC_RELAXED);
	return idle;
}

u64 xl_cache_limit(const struct xl_demand *demand)
{
	if (demand->cache_bytes)
		return demand->cache_bytes;
	return demand->peak / 8 > LEAST_CACHE ? demand->peak / 8 : LEAST_CACHE;
}

/* ---- giving back ---- */

/* @chain: only files of this place; NULL: of all. */
static bool may_go(const struct xl_mapping *file, const struct xl_chain *chain, bool demand)
{
	return file->idle_ns && !file->going && (file->demand || !demand) &&
	       (!chain || file->chain == chain);
}

/*
 * Mark idle files, those first that have been idle longest, until the files that stay have @keep
 * bytes or fewer.
 */
static bool mark(const struct xl_owned *owned, const struct xl_chain *chain, u64 keep, bool demand)
{
	struct xl_mapping *file, *oldest;
	bool any = false;
	u64 idle = 0;

	for (file = owned->files; file; file = file->next_file)
		idle += may_go(file, chain, demand) ? file->bytes : 0;
	while (idle > keep) {
		oldest = NULL;
		for (file = owned->files; file; file = file->next_file)
			if (may_go(file, chain, demand) &&
			    (!oldest || file->idle_ns <= oldest->idle_ns))
				oldest = file;
		oldest->going = any = true;
		oldest->slot = ~0u;
		idle -= oldest->bytes;
	}
	return any;
}

/* The slot is in no list any more. From now on this client does not own it. */
static void let_go(struct xl_owned *owned, struct xl_owned_slot *one)
{
	if (one->own.slot < one->file->slot)
		one->file->slot = one->own.slot;
	one->size->slots--;
	one->size = NULL;
	one->file = NULL;
	owned->slots--;
}

static void take_slots(struct xmem_pool *pool, struct xl_size *size)
{
	struct xl_owned_slot **link = &size->free.first, *one;
	u32 at, to = size->live;

	while ((one = *link)) {
		if (one->file->going)
			let_go(&pool->owned, xl_queue_take(&size->free, link));
		else
			link = &one->next;
	}
	for (at = size->live; at != size->ready;) {
		one = xl_owned_slot(size->circle[--at & size->mask]);
		if (one->file->going) {
			xm_give_up(&pool->map, one->own.slot);
			let_go(&pool->owned, one);
		} else {
			size->circle[--to & size->mask] = &one->own;
		}
	}
	size->ready = to;
}

static struct xl_mapping *take_files(struct xl_owned *owned)
{
	struct xl_mapping **link = &owned->files, *file, *list = NULL;

	while ((file = *link)) {
		if (!file->going) {
			link = &file->next_file;
			continue;
		}
		*link = file->next_file;
		file->next_file = list;
		list = file;
		file->chain->demand.bytes -= file->demand ? file->bytes : 0;
	}
	return list;
}

struct xl_mapping *xl_cache_shrink(struct xmem_pool *pool, const struct xl_chain *chain, u64 keep,
				   bool demand)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_size *size;

	if (!mark(owned, chain, keep, demand))
		return NULL;
	xl_each_size(owned, size)
		take_slots(pool, size);
	xl_owned_tidy(owned);
	return take_files(owned);
}

void xl_demand_detached(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_chain *chain;
	bool any = false;

	xl_lock(&owned->lock);
	for (chain = &owned->cpu; chain; chain = chain->next) {
		any |= chain->demand.no_slots;
		chain->demand.no_slots = false;
	}
	if (any)
		xl_owned_changed(owned);
	xl_unlock(&owned->lock);
}

u64 xl_cache_drop(struct xmem_pool *pool, struct xl_mapping *list)
{
	struct xl_mapping *file;
	u64 bytes = 0;

	while ((file = list)) {
		list = file->next_file;
		bytes += file->bytes;
		XM_STEP(XM_STEP_FILE_TAKEN);
		xl_post_slot(pool, XMEM_OP_DETACH_FILE, file->slot);
		XM_STEP(XM_STEP_FILE_DETACHED);
		xl_mapping_remove(pool, file);
	}
	if (bytes)
		xl_demand_detached(pool);
	return bytes;
}

u64 xl_cache_drop_idle(struct xmem_pool *pool, const struct xl_chain *chain, bool demand)
{
	struct xl_mapping *list;
	u64 bytes;

	xl_lock(&pool->owned.lock);
	xl_cache_refresh(pool);
	list = xl_cache_shrink(pool, chain, 0, demand);
	xl_unlock(&pool->owned.lock);
	bytes = xl_cache_drop(pool, list);
	xl_drain_posts(pool);
	return bytes;
}

/* ---- expiry ---- */

/*
 * Bytes of the files that have not been idle for too long. To shrink the cache to that number drops
 * the others, because the oldest files go first.
 */
static u64 young_bytes(const struct xl_owned *owned, u64 now)
{
	const struct xl_mapping *file;
	u64 young = 0;

	for (file = owned->files; file; file = file->next_file)
		if (may_go(file, NULL, true) && now - file->idle_ns < file->chain->demand.cache_ns)
			young += file->bytes;
	return young;
}

static bool is_due(const struct xl_owned *owned)
{
	u64 most = owned->cpu.demand.cache_ns;

	return most != (u64)XMEM_FOREVER &&
	       xl_now_ns() - __atomic_load_n(&owned->looked_ns, __ATOMIC_RELAXED) > most / 4;
}

void xl_cache_expire_slow(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_mapping *list;
	int cancel;

	/*
	 * If another thread has the turn, it makes or gives back files, and so refreshes the cache
	 * itself.
	 */
	if (!is_due(owned))
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	xl_catch_up(pool);
	if (xl_turn_try(&pool->slow)) {
		xl_lock(&owned->lock);
		xl_cache_refresh(pool);
		list = xl_cache_shrink(pool, NULL, young_bytes(owned, xl_now_ns()), true);
		xl_unlock(&owned->lock);
		xl_cache_drop(pool, list);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
}
