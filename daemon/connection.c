// SPDX-License-Identifier: MIT
/*
 * Connections: how they are accepted, and how requests are read and answered. ends.c says how
 * connections end.
 *
 * If a peer does not read its replies, its requests are no longer read. Its client stays until the
 * peer closes the connection or dies, because it can still store into its pages.
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
#define NO_FILES_PAUSE_NS	10000000L

/* ---- accepting ---- */

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
 * Before Linux 6.5 the process is found by its number. The result is wrong only if the peer has
 * died and the kernel has given its number to another process meanwhile.
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

/*
 * Does the peer belong to another user? It can connect only if XMEM_SOCKET or a starter has put the
 * socket into a folder that it can reach.
 */
static bool is_stranger(int socket)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) ||
	       peer.uid != geteuid();
}

/*
 * Refuse a peer because of @err, and answer the request that it has sent or is about to send. With
 * -EDQUOT the answer names the limit, because the peer has no connection to ask for it.
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
	/* Unread data would reset the connection, and the answer would be lost. */
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
	/* Each end is reported once, and xd_connection_note_end notes it. */
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

/* No descriptor is left. Free the spare one, accept the next peer with it, and refuse that peer. */
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

/*
 * The peer does not read its replies: it gets no more of them, and its requests are not read. The
 * client ends only when the peer closes the connection or dies.
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

/*
 * Send the reply. If it cannot be sent at once, no further reply is sent on this connection,
 * because nothing here may block.
 */
static void answer(struct xd_call *call, const struct xmem_message *to, int result)
{
	struct xmem_message head = {
		.request = to->request, .result = result, .number = to->number,
	};
	const struct xm_request_kind *kind = result ? NULL : xm_request_find(to->request);
	u32 bytes = kind ? kind->bytes : 0;

	if (to->result == XMEM_NO_REPLY)
		return;
	/* The answer has at most the bytes that the caller's struct has. */
	if (kind && call->request.size < bytes)
		bytes = call->request.size;
	if (xm_wire_send(call->from->socket, &head, &call->request, bytes,
			 result ? -1 : call->answer, MSG_DONTWAIT))
		give_up_on(call->daemon, call->from);
}

static int serve_datagram(struct xd_call *call, struct xm_datagram *datagram)
{
	int err;

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
	err = xd_take(call, datagram->head.request, datagram->body, datagram->length);
	if (err)
		return err;
	if (xd_needs_all_ends(call))
		xd_connection_end_all(call->daemon);
	return xd_serve(call);
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
	/*
	 * -ENOTCONN means an empty datagram, because the loop notes a closed socket before it
	 * serves one.
	 */
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
