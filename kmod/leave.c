// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a client, and of a pool.
 *
 * It begins in the process itself: the last writable mapping of its area goes
 * (munmap, exec, exit), or its file does, or it lets go of the file without
 * running in that mm any more. From then on its requests fail, and if
 * it was the pool's last user the name is free. The rest is one work item per
 * pool, so that two hundred clients that die at once are seen off in one sweep;
 * the dying process waits for it, which takes no longer than that sweep, and
 * when it has been reaped its holds are gone. Nothing here allocates or sleeps
 * on user space.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "xmem_private.h"
#include "trace.h"

/* ---- in the process ---- */

void xmem_pool_queue_end(struct xmem_pool *pool)
{
	xmem_pool_get(pool);
	if (!queue_work(xmem_end_wq, &pool->end_work))
		xmem_pool_put(pool);	/* queued already, with a reference */
}

static void xmem_client_ended(struct xmem_client *client)
{
	xmem_pool_unuse(client->pool);
	xmem_pool_queue_end(client->pool);
	flush_work(&client->pool->end_work);
}

/* For good, whatever is still mapped. Once; later calls do nothing. */
void xmem_client_end(struct xmem_client *client)
{
	bool first;

	spin_lock(&client->pool->pages_lock);
	first = !client->ended;
	WRITE_ONCE(client->ended, true);
	spin_unlock(&client->pool->pages_lock);
	if (first)
		xmem_client_ended(client);
}

/* A part of its area is no longer mapped writable; the last part ends it. */
void xmem_client_unmapped(struct xmem_client *client)
{
	bool last;

	spin_lock(&client->pool->pages_lock);
	last = !--client->area_maps && !client->ended;
	if (last)
		WRITE_ONCE(client->ended, true);
	spin_unlock(&client->pool->pages_lock);
	if (last)
		xmem_client_ended(client);
}

/* Does anybody but the caller's own threads run in this mm (vfork, CLONE_VM)? */
static bool xmem_mm_is_shared(const struct mm_struct *mm)
{
	struct task_struct *process, *thread;
	bool shared = false;

	rcu_read_lock();
	for_each_process(process) {
		if (same_thread_group(process, current) || process->flags & PF_KTHREAD)
			continue;
		for_each_thread(process, thread)
			shared |= READ_ONCE(thread->mm) == mm;
		if (shared)
			break;
	}
	rcu_read_unlock();
	return shared;
}

/*
 * The client's process lets go of the file, by exit or exec, and no longer runs
 * in the mm that joined. Mostly the mappings have gone before, and the client
 * with them; but anybody who looks at the mm just then (/proc/PID/cmdline will
 * do) keeps it, for as long as he likes.
 */
void xmem_client_left(struct xmem_client *client)
{
	if (READ_ONCE(client->ended) || task_tgid(current) != client->pid || current->mm == client->mm)
		return;
	if (!current->mm && atomic_read(&current->signal->live))
		return;		/* other threads are still there */
	if (!xmem_mm_is_shared(client->mm))
		xmem_client_end(client);
}

/* ---- the pages of an ended client ---- */

/* Step 1: the host looks at copies, which nobody can change any more. */
static void xmem_copy_pages(struct xmem_pool *pool, struct xmem_client *client)
{
	struct xm_map *map = &pool->host.map;
	u32 g;

	map->area[client->id] = xmem_chunk_copy(pool->area[client->id]);
	for (g = 0; g < map->groups; g++) {
		if (!pool->group[g] || pool->group[g]->writer != client)
			continue;
		map->group[g] = xmem_chunk_copy(pool->group[g]);
		cond_resched();
	}
}

/* Step 2: so does everybody else; see pages.c for the order. */
static void xmem_turn_pages(struct xmem_pool *pool, struct xmem_client *client)
{
	struct xmem_pages *old = xmem_chunk_turn(pool, pool->area[client->id]);
	u32 g, first = XMEM_MAX_GROUPS, last = 0;

	xmem_pages_settle(old);
	xmem_zap_area(pool, client->id);
	xmem_pages_free(pool, old);

	for (g = 0; g < pool->host.map.groups; g++) {
		struct xmem_chunk *chunk = pool->group[g];

		if (!chunk || chunk->writer != client)
			continue;
		old = xmem_chunk_turn(pool, chunk);
		xmem_pages_settle(old);
		chunk->spare = old;	/* till all are zapped at once */
		first = min(first, g);
		last = g;
	}
	if (first > last)
		return;
	xmem_zap_groups(pool, first, last);
	for (g = first; g <= last; g++) {
		struct xmem_chunk *chunk = pool->group[g];

		/* Only those of ended clients have no writer; what they have for a spare is old. */
		if (!chunk || chunk->writer)
			continue;
		xmem_pages_free(pool, chunk->spare);
		chunk->spare = NULL;
	}
}

static void xmem_end_client(struct xmem_pool *pool, struct xmem_client *client)
{
	xmem_copy_pages(pool, client);
	xm_host_end(&pool->host, client->id);
	xmem_turn_pages(pool, client);
	trace_xmem_client_end(pool->number, client->id, client->incarnation);
}

