// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: join, which makes a client of a pool, with a file of its own, and makes that
 * pool if need be; and pool_fd, which gives a descriptor whose holder may join the pool.
 * leave.c ends a client.
 */
#include <linux/anon_inodes.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/pid.h>

#include "xk.h"
#include "trace.h"

/* ---- the client enters the pool ---- */

/* An id that neither a client has, nor what is left of one, nor one that is still joining. */
static int xk_free_id(const struct xk_pool *pool)
{
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		if (!pool->client[c])
			return c;
	return -EUSERS;
}

/* Will an id be free when end_work has run: has a client ended, or can one be buried? */
static bool xk_id_comes(const struct xk_pool *pool)
{
	const struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = pool->client[c];
		if (client && READ_ONCE(client->ended) &&
		    (xm_client_row(&pool->host.map, c)->state != XMEM_CLIENT_ZOMBIE ||
		     xm_host_can_bury(&pool->host, c)))
			return true;
	}
	return false;
}

/*
 * Ends the clients whose address space has gone without a word, as that of a process does that
 * shared its descriptors and never mapped its area.
 */
static void xk_end_the_gone(struct xk_pool *pool)
{
	struct xk_client *client;
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++) {
		client = xk_client_of(pool, c);
		if (!client)
			continue;
		if (xk_client_is_gone(client))
			xk_client_end(client);
		xk_client_put(client);
	}
}

/*
 * A free id. If there is none it waits, but only for what is sure to come: whoever tries again and
 * again to join a full pool costs its members nothing but this look.
 */
static int xk_client_id(struct xk_pool *pool)
{
	int id = xk_free_id(pool);

	if (id >= 0)
		return id;
	mutex_unlock(&pool->lock);
	xk_end_the_gone(pool);
	mutex_lock(&pool->lock);
	if (!xk_id_comes(pool))
		return xk_free_id(pool);
	xk_bury(pool);
	mutex_unlock(&pool->lock);
	xk_reap_wait(pool);
	mutex_lock(&pool->lock);
	return xk_free_id(pool);
}

/* The id is the client's, and its area in place, but nobody counts it. */
static int xk_client_seat(struct xk_client *client, struct xk_chunk *area)
{
	struct xk_pool *pool = client->pool;
	int id;

	if (mutex_lock_killable(&pool->lock))
		return -EINTR;
	id = xk_client_id(pool);
	if (id < 0) {
		trace_xmem_limit(pool->number, "clients", pool->host.map.clients + 1ULL,
				 pool->host.map.clients);
	} else {
		client->id = id;
		kref_get(&client->kref);
		xk_client_place(pool, id, client);
		xk_chunk_place(pool, &pool->area[id], area, client);
	}
	mutex_unlock(&pool->lock);
	return id < 0 ? id : 0;
}

/*
 * Puts the client into the client table and gives it its area. The area is readable, as
 * zeros, before any scan counts the client: so it is unmapped as zero page between the two.
 */
static int xk_client_enter(struct xk_client *client, struct xk_chunk *area,
			   struct xmem_join_request *join)
{
	struct xm_joiner who = { .sibling = XM_NO_CLIENT };
	struct xk_pool *pool = client->pool;
	int err = xk_client_seat(client, area);

	if (err)
		return err;
	xk_unmap_area(pool, client->id);
	/* Nothing stops it any more, not even a signal: all it needs has been made and checked. */
	mutex_lock(&pool->lock);
	pool->host.map.area[client->id] = area->now->view;
	who.sibling = xk_client_sibling(client);
	xm_host_join(&pool->host, client->id, join, &who);
	WRITE_ONCE(client->incarnation, join->incarnation);
	rcu_assign_pointer(pool->pollers[client->id], client->pollers);
	trace_xmem_client_join(pool->number, client->id, client->incarnation);
	mutex_unlock(&pool->lock);
	return 0;
}

/* ---- the pool ---- */

static int xk_join_check(const struct xmem_join_request *join)
{
	bool by_fd = join->flags & XMEM_JOIN_FD;
	struct xmem_pool_header unused;

	if (join->abi < XMEM_ABI_OLDEST || join->abi > XMEM_ABI)
		return -EPROTONOSUPPORT;
	if (join->flags & XMEM_JOIN_EXCLUSIVE && join->flags & (XMEM_JOIN_EXISTING | XMEM_JOIN_FD))
		return -EINVAL;
	if (by_fd ? join->name[0] != 0 : join->pool_fd != -1)
		return -EINVAL;
	return xm_host_join_check(join) ?: xm_host_layout(join, PAGE_SIZE, &unused);
}

static const struct file_operations xk_pool_fd_fops;

static struct xk_pool *xk_pool_of_fd(int fd)
{
	struct file *file = fget(fd);
	struct xk_pool *pool = ERR_PTR(-EBADF);

	if (!file)
		return pool;
	if (file->f_op == &xk_pool_fd_fops)
		pool = xk_pool_get_used(file->private_data);
	fput(file);
	return pool;
}

/* May the caller join a pool that existed before? */
static int xk_pool_permit(const struct xk_pool *pool, const struct xmem_join_request *join)
{
	if (join->flags & XMEM_JOIN_EXCLUSIVE)
		return -EEXIST;
	if (!(join->flags & XMEM_JOIN_FOREIGN) && !uid_eq(pool->owner, current_euid()))
		return -EPERM;
	return 0;
}

