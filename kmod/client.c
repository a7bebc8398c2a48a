// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: making the struct, counting references to it, finding it by its id, and taking its
 * pool's lock for a request. join.c lets it join the pool, leave.c ends it.
 */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

/* The client may be half made. */
static void xk_client_free(struct kref *kref)
{
	struct xk_client *client = container_of(kref, struct xk_client, kref);

	if (client->queue)
		xk_queue_free(client->queue);
	if (client->zero)
		put_page(client->zero);
	if (client->scratch)
		put_page(client->scratch);
	if (client->inode)
		xk_inode_put(client->inode);
	mutex_destroy(&client->attach_lock);
	put_pid(client->pid);
	mmdrop(client->mm);
	xk_payer_put(client->payer);
	xk_pool_put(client->pool);
	kfree(client);
}

void xk_client_put(struct xk_client *client)
{
	kref_put(&client->kref, xk_client_free);
}

/* Find the client that has this id. Returns it with a reference, or NULL. */
struct xk_client *xk_client_of(struct xk_pool *pool, u32 id)
{
	struct xk_client *client;

	spin_lock(&pool->pages_lock);
	client = pool->client[id];
	if (client)
		kref_get(&client->kref);
	spin_unlock(&pool->pages_lock);
	return client;
}

/*
 * Give the id to @client, or free it (NULL). The table has a reference, which the caller gives or
 * gets.
 */
void xk_client_place(struct xk_pool *pool, u32 id, struct xk_client *client)
{
	lockdep_assert_held(&pool->lock);
	spin_lock(&pool->pages_lock);
	pool->client[id] = client;
	spin_unlock(&pool->pages_lock);
}

/* Is its address space gone for good? Then it maps nothing any more. */
bool xk_client_is_gone(const struct xk_client *client)
{
	return !atomic_read_acquire(&client->mm->mm_users);
}

/* May the caller send requests to that file? Only the mm that joined may, until the client ends. */
int xk_client_check(const struct xk_client *client)
{
	if (!client || READ_ONCE(client->ended))
		return -ENOTCONN;
	return client->mm == current->mm ? 0 : -EPERM;
}

/*
 * Take the pool's lock for a request. -ENOTCONN: the client has ended; -EINTR: the caller has a
 * fatal signal.
 */
int xk_client_lock(struct xk_client *client)
{
	if (xk_pool_lock_killable(client->pool))
		return -EINTR;
	if (!READ_ONCE(client->ended))
		return 0;
	mutex_unlock(&client->pool->lock);
	return -ENOTCONN;
}

/*
 * Take the pool's lock for a request whose effect outlasts it. Such a request needs a client that
 * has mapped its area, because only that client is certain to end with its process.
 */
int xk_client_lock_mapped(struct xk_client *client)
{
	return READ_ONCE(client->area_maps) ? xk_client_lock(client) : -ENOTCONN;
}

/*
 * The number of the client's process in the caller's PID namespace. 0: the namespace does not have
 * it, or the process is gone and another one may have its number.
 */
pid_t xk_pid_of_client(const struct xk_client *client)
{
	pid_t pid;

	rcu_read_lock();
	pid = pid_task(client->pid, PIDTYPE_TGID) ?
	      pid_nr_ns(client->pid, task_active_pid_ns(current)) : 0;
	rcu_read_unlock();
	return pid;
}

/* A client that has an id but no incarnation has not joined yet. */
static bool xk_is_sibling(const struct xk_client *other, const struct xk_client *client)
{
	return other && other->mm == client->mm && other->incarnation && !READ_ONCE(other->ended);
}

/* Another client of this client's process that has not ended, or XM_NO_CLIENT. */
u32 xk_client_sibling(const struct xk_client *client)
{
	struct xk_pool *pool = client->pool;
	u32 i;

	lockdep_assert_held(&pool->lock);
	for (i = 0; i < pool->host.map.clients; i++)
		if (xk_is_sibling(pool->client[i], client))
			return i;
	return XM_NO_CLIENT;
}

/*
 * How many bytes of limbo the client with this id and incarnation holds; 0: it has gone. This does
 * not take the pool's lock, so while a client moves from one slot to the next the sum may be too
 * high.
 */
static u64 xk_client_limbo(struct xk_pool *pool, u32 id, u64 incarnation)
{
	u64 bytes = 0;
	u32 g;

	for (g = 0; g < pool->look.groups; g++) {
		xk_look_begin(pool);
		bytes = xm_limbo_add(bytes, xm_limbo_of_in_group(&pool->look, id, g));
		xk_look_end(pool);
		cond_resched();
	}
	return xm_load(&xm_client_row(&pool->look, id)->incarnation) == incarnation ? bytes : 0;
}

/*
 * The request client: what a client is, in the caller's namespaces. It does not take the pool's
 * lock, because a caller that writes a message should wait for nobody.
 */
int xk_client_begin(struct xk_call *call)
{
	struct xmem_client_request *request = &call->u.client;
	struct xk_pool *pool = call->client->pool;
	const struct xmem_client_row *row;
	const struct xk_client *client;
	u32 id = 0;
	int err;

	spin_lock(&pool->pages_lock);
	err = xm_host_client(&pool->host, request, &row);
	if (!err) {
		id = xm_index(request->client, pool->host.map.clients);
		client = pool->client[id];
		if (!client || READ_ONCE(client->incarnation) != request->incarnation)
			err = -ENOENT;
	}
	if (!err) {
		request->pid = xk_pid_of_client(client);
		request->uid = from_kuid_munged(current_user_ns(), client->uid);
	}
	spin_unlock(&pool->pages_lock);
	if (!err && request->flags & XMEM_CLIENT_LIMBO)
		request->limbo_bytes = xk_client_limbo(pool, id, request->incarnation);
	return err;
}

static int xk_client_prepare(struct xk_client *client)
{
	struct inode *inode = xk_inode_new();

	if (IS_ERR(inode))
		return PTR_ERR(inode);
	client->inode = inode;
	client->zero = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	client->scratch = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	client->queue = xk_queue_new(client->pool->host.map.clients, client->uid);
	return client->zero && client->scratch && client->queue ? 0 : -ENOMEM;
}

/*
 * Make a client that has yet to join. On success it takes over the caller's use of @pool, and the
 * caller's place among the clients of the pool's owner: see xk_pool_unjoin.
 */
struct xk_client *xk_client_new(struct xk_pool *pool, u32 role, struct xk_payer *payer)
{
	struct xk_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	struct xk_payer *own = client ? xk_payer_of_client(payer) : NULL;
	int err;

	if (!own) {
		kfree(client);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&client->kref);
	mutex_init(&client->attach_lock);
	atomic_set(&client->kicks, XK_FIRST_KICKS);
	xk_pool_get(pool);
	client->payer = own;
	client->pool = pool;
	client->role = role;
	client->owns = xk_access_owns(pool);
	client->mm = current->mm;
	mmgrab(client->mm);
	client->pid = get_pid(task_tgid(current));
	client->uid = current_euid();
	client->clock_offset = xk_clock_offset();
	err = xk_client_prepare(client);
	if (!err)
		return client;
	xk_client_put(client);
	return ERR_PTR(err);
}