/* ---- reaping ---- */

static void xmem_remove_group(struct xmem_pool *pool, u32 group)
{
	struct xmem_chunk *chunk;

	pool->host.map.group[group] = NULL;
	chunk = xmem_chunk_take(pool, &pool->group[group]);
	xmem_zap_groups(pool, group, group);
	xmem_chunk_free(pool, chunk);
}

static void xmem_remove_client(struct xmem_pool *pool, u32 id)
{
	struct xmem_client *client = pool->client[id];
	struct xmem_chunk *chunk;

	trace_xmem_client_bury(pool->number, id, client->incarnation);
	pool->host.map.area[id] = NULL;
	chunk = xmem_chunk_take(pool, &pool->area[id]);
	xmem_zap_area(pool, id);
	xmem_chunk_free(pool, chunk);
	pool->client[id] = NULL;
	xmem_client_put(client);
}

/* A slot of the host's that nobody has: its payload goes. */
static bool xmem_free_slot(struct xmem_pool *pool, u32 slot)
{
	u32 payload;

	if (pool->host.map.row[slot].owner != XMEM_OWNER_HOST)
		return false;
	payload = xm_host_reclaim(&pool->host, slot);
	if (!payload)
		return false;
	trace_xmem_reclaim(pool->number, slot, payload);
	xmem_payload_drop_slot(pool, payload);
	return true;
}

static bool xmem_bury_zombies(struct xmem_pool *pool)
{
	bool any = false;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		if (!xm_host_bury(&pool->host, c))
			continue;
		xmem_remove_client(pool, c);
		any = true;
	}
	return any;
}

/* One slot, after its last holder said so. true: it was freed. */
bool xmem_reclaim_slot(struct xmem_pool *pool, u32 slot)
{
	u32 group = slot / XMEM_GROUP_SLOTS;

	lockdep_assert_held(&pool->lock);
	if (!xmem_free_slot(pool, slot))
		return false;
	if (xm_host_idle_group(&pool->host, group))
		xmem_remove_group(pool, group);
	/* With a ring go the slots that only it had kept: those that its subscribers skipped. */
	if (xmem_bury_zombies(pool))
		xmem_reap(pool);
	else
		xmem_sysfs_sync(pool);
	return true;
}

/* All that ended clients have left and nobody has any more. */
void xmem_reap(struct xmem_pool *pool)
{
	u32 s, g;

	lockdep_assert_held(&pool->lock);
	for (s = 0; s < pool->host.map.slots; s++) {
		xmem_free_slot(pool, s);
		if (s % XMEM_GROUP_SLOTS == XMEM_GROUP_SLOTS - 1)
			cond_resched();
	}
	for (g = 0; g < pool->host.map.groups; g++)
		if (xm_host_idle_group(&pool->host, g) && pool->group[g])
			xmem_remove_group(pool, g);
	xmem_bury_zombies(pool);
	xmem_wake(pool, XMEM_SLEEP_CLIENTS, 0);
	xmem_sysfs_sync(pool);
}

/* ---- the work ---- */

static bool xmem_end_clients(struct xmem_pool *pool)
{
	bool any = false;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		struct xmem_client *client = pool->client[c];

		if (!client || !READ_ONCE(client->ended) || pool->host.map.client[c].state != XMEM_CLIENT_ALIVE)
			continue;
		xmem_end_client(pool, client);
		any = true;
	}
	return any;
}

/* Nobody uses the pool: zombies and what is held go too. */
static void xmem_empty_pool(struct xmem_pool *pool)
{
	struct xm_map *map = &pool->host.map;
	u32 i;

	for (i = 0; i < map->groups; i++)
		if (pool->group[i])
			xmem_remove_group(pool, i);
	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		xm_store(&map->pool->counted[i], 0);
	for (i = 0; i < map->clients; i++) {
		xm_store(&map->client[i].state, XMEM_CLIENT_NONE);
		if (pool->client[i])
			xmem_remove_client(pool, i);
	}
	for (i = 0; i < map->slots; i++)
		xm_store(&map->row[i].owner, XMEM_OWNER_NONE);
	xmem_payload_drop_all(pool);
	pool->dead = true;
	xmem_sysfs_sync(pool);
}

void xmem_end_work(struct work_struct *work)
{
	struct xmem_pool *pool = container_of(work, struct xmem_pool, end_work);
	bool any;

	mutex_lock(&pool->lock);
	any = xmem_end_clients(pool);
	if (!pool->dead && !refcount_read(&pool->users)) {
		xmem_empty_pool(pool);
	} else if (any) {
		xmem_reap(pool);
#ifdef XMEM_DEBUG
		if (xm_host_is_valid(&pool->host))
			WARN(1, "xmem: pool%u: %s\n", pool->number, xm_host_is_valid(&pool->host));
#endif
	}
	/* Always: whoever waited for the dead must look again, and its own threads go. */
	if (any)
		xmem_wake_everybody(pool);
	mutex_unlock(&pool->lock);
	xmem_pool_put(pool);
}
