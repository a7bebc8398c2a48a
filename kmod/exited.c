// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exit of a client's process. It matters only for a client that has ended and whose process may
 * still use memory of a GPU: work that it has given to the GPU goes on until the driver has closed
 * the process's files, and that comes after the end of the client (leave.c).
 *
 * A process has exited when all its threads are past exit_notify(): each has given up its files and
 * run its deferred work. If no other process has these files, the driver's ->release is over by
 * then. A forked child has them, too, until it calls exec (if they are close-on-exec), closes them
 * or exits; so does a process that got them over a socket. In these cases work of the dead process
 * may go on in the GPU, and nobody tells us when it is over.
 *
 * The kernel has no notification of an exit for modules. So a delayed work item of the pool asks
 * for a run of end_work, which looks: first after a jiffy, then after twice as long each time, up
 * to a second. So the exit of a process that takes long to end is noticed at most a second late,
 * and that of others sooner.
 */
#include <linux/pid.h>
#include <linux/sched/signal.h>

#include "xk.h"

/* Have all threads of the client's process exited? Any lock may be held. */
bool xk_has_exited(const struct xk_client *client)
{
	struct task_struct *task;
	bool exited;

	rcu_read_lock();
	task = pid_task(client->pid, PIDTYPE_TGID);
	exited = !task || (READ_ONCE(task->exit_state) && thread_group_empty(task));
	rcu_read_unlock();
	return exited;
}

static void xk_exit_work(struct work_struct *work)
{
	struct xk_pool *pool = container_of(to_delayed_work(work), struct xk_pool, exit_work);

	xk_end_ask(pool, false);
	xk_pool_put(pool);
}

void xk_exits_prepare(struct xk_pool *pool)
{
	INIT_DELAYED_WORK(&pool->exit_work, xk_exit_work);
}

/* Look again later whether this client's process has exited. */
void xk_exit_watch(struct xk_client *client)
{
	struct xk_pool *pool = client->pool;

	lockdep_assert_held(&pool->lock);
	if (!client->exit_watched)
		pool->exit_delay = 0;
	client->exit_watched = true;
	xk_pool_get(pool);
	if (!queue_delayed_work(xk_wq, &pool->exit_work, pool->exit_delay + 1)) {
		xk_pool_put(pool);	/* it is queued already, with a reference */
		return;
	}
	pool->exit_delay = min_t(unsigned long, 2 * pool->exit_delay + 1, HZ - 1);
}

/* The pool is empty: no timer of a dead pool may be left when the work queue is destroyed. */
void xk_exits_stop(struct xk_pool *pool)
{
	if (cancel_delayed_work(&pool->exit_work))
		xk_pool_put(pool);
}
