// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pages of a client that has ended: the host continues with copies of them, and all others see
 * these. The old pages are freed when nobody looks at them, nobody has them pinned, and the
 * client's own GPU does not write them any more.
 *
 * pages.c describes the steps by which pages are replaced. Steps 2 and 3 are done once for all
 * clients that a run of end_work has ended, without a lock. Only end_work (leave.c) calls this.
 */
#include <linux/bitmap.h>
#include <linux/sched.h>

#include "xk.h"

/* ---- the copies ---- */

/* Keep old pages, of the area or of a group, with the client until nobody has them mapped. */
static void xk_keep_old(struct xk_client *client, struct xk_pages *old, u32 group)
{
	old->group = group;
	old->next = client->old;
	client->old = old;
}

/*
 * Step 1 of pages.c for the client's groups: the host continues with copies, which nobody else can
 * change, and all others find them. There may be many groups, so others can take the lock in
 * between: to them the owner is still alive, and stopped.
 */
static void xk_move_groups(struct xk_pool *pool, struct xk_client *client, u32 *done)
{
	struct xm_map *map = &pool->host.map;
	u32 g;

	for (g = 0; g < map->groups; g++) {
		if (!pool->group[g] || pool->group[g]->writer != client)
			continue;
		xk_show_group(pool, g, xk_chunk_copy(pool->group[g]));
		__set_bit(g, pool->moving);
		xk_keep_old(client, xk_chunk_swap(pool, pool->group[g]), g);
		xk_lock_yield(pool, done, XK_BATCH / 64);
	}
}

/* Step 1 for everything that the client has written. */
void xk_move_pages(struct xk_pool *pool, struct xk_client *client, u32 *done)
{
	struct xk_chunk *area = pool->area[client->id];

	xk_move_groups(pool, client, done);
	xk_show_area(pool, client->id, xk_chunk_copy(area));
	xk_keep_old(client, xk_chunk_swap(pool, area), XMEM_MAX_GROUPS);
}

/* ---- the old pages ---- */

/* A client whose old pages others may still have mapped, or NULL. Only end_work looks for them. */
static struct xk_client *xk_swapped(struct xk_pool *pool, u32 id)
{
	struct xk_client *client = READ_ONCE(pool->client[id]);

	return client && client->old ? client : NULL;
}

/* Steps 2 and 3, for all clients at once, without any lock. */
static void xk_unmap_all_swapped(struct xk_pool *pool)
{
	struct xk_places places = { 0 };
	struct xk_client *client;
	struct xk_pages *old;
	bool alive = false;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_swapped(pool, c);
		for (old = client ? client->old : NULL; old; old = old->next) {
			xk_places_add(&places, old->group == XMEM_MAX_GROUPS ? old->group + c :
				      old->group);
			xk_pages_drain(old);
		}
		alive |= client && !xk_client_is_gone(client);
	}
	if (alive)
		xk_pool_drain(pool);
	xk_unmap_places(pool, &places);
	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_swapped(pool, c);
		if (client)
			xk_unmap_ended(client);
	}
}

/*
 * Nobody reaches these old pages of a group through the pool any more. But a GPU may have pinned
 * them for any time, and a stream may wait for a ready word there; the client's own GPU may still
 * write it. When that is over, the words are ended in these pages, too (xk_late_free).
 */
static void xk_end_old(struct xk_pool *pool, struct xk_client *client, struct xk_pages *old,
		       struct xk_pages **free)
{
	struct xk_pages **list = free;

	if (old->group != XMEM_MAX_GROUPS && pool->host.late_owner[old->group])
		list = &client->late;
	else if (old->group != XMEM_MAX_GROUPS && xm_ready_used(&pool->host.map, old->group))
		xm_ready_end(&pool->host.map, old->view);
	old->next = *list;
	*list = old;
}

static void xk_end_all_old(struct xk_pool *pool)
{
	struct xk_pages *old, *free = NULL;
	struct xk_client *client;
	u32 c, done = 0;

	xk_pool_lock_long(pool);
	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_swapped(pool, c);
		while (client && (old = client->old)) {
			client->old = old->next;
			xk_end_old(pool, client, old, &free);
			xk_lock_yield(pool, &done, XK_BATCH / 64);
		}
	}
	bitmap_zero(pool->moving, XMEM_MAX_GROUPS);
	mutex_unlock(&pool->lock);
	while ((old = free)) {
		free = old->next;
		xk_pages_free(pool, old);
		cond_resched();
	}
}

/* Make all others stop seeing old pages, of all clients that this run of end_work has ended. */
void xk_leave_pages(struct xk_pool *pool)
{
	xk_unmap_all_swapped(pool);
	xk_end_all_old(pool);
}
