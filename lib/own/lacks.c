// SPDX-License-Identifier: MIT
/*
 * The words in this writer's ring about buffers that are made on demand: how large a buffer can
 * still be made, and how many bytes other clients must release first. With them a host decides
 * whether a polled descriptor is writable (core/search.c).
 */
#include "lib/own/demand.h"
#include "lib/payload/payload.h"

/*
 * Update these words. @need: bytes of the file that is wanted; 0: none is.
 *
 * A file comes free with its last buffer, and has more bytes than the buffers in it. `lacks` counts
 * bytes of buffers as if the rest of each file were free. So it is never too large: otherwise a
 * polling program might never be woken. Where slots are lacking, `lacks` is 1, because each buffer
 * that comes free may be the one that kept them.
 */
void xl_lacks_update(struct xmem_pool *pool, const struct xl_chain *chain, u64 need)
{
	const struct xl_demand *demand = &chain->demand;
	struct xmem_ring *ring = pool->owned.words.ring;
	u64 left = demand->limit > demand->used ? demand->limit - demand->used : 0, lacks;

	if (pool->owned.asked != chain)
		return;		/* the words are about another place now */
	xm_store(&ring->lacks_slots, demand->no_slots);
	if (demand->no_slots) {
		xm_store(&ring->makes, 0);
		xm_store(&ring->lacks, 1);
		return;
	}
	xm_store(&ring->makes, xl_class_below(left - left % xl_whole_bytes(chain, 1)));
	lacks = need + demand->busy > demand->limit ? need + demand->busy - demand->limit : 1;
	xm_store(&ring->lacks, need > left ? lacks : 0);
}

void xl_demand_update_ring(struct xmem_pool *pool)
{
	u64 wanted = xm_load(&pool->owned.words.ring->wanted);
	const struct xl_chain *chain = pool->owned.asked;

	if (chain->demand.on)
		xl_lacks_update(pool, chain, pool->owned.refused ?
				xl_file_bytes(chain, xl_class(wanted), 1) : 0);
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
	if (any) {
		xl_demand_update_ring(pool);
		xl_owned_changed(owned);
	}
	xl_unlock(&owned->lock);
}

/* Hosts subtract what other clients release; this subtracts what the owner frees itself. */
void xl_demand_subtract(struct xmem_pool *pool, const struct xl_size *size)
{
	struct xmem_ring *ring = pool->owned.words.ring;
	u64 lacks = xm_load(&ring->lacks), bytes = size->bytes;

	if (!size->chain || !size->chain->demand.on || size->chain != pool->owned.asked)
		return;
	if (lacks > bytes) {
		xm_store(&ring->lacks, lacks - bytes);
	} else if (lacks) {
		xm_store(&ring->makes, xm_load(&ring->wanted));
		xm_store(&ring->lacks, 0);
	}
}
