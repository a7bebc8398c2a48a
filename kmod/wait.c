// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting and waking by the waiters words of the pool table.
 *
 * A waiters word exists as long as the pool's struct and is changed atomically, so no lock is
 * needed. A thread that waits for it sleeps in the queue of its own client, which has the client's
 * pollers, too (queues.c). A waker changes the word, and then visits the clients that the word
 * concerns. epoll asks for a queue only once, when it is not known yet which publishers the client
 * will follow. So all pollers of a client are in one queue, and a waker of a ring wakes the pollers
 * of its subscribers.
 */
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/policy.h"
#include "xk.h"

/* ---- queues ---- */

static u32 xk_line_of(u32 kind, u32 client)
{
	if (kind == XMEM_WAIT_RING)
		return XK_LINE_RINGS + client;
	return kind == XMEM_WAIT_SLOTS ? XK_LINE_SLOTS : XK_LINE_CLIENTS;
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

/* ---- waking ---- */

void xk_wake_pollers_of(struct xk_pool *pool, u32 client, __poll_t events)
{
	struct xk_queue *queue;

	rcu_read_lock();
	queue = rcu_dereference(pool->queue[client]);
	if (queue)
		xk_queue_poll(queue, events);
	rcu_read_unlock();
}

/* The events of @client's pollers that a word may change. */
static __poll_t xk_events_of(const struct xk_pool *pool, u32 client, const struct xk_queue *queue,
			     u32 kind, u32 who)
{
	if (kind == XMEM_WAIT_SLOTS)
		return EPOLLOUT | EPOLLWRNORM;
	/* A change of the client table concerns only clients that follow rings as one. */
	if (kind == XMEM_WAIT_CLIENTS ? READ_ONCE(queue->joint) :
	    xm_bit(xm_client_row(&pool->host.map, who)->subscribers, client))
		return EPOLLIN | EPOLLRDNORM;
	return 0;
}

/* A word has changed: wake @client's sleepers and pollers. @user: as in xk_wake_by. */
static void xk_wake_client(struct xk_pool *pool, u32 client, u32 kind, u32 who, kuid_t user)
{
	struct xk_queue *queue;
	__poll_t events = 0;
	bool call = false;

	rcu_read_lock();
	queue = rcu_dereference(pool->queue[client]);
	if (queue) {
		xk_queue_wake(queue, xk_line_of(kind, who));
		events = xk_events_of(pool, client, queue, kind, who);
	}
	if (events)
		call = xk_queue_poll_by(queue, events, user);
	rcu_read_unlock();
	if (call)
		xk_queue_call(queue, events);
}

/* @user: the caller has no lock, and calls pollers of this user's clients; or INVALID_UID. */
static void xk_wake_by(struct xk_pool *pool, u32 kind, u32 who, kuid_t user)
{
	u32 c, *word, claim;

	who = xm_index(who, pool->host.map.clients);	/* checked if from a request */
	word = xk_word(pool, kind, who);
	if (!xm_wake_begin(word, &claim))
		return;
	/* The caller may be throttled here. Until it is done, others see an armed word. */
	if (kind == XMEM_WAIT_SLOTS)
		xk_wake_client(pool, who, kind, who, user);
	for (c = 0; kind != XMEM_WAIT_SLOTS && c < pool->host.map.clients; c++)
		xk_wake_client(pool, c, kind, who, user);
	xm_wake_end(word, claim);
}

/* Wake all waiters of a word, if it is armed. */
void xk_wake(struct xk_pool *pool, u32 kind, u32 client)
{
	xk_wake_by(pool, kind, client, INVALID_UID);
}

/*
 * A cursor has moved, slots are free, or a client has begun or stopped to follow a ring: waiters
 * for slots or for subscribers may find them now (I5).
 */
void xk_wake_owners(struct xk_pool *pool)
{
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		xk_wake(pool, XMEM_WAIT_SLOTS, c);
}

/*
 * Subscribers that wait for publications may want to close memory of a GPU that its owner wants
 * back.
 */
void xk_wake_rings(struct xk_pool *pool)
{
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		xk_wake(pool, XMEM_WAIT_RING, c);
}

/* End the waits of a client's threads that began before this. They see all stores before it. */
static void xk_kick(struct xk_client *client)
{
	atomic_add_return(XK_NEXT_KICKS, &client->kicks);
	xk_queue_wake(client->queue, XK_LINE_ALL);
}

/*
 * A writer has joined. A client that follows rings as one may be waiting, and may want to follow
 * this writer, too.
 */
void xk_wake_newcomers(struct xk_pool *pool)
{
	struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_client_of(pool, c);
		if (!client)
			continue;
		if (READ_ONCE(client->queue->joint))
			xk_kick(client);
		xk_client_put(client);
	}
}

/* ---- ends ---- */

/*
 * A client has ended, or the GPU work of its process. Any owner may find now what it waits for,
 * because the client held it, or because the client dropped it or moved a cursor and died before it
 * could wake the owner.
 */
