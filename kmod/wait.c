// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting and waking by the waiters words of the pool table, and poll.
 *
 * A waiters word exists as long as the pool's struct and is changed atomically, so no
 * lock is needed. Each word has a queue. A further queue per client is for poll: epoll
 * asks for the queue only once, when nobody knows yet which publishers the client will
 * follow, so whatever wakes a ring also wakes the poll queues of its subscribers.
 */
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/policy.h"
#include "xk.h"
#include "trace.h"

#define XK_WAIT_POLL		3	/* follows enum xmem_wait_kind; requests cannot name it */
#define XK_POLL_LOOK		256	/* how many slots one poll looks at */

/* ---- queues ---- */

/* [0] is for the client table; rings, slots and polls follow, one of each per client. */
static wait_queue_head_t *xk_queue(const struct xk_pool *pool, u32 kind, u32 client)
{
	return kind == XMEM_WAIT_CLIENTS ? &pool->queues[0] :
		&pool->queues[1 + (kind - 1) * pool->host.map.clients + client];
}

int xk_queues_prepare(struct xk_pool *pool)
{
	u32 i, count = 1 + 3 * pool->host.map.clients;

	pool->queues = kvcalloc(count, sizeof(*pool->queues), GFP_KERNEL_ACCOUNT);
	if (!pool->queues)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		init_waitqueue_head(&pool->queues[i]);
	return 0;
}

static u32 *xk_word(const struct xk_pool *pool, u32 kind, u32 client)
{
	const struct xm_map *map = &pool->host.map;

	if (kind == XMEM_WAIT_CLIENTS)
		return &map->pool->clients_waiters;
	if (kind == XMEM_WAIT_RING)
		return &xm_client_row(map, client)->ring_waiters;
	return &xm_client_row(map, client)->slots_waiters;
}

static void xk_wake_queues(struct xk_pool *pool, u32 kind, u32 client)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	wake_up_all(xk_queue(pool, kind, client));
	if (kind == XMEM_WAIT_SLOTS)
		wake_up_all(xk_queue(pool, XK_WAIT_POLL, client));
	for (c = 0; kind == XMEM_WAIT_RING && c < map->clients; c++)
		if (xm_bit(xm_client_row(map, client)->subscribers, c))
			wake_up_all(xk_queue(pool, XK_WAIT_POLL, c));
}

/* Wakes all who wait on a word, if it is armed. */
void xk_wake(struct xk_pool *pool, u32 kind, u32 client)
{
	if (!xm_disarm(xk_word(pool, kind, client)))
		return;
	trace_xmem_wake(pool->number, kind, client);
	xk_wake_queues(pool, kind, client);
}

/* Wakes unconditionally, because the threads of an ended client must return too. */
void xk_wake_everybody(struct xk_pool *pool)
{
	u32 c;

	xm_disarm(xk_word(pool, XMEM_WAIT_CLIENTS, 0));
	wake_up_all(xk_queue(pool, XMEM_WAIT_CLIENTS, 0));
	for (c = 0; c < pool->host.map.clients; c++) {
		xm_disarm(xk_word(pool, XMEM_WAIT_RING, c));
		xm_disarm(xk_word(pool, XMEM_WAIT_SLOTS, c));
		wake_up_all(xk_queue(pool, XMEM_WAIT_RING, c));
		wake_up_all(xk_queue(pool, XMEM_WAIT_SLOTS, c));
		wake_up_all(xk_queue(pool, XK_WAIT_POLL, c));
	}
}

/* ---- requests ---- */

static u32 *xk_request_word(struct xk_call *call, bool arm, int *err)
{
	return xm_host_waiters(&call->client->pool->host, call->client->id, &call->u.wait,
			       arm, err);
}

int xk_arm_begin(struct xk_call *call)
{
	int err;
	u32 *word = xk_request_word(call, true, &err);

	if (call->u.wait.deadline_ns)
		return -EINVAL;
	if (!word)
		return err;
	call->u.wait.value = xm_arm(word);
	return 0;
}

int xk_wake_begin(struct xk_call *call)
{
	int err;

	if (call->u.wait.value || call->u.wait.deadline_ns)
		return -EINVAL;
	if (!xk_request_word(call, false, &err))
		return err;
	xk_wake(call->client->pool, call->u.wait.kind, call->u.wait.client);
	return 0;
}

