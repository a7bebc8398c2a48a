// SPDX-License-Identifier: MIT
/*
 * Keeps the states of polled descriptors up to date, when the host is the daemon. Such a descriptor
 * is a socket (daemon/poll.c). It is readable while a byte from the daemon is in it, and writable
 * unless it is full. When the library has looked for something to receive and found nothing, it
 * takes the byte, arms the waiters words and looks again. When an acquire has armed slots_waiters
 * and failed, it fills the socket, and then checks that the word has not moved. A later change
 * disarms a word, and the process that makes the change tells the daemon. An earlier change is seen
 * by the second look, and then the library tells the daemon.
 */
#include <poll.h>

#include "core/poll.h"
#include "lib/base/uncancelled.h"
#include "lib/host/request.h"
#include "lib/host/wire.h"
#include "lib/private.h"

/* Returns whether the host must check its polled descriptors. */
static bool update_in(struct xmem_pool *pool, const struct xl_poll *poll)
{
	const struct xm_followed *followed = &pool->polls.followed;

	if (xm_readable(&pool->map, followed, &poll->what))
		return false;	/* the process that made it readable tells the host */
	xm_wire_drain(poll->fd);
	xm_poll_arm(&pool->map, followed, &poll->what);
	return xm_readable(&pool->map, followed, &poll->what);
}

/*
 * Returns whether the host must check its polled descriptors: to make this one writable, or to set
 * a timer.
 */
static bool update_out(const struct xmem_pool *pool, const struct xl_poll *poll)
{
	if (xm_writable(&pool->map, pool->me, xl_now_ns()))
		return false;	/* the thread that changed something tells the host */
	xm_wire_fill(poll->fd);
	return xm_load(&xm_ring(&pool->map, pool->me)->look_at_ns) ||
	       xm_writable(&pool->map, pool->me, xl_now_ns());
}

void xl_poll_update_all(struct xmem_pool *pool, int events)
{
	struct xl_polls *polls = &pool->polls;
	struct xl_poll *poll;
	bool poke = false;
	XL_UNCANCELLED;

	pthread_mutex_lock(&polls->lock);
	for (poll = polls->first; poll; poll = poll->next) {
		if (events & POLLIN)
			poke |= update_in(pool, poll);
		if (events & POLLOUT && poll->what.kind == XMEM_POLL_CLIENT &&
		    pool->role != XMEM_ROLE_READER)
			poke |= update_out(pool, poll);
	}
	pthread_mutex_unlock(&polls->lock);
	if (poke)
		pool->link.backend->poke(&pool->link);
}

void xl_poll_follow(struct xmem_pool *pool, unsigned int request, const void *argument, int err)
{
	const struct xmem_unsubscribe_request *unsubscribe = argument;
	const struct xmem_subscribe_request *subscribe = argument;
	struct xl_polls *polls = &pool->polls;
	bool polled;

	pthread_mutex_lock(&polls->lock);
	if (request == XMEM_IOC_UNSUBSCRIBE && unsubscribe->flags)
		xm_follow_update(&polls->followed, unsubscribe);
	else if (request == XMEM_IOC_UNSUBSCRIBE)
		xm_follow_end(&pool->map, &polls->followed, pool->me, unsubscribe);
	else if (!err)
		xm_follow_begin(&polls->followed, subscribe->publisher, subscribe->flags);
	polled = polls->settle;
	pthread_mutex_unlock(&polls->lock);
	/*
	 * Another thread may have looked without that ring, and taken the byte that was sent for
	 * it.
	 */
	if (polled)
		pool->link.backend->poke(&pool->link);
}
