// SPDX-License-Identifier: MIT
/*
 * How connections end.
 *
 * A client ends when its process exits, which a pidfd tells, or when its socket is closed or shut
 * down, whichever is first: a forked child may keep the socket open, and a process may leave a pool
 * and go on. If the client has memory of GPUs open, it stays quarantined until its process has
 * exited or the pool ends, even if its socket has been closed before.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon.h"

#define MOST_UNREAD	4096	/* datagrams; a socket has room for some hundreds */

static void serve_post(struct xd_call *call, const struct xm_datagram *datagram)
{
	if (!xd_take(call, datagram->head.request, datagram->body, datagram->length))
		xd_serve(call);
}

/*
 * Messages that the client has posted before its end are served before its end, because they may
 * take back claims that would otherwise stay. Other unread requests are dropped.
 */
static void serve_posts(struct xd_daemon *daemon, struct xd_connection *connection)
{
	struct xm_datagram datagram;
	u32 n, i;

	for (n = 0; n < MOST_UNREAD; n++) {
		struct xd_call call = {
			.daemon = daemon, .from = connection, .fd = -1, .answer = -1,
		};

		if (xm_wire_receive(connection->socket, &datagram, MSG_DONTWAIT))
			break;
		if (!datagram.short_head && !datagram.files &&
		    datagram.head.result == XMEM_NO_REPLY)
			serve_post(&call, &datagram);
		for (i = 0; i < datagram.files; i++)
			close(datagram.file[i]);
		if (call.answer >= 0)
			close(call.answer);
	}
}

static void close_socket(struct xd_connection *connection)
{
	if (connection->socket >= 0)
		close(connection->socket);
	connection->socket = -1;
}

/* No more requests are read. In quarantine the pidfd tells when the process has exited. */
static void leave(struct xd_daemon *daemon, struct xd_connection *connection)
{
	struct xd_pool *pool = connection->pool;

	xd_pool_leave(pool, connection);
	connection->left = pool;
	connection->ended = connection->pool;
	epoll_ctl(daemon->epoll, EPOLL_CTL_DEL, connection->socket, NULL);
}

static void forget(struct xd_daemon *daemon, struct xd_connection *connection)
{
	*connection->here = connection->next;
	if (connection->next)
		connection->next->here = connection->here;
	daemon->connection_count--;
	/* No other process has these descriptors, so closing removes them from both epolls. */
	close(connection->process);
	close_socket(connection);
	free(connection);
}

/* The pool is reaped: close the sockets of clients that have left it, which wait for that. */
static void tell_leavers(struct xd_pool *pool)
{
	struct xd_connection *connection, *next;

	for (connection = pool->daemon->connections; connection; connection = next) {
		next = connection->next;
		if (connection->left != pool)
			continue;
		connection->left = NULL;
		close_socket(connection);
		if (!connection->ended)
			forget(pool->daemon, connection);
	}
}

/* The end of the connection is handled now. Its pool may have ended before. */
static void end_begins(struct xd_daemon *daemon, struct xd_connection *connection)
{
	if (!connection->ending)
		return;
	connection->ending = false;
	daemon->ending--;
	if (connection->pool)
		connection->pool->ending--;
}

void xd_connection_end(struct xd_daemon *daemon, struct xd_connection *connection)
{
	if (connection->pool && !connection->ended)
		serve_posts(daemon, connection);
	end_begins(daemon, connection);
	if (connection->pool && !connection->ended) {
		leave(daemon, connection);
		return;
	}
	if (connection->pool)
		xd_pool_exited(connection->pool, connection);
	forget(daemon, connection);
}

/* The pool ends: forget the connections of its clients in quarantine. */
static void forget_quarantined(struct xd_pool *pool)
{
	struct xd_connection *connection, *next;

	for (connection = pool->daemon->connections; connection; connection = next) {
		next = connection->next;
		if (connection->pool != pool)
			continue;
		connection->pool = NULL;
		if (connection->ended)
			xd_connection_end(pool->daemon, connection);
	}
}

/* The pool is reaped after its last noted end; if it has no client left, it ends. */
static void after_reap(struct xd_pool *pool)
{
	tell_leavers(pool);
	if (pool->clients)
		return;
	forget_quarantined(pool);
	xd_pool_drop(pool);
}

void xd_connection_note_end(struct xd_daemon *daemon, struct xd_connection *connection)
{
	if (!connection->pool) {
		xd_connection_end(daemon, connection);
	} else if (!connection->ending) {
		/* Otherwise a peer could report the end of its socket again and again. */
		if (!connection->ended)
			epoll_ctl(daemon->ends, EPOLL_CTL_DEL, connection->socket, NULL);
		connection->ending = true;
		connection->pool->ending++;
		daemon->ending++;
	}
}

/* Pools with noted ends take turns, so an end does not wait for a mass death in another pool. */
void xd_connection_end_next(struct xd_daemon *daemon)
{
	struct xd_pool *pool = xd_pool_after(daemon, daemon->last_turn, false);
	struct xd_connection *connection = daemon->connections;

	while (!pool || !xd_pool_has_ends(pool))
		pool = xd_pool_after(daemon, pool ? pool->number : 0, false);
	XM_STEP(XM_STEP_NEXT_END);
	daemon->last_turn = pool->number;
	if (pool->reap.stage) {		/* first: no client may end during a reap */
		if (xd_pool_reap_on(pool))
			after_reap(pool);
		return;
	}
	while (connection->pool != pool || !connection->ending)
		connection = connection->next;
	xd_connection_end(daemon, connection);
}

void xd_connection_end_all(struct xd_daemon *daemon)
{
	while (daemon->ending)
		xd_connection_end_next(daemon);
}
