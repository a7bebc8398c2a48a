// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unmapping: step 3 of pages.c, in the mappings of each client of a pool. It waits for page locks
 * and for the lock of each client's address space, which the client's process may hold while it is
 * throttled. So the caller holds no lock of ours.
 *
 * A client that has ended is unmapped once, completely. From then on it maps only pages of its own,
 * and nobody looks at it again.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/wait.h>

#include "xk.h"

/* Add a group or an area; @place: as in struct xk_chunk. */
void xk_places_add(struct xk_places *places, u32 place)
{
	if (place < XMEM_MAX_GROUPS)
		__set_bit(place, places->groups);
	else
		__set_bit(place - XMEM_MAX_GROUPS, places->areas);
}

/*
 * Unmap the places in the bitmap @places of @size bits; they begin at @offset and have @stride
 * bytes each. Adjacent places are unmapped together, but nothing between two others is: otherwise a
 * client that has the first and the last place would, at each of its ends, take the pages of all
 * others away from everybody.
 */
static void xk_unmap_runs(struct xk_client *client, const unsigned long *places, u32 size,
			  u64 offset, u64 stride)
{
	unsigned long p, end;

	for_each_set_bit(p, places, size) {
		end = find_next_zero_bit(places, size, p);
		unmap_mapping_range(client->inode->i_mapping, offset + p * stride,
				    (end - p) * stride, 1);
		p = end;
	}
}

static void xk_unmap_places_of(struct xk_client *client, const struct xk_places *places)
{
	const struct xmem_pool_header *header = xk_header(client->pool);

	xk_unmap_runs(client, places->groups, XMEM_MAX_GROUPS, header->groups_offset,
		      header->group_stride);
	xk_unmap_runs(client, places->areas, XMEM_MAX_CLIENTS, header->areas_offset,
		      header->area_stride);
}

/* Does the client still see what others see? An evicted client does as long as it can store. */
static bool xk_sees_others(const struct xk_client *client)
{
	return !smp_load_acquire(&client->ended) ||	/* pairs with xk_set_ended */
	       READ_ONCE(client->evicting) == XK_EVICT_STORES;
}

/* One look at each client for all places: many clients may have ended at once. */
void xk_unmap_places(struct xk_pool *pool, const struct xk_places *places)
{
	struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_client_of(pool, c);
		if (!client)
			continue;
		if (xk_sees_others(client)) {
			xk_page_drain(client->zero);
			xk_unmap_places_of(client, places);
		}
		xk_client_put(client);
		cond_resched();
	}
}

void xk_unmap_place(struct xk_pool *pool, u32 place)
{
	struct xk_places one = { 0 };

	xk_places_add(&one, place);
	xk_unmap_places(pool, &one);
}

static void xk_set_evicting(struct xk_client *client, u8 evicting)
{
	spin_lock(&client->pool->pages_lock);
	WRITE_ONCE(client->evicting, evicting);
	spin_unlock(&client->pool->pages_lock);
}

/* Unmap what the client can store into: its area and its groups, and with these all groups. */
static void xk_unmap_stores(struct xk_client *client)
{
	struct xk_places places = { 0 };

	bitmap_set(places.groups, 0, client->pool->host.map.groups);
	xk_places_add(&places, XMEM_MAX_GROUPS + client->id);
	xk_unmap_places_of(client, &places);
}

/*
 * Stop evicted clients from storing. They may still be running and store into their area and their
 * groups; after this they cannot. Only end_work calls it, without a lock, before it copies any of
 * these pages: others could see, and rely on, what such a client stored after the copy.
 *
 * An evicted client may be in the middle of a scan, and what it sees must stay true as long as it
 * can store: otherwise it would take a slot whose holds it reads as zeros. And its stores must
 * reach others, or it must learn that it has ended: otherwise it would write contents that others
 * have got meanwhile. So it first loses what it can store into, and a store there waits until the
 * client reads zeros everywhere. Then each of its calls finds its end (tests/model/blind.pml).
 */
void xk_unmap_evicted(struct xk_pool *pool)
{
	DECLARE_BITMAP(evicted, XMEM_MAX_CLIENTS) = { 0 };
	struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = READ_ONCE(pool->client[c]);
		/* pairs with xk_set_ended */
		if (client && smp_load_acquire(&client->ended) && READ_ONCE(client->evicting))
			__set_bit(c, evicted);
	}
	if (bitmap_empty(evicted, XMEM_MAX_CLIENTS))
		return;
	/* Wait for faults that saw these clients alive. */
	xk_pool_drain(pool);
	for_each_set_bit(c, evicted, XMEM_MAX_CLIENTS) {
		client = READ_ONCE(pool->client[c]);
		xk_unmap_stores(client);
		xk_set_evicting(client, XK_EVICT_LOOKS);
	}
	/* Wait also for read faults. */
	xk_pool_drain(pool);
	for_each_set_bit(c, evicted, XMEM_MAX_CLIENTS) {
		client = READ_ONCE(pool->client[c]);
		xk_unmap_ended(client);
		xk_set_evicting(client, XK_EVICT_OVER);
		smp_store_release(&client->let_go, true);	/* pairs with xk_end_clients */
	}
	wake_up_all(&pool->end_waiters);
}

/*
 * Unmap everything that an ended client maps. The caller has drained the pool's pages since the
 * client ended. If the client's mm is gone, nobody can fault there, and there is nothing to unmap.
 */
void xk_unmap_ended(struct xk_client *client)
{
	if (xk_client_is_gone(client))
		return;
	xk_page_drain(client->zero);
	unmap_mapping_range(client->inode->i_mapping, 0, 0, 1);
}