/* A new pool, ready for use. */
static struct xk_pool *xk_pool_make(const struct xmem_join_request *join, kgid_t group)
{
	struct xk_pool *pool = xk_pool_new(join, group);
	int err;

	if (IS_ERR(pool))
		return pool;
	xk_keep_prepare(pool);
	xk_leave_prepare(pool);
	xk_claims_prepare(pool);
	err = xk_queues_prepare(pool);
	if (!err)
		err = xk_sysfs_prepare(pool);
	if (!err)
		return pool;
	xk_pool_discard(pool);
	return ERR_PTR(err);
}

static void xk_trace_create(const struct xk_pool *pool)
{
	const struct xmem_pool_header *header = xk_header(pool);

	trace_xmem_pool_create(pool->number, header->owner_uid, header->name, header->slots,
			       header->clients, header->ring_entries);
}

/* The pool that @join names, made if need be. The caller has a use of it. */
static struct xk_pool *xk_pool_open(const struct xmem_join_request *join, kgid_t group)
{
	struct xk_pool *pool = xk_pool_find(join), *new;
	int err;

	if (!pool) {
		if (join->flags & XMEM_JOIN_EXISTING)
			return ERR_PTR(-ENOENT);
		new = xk_pool_make(join, group);
		if (IS_ERR(new))
			return new;
		pool = xk_pool_enlist(new, join);
		if (pool == new) {
			xk_trace_create(new);
			return new;
		}
		xk_pool_unuse(new);	/* another process was faster */
	}
	err = xk_pool_permit(pool, join);
	if (err) {
		xk_pool_unuse(pool);
		return ERR_PTR(err);
	}
	return pool;
}

/* ---- join ---- */

/*
 * A client's file, by which it is to be known. It takes over a use of @pool that the caller has:
 * from here on the last fput undoes all, whether the client has entered or not.
 */
static struct file *xk_join_file(struct xk_call *call, struct xk_pool *pool)
{
	struct xk_client *client = xk_client_new(pool, call->u.join.role);
	struct file *file;

	if (IS_ERR(client)) {
		xk_pool_unuse(pool);
		return ERR_CAST(client);
	}
	file = xk_inode_file(client->inode, call->joined_ops, client);
	if (!IS_ERR(file))
		return file;
	xk_client_end(client);
	xk_client_put(client);
	return file;
}

static int xk_join(struct xk_call *call, struct xk_pool *pool)
{
	struct xmem_join_request *join = &call->u.join;
	struct file *file = xk_join_file(call, pool);
	struct xk_client *client;
	struct xk_chunk *area;
	int err;

	if (IS_ERR(file))
		return PTR_ERR(file);
	client = file->private_data;
	area = xk_chunk_new(pool, xk_header(pool)->area_stride, true);
	err = PTR_ERR_OR_ZERO(area);
	if (!err) {
		err = xk_client_enter(client, area, join);
		if (err)
			xk_chunk_free(pool, area);
	}
	if (err) {
		fput(file);
		return err;
	}
	xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
	if (join->role == XMEM_ROLE_WRITER)
		xk_wake_rings(pool);
	xk_sysfs_sync(pool);
	call->give = file;
	join->fd = -1;	/* until the descriptor is there */
	return 0;
}

int xk_join_begin(struct xk_call *call)
{
	struct xmem_join_request *join = &call->u.join;
	struct xk_pool *pool;
	int err;

	if (call->client)
		return -EISCONN;
	err = xk_join_check(join);
	if (err)
		return err;
	/* The group that may open the device may read the pool's files in sysfs. */
	pool = join->flags & XMEM_JOIN_FD ? xk_pool_of_fd(join->pool_fd) :
		xk_pool_open(join, file_inode(call->file)->i_gid);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	err = xm_host_fits(&pool->host.map, join);
	if (!err)
		return xk_join(call, pool);
	xk_pool_unuse(pool);
	return err;
}

/* ---- the descriptor of a pool ---- */

static int xk_pool_fd_release(struct inode *inode, struct file *file)
{
	xk_pool_unuse(file->private_data);
	return 0;
}

static void xk_pool_fd_show(struct seq_file *m, struct file *file)
{
	xk_fdinfo_pool(m, file->private_data);
}

static const struct file_operations xk_pool_fd_fops = {
	.owner = THIS_MODULE,
	.release = xk_pool_fd_release,
	.show_fdinfo = xk_pool_fd_show,
	.llseek = noop_llseek,
};

int xk_pool_fd_begin(struct xk_call *call)
{
	struct xk_pool *pool = call->client->pool;
	struct file *file;
	int err = xk_client_lock(call->client);

	/* The client may be ending, but until end_work has this lock the pool is used. */
	if (err)
		return err;
	pool = xk_pool_get_used(pool);
	mutex_unlock(&call->client->pool->lock);
	if (IS_ERR(pool))
		return -ENOTCONN;
	file = anon_inode_getfile("[xmem-pool]", &xk_pool_fd_fops, pool, O_RDWR | O_CLOEXEC);
	if (IS_ERR(file)) {
		xk_pool_unuse(pool);
		return PTR_ERR(file);
	}
	call->give = file;
	return 0;
}
