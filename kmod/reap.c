// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reaping: what ended clients have left is freed when nobody uses it any more: payloads of slots,
 * groups of slots, and clients, once their rings are passed. leave.c ends a client.
 *
 * A request that wants something reaped asks end_work for it and waits. So requests at one moment
 * share a run, and between two runs others can take the lock.
 */
#include <linux/pid.h>

#include "xk.h"
#include "trace.h"

/*
 * Called after a step of end_work. @weight: its share of a batch (XK_BATCH); after each batch
 * waiters for the pool's lock get it. *done begins with 0. Only end_work calls this.
 */
void xk_lock_yield(struct xk_pool *pool, u32 *done, u32 weight)
{
	*done += weight;
	if (*done < XK_BATCH)
		return;
	*done = 0;
	xk_pool_let_in(pool);
}

/* ---- removing groups and clients ---- */

/*
 * Remove a group or an area that nobody uses any more. It still belongs to the host until nobody
 * has it mapped (xk_reap_finish), so nobody else gets its place before that.
 */
static void xk_chunk_unlink(struct xk_pool *pool, struct xk_chunk **place, u32 number)
{
	struct xk_chunk *chunk = xk_chunk_take(pool, place);

	chunk->place = number;
	chunk->next = pool->leaving;
	pool->leaving = chunk;
}

static void xk_remove_group(struct xk_pool *pool, u32 group)
{
	xk_show_group(pool, group, NULL);
	xm_host_show_owner(&pool->host, group);	/* no writer gets it before the removal is over */
	xk_chunk_unlink(pool, &pool->group[group], group);
}

/*
 * Free old pages whose ready words the client's GPU may have written after its end (moved.c). Their
 * groups still exist, because nobody else gets them before the client's process has exited, unless
 * all clients have ended and the pool is being emptied.
 */
void xk_late_free(struct xk_pool *pool, struct xk_client *client)
{
	const struct xm_map *map = &pool->host.map;
	struct xk_pages *pages;

	lockdep_assert_held(&pool->lock);
	while ((pages = client->late)) {
		client->late = pages->next;
		if (map->group[pages->group])
			xm_ready_end_old(map, pages->group, pages->view);
		else
			xm_ready_end(map, pages->view);
		xk_pages_free(pool, pages);
	}
}

static void xk_remove_client(struct xk_pool *pool, u32 id)
{
	struct xk_client *client = pool->client[id];

	xk_late_free(pool, client);
	xk_show_area(pool, id, NULL);
	xk_chunk_unlink(pool, &pool->area[id], XMEM_MAX_GROUPS + id);
	/* Nobody finds the pollers here any more, so wake them for the end now. */
	RCU_INIT_POINTER(pool->queue[id], NULL);
	xk_queue_poll(client->queue, XK_POLL_ALL);
}

/* Under pool->lock: nobody has a chunk of @place mapped any more, so others may get the place. */
static void xk_place_is_free(struct xk_pool *pool, u32 place)
{
	struct xk_client *client;

	if (place < XMEM_MAX_GROUPS) {
		xm_host_give_group(&pool->host, place, XMEM_OWNER_NONE);
		return;
	}
	client = pool->client[place - XMEM_MAX_GROUPS];
	xk_client_place(pool, place - XMEM_MAX_GROUPS, NULL);
	client->next = pool->buried;
	pool->buried = client;
}

static void xk_unmap_leaving(struct xk_pool *pool)
{
	struct xk_places places = { 0 };
	struct xk_chunk *chunk;

	for (chunk = pool->leaving; chunk; chunk = chunk->next) {
		xk_pages_drain(chunk->now);
		xk_places_add(&places, chunk->place);
	}
	xk_unmap_places(pool, &places);
}

/* Finish what xk_reap and xk_empty_pool began, without pool->lock. Only end_work calls it. */
void xk_reap_finish(struct xk_pool *pool)
{
	struct xk_client *client;
	struct xk_chunk *chunk;
	bool groups = false;

	if (!pool->leaving)
		return;
	xk_unmap_leaving(pool);
	xk_pool_lock_long(pool);
	for (chunk = pool->leaving; chunk; chunk = chunk->next) {
		xk_place_is_free(pool, chunk->place);
		groups |= chunk->place < XMEM_MAX_GROUPS;
	}
	xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
	if (groups)	/* writers may be waiting for slots */
		xk_wake_owners(pool);
	mutex_unlock(&pool->lock);
	while ((chunk = pool->leaving)) {
		pool->leaving = chunk->next;
		xk_chunk_free(pool, chunk);
	}
	while ((client = pool->buried)) {
		pool->buried = client->next;
		xk_client_put(client);
	}
}

/*
 * The weight of a step of a sweep. The step for the holds of a group reads those of every client,
 * and the size of a ring depends on the pool.
 */
static u32 xk_sweep_weight(const struct xk_pool *pool, const struct xm_sweep *sweep)
{
	switch (sweep->stage) {
	case XM_SWEEP_HOLDS:
		return max(XK_BATCH * pool->host.map.clients / 1024, XK_BATCH / 32);
	case XM_SWEEP_RINGS:
		return XK_BATCH;
	default:
		return XK_BATCH / 32;
	}
}

/*
 * Free the suspects that nobody uses. true: there were some. Clients can make a look at their rings
 * slow. So each ring is read once for all suspects, however many were asked for (P4), and others
 * can take the lock after each ring, and after every few groups.
 */
