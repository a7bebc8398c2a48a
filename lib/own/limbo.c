// SPDX-License-Identifier: MIT
/*
 * Limbo: the buffers that a writer wants back and other clients hold, and those that ended owners
 * have left. This file records since when, and warns the program if there are too many;
 * core/limbo.h counts them. xmem_collect is here too, because it collects in limbo on request.
 */
#include "core/limbo.h"
#include "lib/base/structs.h"
#include "lib/base/uncancelled.h"
#include "lib/cuda/memory.h"
#include "lib/follow/wait.h"
#include "lib/hold/attach.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/limbo.h"
#include "lib/payload/view.h"

/* ---- since when ---- */

void xl_limbo_record(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	u64 now = xl_now_ns(), first = 0;
	struct xl_owned_slot *one;
	struct xl_size *size;

	xl_each_size(owned, size) {
		for (one = size->busy.first; one; one = one->next) {
			if (!one->busy_ns)
				one->busy_ns = now;
			if (!first || one->busy_ns < first)
				first = one->busy_ns;
		}
	}
	xm_store(&owned->words.ring->limbo_ns, first);
}

static u64 age_of(u64 since_ns)
{
	u64 now = xl_now_ns();

	/* The owner or the host may have another clock, in a time namespace. */
	return since_ns && since_ns < now ? now - since_ns : 0;
}

void xl_limbo_count(struct xmem_pool *pool, struct xmem_limbo *ret)
{
	struct xm_limbo found;

	xm_limbo_count(&pool->map, &found);
	*ret = (struct xmem_limbo){
		.size = sizeof(*ret),
		.ended = found.ended, .overdue = found.overdue,
		.bytes_ended = found.ended_bytes, .bytes_overdue = found.overdue_bytes,
		.ended_age_ns = age_of(found.ended_ns),
		.overdue_age_ns = age_of(found.overdue_ns),
	};
}

/* ---- the warning ---- */

/* Is the program to be warned now? It is warned once each time that limbo passes a limit. */
static bool should_warn(struct xmem_pool *pool, const struct xmem_limbo *limbo, struct xl_hook *ret)
{
	struct xl_hook *hook = &pool->hook;
	bool above, news;

	xl_lock(&pool->hook.lock);
	above = limbo->bytes_ended + limbo->bytes_overdue > hook->bytes ||
		limbo->ended + limbo->overdue > hook->count;
	news = hook->call && above && !hook->above;
	hook->above = above;
	*ret = *hook;
	xl_unlock(&pool->hook.lock);
	return news;
}

void xl_limbo_notify_slow(struct xmem_pool *pool)
{
	struct xmem_limbo limbo;
	struct xl_hook hook;

	xl_limbo_count(pool, &limbo);
	if (should_warn(pool, &limbo, &hook)) {
		struct xl_error error;
		/*
		 * This call must return: it is counted (base/calls.h), so xmem_pool_close waits for
		 * it.
		 */
		XL_UNCANCELLED;
		XL_CALL_PROGRAM;

		xl_error_save(&error);
		hook.call(pool, &limbo, hook.user);
		xl_error_restore(&error);
	}
}

XMEM_API int xmem_limbo_hook(struct xmem_pool *pool, uint64_t bytes, uint32_t count,
			     xmem_limbo_function *call, void *user)
{
	XL_CALL;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	xl_lock(&pool->hook.lock);
	pool->hook.bytes = bytes;
	pool->hook.count = count;
	pool->hook.above = false;
	pool->hook.user = user;
	__atomic_store_n(&pool->hook.call, call, __ATOMIC_RELAXED);
	xl_unlock(&pool->hook.lock);
	return 0;
}

/* ---- collecting ---- */

/*
 * Ask the host to collect the slots of ended owners that no client holds. Mostly there are none,
 * because the last holder asks for it.
 */
static void tell_host(struct xmem_pool *pool)
{
	const struct xm_map *map = &pool->map;
	u32 s;

	for (s = 0; s < map->slots; s++) {
		u64 bit = 1ULL << s % XMEM_GROUP_SLOTS;

		if (xm_load(&xm_slot_row(map, s)->owner) != XMEM_OWNER_HOST ||
		    xm_group_used(map, s / XMEM_GROUP_SLOTS, bit, 0, NULL) ||
		    xm_claims_of(map, s))
			continue;
		xl_post_slot(pool, XMEM_OP_COLLECT, s);
	}
}

