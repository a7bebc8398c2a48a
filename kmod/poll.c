// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling a client's file, or a file of the request poll_fd, which is for one thing to wait on.
 * Both can be passed to other processes, and then show them what they show the client. core/poll.c
 * says when they are readable, core/search.c when they are writable. A poller takes no lock of the
 * pool, because it may be throttled and may look for long.
 *
 * A file of poll_fd keeps the client's struct, and so its pollers, but does not keep the client
 * alive: when the client has ended, the file is readable and hung up.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/sched/signal.h>
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
	int looker = xk_look_begin();

	xk_look_slowly(client->pool);

	readable = !edges && xm_readable(map, &client->followed, what);
	if (!readable) {
		xm_poll_arm(map, &client->followed, what);
		readable = xm_readable(map, &client->followed, what);
	}
	xk_look_end(looker);
	return readable;
}

/* ---- writable ---- */

/*
 * The number of groups that are searched before pages that are to be freed are released. A search
 * of one group may have to look at every ring.
 */
#define XK_SEARCH_GROUPS	1

/*
 * Is it known that a search would find nothing? It is if nobody has disarmed the word, whose value
 * is @armed, since a search that found nothing.
 */
static bool xk_in_vain(struct xk_client *client, u32 armed, struct xm_search *search)
{
	bool known;

	spin_lock(&client->look_lock);
	known = armed && armed == client->nothing_armed &&
		xm_search_is_same(search, &client->nothing);
	if (known)
		*search = client->nothing;
	spin_unlock(&client->look_lock);
	return known;
}

static void xk_save_vain(struct xk_client *client, u32 armed, const struct xm_search *search)
{
	spin_lock(&client->look_lock);
	client->nothing = *search;
	client->nothing_armed = armed;
	spin_unlock(&client->look_lock);
}

/*
 * Called between two groups. -ENOTCONN: the client has ended; -EINTR: the caller is being killed.
 */
static int xk_search_pauses(const struct xk_client *client)
{
	cond_resched();
	if (READ_ONCE(client->ended))
		return -ENOTCONN;
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static int xk_search(struct xk_client *client, u32 armed, struct xm_search *ret)
{
	const struct xm_map *map = &client->pool->look;
	int looker = xk_look_begin(), err = 0;
	bool more;

	xm_search_begin(map, client->id, ret);
	more = !xk_in_vain(client, armed, ret) &&
	       xm_search_step(map, client->id, ret, XK_SEARCH_GROUPS);
	xk_look_end(looker);
	while (more && !err) {
		err = xk_search_pauses(client);
		looker = xk_look_begin();
		more = !err && xm_search_step(map, client->id, ret, XK_SEARCH_GROUPS);
		xk_look_end(looker);
	}
	return err;
}

/* Another thread may have found an earlier time: a poller that is woken too early looks again. */
static void xk_timer_start(struct xk_client *client, ktime_t at)
{
	struct hrtimer *timer = &client->pollers->timer;

	spin_lock(&client->look_lock);
	if (!hrtimer_is_queued(timer) || ktime_before(at, hrtimer_get_expires(timer)))
		hrtimer_start(timer, at, HRTIMER_MODE_ABS);
	spin_unlock(&client->look_lock);
}

/*
 * Would an acquire find a buffer now, by the owner's clock, which may be that of a time namespace;
 * or should the owner call it? If time alone will make it so, the pollers are woken at that time.
 */
static bool xk_found(struct xk_client *client, const struct xm_search *search)
{
	u64 deadline, now = ktime_to_ns(ktime_add(ktime_get(), client->clock_offset));
	const struct xm_map *map = &client->pool->look;
	ktime_t at;

	if (xm_search_end(map, search, now, &deadline) ||
	    xm_search_should_ask(map, client->id, search))
		return true;
	at = xk_host_time(deadline, client->clock_offset);
	if (deadline && at < KTIME_MAX)
		xk_timer_start(client, at);
	return false;
}

/* 1, 0, or an error. @edges: see xk_readable. */
static int xk_writable(struct xk_client *client, bool edges)
{
	u32 *waiters = &xm_client_row(&client->pool->look, client->id)->slots_waiters;
	struct xm_search search;
	u32 armed;
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
	xk_save_vain(client, armed, &search);
	return 0;
}

/* ---- poll ---- */

/* @wanted: the events that matter. */
static int xk_look(struct xk_client *client, const struct xm_poll *what, __poll_t wanted,
		   __poll_t *ret_events)
{
	bool edges = wanted & EPOLLET;
	int out;

	*ret_events = 0;
	if (READ_ONCE(client->ended))
		return -ENOTCONN;
	if (wanted & (EPOLLIN | EPOLLRDNORM) && xk_readable(client, what, edges))
		*ret_events |= EPOLLIN | EPOLLRDNORM;
	if (!(wanted & (EPOLLOUT | EPOLLWRNORM)) || what->kind != XMEM_POLL_CLIENT ||
	    client->role == XMEM_ROLE_READER)
		return 0;
	out = xk_writable(client, edges);
	if (out > 0)
		*ret_events |= EPOLLOUT | EPOLLWRNORM;
	return out < 0 ? out : 0;
}

/*
 * The caller is in the queue already. So any change while it looks, or an end of the client, wakes
 * it, and it looks again.
 */
static __poll_t xk_poll_client(struct xk_client *client, const struct xm_poll *what,
			       __poll_t wanted)
{
	__poll_t events;
	int err = xk_look(client, what, wanted, &events);

	/* The caller may have looked while others ended the client, and seen part of its end. */
	smp_rmb();	/* pairs with queueing end_work, after `ended` is set */
	if (err == -ENOTCONN || READ_ONCE(client->ended))
		return EPOLLIN | EPOLLRDNORM | EPOLLHUP;
	if (err)	/* The caller is being killed; other pollers with it look again. */
		return EPOLLIN | EPOLLRDNORM;
	return events;
}

/* poll of a client's file. */
__poll_t xk_poll(struct file *filp, struct poll_table_struct *table)
{
	struct xk_client *client = filp->private_data;
	struct xm_poll what = { .kind = XMEM_POLL_CLIENT, .client = client->id };

	poll_wait(filp, &client->pollers->queue.head, table);
	return xk_poll_client(client, &what, poll_requested_events(table));
}

static __poll_t xk_poll_file_poll(struct file *filp, struct poll_table_struct *table)
{
	const struct xk_poll_file *file = filp->private_data;

	poll_wait(filp, &file->client->pollers->queue.head, table);
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
	refcount_inc(&client->files);
	file->client = client;
	call->give = anon_inode_getfile("[xmem-poll]", &xk_poll_file_fops, file,
					O_RDWR | O_CLOEXEC);
	if (!IS_ERR(call->give)) {
		/* A writer that joins wakes clients that may want to follow it. */
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
