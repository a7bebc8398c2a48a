// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a client.
 *
 * It begins in the process itself: when the last writable mapping of its area goes
 * (munmap, exec, exit), when its file goes, or when it closes a descriptor of the file
 * and no longer runs in the mm that joined. From then on its requests fail; if it had
 * the last use of the pool, the pool's name is free. One work item per pool does the
 * rest, so that one sweep ends two hundred clients that die at once. A dying process
 * waits for that sweep; so when its parent has reaped it, its holds are gone. Nothing
 * here allocates memory or waits for user space.
 *
 * A client whose process may still use memory of a GPU is in quarantine after its end: its
 * holds of that memory stay, and what it has open stays open, until the process has exited
 * (exited.c). That comes after the sweep for which the process waits, so it is another run of
 * the work; it is asked for by whoever the kernel notifies of the exit.
 */
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "xk.h"
#include "trace.h"

/* ---- in the process ---- */

/* Under pages_lock. */
static void xk_set_ended(struct xk_client *client)
{
	client->ended_ns = ktime_get_ns();
	WRITE_ONCE(client->ended, true);
}

static void xk_client_ended(struct xk_client *client)
{
	xk_pool_unuse(client->pool);
	xk_pool_queue_end(client->pool);
	flush_work(&client->pool->end_work);
}

/* Ends the client for good, whatever it still maps. Later calls do nothing. */
void xk_client_end(struct xk_client *client)
{
	bool first;

	spin_lock(&client->pool->pages_lock);
	first = !client->ended;
	if (first)
		xk_set_ended(client);
	spin_unlock(&client->pool->pages_lock);
	if (first)
		xk_client_ended(client);
}

/* A writable mapping of the client's area has gone. With the last one the client ends. */
void xk_client_unmapped(struct xk_client *client)
{
	bool last;

	spin_lock(&client->pool->pages_lock);
	last = !--client->area_maps && !client->ended;
	if (last)
		xk_set_ended(client);
	spin_unlock(&client->pool->pages_lock);
	if (last)
		xk_client_ended(client);
}

/* Does any process but the caller run in this mm (vfork, CLONE_VM)? */
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
 * A process closes a descriptor of the client's file. If it is the client's process and
 * no longer runs in the mm that joined, because of exit or exec, the client ends here.
 * Usually the mappings have gone before, and the client with them. But a process that
 * reads /proc/PID/cmdline at that moment keeps the mm, for as long as it likes.
 */
void xk_client_left(struct xk_client *client)
{
	if (READ_ONCE(client->ended))
		return;
	if (task_tgid(current) != client->pid || current->mm == client->mm)
		return;
	if (!current->mm && atomic_read(&current->signal->live))
		return;		/* other threads of the process still run */
	if (!xk_mm_is_shared(client->mm))
		xk_client_end(client);
}

/* ---- the pages of an ended client ---- */

/* First the host goes on with copies, which nobody else can change. */
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

/*
 * Nobody reaches these old pages of a group by the pool any more, but GPUs may have pinned them
 * as long as they like, and a stream may wait for a ready word there. The client's own GPU may
 * still write it. When that is over the words end there, too (xk_late_free).
 */
static void xk_end_old(struct xk_pool *pool, struct xk_client *client, u32 group,
		       struct xk_pages *old)
{
	if (pool->host.late_owner[group]) {
		old->group = group;
		old->next = client->late;
		client->late = old;
	} else {
		if (xm_ready_used(&pool->host.map, group))
			xm_ready_end(&pool->host.map, old->view);
		xk_pages_free(pool, old);
	}
}

/* Then everybody else sees the copies; pages.c says in which steps. */
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
		chunk->spare = old;	/* until all are zapped at once */
		first = min(first, g);
		last = g;
	}
	if (first > last)
		return;
	xk_zap_groups(pool, first, last);
	for (g = first; g <= last; g++) {
		struct xk_chunk *chunk = pool->group[g];

		/* Only groups of ended clients have no writer; their spare pages are old. */
		if (!chunk || chunk->writer)
			continue;
		if (chunk->spare)
			xk_end_old(pool, client, g, chunk->spare);
		chunk->spare = NULL;
	}
}

/* What a client has at its end. It is counted only for those who trace: that takes a while. */
struct xk_had {
	u64 holds;
	u32 slots;
};

static struct xk_had xk_count_had(const struct xk_pool *pool, u32 client)
{
	const struct xm_map *map = &pool->host.map;
	struct xk_had had = { 0 };
	u32 s;

	if (!trace_xmem_client_end_enabled())
		return had;
	for (s = 0; s < map->slots; s++) {
		had.holds += xm_load(xm_hold(map, client, s)) & XM_HOLD_COUNT;
		had.slots += xm_slot_row(map, s)->owner == client;
	}
	return had;
}

static void xk_end_client(struct xk_pool *pool, struct xk_client *client)
{
	struct xk_had had;

	xk_copy_pages(pool, client);
	had = xk_count_had(pool, client->id);	/* in the copy, which does not change any more */
	xm_host_end(&pool->host, client->id, xk_opened_any(pool, client->id));
	xm_host_limbo(&pool->host, ktime_get_ns());
	xk_payload_owner_ended(pool, client->incarnation);
	xk_swap_pages(pool, client);
	trace_xmem_client_end(pool->number, client->id, client->incarnation, had.holds, had.slots,
			      ktime_get_ns() - client->ended_ns);
}

/* ---- quarantine ---- */

/* The client's process has exited, and with it what its GPU was doing, as far as exited.c knows. */
static void xk_end_quarantine(struct xk_pool *pool, struct xk_client *client)
{
	xk_exit_forget(client);
	xk_late_free(pool, client);
	xm_host_exited(&pool->host, client->id);
	xk_opened_end(pool, client->id);
	trace_xmem_client_exited(pool->number, client->id, client->incarnation);
}

/* ---- the work ---- */

/* Goes one step on with a client that has ended. true: it has. */
static bool xk_end_step(struct xk_pool *pool, struct xk_client *client)
{
	bool alive = xm_client_row(&pool->host.map, client->id)->state == XMEM_CLIENT_ALIVE;

	if (alive)
		xk_end_client(pool, client);
	if (!xm_host_is_quarantined(&pool->host, client->id) || !xk_exit_watch(client))
		return alive;
	xk_end_quarantine(pool, client);
	return true;
}

static bool xk_end_clients(struct xk_pool *pool)
{
	bool any = false;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		struct xk_client *client = pool->client[c];

		if (client && READ_ONCE(client->ended))
			any |= xk_end_step(pool, client);
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
		xk_claims_stop(pool);
	} else if (!pool->dead) {
		if (any) {
			xk_claims_left(pool);
			pool->reap = XK_REAP_ALL;
		}
		xk_reap(pool);
#ifdef XMEM_DEBUG
		if (any && xm_host_is_valid(&pool->host))
			WARN(1, "xmem: pool%u: %s\n", pool->number, xm_host_is_valid(&pool->host));
#endif
	}
	/* Whoever waited for an ended client must look again, and its own threads return. */
	if (any)
		xk_wake_everybody(pool);
	mutex_unlock(&pool->lock);
	xk_pool_put(pool);
}

/* Prepares the work through which pool.c says that the last use has gone. */
void xk_leave_prepare(struct xk_pool *pool)
{
	INIT_WORK(&pool->end_work, xk_end_work);
}
