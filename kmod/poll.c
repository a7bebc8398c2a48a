// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling: the file of /dev/xmem itself, and the request poll_fd, which gives a file of its
 * own for one thing to wait on. Both can be passed to other processes, and say then what
 * they say to the client. core/poll.c knows when they are readable and writable.
 *
 * A file of poll_fd keeps the client's struct, and so its pollers, but not the client: when
 * that has ended, the file is readable and hung up.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/slab.h>

#include "xk.h"

struct xk_poll_file {
	struct xk_client *client;	/* with a reference */
	struct xm_poll what;
};

/* ---- looking ---- */

/*
 * Would an acquire find something? If only the time makes it so, the pollers are woken
 * then. The owner's clock may be that of a time namespace.
 */
static bool xk_writable(struct xk_client *client)
{
	struct xk_pollers *pollers = client->pollers;
	u64 deadline, now = ktime_to_ns(ktime_add(ktime_get(), client->clock_offset));
	ktime_t at;

	if (xm_writable(&client->pool->host.map, client->id, now, &deadline))
		return true;
	if (deadline > now && deadline < KTIME_MAX) {
		at = ktime_sub(ns_to_ktime(deadline), client->clock_offset);
		hrtimer_start(&pollers->timer, at, HRTIMER_MODE_ABS);
	}
	return false;
}

/* Arms what can change the answer, then looks. @wanted: the events that matter. */
static __poll_t xk_poll_client(struct xk_client *client, const struct xm_poll *what,
			       __poll_t wanted)
{
	const struct xm_map *map = &client->pool->host.map;
	bool out = wanted & (EPOLLOUT | EPOLLWRNORM) && what->kind == XMEM_POLL_CLIENT &&
		   client->role == XMEM_ROLE_WRITER;
	__poll_t events = 0;
	int err = xk_client_lock(client);

	if (err == -ENOTCONN)
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	if (err)	/* The caller is being killed; whoever polls with it shall look. */
		return EPOLLIN | EPOLLRDNORM;
	xm_poll_arm(map, &client->followed, what, out);
	if (xm_readable(map, &client->followed, what))
		events |= EPOLLIN | EPOLLRDNORM;
	if (out && xk_writable(client))
		events |= EPOLLOUT | EPOLLWRNORM;
	mutex_unlock(&client->pool->lock);
	return events;
}

/* Of the file of /dev/xmem. Before it has joined there is nothing to say; join wakes. */
__poll_t xk_poll(struct file *filp, struct poll_table_struct *table)
{
	const struct xk_file *file = filp->private_data;
	struct xk_client *client;
	struct xm_poll what = { .kind = XMEM_POLL_CLIENT };

	poll_wait(filp, &file->pollers->queue, table);
	client = smp_load_acquire(&file->client);
	if (!client)
		return 0;
	what.client = client->id;
	return xk_poll_client(client, &what, poll_requested_events(table));
}

static __poll_t xk_poll_file_poll(struct file *filp, struct poll_table_struct *table)
{
	const struct xk_poll_file *file = filp->private_data;

	poll_wait(filp, &file->client->pollers->queue, table);
	return xk_poll_client(file->client, &file->what, poll_requested_events(table));
}

/* ---- the request ---- */

static int xk_poll_file_release(struct inode *inode, struct file *filp)
{
	struct xk_poll_file *file = filp->private_data;

	xk_client_put(file->client);
	kfree(file);
	return 0;
}

static const struct file_operations xk_poll_file_fops = {
	.owner = THIS_MODULE,
	.release = xk_poll_file_release,
	.poll = xk_poll_file_poll,
	.llseek = noop_llseek,
};

int xk_poll_fd_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	struct xk_poll_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!file)
		return err;
	err = xm_poll_take(&client->pool->host.map, client->id, &call->u.poll_fd, &file->what);
	if (err)
		goto err_free;
	kref_get(&client->kref);
	file->client = client;
	call->give = anon_inode_getfile("[xmem-poll]", &xk_poll_file_fops, file,
					O_RDWR | O_CLOEXEC);
	if (!IS_ERR(call->give)) {
		/* A writer that joins wakes those who may want to follow it. */
		if (file->what.kind == XMEM_POLL_JOINT)
			WRITE_ONCE(client->pollers->joint, true);
		return 0;
	}
	err = PTR_ERR(call->give);
	call->give = NULL;
	xk_client_put(client);
err_free:
	kfree(file);
	return err;
}
