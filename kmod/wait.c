// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting and waking by the waiters words of the pool table.
 *
 * A waiters word exists as long as the pool's struct and is changed atomically, so no lock is
 * needed. Each word has a queue.
 *
 * A waker pays for at most eight threads of each client. So the queue has two parts: one for the
 * first eight threads of a client that wait, for any word, and one for all other threads, whose
 * number is unlimited and which are woken as queues.c says. A client with many threads makes only
 * its own waits longer: not those of other clients, and not the work of a publisher or the end of a
 * process. A sleeper enters one of the parts before it looks at the word; a waker changes the word
 * first, and then wakes both. So no wake-up is lost.
 *
 * Another queue is for the pollers of a client's descriptors (poll.c). epoll asks for a queue only
 * once, when it is not known yet which publishers the client will follow. So that queue exists as
 * long as the client's struct, and a waker of a ring also wakes the pollers of its subscribers.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat.h"
#include "core/policy.h"
#include "xk.h"

/* ---- queues ---- */

#define XK_FEW	8	/* threads of one client that a waker wakes itself */

/* [0] is for the client table; rings and slots follow, one of each per client. */
static struct xk_word_queue *xk_queue(const struct xk_pool *pool, u32 kind, u32 client)
{
	const u32 clients = pool->host.map.clients;

	if (kind == XMEM_WAIT_CLIENTS)
		return &pool->queues->word[0];
	client = xm_index(client, clients);
	return &pool->queues->word[1 + (kind == XMEM_WAIT_SLOTS) * clients + client];
}

