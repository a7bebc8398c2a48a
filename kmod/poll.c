// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling a client's file, or a file of the request poll_fd, which is for one thing to wait on.
 * Both can be passed to other processes, and then show them what they show the client. core/poll.c
 * and core/poll.h say when they are readable and writable. A poller takes no lock of the pool
 * but look_lock, because it may be throttled between two looks.
 *
 * A file of poll_fd keeps the client's struct, and so its queue, but does not keep the client
 * alive: when the client has ended, the file is readable and hung up.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

struct xk_poll_file {
	struct xk_client *client;	/* with a reference */
	struct xm_poll what;
};

/* ---- readable ---- */

/* @edges: the caller is told only of changes. Then the words are armed in any case. */
static bool xk_readable(struct xk_client *client, const struct xm_poll *what, bool edges)
{
	const struct xm_map *map = &client->pool->look;
	bool readable;

	xk_look_begin(client->pool);
	xk_look_slowly(client->pool);
	readable = !edges && xm_readable(map, &client->followed, what);
	if (!readable) {
		xm_poll_arm(map, &client->followed, what);
		readable = xm_readable(map, &client->followed, what);
	}
	xk_look_end(client->pool);
	return readable;
}

/* ---- writable ---- */

static bool xk_writable(const struct xk_client *client)
{
	u64 now = ktime_to_ns(ktime_add(ktime_get(), client->clock_offset));
	bool writable;

	xk_look_begin(client->pool);
	writable = xm_writable(&client->pool->look, client->id, now);
	xk_look_end(client->pool);
	return writable;
}

/* ---- poll ---- */

/* @wanted: the events that matter. */
static __poll_t xk_look(struct xk_client *client, const struct xm_poll *what, __poll_t wanted)
{
	__poll_t events = 0;

	if (wanted & (EPOLLIN | EPOLLRDNORM) && xk_readable(client, what, wanted & EPOLLET))
		events |= EPOLLIN | EPOLLRDNORM;
	if (wanted & (EPOLLOUT | EPOLLWRNORM) && what->kind == XMEM_POLL_CLIENT &&
	    client->role != XMEM_ROLE_READER && xk_writable(client))
		events |= EPOLLOUT | EPOLLWRNORM;
	return events;
}

/*
 * The caller is in the queue already. So any change while it looks, or an end of the client, wakes
 * it, and it looks again.
 */
static __poll_t xk_poll_client(struct xk_client *client, const struct xm_poll *what,
			       __poll_t wanted)
{
	__poll_t events;

	smp_mb();	/* in the queue, then the look: pairs with wq_has_sleeper of a waker */
	events = xk_look(client, what, wanted);
	/* The caller may have looked while others ended the client, and seen part of its end. */
	smp_rmb();	/* pairs with queueing end_work, after `ended` is set */
	if (READ_ONCE(client->ended))
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	return events;
}

/* poll of a client's file. */
__poll_t xk_poll(struct file *filp, struct poll_table_struct *table)
{
	struct xk_client *client = filp->private_data;
	struct xm_poll what = { .kind = XMEM_POLL_CLIENT, .client = client->id };

	poll_wait(filp, &client->queue->pollers, table);
	return xk_poll_client(client, &what, poll_requested_events(table));
}

static __poll_t xk_poll_file_poll(struct file *filp, struct poll_table_struct *table)
{
	const struct xk_poll_file *file = filp->private_data;

	poll_wait(filp, &file->client->queue->pollers, table);
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

/* The lines of the client, and what the file waits for. */
static void xk_poll_file_show(struct seq_file *m, struct file *filp)
{
	const struct xk_poll_file *file = filp->private_data;

	xk_fdinfo_client(m, file->client);
	if (file->what.kind == XMEM_POLL_RING)
		seq_printf(m, "xmem-polls:\tring %u\n", file->what.publisher);
	else
		seq_printf(m, "xmem-polls:\t%s\n",
			   file->what.kind == XMEM_POLL_JOINT ? "joint" :
			   file->what.kind == XMEM_POLL_SUBSCRIBERS ? "subscribers" : "client");
}

static const struct file_operations xk_poll_file_fops = {
	.owner = THIS_MODULE,
	.release = xk_poll_file_release,
	.show_fdinfo = xk_poll_file_show,
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
		/* A writer that joins wakes clients that may want to follow it. */
		if (file->what.kind == XMEM_POLL_JOINT)
			WRITE_ONCE(client->queue->joint, true);
		return 0;
	}
	err = PTR_ERR(call->give);
	call->give = NULL;
	xk_client_put(client);
err_free:
	kfree(file);
	return err;
}
