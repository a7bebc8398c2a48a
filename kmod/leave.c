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

#include "xk.h"
#include "trace.h"

/* ---- in the process ---- */

static void xk_client_ended(struct xk_client *client)
{
	xk_pool_unuse(client->pool);
	xk_pool_queue_end(client->pool);
	flush_work(&client->pool->end_work);
}

/* For good, whatever is still mapped. Once; later calls do nothing. */
void xk_client_end(struct xk_client *client)
{
	bool first;

	spin_lock(&client->pool->pages_lock);
	first = !client->ended;
	WRITE_ONCE(client->ended, true);
	spin_unlock(&client->pool->pages_lock);
	if (first)
		xk_client_ended(client);
}

/* A part of its area is no longer mapped writable; the last part ends it. */
void xk_client_unmapped(struct xk_client *client)
{
	bool last;

	spin_lock(&client->pool->pages_lock);
	last = !--client->area_maps && !client->ended;
	if (last)
		WRITE_ONCE(client->ended, true);
	spin_unlock(&client->pool->pages_lock);
	if (last)
		xk_client_ended(client);
}

/* Does anybody but the caller's own threads run in this mm (vfork, CLONE_VM)? */
static bool xk_mm_is_shared(const struct mm_struct *mm)
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
void xk_client_left(struct xk_client *client)
{
	if (READ_ONCE(client->ended) || task_tgid(current) != client->pid || current->mm == client->mm)
		return;
	if (!current->mm && atomic_read(&current->signal->live))
		return;		/* other threads are still there */
	if (!xk_mm_is_shared(client->mm))
		xk_client_end(client);
}

/* ---- the pages of an ended client ---- */

/* Step 1: the host looks at copies, which nobody can change any more. */
static void xk_copy_pages(struct xk_pool *pool, struct xk_client *client)
{
	struct xm_map *map = &pool->host.map;
	u32 g;

	map->area[client->id] = xk_chunk_copy(pool->area[client->id]);
	for (g = 0; g < map->groups; g++) {
		if (!pool->group[g] || pool->group[g]->writer != client)
			continue;
		map->group[g] = xk_chunk_copy(pool->group[g]);
		cond_resched();
	}
}

/* Step 2: so does everybody else; see pages.c for the order. */
static void xk_swap_pages(struct xk_pool *pool, struct xk_client *client)
{
	struct xk_pages *old = xk_chunk_swap(pool, pool->area[client->id]);
	u32 g, first = XMEM_MAX_GROUPS, last = 0;

	xk_pages_drain(old);
	xk_zap_area(pool, client->id);
	xk_pages_free(pool, old);

	for (g = 0; g < pool->host.map.groups; g++) {
		struct xk_chunk *chunk = pool->group[g];

		if (!chunk || chunk->writer != client)
			continue;
		old = xk_chunk_swap(pool, chunk);
		xk_pages_drain(old);
		chunk->spare = old;	/* till all are zapped at once */
		first = min(first, g);
		last = g;
	}
	if (first > last)
		return;
	xk_zap_groups(pool, first, last);
	for (g = first; g <= last; g++) {
		struct xk_chunk *chunk = pool->group[g];

		/* Only those of ended clients have no writer; what they have for a spare is old. */
		if (!chunk || chunk->writer)
			continue;
		xk_pages_free(pool, chunk->spare);
		chunk->spare = NULL;
	}
}

static void xk_end_client(struct xk_pool *pool, struct xk_client *client)
{
	xk_copy_pages(pool, client);
	xm_host_end(&pool->host, client->id);
	xk_swap_pages(pool, client);
	trace_xmem_client_end(pool->number, client->id, client->incarnation);
}

/* ---- the work ---- */

static bool xk_end_clients(struct xk_pool *pool)
{
	bool any = false;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		struct xk_client *client = pool->client[c];

		if (!client || !READ_ONCE(client->ended) || xm_client_row(&pool->host.map, c)->state != XMEM_CLIENT_ALIVE)
			continue;
		xk_end_client(pool, client);
		any = true;
	}
	return any;
}

static void xk_end_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(work, struct xk_pool, end_work);
	bool any;

	mutex_lock(&pool->lock);
	any = xk_end_clients(pool);
	if (!pool->dead && !refcount_read(&pool->users)) {
		xk_empty_pool(pool);
	} else if (any) {
		xk_reap(pool);
#ifdef XMEM_DEBUG
		if (xm_host_is_valid(&pool->host))
			WARN(1, "xmem: pool%u: %s\n", pool->number, xm_host_is_valid(&pool->host));
#endif
	}
	/* Always: whoever waited for the dead must look again, and its own threads go. */
	if (any)
		xk_wake_everybody(pool);
	mutex_unlock(&pool->lock);
	xk_pool_put(pool);
}

void xk_leave_prepare(struct xk_pool *pool)
{
	INIT_WORK(&pool->end_work, xk_end_work);
}
