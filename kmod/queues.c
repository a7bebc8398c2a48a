// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue of one client: its threads that sleep in the request wait (wait.c), and the pollers of
 * its descriptors (poll.c). A client may have any number of both. A waker, for example a publisher
 * or a process that ends, pays for neither.
 *
 * Sleepers are woken as a chain. Each word has a line of the sleepers that wait for it, and one
 * more line has all sleepers of the client. A waker begins a new turn of a line and wakes its first
 * sleeper. Each sleeper that leaves a line, for any reason, wakes the first two that entered it
 * before the present turn. So a waker wakes one thread of each client, and the client's own threads
 * wake the others.
 *
 * No wake-up is lost. A sleeper enters its lines before it looks at what it waits for; a waker
 * changes that first, and then begins the turn. While a line has a sleeper of an older turn, a
 * thread that the line has lost has yet to wake the next. It does so even if it was killed, because
 * between these two steps it runs only the module's code. Model: tests/model/chain.pml.
 *
 * Pollers cannot be a chain. They are functions of other subsystems: the module is not told when
 * one of them goes, and an epoll set may belong to a thread that is busy for long while another
 * thread sleeps in the next set. Behind one of them there may be any number of epoll sets and
 * threads. So the request wake calls the pollers of its own user's clients only. All other pollers
 * are called by a work item. After a millisecond it stops midway. It rests after each run for 64
 * times the time that the run took. So the pollers of one client take about a 64th of a processor
 * outside the control groups of their user, or a few percent if the last ones of a run take long.
 * After a long run, the next one does not begin at once: it would take the waker's processor. Model
 * of the work item: tests/model/late.pml.
 */
#include <linux/init.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "compat.h"
#include "xk.h"

#define XK_CALLED_AT_ONCE	8u
#define XK_REST		64u		/* times as long as the pollers took */
#define XK_SLOW_NS	100000u		/* then not at once, when the waker goes on */
#define XK_LONGEST_NS	NSEC_PER_MSEC	/* then a run stops midway */
#define XK_LONGEST_REST	(HZ / 10)	/* the work item may have lost its processor meanwhile */

/* With a rescuer (WQ_MEM_RECLAIM), because a waiter for a buffer must not wait for memory. */
static struct workqueue_struct *xk_wake_wq;
static atomic_t queues;		/* number of structs xk_queue */

