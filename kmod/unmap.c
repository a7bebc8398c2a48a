// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unmapping: step 3 of pages.c, in the mappings of each client of a pool. It waits for page locks
 * and for the lock of each client's address space, which its process may hold while it is
 * throttled: so the caller has no lock of ours.
 *
 * A client that has ended is unmapped once, altogether. From then on it maps nothing but pages of
 * its own, and nobody looks at it again.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>

#include "xk.h"

static void xk_unmap(struct xk_pool *pool, u64 from, u64 bytes)
{
	struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_client_of(pool, c);
		if (!client)
			continue;
		if (!READ_ONCE(client->ended)) {
			xk_page_drain(client->zero);
			unmap_mapping_range(client->inode->i_mapping, from, bytes, 1);
		}
		xk_client_put(client);
		cond_resched();
	}
}

void xk_unmap_area(struct xk_pool *pool, u32 client)
{
	const struct xmem_pool_header *header = xk_header(pool);

	xk_unmap(pool, header->areas_offset + client * header->area_stride, header->area_stride);
}

/*
 * One pass over all groups from @first to @last. Groups of others between them are unmapped too;
 * the next access faults them in again.
 */
void xk_unmap_groups(struct xk_pool *pool, u32 first, u32 last)
{
	const struct xmem_pool_header *header = xk_header(pool);

	xk_unmap(pool, header->groups_offset + first * header->group_stride,
		 (last - first + 1) * header->group_stride);
}

/*
 * Clients that others have ended may still run, and store into their area and their groups, and no
 * more when this is done. Only end_work calls it, without a lock, and before it copies any of these
 * pages: what such a client stored behind the copy, others could see, and count on.
 */
void xk_unmap_evicted(struct xk_pool *pool)
{
	DECLARE_BITMAP(evicted, XMEM_MAX_CLIENTS) = { 0 };
	struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = READ_ONCE(pool->client[c]);
		if (client && smp_load_acquire(&client->ended) && READ_ONCE(client->evicting))
			__set_bit(c, evicted);
	}
	if (bitmap_empty(evicted, XMEM_MAX_CLIENTS))
		return;
	/* No fault of theirs that saw them alive is under way any more. */
	xk_pool_drain(pool);
	for_each_set_bit(c, evicted, XMEM_MAX_CLIENTS) {
		client = READ_ONCE(pool->client[c]);
		xk_unmap_ended(client);
		WRITE_ONCE(client->evicting, false);
		smp_store_release(&client->let_go, true);
	}
}

/*
 * All that an ended client maps. The caller has drained the pool's pages since it ended, unless
 * its mm is gone: then nobody can fault there, and there is nothing to unmap.
 */
void xk_unmap_ended(struct xk_client *client)
{
	if (xk_client_is_gone(client))
		return;
	xk_page_drain(client->zero);
	unmap_mapping_range(client->inode->i_mapping, 0, 0, 1);
}
