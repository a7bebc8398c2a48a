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

/*
 * Acquire as a program that polls does. The descriptor may be ready in vain for each change, but
 * @vain times at most.
 */
static inline struct xmem_buffer *acquire_by_poll(struct xmem_pool *pool, size_t bytes,
						  unsigned int vain)
{
	struct xmem_buffer *b;
	unsigned int i;

	for (i = 0;; i++) {
		SAME(by_poll(fd_of(pool), POLLOUT, WAIT_MS), POLLOUT);
		b = xmem_acquire(pool, bytes, 0);
		if (b)
			return b;
		SAME(xmem_peek_last_error(NULL), -EAGAIN);
		if (i >= vain)
			FAIL("writable more than %u times in vain", vain);
	}
}

/* After an acquire in vain the descriptor is not writable, however often it is polled. */
static inline void acquire_in_vain(struct xmem_pool *pool, size_t bytes)
{
	int fd = fd_of(pool);

	REFUSED(xmem_acquire(pool, bytes, 0), EAGAIN);
	SAME(by_poll(fd, POLLOUT, 0), 0);
	SAME(by_poll(fd, POLLOUT, 0), 0);
}

#endif
