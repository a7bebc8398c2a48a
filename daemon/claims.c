// SPDX-License-Identifier: MIT
/*
 * Claims: references that are set aside for clients not yet known. This file has their memory and
 * their only timer, which fires when the next claims expire. core/claims.c has the rules.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon.h"

#define NS		1000000000ULL
#define PAUSE_NS	1000000ULL	/* the timer fires no more often than that */

int xd_claims_init(struct xd_daemon *daemon)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &daemon->claims_timer };

	daemon->claims_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (daemon->claims_timer < 0)
		return -errno;
	return epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, daemon->claims_timer, &event) ? -errno : 0;
}

/* Make the timer fire at @deadline at the latest; ~0: no deadline. */
static void set_timer(struct xd_daemon *daemon, u64 deadline)
{
	struct itimerspec at = { .it_value = { deadline / NS, deadline % NS } };

	if (deadline == ~0ULL || (daemon->claims_deadline && daemon->claims_deadline <= deadline))
		return;
	if (!timerfd_settime(daemon->claims_timer, TFD_TIMER_ABSTIME, &at, NULL))
		daemon->claims_deadline = deadline;
}

/* A slot may be free now: wake its owner, or reclaim it. */
static void do_pending(struct xd_pool *pool, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER)
		xd_wake(&xm_client_row(&pool->host.map, pending.who)->slots_waiters);
	else if (pending.what == XM_RECLAIM_SLOT)
		xd_pool_collect(pool, pending.who);
}

/* Void the claims that have expired. Returns the time at which the next ones expire, or ~0. */
static u64 expire(struct xd_pool *pool, u64 now)
{
	u64 deadline;
	int slot;

	while ((slot = xm_host_expire_claims(&pool->host, now, &deadline)) >= 0)
		do_pending(pool, xm_claims_pending(&pool->host, slot));
	return deadline;
}

/*
 * Take back the claims that the last request has added, as far as nobody has taken them, and the
 * mark that one of them is the client's own.
 */
static void undo(struct xd_connection *from)
{
	const struct xmem_claim_request *add = &from->added;
	struct xm_host *host = &from->pool->host;
	struct xmem_claim_request take = {
		.size = sizeof(take), .op = XMEM_CLAIM_TAKE, .slot = add->slot,
		.generation = add->generation,
	};
	struct xm_pending pending;
	int err;

	do {	/* other clients may take some meanwhile */
		take.count = xm_claims_of(&host->map, add->slot);
		if (take.count > add->count)
			take.count = add->count;
		if (!take.count)
			break;
		err = xm_host_claim(host, from->client, &take, 0, true, &pending);
		do_pending(from->pool, pending);
	} while (err == -ERANGE);
	take.flags = XMEM_CLAIM_OWN;
	take.count = 0;
	if (add->flags == XMEM_CLAIM_OWN)
		xm_host_claim(host, from->client, &take, 0, true, &pending);
}

static int serve_undo(struct xd_connection *from, const struct xmem_claim_request *request)
{
	if (request->flags || request->slot || request->count || request->timeout_ns)
		return -EINVAL;
	if (request->generation && request->generation == from->added_number)
		undo(from);
	from->added_number = 0;
	return 0;
}

int xd_claim(struct xd_call *call)
{
	const struct xmem_claim_request *request = &call->request.claim;
	struct xd_connection *from = call->from;
	struct xd_pool *pool = from->pool;
	struct xm_host *host = &pool->host;
	u64 now = xd_now_ns();
	struct xm_pending pending;
	int err;

	if (request->op == XMEM_CLAIM_UNDO)
		return serve_undo(from, request);
	if (!host->claims)
		host->claims = calloc(1, xm_claims_bytes(&host->map));
	if (!host->claims)
		return -ENOMEM;
	err = xm_host_claim(host, from->client, request, now, true, &pending);
	do_pending(pool, pending);
	if (!err && request->op == XMEM_CLAIM_ADD && request->timeout_ns == ~0ULL)
		xm_claims_share(host);
	if (!err && request->op == XMEM_CLAIM_ADD) {
		from->added = *request;
		from->added_number = call->number;
	}
	set_timer(pool->daemon, expire(pool, now));
	return err;
}

void xd_claims_left(struct xd_pool *pool)
{
	u64 now = xd_now_ns();
	u32 at = 0;
	int slot;

	while ((slot = xm_host_orphaned_claims(&pool->host, &at)) >= 0)
		do_pending(pool, xm_claims_pending(&pool->host, slot));
	xm_host_bound_claims(&pool->host, now);
	set_timer(pool->daemon, expire(pool, now));
}

void xd_claims_expired(struct xd_daemon *daemon)
{
	u64 now = xd_now_ns(), next = ~0ULL, times;
	struct xd_pool *pool;

	if (read(daemon->claims_timer, &times, sizeof(times)) != sizeof(times))
		return;
	daemon->claims_deadline = 0;
	for (pool = daemon->pools; pool; pool = pool->next) {
		u64 deadline;

		if (!pool->host.claims)
			continue;
		deadline = expire(pool, now);
		next = deadline < next ? deadline : next;
		xd_polls_look(pool);
		xd_pool_check(pool);
	}
	if (next != ~0ULL)
		set_timer(daemon, next > now + PAUSE_NS ? next : now + PAUSE_NS);
}
