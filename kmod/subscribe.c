// SPDX-License-Identifier: GPL-2.0-only
/* The requests subscribe and unsubscribe, by which a client follows the ring of a publisher. */
#include "xk.h"

int xk_subscribe_begin(struct xk_call *call)
{
	struct xk_client *client = call->client;
	int err = xk_client_lock_mapped(client);
	u32 publisher;

	if (err)
		return err;
	err = xm_host_subscribe(&client->pool->host, client->id, &call->u.subscribe);
	publisher = call->u.subscribe.publisher;	/* within bounds if there is no error */
	if (!err)
		xm_follow_begin(&client->followed, publisher, call->u.subscribe.flags);
	if (!err && call->u.subscribe.flags & XMEM_SUBSCRIBE_JOINT)
		WRITE_ONCE(client->queue->joint, true);
	mutex_unlock(&client->pool->lock);
	/*
	 * The cursor was 0 for a moment and pinned every entry. A publisher that scanned at that
	 * moment may be waiting for a slot; and it may wait for subscribers, or poll for them.
	 */
	if (!err) {
		xk_wake_owners(client->pool);
		xk_wake_pollers_of(client->pool, publisher, EPOLLIN | EPOLLRDNORM);
	}
	/* Pollers of this client have not armed that ring: they look again. */
	if (!err)
		xk_queue_poll(client->queue, EPOLLIN | EPOLLRDNORM);
	return err;
}

static int xk_unsubscribe(struct xk_client *client, const struct xmem_unsubscribe_request *request)
{
	struct xk_pool *pool = client->pool;
	int err = xk_client_lock(client);
	u32 publisher;
	bool reap;

	if (err)
		return err;
	err = xm_host_unsubscribe(&pool->host, client->id, request);
	publisher = xm_index(request->publisher, pool->host.map.clients);
	xm_follow_end(&pool->host.map, &client->followed, client->id, request);
	/*
	 * The publisher or an owner has ended, and this client may have been the last that kept the
	 * ring, or a slot that is forwarded in it.
	 */
	reap = !err && (xm_client_row(&pool->host.map, publisher)->state == XMEM_CLIENT_ZOMBIE ||
			xm_host_forwards(&pool->host, publisher));
	if (reap)
		xk_reclaim_all(pool);
	mutex_unlock(&pool->lock);
	if (reap)
		xk_end_wait(pool);
	if (!err) {
		xk_wake_owners(pool);
		xk_wake_pollers_of(pool, publisher, EPOLLIN | EPOLLRDNORM);
	}
	/* For pollers, a ring that is no longer followed has ended. */
	xk_queue_poll(client->queue, EPOLLIN | EPOLLRDNORM);
	return err;
}

/* A subscription has ended for good, begins to last, or is dropped: only pollers need to know. */
static int xk_poll_update(struct xk_client *client, const struct xmem_unsubscribe_request *request)
{
	int err = xk_client_lock(client);

	if (err)
		return err;
	err = xm_follow_update(&client->followed, request);
	if (client->followed.lasting)
		WRITE_ONCE(client->queue->joint, true);
	mutex_unlock(&client->pool->lock);
	if (!err)
		xk_queue_poll(client->queue, EPOLLIN | EPOLLRDNORM);
	return err;
}

int xk_unsubscribe_begin(struct xk_call *call)
{
	if (call->u.unsubscribe.flags)
		return xk_poll_update(call->client, &call->u.unsubscribe);
	return xk_unsubscribe(call->client, &call->u.unsubscribe);
}