int __init xk_queues_init(void)
{
	xk_wake_wq = alloc_workqueue("xmem_wake", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return xk_wake_wq ? 0 : -ENOMEM;
}

/* All clients are gone. This waits for work that is queued, or has yet to be, and wakes nobody. */
void xk_queues_exit(void)
{
	wait_var_event(&queues, !atomic_read(&queues));
	destroy_workqueue(xk_wake_wq);
}

/* ---- sleepers ---- */

/* Under queue->lock. */
static void xk_sleeper_unlink(struct xk_sleeper *sleeper)
{
	list_del_init(&sleeper->own.node);
	list_del_init(&sleeper->all.node);
}

/* Under queue->lock: wake the first sleeper that entered the line before its present turn. */
static void xk_line_wake(struct xk_line *line)
{
	struct xk_place *first = list_first_entry_or_null(&line->places, struct xk_place, node);

	if (!first || first->turn == line->turn)
		return;
	xk_sleeper_unlink(first->sleeper);
	wake_up_process(first->sleeper->task);
}

/* Under queue->lock: a sleeper has left the line. The number of those that are awake doubles. */
static void xk_line_pass(struct xk_line *line)
{
	xk_line_wake(line);
	xk_line_wake(line);
}

static void xk_line_enter(struct xk_line *line, struct xk_place *place)
{
	place->turn = line->turn;
	list_add_tail(&place->node, &line->places);
}

/* The caller may sleep until it is woken. From here on its changes of state are this file's. */
void xk_sleep_begin(struct xk_queue *queue, u32 number, struct xk_sleeper *sleeper)
{
	sleeper->task = current;
	sleeper->own.sleeper = sleeper;
	sleeper->all.sleeper = sleeper;
	spin_lock(&queue->lock);
	xk_line_enter(&queue->line[number], &sleeper->own);
	xk_line_enter(&queue->line[XK_LINE_ALL], &sleeper->all);
	set_current_state(TASK_INTERRUPTIBLE);	/* pairs with xk_queue_wake */
	spin_unlock(&queue->lock);
}

/* The sleeper was woken, or leaves by itself. In both cases it wakes the next of its lines. */
void xk_sleep_end(struct xk_queue *queue, u32 number, struct xk_sleeper *sleeper)
{
	__set_current_state(TASK_RUNNING);
	spin_lock(&queue->lock);
	xk_sleeper_unlink(sleeper);
	xk_line_pass(&queue->line[number]);
	xk_line_pass(&queue->line[XK_LINE_ALL]);
	spin_unlock(&queue->lock);
}

/* Wake all sleepers of a line, whose condition has changed before. Takes only a spinlock. */
void xk_queue_wake(struct xk_queue *queue, u32 number)
{
	struct xk_line *line = &queue->line[number];

	smp_mb();	/* the change comes before this: pairs with xk_sleep_begin */
	if (list_empty(&line->places))
		return;
	spin_lock(&queue->lock);
	line->turn++;
	xk_line_wake(line);
	spin_unlock(&queue->lock);
}

/* ---- pollers ---- */

static void xk_queue_release(struct kref *kref)
{
	struct xk_queue *queue = container_of(kref, struct xk_queue, kref);

	kfree_rcu(queue, rcu);	/* a waker may still be reading it */
	if (atomic_dec_and_test(&queues))
		wake_up_var(&queues);
}

/* The function of a mark, which is in the queue but waits for nothing. */
static int xk_mark_woken(struct wait_queue_entry *mark, unsigned int mode, int sync, void *key)
{
	return 0;
}

/*
 * Under the lock of the pollers: call the next few after the mark. false: there are no more before
 * @end, or in the queue if that is NULL.
 */
static bool xk_call_next(struct xk_queue *queue, struct wait_queue_entry *mark,
			 const struct wait_queue_entry *end, __poll_t events)
{
	struct wait_queue_entry *poller;
	u32 count;

	for (count = 0; count < XK_CALLED_AT_ONCE; count++) {
		if (list_is_last(&mark->entry, &queue->pollers.head))
			return false;
		poller = list_next_entry(mark, entry);
		if (poller == end)
			return false;
		list_move(&mark->entry, &poller->entry);	/* before it may leave the queue */
		poller->func(poller, TASK_NORMAL, 0, poll_to_key(events));
	}
	return true;
}

/*
 * Call all pollers for @events, and drop a reference to the queue. May sleep. A caller that is
 * killed meanwhile leaves them to the work item.
 */
void xk_queue_call(struct xk_queue *queue, __poll_t events)
{
	spinlock_t *lock = &queue->pollers.lock;
	struct wait_queue_entry mark, end;
	bool killed = false;

	init_waitqueue_func_entry(&mark, xk_mark_woken);
	init_waitqueue_func_entry(&end, xk_mark_woken);
	spin_lock_irq(lock);
	/* New pollers, which have yet to look, enter before the mark or, if exclusive, last. */
	list_add(&mark.entry, &queue->pollers.head);
	list_add_tail(&end.entry, &queue->pollers.head);
	while (!killed && xk_call_next(queue, &mark, &end, events)) {
		spin_unlock_irq(lock);
		cond_resched();
		killed = fatal_signal_pending(current);
		spin_lock_irq(lock);
	}
	list_del(&mark.entry);
	list_del(&end.entry);
	spin_unlock_irq(lock);
	if (killed)
		xk_queue_poll(queue, events);
	kref_put(&queue->kref, xk_queue_release);
}

/* How long the work rests, in jiffies. */
static long xk_queue_rest(const struct xk_queue *queue)
{
	long least = READ_ONCE(queue->slow), rest = READ_ONCE(queue->rests_until) - jiffies;

	return clamp(rest, least, (long)XK_LONGEST_REST);
}

/*
 * Under the lock of the pollers: go on where the last run has stopped, or begin anew. A waker that
 * still sees its events in `late` has made its change before that. false: all have been called.
 */
static bool xk_queue_go_on(struct xk_queue *queue, u64 until)
{
	if (list_empty(&queue->mark.entry)) {
		queue->called = (__force __poll_t)atomic_xchg(&queue->late, 0);
		list_add(&queue->mark.entry, &queue->pollers.head);
	}
	while (xk_call_next(queue, &queue->mark, NULL, queue->called)) {
		if (ktime_get_ns() > until)
			return true;
		spin_unlock_irq(&queue->pollers.lock);
		cond_resched();
		spin_lock_irq(&queue->pollers.lock);
	}
	list_del_init(&queue->mark.entry);
	return false;
}

/* The next run gets the reference of this one. Wakers may have queued it already, with another. */
static void xk_queue_work(struct work_struct *work)
{
	struct xk_queue *queue = container_of(to_delayed_work(work), struct xk_queue, work);
	u64 began = ktime_get_ns(), took;
	bool more;

	spin_lock_irq(&queue->pollers.lock);
	more = xk_queue_go_on(queue, began + XK_LONGEST_NS);
	spin_unlock_irq(&queue->pollers.lock);
	took = ktime_get_ns() - began;
	WRITE_ONCE(queue->slow, took > XK_SLOW_NS);
	WRITE_ONCE(queue->rests_until,
		   jiffies + min_t(u64, nsecs_to_jiffies(took * XK_REST), XK_LONGEST_REST));
	/* A waker that came midway may have queued this run, which did not call for its events. */
	if ((more || atomic_read(&queue->late)) &&
	    queue_delayed_work(xk_wake_wq, &queue->work, xk_queue_rest(queue)))
		return;
	kref_put(&queue->kref, xk_queue_release);
}

/* Wake all pollers for one of @events. Runs in interrupts, too. */
void xk_queue_poll(struct xk_queue *queue, __poll_t events)
{
	if (!wq_has_sleeper(&queue->pollers))	/* pairs with xk_poll_client */
		return;
	/*
	 * Another waker may have noted these events and been throttled before it has queued the
	 * work. So only the work itself is relied on.
	 */
	atomic_fetch_or((__force int)events, &queue->late);
	if (delayed_work_pending(&queue->work))
		return;		/* it has yet to begin, and will see the note */
	if (!kref_get_unless_zero(&queue->kref))
		return;		/* nobody polls any more */
	if (!queue_delayed_work(xk_wake_wq, &queue->work, xk_queue_rest(queue)))
		kref_put(&queue->kref, xk_queue_release);	/* it is queued, with a reference */
}

/*
 * As xk_queue_poll, for a waker of @user. true: this is the user of the client, too, so the caller
 * shall call the pollers itself (xk_queue_call), and has a reference for that.
 */
bool xk_queue_poll_by(struct xk_queue *queue, __poll_t events, kuid_t user)
{
	if (uid_eq(user, queue->user))
		return wq_has_sleeper(&queue->pollers) && kref_get_unless_zero(&queue->kref);
	xk_queue_poll(queue, events);
	return false;
}

/* An acquire may succeed now, because the owner may demote subscribers, say. */
static enum hrtimer_restart xk_queue_timeout(struct hrtimer *timer)
{
	xk_queue_poll(container_of(timer, struct xk_queue, timer), EPOLLOUT | EPOLLWRNORM);
	return HRTIMER_NORESTART;
}

/*
 * A thread of the client is about to look for a slot: wake the pollers when time alone has changed
 * something (core/poll.h). If that time has passed already, a poll finds it (xm_writable).
 */
void xk_queue_poll_at(struct xk_client *client)
{
	ktime_t at;
	u64 ns;

	xk_look_begin(client->pool);
	ns = xm_load(&xm_ring(&client->pool->look, client->id)->look_at_ns);
	xk_look_end(client->pool);
	at = xk_host_time(ns, client->clock_offset);
	if (ns && at < KTIME_MAX)
		hrtimer_start(&client->queue->timer, at, HRTIMER_MODE_ABS);
}

/* ---- making and freeing ---- */

/* Returns it with a reference. @user: of its client. */
struct xk_queue *xk_queue_new(u32 clients, kuid_t user)
{
	const u32 lines = XK_LINE_RINGS + clients;
	struct xk_queue *queue = kzalloc(struct_size(queue, line, lines), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!queue)
		return NULL;
	atomic_inc(&queues);
	kref_init(&queue->kref);
	queue->user = user;
	spin_lock_init(&queue->lock);
	for (i = 0; i < lines; i++)
		INIT_LIST_HEAD(&queue->line[i].places);
	init_waitqueue_head(&queue->pollers);
	init_waitqueue_func_entry(&queue->mark, xk_mark_woken);
	INIT_LIST_HEAD(&queue->mark.entry);
	INIT_DELAYED_WORK(&queue->work, xk_queue_work);
	queue->slow = true;	/* until a run has shown what they take */
	queue->rests_until = jiffies;
	xk_timer_setup(&queue->timer, xk_queue_timeout);
	return queue;
}

/* Its client is being freed, so nobody sleeps or polls any more. */
void xk_queue_free(struct xk_queue *queue)
{
	hrtimer_cancel(&queue->timer);
	kref_put(&queue->kref, xk_queue_release);
}
