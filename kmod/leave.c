// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of a client, in two parts.
 *
 * The process itself does the first: when the last writable mapping of its area goes (munmap, exec,
 * exit), when its file goes, or when it closes a descriptor of the file and no longer runs in the
 * mm that joined. From then on its requests fail. Its ring is repaired, and its cursors and holds
 * are dropped, in its own area. Owners that wait for slots are woken. If it had the last use of the
 * pool, the pool's name becomes free. The time for this is bounded by the size of the area and the
 * number of clients, and it takes no lock but spinlocks: a process that is being killed waits for
 * nobody. When its parent has reaped it, it holds nothing.
 *
 * The second part runs in one work item for each pool: what the client owned, claimed, wrote in
 * place and had open, and its id. It works in batches, between which others can take the pool's
 * lock; one run serves all clients that have ended by then. Nothing here allocates memory or waits
 * for user space. moved.c handles the client's pages.
 *
 * Another client may end a client, too (evict.c). The evicted client may be running, or stopped,
 * and it has all its mappings. So end_work first removes these (unmap.c). Then nobody can store
 * into a page that is copied, unless it is pinned. Otherwise other clients could see, and take,
 * what is not in the copy: for example a buffer that was published after the copy, and would be
 * freed while they use it. Model: tests/model/evict.pml.
 *
 * A client whose process may still use memory of a GPU is in quarantine after its end: its holds of
 * that memory stay, and what it has open stays open, until the process has exited (exited.c).
 * Other runs of the work look for the exit.
 */
#include <linux/delay.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "xk.h"
#include "trace.h"

/* ---- in the process ---- */

/* Under pages_lock. */
static void xk_set_ended(struct xk_client *client)
{
	client->ended_ns = ktime_get_ns();
	if (client->owns)
		atomic_dec(&client->pool->owners);
	if (client->incarnation)
		xk_end_begins(client);
	smp_store_release(&client->ended, true);	/* after the reason and the time */
}

/*
 * The rest of the first part. The area stays in place until end_work sees let_go. A client that
 * could not join has no area in use, and so nothing to drop.
 */
static void xk_client_ended(struct xk_client *client)
{
	struct xk_pool *pool = client->pool;

	if (client->incarnation &&
	    xm_client_release(&pool->host.map, client->id, &client->had_holds))
		xk_wake_owners(pool);
	smp_store_release(&client->let_go, true);	/* pairs with xk_end_clients */
	xk_pool_unuse(pool);
	xk_end_ask(pool, false);
}

/* End the client for good, whatever it still maps. Later calls do nothing. */
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

/*
 * Another process ends the client. The caller then waits for end_work. false: that client has
 * ended. incarnation 0: any client, even one that is still joining. Such a client keeps its use of
 * the pool until it has joined (xk_client_joined), because its join needs the pool.
 */
bool xk_client_evict(struct xk_client *client, u64 incarnation, u32 reason)
{
	struct xk_pool *pool = client->pool;
	bool first, joined;

	spin_lock(&pool->pages_lock);
	joined = client->incarnation;
	first = !client->ended && (!incarnation || client->incarnation == incarnation);
	if (first) {
		client->reason = reason;
		client->evicting = XK_EVICT_STORES;
		xk_set_ended(client);
	}
	spin_unlock(&pool->pages_lock);
	if (!first)
		return false;
	trace_xmem_client_evict(pool->number, client->id, client->incarnation, reason);
	if (joined)
		xk_pool_unuse(pool);
	xk_end_ask(pool, false);
	return true;
}

/* Under pool->lock: the client has joined. If it was evicted before that, continue its end. */
void xk_client_joined(struct xk_client *client, u64 incarnation)
{
	struct xk_pool *pool = client->pool;
	bool ended;

	spin_lock(&pool->pages_lock);
	ended = client->ended;
	if (ended)
		xk_end_begins(client);	/* before a run of end_work can serve it */
	WRITE_ONCE(client->incarnation, incarnation);
	spin_unlock(&pool->pages_lock);
	if (!ended)
		return;
	xk_pool_unuse(pool);
	xk_end_ask(pool, false);	/* end_work has not seen this client yet */
}

/*
 * A mapping has gone. @keeps: it was a writable one of the client's area (xk_vma_keeps). When the
 * last of these goes, the client ends.
 */
void xk_client_unmapped(struct xk_client *client, bool keeps)
{
	bool last;

	spin_lock(&client->pool->pages_lock);
	client->maps--;
	last = keeps && !--client->area_maps && !client->ended;
	if (last)
		xk_set_ended(client);
	spin_unlock(&client->pool->pages_lock);
	if (last)
		xk_client_ended(client);
}

/*
 * A process closes a descriptor of the client's file. If it is the client's process and no longer
 * runs in the mm that joined, because of exit or exec, the client ends here. Usually its mappings
 * are gone already, and the client has ended with them. Otherwise something else keeps the mm: a
 * process that reads /proc/PID/cmdline, for as long as it likes, or another process that runs in it
 * (CLONE_VM). That process could still store into the area, so the client ends as if evicted.
 *
 * Nothing else would end a client that has not mapped its area yet if its process passed the file
 * on. So such a client ends with the first descriptor that its process closes.
 */