int xk_queues_prepare(struct xk_pool *pool)
{
	pool->queues = xk_queues_new(1 + 2 * pool->host.map.clients);
	return pool->queues ? 0 : -ENOMEM;
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

/* ---- pollers ---- */

void xk_wake_pollers_of(struct xk_pool *pool, u32 client, __poll_t events)
{
	struct xk_pollers *pollers;

	rcu_read_lock();
	pollers = rcu_dereference(pool->pollers[client]);
	if (pollers)
		xk_pollers_wake(pollers, events);
	rcu_read_unlock();
}

/* A change of the client table concerns only clients that follow rings as one. */
static void xk_wake_joint_pollers(struct xk_pool *pool)
{
	struct xk_pollers *pollers;
	u32 c;

	rcu_read_lock();
	for (c = 0; c < pool->host.map.clients; c++) {
		pollers = rcu_dereference(pool->pollers[c]);
		if (pollers && READ_ONCE(pollers->joint))
			xk_pollers_wake(pollers, EPOLLIN | EPOLLRDNORM);
	}
	rcu_read_unlock();
}

static void xk_wake_pollers(struct xk_pool *pool, u32 kind, u32 client)
{
	const struct xm_map *map = &pool->host.map;
	u32 c;

	if (kind == XMEM_WAIT_CLIENTS)
		xk_wake_joint_pollers(pool);
	if (kind == XMEM_WAIT_SLOTS)
		xk_wake_pollers_of(pool, client, EPOLLOUT | EPOLLWRNORM);
	for (c = 0; kind == XMEM_WAIT_RING && c < map->clients; c++)
		if (xm_bit(xm_client_row(map, client)->subscribers, c))
			xk_wake_pollers_of(pool, c, EPOLLIN | EPOLLRDNORM);
}

/* ---- waking ---- */

/* Wake all waiters of a word, if it is armed. */
void xk_wake(struct xk_pool *pool, u32 kind, u32 client)
{
	struct xk_word_queue *queue;

	client = xm_index(client, pool->host.map.clients);	/* checked if from a request */
	queue = xk_queue(pool, kind, client);
	if (!xm_disarm(xk_word(pool, kind, client)))
		return;
	wake_up_all(&queue->few);
	xk_queue_wake(&queue->many, XK_POLL_ALL);
	xk_wake_pollers(pool, kind, client);
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
	xk_queue_wake(&client->pollers->sleepers, XK_POLL_ALL);
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
		if (READ_ONCE(client->pollers->joint))
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
	xk_queue_wake(&pool->client[id]->pollers->sleepers, XK_POLL_ALL);
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

static u32 *xk_request_word(struct xk_call *call, enum xm_use use, int *err)
{
	return xm_host_waiters(&call->client->pool->host, call->client->id, &call->u.wait,
			       use, err);
}

int xk_arm_begin(struct xk_call *call)
{
	int err;
	u32 *word = xk_request_word(call, XM_ARM, &err);

	if (call->u.wait.deadline_ns)
		return -EINVAL;
	if (!word)
		return err;
	if (call->u.wait.kind == XMEM_WAIT_SLOTS)
		xk_pollers_wake_at(call->client);
	call->u.wait.value = xm_arm(word);
	/*
	 * After this the caller checks whether it is to stop; another thread that stops it sets
	 * that first and then kicks.
	 */
	call->u.wait.kicks = atomic_read_acquire(&call->client->kicks);
	return 0;
}

int xk_wake_begin(struct xk_call *call)
{
	const struct xmem_wait_request *request = &call->u.wait;
	int err;

	if (request->value || request->deadline_ns || request->kicks)
		return -EINVAL;
	if (request->flags & XMEM_WAKE_OWN) {
		if (request->kind || request->client)
			return -EINVAL;
		xk_kick(call->client);
		return 0;
	}
	if (!xk_request_word(call, XM_WAKE, &err))
		return err;
	xk_wake(call->client->pool, request->kind, request->client);
	return 0;
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

/* The caller is one of @count waiting threads of its client. */
static wait_queue_head_t *xk_wait_queue(const struct xk_pool *pool,
					const struct xmem_wait_request *request, u32 count)
{
	struct xk_word_queue *queue = xk_queue(pool, request->kind, request->client);

	return count > XK_FEW ? &queue->many.head : &queue->few;
}

/* In a test module the thread can be woken between the two queues of a wait. */
static void xk_wait_halfway(void)
{
#ifdef XMEM_DEBUG
	usleep_range(200, 400);
#endif
}

/*
 * The entries stay in both queues until this returns: a waker does not remove them, as it does
 * those of DEFINE_WAIT. Otherwise a late wake-up between the two steps below, for which nothing has
 * changed, would leave the thread asleep where the next kick does not find it.
 */
static int xk_wait(struct xk_client *client, u32 *word, const struct xmem_wait_request *request,
		   wait_queue_head_t *queue)
{
	ktime_t deadline = xk_host_time(request->deadline_ns, xk_clock_offset());
	ktime_t *until = request->deadline_ns < KTIME_MAX ? &deadline : NULL;
	wait_queue_head_t *sleepers = &client->pollers->sleepers.head;
	bool late = false;
	int err;
	DEFINE_WAIT_FUNC(wait, default_wake_function);
	DEFINE_WAIT_FUNC(own, default_wake_function);

	for (;;) {
		prepare_to_wait(sleepers, &own, TASK_INTERRUPTIBLE);
		xk_wait_halfway();
		prepare_to_wait(queue, &wait, TASK_INTERRUPTIBLE);
		err = xk_wait_test(client, word, request, late);
		if (err != -EAGAIN)
			break;
		late = !schedule_hrtimeout(until, HRTIMER_MODE_ABS);
	}
	finish_wait(queue, &wait);
	finish_wait(sleepers, &own);
	return err;
}

int xk_wait_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	int err;
	u32 *word = xk_request_word(call, XM_WAIT, &err);
	u32 count;

	if (!word)
		return err;
	count = atomic_inc_return(&client->waiting);
	err = xk_wait(client, word, &call->u.wait,
		      xk_wait_queue(client->pool, &call->u.wait, count));
	atomic_dec(&client->waiting);
	return err;
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
