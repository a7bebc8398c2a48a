// SPDX-License-Identifier: GPL-2.0-only
/*
 * The request join, which makes a client of a pool, with a file of its own, and the pool if need
 * be. leave.c ends a client.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/pid.h>

#include "core/access.h"
#include "xk.h"
#include "trace.h"

/* ---- the client enters the pool ---- */

/* Does a client of the owner live, with an id? pool->owners also counts clients without one. */
static bool xk_owner_is_in(const struct xk_pool *pool)
{
	u32 c;

	for (c = 0; c < pool->host.map.clients; c++)
		if (pool->client[c] && pool->client[c]->owns && !READ_ONCE(pool->client[c]->ended))
			return true;
	return false;
}

/*
 * Find an id that no client has; clients that have ended or are still joining have theirs, too.
 * While the owner has no client, other users leave the first free id to it. So the owner can
 * always join, evict and drain.
 */
static int xk_free_id(const struct xk_pool *pool, bool owns)
{
	u32 leave = !owns && !xk_owner_is_in(pool), c;

	for (c = 0; c < pool->host.map.clients; c++)
		if (!pool->client[c] && !leave--)
			return c;
	return -EUSERS;
}

/*
 * End the clients whose address space has gone without notice. This is so for a process that shared
 * its descriptors and never mapped its area.
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

/* Take the id of an ended publisher of the owner whose ring only strangers keep. */
static bool xk_drop_strangers(struct xk_pool *pool)
{
	bool any = xm_host_drop_strangers(&pool->host, pool->host.user);

	if (any)
		xk_reclaim_all(pool);
	return any;
}

/*
 * Find a free id. If there is none, wait, but only for one that is certain to come: a process that
 * tries again and again to join a full pool costs its members nothing but this look. The owner may
 * have to wait twice: for the end of its last client, and for that client's ring. -EINTR: the
 * caller is killed, and does not have the lock.
 */
static int xk_client_id(struct xk_pool *pool, bool owns)
{
	int id = xk_free_id(pool, owns), waits = 0;

	if (id >= 0)
		return id;
	mutex_unlock(&pool->lock);
	xk_end_the_gone(pool);
	if (xk_pool_lock_killable(pool))
		return -EINTR;
	for (id = xk_free_id(pool, owns); id < 0 && waits < 2; waits++) {
		if (!xk_bury_ended(pool) && !(owns && xk_drop_strangers(pool)))
			break;
		mutex_unlock(&pool->lock);
		if (xk_end_wait(pool) || xk_pool_lock_killable(pool))
			return -EINTR;
		id = xk_free_id(pool, owns);
	}
	return id;
}

/* Give the client its id and place its area; no scan counts it yet. */
static int xk_client_seat(struct xk_client *client, struct xk_chunk *area)
{
	struct xk_pool *pool = client->pool;
	const u64 most = pool->host.map.clients;
	int id;

	if (xk_pool_lock_killable(pool))
		return -EINTR;
	id = xk_client_id(pool, client->owns);
	if (id == -EINTR)
		return id;
	if (pool->drained)
		id = -ESHUTDOWN;
	if (id == -EUSERS) {
		xk_refuse(client->payer, pool, XMEM_QUOTA_POOL_CLIENTS, most, most + 1, most);
	} else if (id >= 0) {
		client->id = id;
		kref_get(&client->kref);
		xk_client_place(pool, id, client);
		xk_chunk_place(pool, &pool->area[id], area, client);
	}
	mutex_unlock(&pool->lock);
	return id < 0 ? id : 0;
}

/*
 * Put the client into the client table and give it its area. Others must be able to read the area,
 * as zeros, before any scan counts the client. So the zero pages that they have mapped there are
 * unmapped between the two steps.
 */
