// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling: a client's file itself, and the request poll_fd, which gives a file of its
 * own for one thing to wait on. Both can be passed to other processes, and say then what
 * they say to the client. core/poll.c knows when they are readable and writable.
 *
 * A file of poll_fd keeps the client's struct, and so its pollers, but not the client: when
 * that has ended, the file is readable and hung up.
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

/* @edges: the caller is told only of changes. Then the words are armed whatever there is. */
static bool xk_readable(struct xk_client *client, const struct xm_poll *what, bool edges)
{
	const struct xm_map *map = &client->pool->host.map;

	if (!edges && xm_readable(map, &client->followed, what))
		return true;
	xm_poll_arm(map, &client->followed, what);
	return xm_readable(map, &client->followed, what);
}

/* ---- writable ---- */

/*
 * So many groups are searched before others get the pool's lock. It may take a look at every ring
 * to search one of them.
 */
#define XK_SEARCH_GROUPS	1

/*
 * Searches, unless it is known that it would be in vain: nobody has disarmed the word, whose
 * value is @armed, since a search that found nothing. An error: the lock is not held any more.
 */
static int xk_search(struct xk_client *client, u32 armed, struct xm_search *ret)
{
	struct xk_pool *pool = client->pool;
	int err;

	xm_search_begin(&pool->host.map, client->id, ret);
	if (armed && armed == client->nothing_armed && xm_search_is_same(ret, &client->nothing)) {
		*ret = client->nothing;
		return 0;
	}
	while (xm_search_go_on(&pool->host.map, client->id, ret, XK_SEARCH_GROUPS)) {
		mutex_unlock(&pool->lock);
		cond_resched();
		err = xk_client_lock(client);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Would an acquire find something at the time of the owner's clock, which may be that of a
 * time namespace, or shall the owner ask? If only the time makes it so, the pollers are woken then.
 */
static bool xk_found(struct xk_client *client, const struct xm_search *search)
{
	u64 deadline, now = ktime_to_ns(ktime_add(ktime_get(), client->clock_offset));
	const struct xm_map *map = &client->pool->host.map;
	ktime_t at;

	if (xm_search_end(map, search, now, &deadline) ||
	    xm_search_wants_to_ask(map, client->id, search))
		return true;
	at = xk_host_time(deadline, client->clock_offset);
	if (deadline && at < KTIME_MAX)
		hrtimer_start(&client->pollers->timer, at, HRTIMER_MODE_ABS);
	return false;
}

/* 1, 0, or an error: then the lock is not held any more. @edges: see xk_readable. */
static int xk_writable(struct xk_client *client, bool edges)
{
	u32 *waiters = &xm_client_row(&client->pool->host.map, client->id)->slots_waiters;
	struct xm_search search;
	u32 armed = 0;
	int err;

	if (!edges && !(xm_load(waiters) & XMEM_WAITERS_ARMED)) {
		err = xk_search(client, 0, &search);
		if (err)
			return err;
		if (xk_found(client, &search))
			return 1;
	}
	armed = xm_arm(waiters);
	err = xk_search(client, armed, &search);
	if (err)
		return err;
	if (xk_found(client, &search))
		return 1;
	client->nothing = search;
	client->nothing_armed = armed;
	return 0;
}

/* ---- both ---- */

/* Under the lock, which is not held any more after an error. @wanted: the events that matter. */
static int xk_look(struct xk_client *client, const struct xm_poll *what, __poll_t wanted,
		   __poll_t *ret_events)
{
	bool edges = wanted & EPOLLET;
	int out;

	*ret_events = 0;
	if (wanted & (EPOLLIN | EPOLLRDNORM) && xk_readable(client, what, edges))
		*ret_events |= EPOLLIN | EPOLLRDNORM;
	if (!(wanted & (EPOLLOUT | EPOLLWRNORM)) || what->kind != XMEM_POLL_CLIENT ||
	    client->role != XMEM_ROLE_WRITER)
		return 0;
	out = xk_writable(client, edges);
	if (out > 0)
		*ret_events |= EPOLLOUT | EPOLLWRNORM;
	return out < 0 ? out : 0;
}

static __poll_t xk_poll_client(struct xk_client *client, const struct xm_poll *what,
			       __poll_t wanted)
{
	__poll_t events;
	int err = xk_client_lock(client);

	if (!err)
		err = xk_look(client, what, wanted, &events);
	if (err == -ENOTCONN)
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	if (err)	/* The caller is being killed; whoever polls with it shall look. */
		return EPOLLIN | EPOLLRDNORM;
	mutex_unlock(&client->pool->lock);
	return events;
}

/* Of a client's file. */
__poll_t xk_poll(struct file *filp, struct poll_table_struct *table)
{
	struct xk_client *client = filp->private_data;
	struct xm_poll what = { .kind = XMEM_POLL_CLIENT, .client = client->id };

	poll_wait(filp, &client->pollers->queue, table);
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

	xk_client_close(file->client);
	xk_client_put(file->client);
	kfree(file);
	return 0;
}

/* The client's lines, and what is waited for. */
static void xk_poll_file_show(struct seq_file *m, struct file *filp)
{
	const struct xk_poll_file *file = filp->private_data;

	xk_fdinfo_client(m, file->client);
	if (file->what.kind == XMEM_POLL_RING)
		seq_printf(m, "xmem-polls:\tring %u\n", file->what.publisher);
	else
		seq_printf(m, "xmem-polls:\t%s\n",
			   file->what.kind == XMEM_POLL_JOINT ? "joint" : "client");
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
	refcount_inc(&client->files);
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
	xk_client_close(client);
	xk_client_put(client);
err_free:
	kfree(file);
	return err;
}
