// SPDX-License-Identifier: GPL-2.0-only
/*
 * Clients: making the struct, counting references to it, and taking its pool's lock
 * for one of its requests. join.c makes it a client of the pool, leave.c ends it.
 */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "xk.h"

static void xk_client_release(struct kref *kref)
{
	struct xk_client *client = container_of(kref, struct xk_client, kref);

	xk_pollers_put(client->pollers);
	put_pid(client->pid);
	mmdrop(client->mm);
	xk_pool_put(client->pool);
	kfree(client);
}

void xk_client_put(struct xk_client *client)
{
	kref_put(&client->kref, xk_client_release);
}

/*
 * Takes the pool's lock for a request. -ENOTCONN: the client has ended;
 * -EINTR: the caller has a fatal signal.
 */
int xk_client_lock(struct xk_client *client)
{
	if (mutex_lock_killable(&client->pool->lock))
		return -EINTR;
	if (!READ_ONCE(client->ended))
		return 0;
	mutex_unlock(&client->pool->lock);
	return -ENOTCONN;
}

/*
 * The same, for requests whose effect outlasts them. They need a client that has mapped
 * its area, because only such a client is sure to end with its process.
 */
int xk_client_lock_mapped(struct xk_client *client)
{
	return READ_ONCE(client->area_maps) ? xk_client_lock(client) : -ENOTCONN;
}

/* Another client of the same process that has not ended, or XM_NO_CLIENT. */
u32 xk_client_sibling(const struct xk_client *client)
{
	struct xk_pool *pool = client->pool;
	u32 i;

	lockdep_assert_held(&pool->lock);
	for (i = 0; i < pool->host.map.clients; i++)
		if (pool->client[i] && pool->client[i]->mm == client->mm &&
		    !READ_ONCE(pool->client[i]->ended))
			return i;
	return XM_NO_CLIENT;
}

/*
 * Who a client is, in the caller's namespaces. It does not take the pool's lock, for who asks
 * writes a message and waits for nobody.
 */
int xk_client_begin(struct xk_call *call)
{
	struct xmem_client_request *request = &call->u.client;
	struct xk_pool *pool = call->client->pool;
	const struct xmem_client_row *row;
	const struct xk_client *client;
	int err;

	spin_lock(&pool->pages_lock);
	err = xm_host_client(&pool->host, request, &row);
	if (!err) {
		client = pool->client[xm_index(request->client, pool->host.map.clients)];
		err = client && client->incarnation == request->incarnation ? 0 : -ENOENT;
	}
	if (!err) {
		request->pid = pid_nr_ns(client->pid, task_active_pid_ns(current));
		request->uid = from_kuid_munged(current_user_ns(), client->uid);
	}
	spin_unlock(&pool->pages_lock);
	return err;
}

/* The new client takes over a use of @pool that the caller has. */
struct xk_client *xk_client_new(struct xk_pool *pool, u32 role, struct xk_pollers *pollers)
{
	struct xk_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);

	if (!client)
		return NULL;
	kref_init(&client->kref);
	xk_pool_get(pool);
	client->pool = pool;
	client->role = role;
	client->mm = current->mm;
	mmgrab(client->mm);
	client->pid = get_pid(task_tgid(current));
	client->uid = current_euid();
	kref_get(&pollers->kref);
	client->pollers = pollers;
	client->clock_offset = xk_clock_offset();
	return client;
}
