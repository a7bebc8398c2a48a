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
 * A pidfd reports the exit, too, without a timer: a poller of a pidfd waits in a queue of struct
 * pid, and so do we. The entry in that queue is part of struct xk_client and is there only while
 * the client is in its pool's table, so the table's reference covers it. When the pool is emptied
 * the entry is removed, too, whether the process lives or not.
 */
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>

#include "xk.h"

/* Have all threads of the client's process exited? Any lock may be held. */
static bool xk_has_exited(const struct xk_client *client)
{
	struct task_struct *task;
	bool exited;

	rcu_read_lock();
	task = pid_task(client->pid, PIDTYPE_TGID);
	exited = !task || (READ_ONCE(task->exit_state) && thread_group_empty(task));
	rcu_read_unlock();
	return exited;
}

/* Runs under the queue's lock and tasklist_lock, at each event that a pidfd can report. */
static int xk_exit_wake(struct wait_queue_entry *wait, unsigned int mode, int flags, void *key)
{
	struct xk_client *client = container_of(wait, struct xk_client, exit_wait);

	if (xk_has_exited(client))
		xk_pool_queue_end(client->pool);
	return 0;
}

/*
 * Has the client's process exited? If not, its exit will ask for end_work. Until then, or until
 * xk_exit_forget, the client stays in its pool's table.
 */
bool xk_exit_watch(struct xk_client *client)
{
	lockdep_assert_held(&client->pool->lock);
	if (!client->exit_watched) {
		client->exit_watched = true;
		init_waitqueue_func_entry(&client->exit_wait, xk_exit_wake);
		add_wait_queue(&client->pid->wait_pidfd, &client->exit_wait);
	}
	/* Check after adding the entry: an exit between the two would not be reported. */
	return xk_has_exited(client);
}

/* After this xk_exit_wake neither runs nor will run for this client. */
void xk_exit_forget(struct xk_client *client)
{
	lockdep_assert_held(&client->pool->lock);
	if (!client->exit_watched)
		return;
	remove_wait_queue(&client->pid->wait_pidfd, &client->exit_wait);
	client->exit_watched = false;
}
