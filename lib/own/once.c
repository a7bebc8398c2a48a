// SPDX-License-Identifier: MIT
/*
 * Slots for one content: those of files and of GPU memory that a program has attached. Such a slot
 * is in a list of its own (owned->once), which no acquire reads, and is detached when no client
 * uses it any more. Attaching is in hold/attach.c, and adding to the list in owned.c.
 */
#include "lib/gpu/order.h"
#include "lib/hold/attach.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/demand.h"
#include "lib/own/owned.h"
#include "lib/payload/payload.h"

/*
 * Make the first READY slot FREE and take it out of the list; the caller detaches it. Under
 * owned->lock.
 */
static u16 take_out(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xl_owned_slot *one = xl_ready(owned->once);

	owned->once->ready++;
	xm_give_up(&pool->map, one->own.slot);
	xl_once_remove(pool, one);
	return one->own.slot;
}

/*
 * Unmap the file of an unused slot. The slot's row names that file; pool->mappings.place may still
 * name one that was in the slot before. A client that has been ended reads zeros, as if no slot
 * were in use, so it unmaps nothing: its program may still use the mapping.
 */
static void unmap(struct xmem_pool *pool, u16 slot)
{
	u64 payload = xm_load(&xm_slot_row(&pool->map, slot)->payload);
	struct xl_mapping *mapping;

	xl_lock(&pool->mappings.lock);
	mapping = xl_mapping_find(&pool->mappings, payload);
	xl_unlock(&pool->mappings.lock);
	if (mapping && !mapping->memory && !xl_client_ended(pool))
		xl_mapping_remove(pool, mapping);
}

void xl_once_detach(struct xmem_pool *pool, const u16 *slot, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		unmap(pool, slot[i]);
		xl_post_slot(pool, XMEM_OP_DETACH, slot[i]);
		__atomic_store_n(&pool->owned.detaching, true, __ATOMIC_RELEASE);
	}
}

void xl_attached_drain(struct xmem_pool *pool)
{
	xl_attached_sweep(pool);
	if (__atomic_exchange_n(&pool->owned.detaching, false, __ATOMIC_ACQUIRE))
		xl_drain_posts(pool);
}

/*
 * Slots have been detached: wake the threads that wait for slots, and the programs that poll. The
 * detach is only posted, but posts precede the next request.
 */
static void freed(struct xmem_pool *pool)
{
	xl_demand_detached(pool);
	xl_owned_wake(pool);
}

/*
 * Swap a slot that no stream of this process has yet to write to the front of READY. Returns
 * whether there is one.
 */
static bool bring_complete(const struct xmem_pool *pool, struct xl_size *once)
{
	struct xm_own **first = &once->circle[once->ready & once->mask], **other, *own;
	u32 at;

	for (at = once->ready; at != once->live; at++) {
		other = &once->circle[at & once->mask];
		if (!xl_order_is_idle(pool, (*other)->slot))
			continue;
		own = *first;
		*first = *other;
		*other = own;
		return true;
	}
	return false;
}

/* Make unused slots READY. Returns whether any were found. */
static bool collect(struct xmem_pool *pool, struct xl_size *once)
{
	u32 ready = once->live - once->ready;

	xl_collect_passed(pool, once);
	xl_collect_busy(pool, once);
	return once->live - once->ready != ready;
}

/* Take up to a batch of unused slots. Returns how many. Under owned->lock. */
static u32 take_unused(struct xmem_pool *pool, u16 *ret_slot)
{
	struct xl_size *once = pool->owned.once;
	u32 count = 0;

	while (count < XL_MAX_BATCH && once && (bring_complete(pool, once) || collect(pool, once)))
		if (bring_complete(pool, once))
			ret_slot[count++] = take_out(pool);
	return count;
}

u32 xl_attached_sweep_all(struct xmem_pool *pool)
{
	u16 slot[XL_MAX_BATCH];
	u32 count, all = 0;

	do {
		xl_lock(&pool->owned.lock);
		count = take_unused(pool, slot);
		xl_unlock(&pool->owned.lock);
		xl_once_detach(pool, slot, count);
		all += count;
	} while (count == XL_MAX_BATCH);
	if (all)
		freed(pool);
	return all;
}

/* Evict the oldest slot that subscribers may lose, and detach it. Returns whether there was one. */
static bool evict(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;
	struct xm_waited waited;
	bool any;

	xl_lock(&owned->lock);
	xm_read_waited(&pool->map, pool->me, &waited);
	any = owned->once && xl_evict(pool, owned->once, &waited);
	xl_unlock(&owned->lock);
	return any && xl_attached_sweep_all(pool);
}

void xl_attached_give_up(struct xmem_pool *pool, u32 slot)
{
	struct xl_owned *owned = &pool->owned;
	bool settled = xl_order_is_idle(pool, slot);
	struct xl_owned_slot *one = &owned->slot[slot];
	u16 number = slot;

	xl_lock(&owned->lock);
	if (settled) {
		xm_give_up(&pool->map, slot);
		xl_once_remove(pool, one);
	} else {		/* a stream still copies from it, so a later sweep detaches it */
		xm_store(&one->own.word->position, 0);
		xl_ready_add(owned->once, one);
	}
	xl_unlock(&owned->lock);
	if (settled)
		xl_once_detach(pool, &number, 1);
	xl_unreserve_entry(pool);
	freed(pool);
}

/*
 * A request fails for want of slots or quota, or because of the file. Only for the first two is it
 * repeated.
 */
int xl_attach_request(struct xmem_pool *pool, struct xmem_attach_request *request)
{
	int err;

	do
		err = xl_request(pool, XMEM_IOC_ATTACH, request);
	while ((err == -ENOSPC || err == -EDQUOT) &&
	       (xl_cache_drop_idle(pool, NULL, true) || evict(pool)));
	return err;
}