static int xk_client_enter(struct xk_call *call, struct xk_client *client, struct xk_chunk *area)
{
	struct xmem_join_request *join = &call->u.join;
	struct xm_joiner who = { .sibling = XM_NO_CLIENT };
	struct xk_pool *pool = client->pool;
	int err = xk_client_seat(client, area);

	if (err)
		return err;
	xk_unmap_place(pool, XMEM_MAX_GROUPS + client->id);
#ifdef XMEM_DEBUG
	usleep_range(500, 1000);	/* others may evict the client in this time */
#endif
	/*
	 * Nothing stops the join any more, not even a signal: all that it needs has been made and
	 * checked, and only a client that has joined gives its place back.
	 */
	xk_pool_lock(pool);
	xk_show_area(pool, client->id, area->now->view);
	who.sibling = xk_client_sibling(client);
	who.user = __kuid_val(client->uid);
	xm_host_join(&pool->host, client->id, join, &who);
	xk_client_joined(client, join->incarnation);
	rcu_assign_pointer(pool->queue[client->id], client->queue);
	trace_xmem_client_join(pool->number, client->id, join->incarnation);
	mutex_unlock(&pool->lock);
	return 0;
}

/* ---- the pool ---- */

static int xk_join_check(const struct xmem_join_request *join)
{
	bool by_fd = join->flags & XMEM_JOIN_FD;
	struct xmem_pool_header unused;
	int err;

	if (join->abi < XMEM_ABI_OLDEST || join->abi > XMEM_ABI)
		return -EPROTONOSUPPORT;
	if (join->flags & XMEM_JOIN_EXCLUSIVE && join->flags & (XMEM_JOIN_EXISTING | XMEM_JOIN_FD))
		return -EINVAL;
	if (by_fd ? join->name[0] != 0 : join->pool_fd != -1)
		return -EINVAL;
	err = xm_join_access_check(join) ?: xm_host_join_check(join);
	return err ?: xm_host_layout(join, PAGE_SIZE, &unused);
}

/*
 * Find the pool of a descriptor and take a use of it; the caller may join it in *@ret_roles. A
 * caller that has a file of a pool knows that the pool exists, so it is told which role it lacks.
 */
static struct xk_pool *xk_pool_permit(const struct xmem_join_request *join, u32 *ret_roles)
{
	struct xk_pool *pool = xk_pool_of_fd(join->pool_fd, ret_roles);
	int err;

	if (IS_ERR(pool))
		return pool;
	*ret_roles = xk_access_roles_by_file(pool, *ret_roles);
	err = xm_role_permit(*ret_roles, join->role, true);
	if (!err) {
		xk_pool_joins(pool);
		return pool;
	}
	xk_pool_unuse(pool);
	return ERR_PTR(err);
}

/* Make a new pool, ready for use. */
static struct xk_pool *xk_pool_make(const struct xmem_join_request *join, struct xk_payer *payer)
{
	struct xk_pool *pool = xk_pool_new(join, payer);
	int err;

	if (IS_ERR(pool))
		return pool;
	xk_leave_prepare(pool);
	xk_claims_prepare(pool);
	xk_exits_prepare(pool);
	xk_keep_prepare(pool);
	err = xk_clock_prepare(pool);
	if (!err)
		err = xk_sysfs_show(pool);
	if (!err)
		return pool;
	xk_pool_discard(pool);
	return ERR_PTR(err);
}

/*
 * Find or make the pool that the request names. The caller has a use of it, and may join it in
 * *@ret_roles, which include the role that it asks for.
 */
static struct xk_pool *xk_pool_open(struct xk_call *call, u32 *ret_roles)
{
	const struct xmem_join_request *join = &call->u.join;
	struct xk_pool *pool, *new;

	if (join->flags & XMEM_JOIN_EXCLUSIVE && !xk_pool_is_callers(join))
		return ERR_PTR(-EPERM);
	pool = xk_pool_find(join, ret_roles);
	if (pool)
		return pool;
	if (join->flags & XMEM_JOIN_EXISTING || !xk_pool_is_callers(join))
		return ERR_PTR(-ENOENT);
	new = xk_pool_make(join, call->payer);
	if (IS_ERR(new))
		return new;
	pool = xk_pool_enlist(new, join, ret_roles, &call->displaced);
	if (pool != new)
		xk_pool_unuse(new);	/* another process was faster */
	return pool;
}

/* ---- join ---- */

