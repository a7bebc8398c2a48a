// SPDX-License-Identifier: MIT
/*
 * What this writer's ring says about buffers that are made on demand: how large a buffer may still
 * be made, and how many bytes others must let go first. Programs that poll are told by it.
 */
#include "lib/own/demand.h"
#include "lib/payload/payload.h"

#define PAGE	xl_page_bytes()

/*
 * What the ring says to those who poll. @need: of the file that is wanted; 0: none is. A file
 * comes free with the last of its buffers, and has more bytes than these. So what is lacking are
 * bytes of buffers, as if the rest of each file were free: never too many, or nobody would be told.
 * Where slots are lacking, each buffer that comes free may be the one that has kept them.
 */
void xl_lacks_say(struct xmem_pool *pool, u64 need)
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
		xl_lacks_say(pool, pool->owned.refused ? xl_file_bytes(xl_class(wanted), 1) : 0);
}

void xl_demand_detached(struct xmem_pool *pool)
{
	struct xl_owned *owned = &pool->owned;

	xl_lock(&owned->lock);
	if (owned->demand.no_slots) {
		owned->demand.no_slots = false;
		xl_demand_say(pool);
		xl_owned_changed(owned);
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
