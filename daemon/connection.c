// SPDX-License-Identifier: MIT
/*
 * Connections: which process may have one, how requests are read and answered, and how
 * connections end.
 *
 * A client ends with its process (a pidfd tells) or when its socket is closed or shut
 * down, whichever is first: a forked child may keep the socket open, and a process may
 * leave a pool and go on. A peer that does not read its replies loses its requests but
 * not its client, whose pages stay counted until it has really gone. What a client has on GPUs
 * stays until its process has exited or the pool ends, even if its socket has been closed before.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD	77	/* Linux 6.5 */
#endif
#define BATCH		8	/* connections accepted before another event is served */
#define MOST_UNREAD	4096	/* datagrams; a socket has room for some hundreds */
#define NO_FILES_PAUSE_NS	10000000L

/* ---- accepting ---- */

u32 xd_connections_of(const struct xd_daemon *daemon, pid_t pid)
{
	const struct xd_connection *other;
	u32 count = 0;

	for (other = daemon->connections; other; other = other->next)
		count += other->pid == pid;
	return count;
}

static int within_limits(struct xd_daemon *daemon, pid_t pid)
{
	const struct xd_limits *most = &daemon->limits;
	u32 count = xd_connections_of(daemon, pid);

	if (count >= most->per_process)
		return xd_refuse(daemon, XMEM_QUOTA_PROCESS_CONNECTIONS, count, most->per_process);
	if (daemon->connection_count >= most->connections)
		return xd_refuse(daemon, XMEM_QUOTA_CONNECTIONS, daemon->connection_count,
				 most->connections);
	return 0;
}

/*
 * Before Linux 6.5 the process is found by its number. That is wrong only if the peer has
 * died and its number has been given to another process meanwhile.
 */
static int process_of(int socket, pid_t pid)
{
	socklen_t length = sizeof(int);
	int process;

	if (!getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process, &length))
		return process;
	process = errno == ENOPROTOOPT && pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (process >= 0)
		return process;
	return errno == EMFILE || errno == ENFILE ? -EDQUOT : -errno;
}

static int watch(int epoll, int fd, u32 events, struct xd_connection *connection)
{
	struct epoll_event event = { .events = events, .data.ptr = connection };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Another user's? It can connect only where XMEM_SOCKET or a starter has put the socket. */
static bool is_stranger(int socket)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	       peer.uid != geteuid();
}

/*
 * Refuse a peer because of @err, and answer the request that it has sent or is about to send. With
 * -EDQUOT the answer names the limit, for the peer cannot ask for it.
 */
static void refuse(struct xd_daemon *daemon, int socket, int err)
{
	struct xmem_message head = { .request = XMEM_IOC_JOIN, .result = err };
	struct xd_connection peer = { .socket = socket };
	struct xd_call call = {
		.daemon = daemon, .from = &peer,
		.request.quota = { .size = sizeof(struct xmem_quota_request),
				   .flags = XMEM_QUOTA_REFUSED },
	};
	u32 bytes;

	xd_quota_note(daemon, &peer, err);
	bytes = xd_quota(&call) ? 0 : call.request.size;
	/* Unread data would reset the connection, and the answer would be lost with it. */
	recv(socket, NULL, 0, MSG_DONTWAIT);
	xm_wire_send(socket, &head, &call.request, bytes, -1, MSG_DONTWAIT);
	close(socket);
}

static int connection_new(struct xd_daemon *daemon, int socket)
{
	struct xd_connection *connection;
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int err;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length))
		return -errno;
	err = within_limits(daemon, peer.pid);
	if (err)
		return err;
	connection = calloc(1, sizeof(*connection));
	if (!connection)
		return -ENOMEM;
	connection->socket = socket;
	connection->pid = peer.pid;
	err = connection->process = process_of(socket, peer.pid);
	if (err < 0)
		goto err_free;
	/* Each end is reported once, and noted then. */
	if (watch(daemon->ends, connection->process, EPOLLIN | EPOLLET, connection) ||
	    watch(daemon->ends, socket, EPOLLRDHUP | EPOLLET, connection) ||
	    watch(daemon->epoll, socket, EPOLLIN, connection)) {
		err = -errno;
		goto err_close;
	}
	connection->next = daemon->connections;
	connection->here = &daemon->connections;
	if (connection->next)
		connection->next->here = &connection->next;
	daemon->connections = connection;
	daemon->connection_count++;
	return 0;

err_close:
	close(connection->process);
err_free:
	free(connection);
	return err;
}

static void let_in(struct xd_daemon *daemon, int socket)
{
	int err;

	if (is_stranger(socket)) {
		close(socket);	/* at once, with no answer */
		return;
	}
	err = connection_new(daemon, socket);
	if (err)
		refuse(daemon, socket, err);
}

/* No descriptor is left. Free the spare one, accept the next peer with it and refuse that. */
static bool turn_away(struct xd_daemon *daemon)
{
	int socket;

	close(daemon->spare);
	socket = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (socket >= 0)
		let_in(daemon, socket);
	daemon->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return socket >= 0;
}