void xk_client_left(struct xk_client *client)
{
	if (READ_ONCE(client->ended) || task_tgid(current) != client->pid)
		return;
	if (!READ_ONCE(client->area_maps)) {
		xk_client_end(client);
		return;
	}
	if (current->mm == client->mm)
		return;
	if (!current->mm && atomic_read(&current->signal->live))
		return;		/* other threads of the process are still running */
	xk_client_evict(client, 0, XMEM_REASON_NONE);
}

/*
 * A process that closes its client's file, and goes on running, finds the whole end done when
 * close() returns. It waits under no lock, and no longer once it is killed.
 */
void xk_client_closed(struct xk_client *client)
{
	/* In an exec the mm has changed already, and locks are held for which others wait. */
	if (READ_ONCE(client->ended) && task_tgid(current) == client->pid &&
	    current->mm == client->mm && !(current->flags & PF_EXITING))
		xk_end_wait(client->pool);
}

/* ---- the end of one client ---- */

/*
 * A client's holds and slots at its end, without the holds that it has dropped already. It takes a
 * while to count them, so they are counted only if the tracepoint is enabled.
 */
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

static void xk_end_client(struct xk_pool *pool, struct xk_client *client, u32 *done)
{
	struct xk_had had;

	xk_end_serves(client);
	xk_move_pages(pool, client, done);
	had = xk_count_had(pool, client->id);	/* in the copy, which nobody changes any more */
	xk_end_concerns(pool, client->id);
	xm_host_end(&pool->host, client->id);
	xm_host_limbo(&pool->host, ktime_get_ns());
	trace_xmem_client_end(pool->number, client->id, client->incarnation,
			      had.holds + client->had_holds, had.slots,
			      ktime_get_ns() - client->ended_ns);
}

/* ---- quarantine ---- */

/* The client's process has exited, and its GPU does nothing more, as far as exited.c can know. */
static void xk_end_quarantine(struct xk_pool *pool, struct xk_client *client)
{
	xk_late_free(pool, client);
	xk_end_concerns(pool, client->id);
	xm_host_exited(&pool->host, client->id);
	xk_opened_end(pool, client->id);
}

static bool xk_end_quarantines(struct xk_pool *pool)
{
	u32 c, done = 0;
	bool any = false;

	for (c = 0; c < pool->host.map.clients; c++) {
		struct xk_client *client = pool->client[c];

		if (!client || !xm_host_is_quarantined(&pool->host, c))
			continue;
		if (!xk_has_exited(client)) {
			xk_exit_watch(client);
			continue;
		}
		xk_end_quarantine(pool, client);
		any = true;
		xk_lock_yield(pool, &done, XK_BATCH);
	}
	return any;
}

/* ---- the work ---- */

static bool xk_end_clients(struct xk_pool *pool)
{
	u32 c, done = 0;
	bool any = false;

	for (c = 0; c < pool->host.map.clients; c++) {
		struct xk_client *client = pool->client[c];

		if (!client || !smp_load_acquire(&client->let_go) || /* after its last store */
		    xm_client_row(&pool->host.map, c)->state != XMEM_CLIENT_ALIVE)
			continue;
		xk_end_client(pool, client, &done);
		any = true;
		xk_lock_yield(pool, &done, XK_BATCH);
	}
	return any;
}

/*
 * End clients, until all others see only the present pages. Meanwhile slots of the ended clients
 * are neither reclaimed nor written in place, because a client that sees an old page could still
 * get them.
 */
static bool xk_end_and_unmap(struct xk_pool *pool)
{
	bool any;

	xk_unmap_evicted(pool);
	xk_pool_lock_long(pool);
	any = xk_end_clients(pool);
	mutex_unlock(&pool->lock);
	if (!any)
		return false;
	xk_leave_pages(pool);
	return true;
}

static void xk_end_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(to_delayed_work(work), struct xk_pool, end_work);
	bool unused, any;

#ifdef XMEM_DEBUG
	usleep_range(500, 1000);	/* others may queue it again in this time */
#endif
	xk_end_start(pool);
	/*
	 * First: if the pool has no use, all its clients have ended, and this run serves the last
	 * end.
	 */
	unused = !refcount_read(&pool->users);
	smp_rmb();	/* pairs with xk_pool_unuse, which releases the stores before it: let_go */
	any = xk_end_and_unmap(pool);
	xk_pool_lock_long(pool);
	any |= xk_end_quarantines(pool);
	if (!pool->dead && unused) {
		xk_empty_pool(pool);
		xk_claims_stop(pool);
		xk_exits_stop(pool);
	} else if (!pool->dead) {
		if (any) {
			xk_claims_left(pool);
			pool->reap_all = true;
		}
		xk_reap(pool);
#ifdef XMEM_DEBUG
		if (any && xm_host_is_valid(&pool->host))
			WARN(1, "xmem: pool%u: %s\n", pool->number, xm_host_is_valid(&pool->host));
#endif
	}
	xk_wake_concerned(pool);
	mutex_unlock(&pool->lock);
	xk_reap_finish(pool);
	xk_end_done(pool);
	xk_pool_put(pool);
}

/* Prepare the work that pool.c queues when the last use has gone. */
void xk_leave_prepare(struct xk_pool *pool)
{
	INIT_DELAYED_WORK(&pool->end_work, xk_end_work);
}
