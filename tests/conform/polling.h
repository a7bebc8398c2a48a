/* SPDX-License-Identifier: MIT */
/* Helpers for the tests of poll descriptors: the ways to poll. */
#ifndef POLLING_H
#define POLLING_H

#include <poll.h>
#include <sys/epoll.h>

#include "harness.h"

static inline short by_poll(int fd, short events, int timeout_ms)
{
	struct pollfd look = { .fd = fd, .events = events };
	int n = poll(&look, 1, timeout_ms);

	CHECK(n >= 0);
	return n ? look.revents : 0;
}

static inline int new_epoll(int fd, unsigned int events)
{
	struct epoll_event event = { .events = events };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	CHECK(epoll >= 0);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	return epoll;
}

static inline unsigned int by_epoll(int epoll, int timeout_ms)
{
	struct epoll_event event;
	int n = epoll_wait(epoll, &event, 1, timeout_ms);

	CHECK(n >= 0);
	return n ? event.events : 0;
}

static inline int fd_of(struct xmem_pool *pool)
{
	int fd = xmem_pool_poll_fd(pool);

	WORKED(fd);
	SAME(xmem_pool_poll_fd(pool), fd);
	return fd;
}

#define WAIT_MS	((int)(patience_ns() / MS))	/* for an expected event */

#endif