u32 xd_accept(struct xd_daemon *daemon)
{
	struct timespec pause = { 0, NO_FILES_PAUSE_NS };
	u32 n;

	for (n = 0; n < BATCH; n++) {
		int socket = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (socket >= 0) {
			let_in(daemon, socket);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			break;
		/* No descriptor is left. Do not spin on a listener that stays readable. */
		if (!turn_away(daemon)) {
			nanosleep(&pause, NULL);
			break;
		}
	}
	return n;
}

/* ---- how they end ---- */

/*
 * What the client has posted before its end is done before its end, too: it may take back claims
 * that would stay. The rest of what has not been read nobody wants any more.
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
			xd_serve(&call, datagram.head.request, datagram.body, datagram.length);
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

/* No request comes any more. In quarantine the process says when it has exited. */
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

void xd_connections_told(struct xd_pool *pool)
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

/* Its end is handled now. Its pool may have ended before. */
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

void xd_connection_note_end(struct xd_daemon *daemon, struct xd_connection *connection)
{
	if (!connection->pool) {
		xd_connection_end(daemon, connection);
	} else if (!connection->ending) {
		/* A peer could report the end of its socket again and again. */
		if (!connection->ended)
			epoll_ctl(daemon->ends, EPOLL_CTL_DEL, connection->socket, NULL);
		connection->ending = true;
		connection->pool->ending++;
		daemon->ending++;
	}
}

/* Pools with ends take turns, so one end waits for no mass death in another pool. */
void xd_connection_end_next(struct xd_daemon *daemon)
{
	struct xd_pool *pool = xd_pool_after(daemon, daemon->last_turn, false);
	struct xd_connection *connection = daemon->connections;

	while (!pool || !xd_pool_has_ends(pool))
		pool = xd_pool_after(daemon, pool ? pool->number : 0, false);
	XM_STEP(XM_STEP_NEXT_END);
	daemon->last_turn = pool->number;
	if (pool->reap.stage) {		/* first, for no client may end in the middle of that */
		xd_pool_reap_on(pool);
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

/*
 * The peer does not read its replies: it gets no more of them, and its requests are not
 * read. Its client may still store into its pages, so the client ends only when the peer
 * closes the connection or dies.
 */
static void give_up_on(struct xd_daemon *daemon, struct xd_connection *connection)
{
	if (!connection->pool) {
		xd_connection_end(daemon, connection);
		return;
	}
	shutdown(connection->socket, SHUT_WR);
	epoll_ctl(daemon->epoll, EPOLL_CTL_DEL, connection->socket, NULL);
}

/* ---- requests and replies ---- */

/* Send the reply. If it cannot be sent at once, none is sent ever again: nothing here blocks. */
static void answer(struct xd_call *call, const struct xmem_message *to, int result)
{
	struct xmem_message head = {
		.request = to->request, .result = result, .number = to->number,
	};
	const struct xm_request_kind *kind = result ? NULL : xm_request_find(to->request);
	u32 bytes = kind ? kind->bytes : 0;

	if (to->result == XMEM_NO_REPLY)
		return;
	/* The answer is cut to what the caller knows. */
	if (kind && call->request.size < bytes)
		bytes = call->request.size;
	if (xm_wire_send(call->from->socket, &head, &call->request, bytes,
			 result ? -1 : call->answer, MSG_DONTWAIT))
		give_up_on(call->daemon, call->from);
}

static int serve_datagram(struct xd_call *call, struct xm_datagram *datagram)
{
	if (datagram->short_head ||
	    (datagram->head.result && datagram->head.result != XMEM_NO_REPLY))
		return -EINVAL;
	if (datagram->lost_file)
		return -EDQUOT;
	if (datagram->files > 1)
		return -EINVAL;
	if (datagram->files) {
		call->fd = datagram->file[0];
		datagram->files = 0;
	}
	call->number = datagram->head.number;
	return xd_serve(call, datagram->head.request, datagram->body, datagram->length);
}

void xd_connection_serve(struct xd_daemon *daemon, struct xd_connection *connection)
{
	struct xd_call call = { .daemon = daemon, .from = connection, .fd = -1, .answer = -1 };
	struct xm_datagram datagram;
	int err;
	u32 i;

	err = xm_wire_receive(connection->socket, &datagram, MSG_DONTWAIT);
	if (err == -EAGAIN)
		return;
	if (err && err != -ENOTCONN) {
		give_up_on(daemon, connection);
		return;
	}
	/* -ENOTCONN is an empty datagram here: the loop sees first that a peer has gone. */
	if (err)
		datagram = (struct xm_datagram){ .short_head = true };
	err = serve_datagram(&call, &datagram);
	xd_quota_note(daemon, connection, err);
	for (i = 0; i < datagram.files; i++)
		close(datagram.file[i]);
	if (call.fd >= 0)
		close(call.fd);
	answer(&call, &datagram.head, err);
	if (call.answer >= 0)
		close(call.answer);
}