/* Fill in the access rules of the pool in the answer. */
static void xk_join_fill_access(struct xk_pool *pool, u32 roles, struct xmem_join_request *join)
{
	kgid_t gid;

	xk_access_of(pool, &gid, &join->mode);
	join->owner_uid = from_kuid(current_user_ns(), pool->owner);
	join->gid = from_kgid(current_user_ns(), gid);
	join->roles = roles;
}

/*
 * Make a client and its file. The client takes over the caller's use of @pool. From here on the
 * last fput undoes everything, whether the client has entered the pool or not. It comes when the
 * request is over; what others must not find until then is ended earlier, by xk_client_end.
 */
static struct file *xk_join_file(struct xk_call *call, struct xk_pool *pool)
{
	struct xk_client *client;
	struct file *file;

	client = xk_client_new(pool, call->u.join.role, call->payer);
	if (IS_ERR(client)) {
		xk_pool_unjoin(pool);
		return ERR_CAST(client);
	}
	file = xk_inode_file(client->inode, call->joined_ops, client);
	if (!IS_ERR(file))
		return file;
	xk_client_end(client);
	xk_client_put(client);
	return file;
}

/* A file of /dev/xmem that is not open for writing lets its client write nothing. */
static bool xk_only_reads(const struct xk_call *call)
{
	return !(call->file->f_mode & FMODE_WRITE);
}

static int xk_join(struct xk_call *call, struct xk_pool *pool, u32 roles)
{
	struct xmem_join_request *join = &call->u.join;
	struct xk_client *client;
	struct xk_chunk *area;
	struct file *file;
	int err;

	if (xk_only_reads(call))
		roles &= 1u << XMEM_ROLE_READER;
	xm_role_decide(roles, join);
	file = xk_join_file(call, pool);
	if (IS_ERR(file))
		return PTR_ERR(file);
	client = file->private_data;
	client->roles = roles;
	client->by_fd = join->flags & XMEM_JOIN_FD;
	do {
		area = xk_chunk_new(pool, client->payer, xk_header(pool)->area_stride, XK_AREA);
		err = PTR_ERR_OR_ZERO(area);
	} while (xk_ends_retry(call, err));
	if (!err) {
		err = xk_client_enter(call, client, area);
		if (err)
			xk_chunk_free(pool, area);
	}
	if (err) {
		if (err == -EDQUOT || err == -EUSERS)
			xk_refused_to_join(call->payer, client->payer);
		xk_client_end(client);
		fput(file);
		return err;
	}
	xk_wake(pool, XMEM_WAIT_CLIENTS, 0);
	if (join->role == XMEM_ROLE_WRITER)
		xk_wake_newcomers(pool);
	xk_join_fill_access(pool, roles, join);
	call->give = file;
	join->fd = -1;	/* until the descriptor is installed */
	return 0;
}

/* The new pool has taken the name of another pool, which gets it back if the join has failed. */
static void xk_join_displaced(struct xk_call *call, int err)
{
	struct xk_pool *old = call->displaced;

	if (!old)
		return;
	if (err)
		xk_pool_relist(old);
	xk_pool_put(old);
}

static int xk_join_pool(struct xk_call *call)
{
	struct xmem_join_request *join = &call->u.join;
	struct xk_pool *pool;
	u32 roles;
	int err;

	do
		pool = join->flags & XMEM_JOIN_FD ? xk_pool_permit(join, &roles) :
			xk_pool_open(call, &roles);
	while (IS_ERR(pool) && xk_ends_retry(call, PTR_ERR(pool)));
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	err = xm_host_fits(&pool->host.map, join) ?: xk_access_fits(pool, join);
	if (!err)
		return xk_join(call, pool, roles);
	xk_pool_unjoin(pool);
	return err;
}

/* Members of a pool notice a client that joins, so its descriptor is reserved before it joins. */
int xk_join_begin(struct xk_call *call)
{
	int err;

	if (call->client)
		return -EISCONN;
	if (xk_only_reads(call) && call->u.join.role == XMEM_ROLE_WRITER)
		return -EACCES;
	err = xk_join_check(&call->u.join);
	if (err)
		return err;
	call->fd = get_unused_fd_flags(O_CLOEXEC);
	if (call->fd < 0)
		return call->fd;
	err = xk_join_pool(call);
	xk_join_displaced(call, err);
	return err;
}