/* How the wait ends: 0 or an errno; -EAGAIN: it goes on. */
static int xk_wait_over(const struct xk_client *client, u32 *word, u32 value, bool late)
{
	if (READ_ONCE(client->ended))
		return -ENOTCONN;
	if (!xm_still_armed(word, value))
		return 0;
	if (late)
		return -ETIMEDOUT;
	return signal_pending(current) ? -ERESTARTSYS : -EAGAIN;
}

int xk_wait_begin(struct xk_call *call)
{
	const struct xmem_wait_request *request = &call->u.wait;
	ktime_t deadline = xk_host_time(ns_to_ktime(min_t(u64, request->deadline_ns, KTIME_MAX)));
	ktime_t *until = request->deadline_ns < KTIME_MAX ? &deadline : NULL;
	bool late = false;
	wait_queue_head_t *queue;
	int err;
	u32 *word = xk_request_word(call, false, &err);
	DEFINE_WAIT(wait);

	if (!word)
		return err;
	queue = xk_queue(call->client->pool, request->kind, request->client);
	for (;;) {
		prepare_to_wait(queue, &wait, TASK_INTERRUPTIBLE);
		err = xk_wait_over(call->client, word, request->value, late);
		if (err != -EAGAIN)
			break;
		late = !schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	}
	finish_wait(queue, &wait);
	return err;
}

/* Waits a millisecond, or until the caller is killed. */
void xk_pause(void)
{
	ktime_t pause = ms_to_ktime(1);

	set_current_state(TASK_KILLABLE);
	schedule_hrtimeout(&pause, HRTIMER_MODE_REL);
}

/* ---- poll ---- */

/* Is there something to receive, or an end to see? Arms all rings that the client follows. */
static bool xk_poll_in(struct xk_client *client)
{
	const struct xm_map *map = &client->pool->host.map;
	bool any = false;
	u32 p;

	for (p = 0; p < map->clients; p++) {
		if (!(client->follows[p / 64] >> p % 64 & 1))
			continue;
		if (!xm_bit(xm_client_row(map, p)->subscribers, client->id)) {
			any = true;	/* that publisher has ended */
			continue;
		}
		xm_arm(&xm_client_row(map, p)->ring_waiters);
		if (xm_ready(map, p, xm_load(&xm_client_row(map, p)->incarnation),
			     xm_load(xm_cursor(map, client->id, p))))
			any = true;
	}
	return any;
}

static bool xk_is_held(const struct xm_map *map, u32 slot)
{
	u32 c;

	for (c = 0; c < map->clients; c++)
		if (xm_bit(map->pool->counted, c) &&
		    xm_load_acquire(xm_hold(map, c, slot)) & XM_HOLD_COUNT)
			return true;
	return false;
}

/*
 * Would an acquire find something? This only looks, so it may say yes too often: the
 * owner decides what it evicts, and after XK_POLL_LOOK slots the answer is always yes.
 */
static bool xk_poll_out(struct xk_client *client)
{
	const struct xm_map *map = &client->pool->host.map;
	struct xm_waited waited;
	u32 s, looked = 0;

	xm_arm(&xm_client_row(map, client->id)->slots_waiters);
	xm_look_at_waited(map, client->id, &waited);
	for (s = 0; s < map->slots; s++) {
		u32 state;

		if (xm_slot_row(map, s)->owner != client->id)
			continue;
		if (++looked > XK_POLL_LOOK)
			return true;
		state = xm_state(xm_load_acquire(&xm_slot(map, s)->state));
		if (state == XMEM_SLOT_FREE)
			return true;
		if (state == XMEM_SLOT_LIVE &&
		    xm_load(&xm_slot(map, s)->position) <= waited.evictable &&
		    !xk_is_held(map, s))
			return true;
	}
	return false;
}

__poll_t xk_poll(struct file *filp, struct poll_table_struct *table)
{
	const struct xk_file *file = filp->private_data;
	struct xk_client *client = smp_load_acquire(&file->client);
	__poll_t events = 0;

	if (!client)
		return EPOLLERR;
	poll_wait(filp, xk_queue(client->pool, XK_WAIT_POLL, client->id), table);
	if (xk_client_lock(client))
		return EPOLLERR | EPOLLHUP;
	if (xk_poll_in(client))
		events |= EPOLLIN | EPOLLRDNORM;
	if (client->role == XMEM_ROLE_WRITER && poll_requested_events(table) & EPOLLOUT &&
	    xk_poll_out(client))
		events |= EPOLLOUT;
	mutex_unlock(&client->pool->lock);
	return events;
}