/*
 * Collect, and take the idle files beyond @keep bytes out of the lists. Returns the number of slots
 * that were collected. @demand: only files that were made on demand. With *ret_files under
 * pool->slow.
 */
static u32 find(struct xmem_pool *pool, u64 keep, bool demand, struct xl_mapping **ret_files)
{
	struct xl_owned *owned = &pool->owned;
	u32 found;

	xl_lock(&owned->lock);
	found = xl_collect_all(pool);
	if (keep != XMEM_KEEP_ALL) {
		xl_cache_refresh(pool);
		*ret_files = xl_cache_shrink(pool, NULL, keep, demand);
	}
	xl_limbo_record(pool);
	xl_unlock(&owned->lock);
	return found;
}

/* Collect, and give back the idle files beyond @keep bytes. 0 or -errno, noted. */
static int trim(struct xmem_pool *pool, u64 keep, bool demand, u32 *ret_found, u64 *ret_bytes)
{
	struct xl_mapping *files = NULL;
	int err, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	xl_catch_up(pool);
	err = xl_slow_begin(pool, ~0ULL);
	if (!err) {
		*ret_found = find(pool, keep, demand, &files);
		*ret_bytes = xl_cache_drop(pool, files);
		if (*ret_bytes)
			xl_drain_posts(pool);
		xl_turn_end(&pool->slow);
	}
	pthread_setcancelstate(cancel, NULL);
	return err;
}

/* @demand: preallocated buffers stay. Returns how many were found, or -errno, noted. */
static int collect(struct xmem_pool *pool, u64 keep, bool demand, u64 *ret_bytes)
{
	u64 bytes = 0, stuck = xl_memory_stuck();
	bool writes, trims;
	u32 found = 0;
	int err;

	writes = xm_load(&pool->role) == XMEM_ROLE_WRITER;
	trims = writes && keep != XMEM_KEEP_ALL;
	err = trims ? trim(pool, keep, demand, &found, &bytes) : 0;
	if (err)
		return err;
	if (writes && !trims)
		found = find(pool, keep, demand, NULL);
	if (found || trims) {
		xl_owned_wake(pool);	/* other threads may wait for a slot, or for room */
	}
	if (writes)
		xl_attached_drain(pool);
	tell_host(pool);
	xl_views_drop_idle(pool);
	xl_payload_reap(pool, XL_HOST_NS);
	xl_limbo_notify(pool);
	/*
	 * Memory that a failing driver has kept is not given back; memory that it had kept before
	 * may have been given back now.
	 */
	bytes += trims ? stuck : 0;
	stuck = xl_memory_stuck();
	*ret_bytes = stuck < bytes ? bytes - stuck : 0;
	return found;
}

/* The sum over all pools of the process. */
struct collected {
	u64 keep, bytes;
	int found;		/* or -errno, noted: of a pool of which nothing was given back */
};

static void collect_one(struct xmem_pool *pool, void *user)
{
	struct collected *sum = user;
	u64 bytes = 0;
	int found = pool->gpus.buries ? 0 : collect(pool, sum->keep, true, &bytes);

	sum->bytes += bytes;
	if (found < 0 || sum->found < 0)
		sum->found = sum->found < 0 ? sum->found : found;
	else
		sum->found += found;
}

static int collect_all(u64 keep, u64 *ret_bytes)
{
	struct collected sum = { .keep = keep };
	XL_UNCANCELLED;

	xl_each_pool(collect_one, &sum);
	*ret_bytes = sum.bytes;
	return sum.found;
}

XMEM_API int xmem_collect(struct xmem_pool *pool, uint64_t keep, uint64_t *ret_bytes)
{
	XL_CALL;
	u64 bytes = 0;
	int found;
	XL_USE(pool);

	if (!pool)
		found = collect_all(keep, &bytes);
	else if (xl_is_open(pool))
		found = collect(pool, keep, false, &bytes);
	else
		return xl_fail_not_alive(pool);
	if (ret_bytes && found >= 0)
		*ret_bytes = bytes;
	return found;
}
