// SPDX-License-Identifier: MIT
/*
 * Descriptors that clients poll. Each is one end of a socket pair. The daemon keeps the other end,
 * which no other process has, and writes and reads it without waiting:
 *
 *   readable   there is a byte for the client; the daemon sends one unless one is already there
 *   writable   the daemon has read everything; the client's end is not writable once the client
 *              has filled it, until the daemon has read that
 *   hung up    the daemon has closed its end, because the client has ended, or the daemon has died
 *
 * When the client finds nothing to receive, it takes the byte, and then arms the waiters words;
 * when it has acquired in vain, it fills its end (lib/host/notify.c). A client that wakes an armed
 * word sends `wake`, and after each request the daemon looks at all descriptors of that pool.
 * Before the daemon leaves a descriptor unreadable, it arms the words itself, because a wake-up for
 * another waiter may have disarmed them.
 */
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon.h"

#define NS	1000000000ULL

struct xd_poll {
	struct xd_poll *next;		/* in its pool */
	struct xd_connection *of;
	struct xm_poll what;
	int socket;			/* the end that the daemon keeps */
};

u64 xd_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS + now.tv_nsec;
}

/* ---- the timer ---- */

int xd_polls_init(struct xd_daemon *daemon)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &daemon->poll_timer };

	daemon->poll_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (daemon->poll_timer < 0 ||
	    epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, daemon->poll_timer, &event))
		return -errno;
	return 0;
}

static void set_timer(struct xd_daemon *daemon, u64 deadline)
{
	struct itimerspec at = { .it_value = { deadline / NS, deadline % NS } };

	if (!deadline || (daemon->poll_deadline && daemon->poll_deadline <= deadline))
		return;
	if (!timerfd_settime(daemon->poll_timer, TFD_TIMER_ABSTIME, &at, NULL))
		daemon->poll_deadline = deadline;
}

void xd_polls_expired(struct xd_daemon *daemon)
{
	struct xd_pool *pool;
	u64 times;

	if (read(daemon->poll_timer, &times, sizeof(times)) != sizeof(times))
		return;
	daemon->poll_deadline = 0;
	for (pool = daemon->pools; pool; pool = pool->next)
		xd_polls_look(pool);
}

/* ---- one descriptor ---- */

static void count(struct xd_poll *poll, int more)
{
	struct xd_pool *pool = poll->of->pool;

	poll->of->poll_count += more;
	pool->daemon->poll_count += more;
	pool->poll_count += more;
	/* Clients wake the daemon only if this is not 0. */
	xm_store_release(&pool->host.map.pool->pollers, pool->poll_count);
}

/* Drop the descriptor to which *at points in its pool's list. */
static void drop(struct xd_poll **at)
{
	struct xd_poll *poll = *at;

	*at = poll->next;
	count(poll, -1);
	close(poll->socket);
	free(poll);
}

/* Make the descriptor readable. false: the client has closed its end. */
static bool say_readable(const struct xd_poll *poll)
{
	int unread;

	if (!ioctl(poll->socket, SIOCOUTQ, &unread) && unread)
		return true;	/* the byte is still there */
	return send(poll->socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN;
}

static bool look_in(const struct xd_poll *poll)
{
	const struct xm_followed *followed = &poll->of->followed;
	const struct xm_map *map = &poll->of->pool->host.map;

	if (!xm_readable(map, followed, &poll->what)) {
		xm_poll_arm(map, followed, &poll->what);
		if (!xm_readable(map, followed, &poll->what))
			return true;
	}
	return say_readable(poll);
}

/* The bytes with which the client has filled its end. 0: the end is writable already. */
static int filled_with(const struct xd_poll *poll)
{
	int bytes;

	return ioctl(poll->socket, SIOCINQ, &bytes) ? 0 : bytes;
}

/* Make the end writable by reading @bytes, unless the client has filled it since then. */
static void say_writable(const struct xd_poll *poll, int bytes)
{
	ssize_t got;

	while (bytes > 0) {
		got = recv(poll->socket, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);
		if (got <= 0)
			break;
		bytes -= got;
	}
}

/* Returns the time at which to look again, or 0. */
static u64 look_out(const struct xd_poll *poll)
{
	const struct xm_map *map = &poll->of->pool->host.map;
	u32 me = poll->what.client;
	int filled;

	if (poll->what.kind != XMEM_POLL_CLIENT || poll->of->role == XMEM_ROLE_READER)
		return 0;
	/* First this: bytes that the client adds later stand for a later look of its own. */
	filled = filled_with(poll);
	if (!filled)
		return 0;
	if (!xm_writable(map, me, xd_now_ns()))
		return xm_load(&xm_ring(map, me)->look_at_ns);
	say_writable(poll, filled);
	return 0;
}

void xd_polls_look(struct xd_pool *pool)
{
	struct xd_poll **at = &pool->polls;

	while (*at) {
		set_timer(pool->daemon, look_out(*at));
		if (look_in(*at))
			at = &(*at)->next;
		else
			drop(at);
	}
}

void xd_polls_drop(struct xd_connection *from)
{
	struct xd_poll **at = &from->pool->polls;

	while (*at) {
		if ((*at)->of == from)
			drop(at);
		else
			at = &(*at)->next;
	}
}

/* ---- new ones ---- */

/* Drop the descriptors that the client has closed. */
static void drop_closed(struct xd_connection *from)
{
	struct xd_poll **at = &from->pool->polls;

	while (*at) {
		struct pollfd look = { .fd = (*at)->socket, .events = POLLRDHUP };

		if ((*at)->of == from && poll(&look, 1, 0) > 0)
			drop(at);
		else
			at = &(*at)->next;
	}
}

/*
 * A pair of sockets. The client's end has the smallest possible buffer, which is filled, so the end
 * is not writable. -EDQUOT: the daemon has no descriptor left.
 */
static int new_pair(int pair[2])
{
	int least = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return errno == EMFILE || errno == ENFILE ? -EDQUOT : -errno;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
	xm_wire_fill(pair[0]);
	return 0;
}

int xd_poll_new(struct xd_connection *from, const struct xmem_poll_fd_request *request)
{
	struct xd_daemon *daemon = from->pool->daemon;
	struct xd_poll *poll;
	struct xm_poll what;
	int pair[2], err;

	err = xm_poll_take(&from->pool->host.map, from->client, request, &what);
	if (err)
		return err;
	drop_closed(from);
	if (from->poll_count >= daemon->limits.polls_of_one)
		return xd_refuse(daemon, XMEM_QUOTA_CLIENT_POLLS, from->poll_count,
				 daemon->limits.polls_of_one);
	if (daemon->poll_count >= daemon->limits.polls)
		return xd_refuse(daemon, XMEM_QUOTA_POLLS, daemon->poll_count,
				 daemon->limits.polls);
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -ENOMEM;
	err = new_pair(pair);
	if (err) {
		free(poll);
		return err;
	}
	*poll = (struct xd_poll){
		.next = from->pool->polls, .of = from, .what = what, .socket = pair[1],
	};
	from->pool->polls = poll;
	count(poll, 1);
	return pair[0];
}