static bool xk_sweep(struct xk_pool *pool)
{
	struct xm_sweep sweep = { .stage = 0 };
	u32 done = 0, weight;
	bool any = false;
	u64 payload;
	int slot;

	do {
		weight = xk_sweep_weight(pool, &sweep);
		slot = xm_host_sweep(&pool->host, &sweep, &payload);
		if (slot >= 0) {
			trace_xmem_reclaim(pool->number, slot, payload);
			xk_keep_later(xk_payload_drop_slots(pool, payload, 1));
			any = true;
		}
		xk_lock_yield(pool, &done, weight);
	} while (slot != -ENOENT);
	if (any)	/* writers that wait may get slots of groups that others have left */
		xk_end_concerns_owners(pool);
	return any;
}

static bool xk_bury_zombies(struct xk_pool *pool)
{
	u32 c, done = 0;
	bool any = false;

	for (c = 0; c < pool->host.map.clients; c++) {
		enum xm_buried buried = xm_host_bury(&pool->host, c);

		if (buried == XM_BURIED_NOT)
			continue;
		if (buried == XM_BURIED)
			xk_remove_client(pool, c);
		any = true;
		xk_lock_yield(pool, &done, XK_BATCH / 4);
	}
	if (any)
		xk_end_concerns_owners(pool);
	return any;
}

static void xk_remove_idle_groups(struct xk_pool *pool)
{
	u32 g, done = 0;

	for (g = 0; g < pool->host.map.groups; g++) {
		if (pool->group[g] && xm_host_idle_group(&pool->host, g))
			xk_remove_group(pool, g);
		xk_lock_yield(pool, &done, XK_BATCH / 64);
	}
}

/*
 * Reap the slots that were asked for. false: a ring has gone, too, so other slots may be free now.
 */
static bool xk_reap_some(struct xk_pool *pool)
{
	if (xk_sweep(pool))
		xk_remove_idle_groups(pool);
	/* Removing a ring frees the slots that only it kept: its subscribers skipped them. */
	return !xk_bury_zombies(pool);
}

/*
 * A subscriber may pass publications that it does not want, and tells nobody, even after the sweep
 * has seen them in the ring. So after a ring has been removed there is another sweep: nobody else
 * would ask for it.
 */
static void xk_reap_all(struct xk_pool *pool)
{
	xk_bury_zombies(pool);	/* first, so that mostly one sweep is enough */
	do {
		xm_host_suspect_all(&pool->host);
		xk_sweep(pool);
		xk_remove_idle_groups(pool);
	} while (xk_bury_zombies(pool));
	xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
}

/* Take the slots that were asked for since the last run as suspects. false: there were none. */
static bool xk_reap_asked(struct xk_pool *pool)
{
	bool any = false;
	u32 slot;

	for_each_set_bit(slot, pool->asked, pool->host.map.slots) {
		clear_bit(slot, pool->asked);
		if (xm_slot_row(&pool->host.map, slot)->owner != XMEM_OWNER_HOST)
			continue;
		xm_host_suspect(&pool->host, slot);
		any = true;
	}
	return any;
}

/* Reap what was asked for since the last run. end_work calls this, and then xk_reap_finish. */
void xk_reap(struct xk_pool *pool)
{
	bool all = pool->reap_all;

	lockdep_assert_held(&pool->lock);
	pool->reap_all = false;
	if (xk_reap_asked(pool) && !all)
		all = !xk_reap_some(pool);
	if (all)
		xk_reap_all(pool);
}

/*
 * Ask end_work to reap one slot, after a holder has dropped its last hold. true: it will, and the
 * caller may wait for it (xk_end_wait).
 */
bool xk_reclaim_slot(struct xk_pool *pool, u32 slot)
{
	lockdep_assert_held(&pool->lock);
	if (xm_slot_row(&pool->host.map, slot)->owner != XMEM_OWNER_HOST)
		return false;
	set_bit(slot, pool->asked);
	xk_end_ask(pool, false);
	return true;
}

/* Ask for the slot to be reaped, without the lock and without waiting. */
void xk_reclaim_later(struct xk_pool *pool, u32 slot)
{
	if (xm_load(&xm_slot_row(&pool->host.map, slot)->owner) != XMEM_OWNER_HOST)
		return;		/* if the host takes it over later, it looks at the holds then */
	set_bit(slot, pool->asked);
	xk_end_ask(pool, true);
}

/* Ask end_work to reap every slot of ended clients that nobody uses, and to bury clients. */
void xk_reclaim_all(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	pool->reap_all = true;
	xk_end_ask(pool, false);
}

/*
 * Has end_work yet to end a client, or can it bury one? The module does not notice at once that all
 * subscribers have passed the ring of an ended client. true: end_work has been asked for both.
 */
bool xk_bury_ended(struct xk_pool *pool)
{
	const struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = pool->client[c];
		if (!client || !READ_ONCE(client->ended) ||
		    (xm_client_row(&pool->host.map, c)->state == XMEM_CLIENT_ZOMBIE &&
		     !xm_host_can_bury(&pool->host, c)))
			continue;
		xk_reclaim_all(pool);
		return true;
	}
	return false;
}

/* Empty a pool that nobody uses: zombies and held slots go, too. */
void xk_empty_pool(struct xk_pool *pool)
{
	struct xm_map *map = &pool->host.map;
	u32 i;

	xm_ready_end_all(&pool->host);
	for (i = 0; i < map->groups; i++)
		if (pool->group[i])
			xk_remove_group(pool, i);
	for (i = 0; i < map->clients; i++) {
		if (xm_client_row(map, i)->state != XMEM_CLIENT_NONE)
			xm_holders_leave(&pool->host, i);
		xm_store(&xm_client_row(map, i)->state, XMEM_CLIENT_NONE);
		if (pool->client[i])
			xk_remove_client(pool, i);
	}
	for (i = 0; i < map->slots; i++)
		xm_store(&xm_slot_row(map, i)->owner, XMEM_OWNER_NONE);
	xk_payload_drop_all(pool);
	WRITE_ONCE(pool->dead, true);
	xk_sysfs_hide(pool);
}
