// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests: join, which makes an open file a client of a pool and makes that pool if
 * need be; and pool_fd, which gives a descriptor whose holder may join the pool. leave.c
 * ends a client.
 */
#include <linux/anon_inodes.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/pid.h>

#include "xk.h"
#include "trace.h"

/* ---- the client enters the pool ---- */

/* A free id. If there is none, waits for the clients that are ending and looks again. */
static int xk_client_id(struct xk_pool *pool)
{
	int id = xm_host_free_client(&pool->host);

	if (id >= 0)
		return id;
	xk_reclaim_all(pool);
	mutex_unlock(&pool->lock);
	xk_reap_wait(pool);
	mutex_lock(&pool->lock);
	return xm_host_free_client(&pool->host);
}

/*
 * Puts the client into the client table and gives it its area. The area is readable, as
 * zeros, before any scan counts the client.
 */
static int xk_client_enter(struct xk_client *client, struct xk_chunk *area,
			   struct xmem_join_request *join)
{
	struct xm_joiner who = { .sibling = XM_NO_CLIENT };
	struct xk_pool *pool = client->pool;
	int err;

	if (mutex_lock_killable(&pool->lock))
		return -EINTR;
	who.sibling = xk_client_sibling(client);
	err = xk_client_id(pool);
	if (err < 0) {
		trace_xmem_limit(pool->number, "clients", pool->host.map.clients + 1ULL,
				 pool->host.map.clients);
		goto out;
	}
	client->id = err;
	xk_chunk_place(pool, &pool->area[client->id], area, client);
	xk_zap_area(pool, client->id);
	pool->host.map.area[client->id] = area->now->view;
	err = xm_host_join(&pool->host, client->id, join, &who);
	if (err) {
		pool->host.map.area[client->id] = NULL;
		xk_chunk_take(pool, &pool->area[client->id]);
		xk_zap_area(pool, client->id);
		goto out;
	}
	client->incarnation = join->incarnation;
	kref_get(&client->kref);
	spin_lock(&pool->pages_lock);
	pool->client[client->id] = client;
	spin_unlock(&pool->pages_lock);
	rcu_assign_pointer(pool->pollers[client->id], client->pollers);
	trace_xmem_client_join(pool->number, client->id, client->incarnation);
out:
	mutex_unlock(&pool->lock);
	return err;
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
	return xm_host_layout(join, PAGE_SIZE, &unused);
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

static int xk_join(struct xk_call *call, struct xmem_join_request *join)
{
	struct xk_client *client;
	struct xk_chunk *area;
	struct xk_pool *pool;
	int err = xk_join_check(join);

	if (err)
		return err;
	/* The group that may open the device may read the pool's files in sysfs. */
	pool = join->flags & XMEM_JOIN_FD ? xk_pool_of_fd(join->pool_fd) :
		xk_pool_open(join, file_inode(call->file->file)->i_gid);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	err = xm_host_fits(&pool->host.map, join);
	if (err)
		goto err_pool;
	area = xk_chunk_new(pool, xk_header(pool)->area_stride, true);
	if (IS_ERR(area)) {
		err = PTR_ERR(area);
		goto err_pool;
	}
	client = xk_client_new(pool, join->role, call->file->pollers);
	if (!client) {
		err = -ENOMEM;
		goto err_area;
	}
	err = xk_client_enter(client, area, join);
	if (err)
		goto err_client;
	call->client = client;
	xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
	if (join->role == XMEM_ROLE_WRITER)
		xk_wake_rings(pool);
	xk_sysfs_sync(pool);
	return 0;

err_client:
	xk_client_put(client);
err_area:
	xk_chunk_free(pool, area);
err_pool:
	xk_pool_unuse(pool);
	return err;
}

/* On success the file's lock is held until xk_join_finish. */
int xk_join_begin(struct xk_call *call)
{
	int err;

	if (mutex_lock_killable(&call->file->lock))
		return -EINTR;
	err = call->file->client ? -EISCONN : xk_join(call, &call->u.join);
	if (err)
		mutex_unlock(&call->file->lock);
	return err;
}

/* The file becomes a client only now: until the caller has the answer all can be undone. */
void xk_join_finish(struct xk_call *call, int err)
{
	struct xk_client *client = call->client;

	if (err) {
		xk_client_end(client);
		xk_client_put(client);
	} else {
		/* All mappings of a pool are in one address space, which no other pool uses. */
		call->file->file->f_mapping = client->pool->inode->i_mapping;
		smp_store_release(&call->file->client, client);
		xk_pollers_wake(client->pollers, XK_POLL_ALL);
	}
	mutex_unlock(&call->file->lock);
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