void xk_end_concerns(struct xk_pool *pool, u32 client)
{
	const struct xm_map *map = &pool->host.map;
	u32 i;

	lockdep_assert_held(&pool->lock);
	xm_set_bit(pool->concerned.ended, client, true);
	for (i = 0; i < XMEM_CLIENT_WORDS; i++)
		pool->concerned.pollers[i] |= xm_client_row(map, client)->subscribers[i];
	for (i = 0; i < map->clients; i++)
		if (xm_bit(xm_client_row(map, i)->subscribers, client))
			xm_set_bit(pool->concerned.pollers, i, true);
	pool->concerned.owners = true;
}

/* A ring has been removed, and with it entries that forward slots of any owner. */
void xk_end_concerns_owners(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	pool->concerned.owners = true;
}

/* The client's own threads and pollers return; its subscribers look again. */
static void xk_wake_ended(struct xk_pool *pool, u32 id)
{
	xk_queue_wake(pool->client[id]->queue, XK_LINE_ALL);
	xk_wake(pool, XMEM_WAIT_RING, id);
	xk_wake_pollers_of(pool, id, XK_POLL_ALL);
}

/* Wake the clients that ends have concerned since the last call, and no others. */
void xk_wake_concerned(struct xk_pool *pool)
{
	struct xk_concerned *whom = &pool->concerned;
	bool any = false;
	u32 c;

	lockdep_assert_held(&pool->lock);
	for (c = 0; c < pool->host.map.clients; c++) {
		if (xm_bit(whom->pollers, c))
			xk_wake_pollers_of(pool, c, EPOLLIN | EPOLLRDNORM);
		if (!xm_bit(whom->ended, c) || !pool->client[c])
			continue;
		xk_wake_ended(pool, c);
		any = true;
	}
	if (any)
		xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
	if (whom->owners)
		xk_wake_owners(pool);
	memset(whom, 0, sizeof(*whom));
}

/* ---- requests ---- */

static void xk_arm(struct xk_client *client, u32 *word, struct xmem_wait_request *request)
{
	if (request->kind == XMEM_WAIT_SLOTS)
		xk_queue_poll_at(client);
	request->value = xm_arm(word);
	/*
	 * After this the caller checks whether it is to stop; another thread that stops it sets
	 * that first and then kicks.
	 */
	request->kicks = atomic_read_acquire(&client->kicks);
}

/* Does the wait end? 0 or an errno; -EAGAIN: it goes on. */
static int xk_wait_test(const struct xk_client *client, u32 *word,
			const struct xmem_wait_request *request, bool late)
{
	if (READ_ONCE(client->ended))
		return -ENOTCONN;
	if (!xm_still_armed(word, request->value))
		return 0;
	if (request->kicks && request->kicks != atomic_read(&client->kicks))
		return 0;
	if (late)
		return -ETIMEDOUT;
	return signal_pending(current) ? -ERESTARTSYS : -EAGAIN;
}

static int xk_wait(struct xk_client *client, u32 *word, const struct xmem_wait_request *request)
{
	ktime_t deadline = xk_host_time(request->deadline_ns, xk_clock_offset());
	ktime_t *until = request->deadline_ns < KTIME_MAX ? &deadline : NULL;
	const u32 who = xm_index(request->client, client->pool->host.map.clients);
	const u32 line = xk_line_of(request->kind, who);
	struct xk_sleeper sleeper;
	bool late = false;
	int err;

	do {
		xk_sleep_begin(client->queue, line, &sleeper);
		err = xk_wait_test(client, word, request, late);
		if (err == -EAGAIN)
			late = !schedule_hrtimeout(until, HRTIMER_MODE_ABS);
		xk_sleep_end(client->queue, line, &sleeper);
	} while (err == -EAGAIN);
	return err;
}

int xk_wait_begin(struct xk_call *call)
{
	struct xmem_wait_request *request = &call->u.wait;
	struct xk_client *client = call->client;
	u32 *word;
	int err;

	if (request->op == XMEM_OP_KICK) {
		err = xm_kick_check(request);
		if (!err)
			xk_kick(client);
		return err;
	}
	word = xm_host_waiters(&client->pool->host, client->id, request, &err);
	if (!word)
		return err;
	if (request->op == XMEM_OP_WAIT)
		return xk_wait(client, word, request);
	if (request->op == XMEM_OP_ARM)
		xk_arm(client, word, request);
	else
		xk_wake_by(client->pool, request->kind, request->client, client->uid);
	return 0;
}

/* ---- time ---- */

/*
 * Wait for a millisecond, even if something wakes the caller earlier: a thread that releases a
 * mutex may wake a former waiter of it late. -EINTR: the caller is killed.
 */
int xk_pause(void)
{
	ktime_t until = ktime_add_ms(ktime_get(), 1);

	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		set_current_state(TASK_KILLABLE);
	} while (schedule_hrtimeout(&until, HRTIMER_MODE_ABS));
	return 0;
}

/* Give each slot a clock: see xm_is_young in core/slot.c. */
int xk_clock_prepare(struct xk_pool *pool)
{
	pool->host.born_ms = kvcalloc(pool->host.map.slots, sizeof(*pool->host.born_ms),
				      GFP_KERNEL_ACCOUNT);
	return pool->host.born_ms ? 0 : -ENOMEM;
}

/* Called before each request that may begin a tenancy. */
void xk_clock_set(struct xk_pool *pool)
{
	lockdep_assert_held(&pool->lock);
	pool->host.now_ms = div_u64(ktime_get_ns(), NSEC_PER_MSEC);
}
