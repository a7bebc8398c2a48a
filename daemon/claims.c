// SPDX-License-Identifier: MIT
/*
 * Claims: references that are set aside for clients not yet known. This file has their memory and
 * their tick, which voids claims whose deadline has passed. core/claims.c has the rules.
 */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "daemon.h"

#define NS	1000000000ULL

int xd_claims_init(struct xd_daemon *daemon)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = &daemon->claims_timer };

	daemon->claims_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (daemon->claims_timer < 0)
		return -errno;
	return epoll_ctl(daemon->epoll, EPOLL_CTL_ADD, daemon->claims_timer, &event) ? -errno : 0;
}

/* Let the tick come while claims of the pool have deadlines. */
static void set_timer(struct xd_pool *pool)
{
	struct itimerspec in = { .it_value = { XM_CLAIMS_TICK_NS / NS, XM_CLAIMS_TICK_NS % NS } };
	struct xd_daemon *daemon = pool->daemon;

	if (daemon->claims_tick || !pool->host.claims || !pool->host.claims->timed)
		return;
	daemon->claims_tick = !timerfd_settime(daemon->claims_timer, 0, &in, NULL);
}

/* A slot may be free now: wake its owner, or reclaim it. */
static void do_pending(struct xd_pool *pool, struct xm_pending pending)
{
	if (pending.what == XM_WAKE_OWNER)
		xd_wake(&xm_client_row(&pool->host.map, pending.who)->slots_waiters);
	else if (pending.what == XM_RECLAIM_SLOT)
		xd_pool_collect(pool, pending.who);
}

/* Void the claims whose deadline has passed. */
static void expire(struct xd_pool *pool, u64 now)
{
	u32 at = 0;
	int slot;

	while ((slot = xm_host_expire_claims(&pool->host, now, &at)) != -ENOENT)
		if (slot >= 0)
			do_pending(pool, xm_put_pending(&pool->host.map, slot));
}

/* Take back the claims that the last request has added, as far as nobody has taken them. */
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
}

static int serve_undo(struct xd_connection *from, const struct xmem_claim_request *request)
{
	if (request->slot || request->count || request->timeout_ns)
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
	struct xm_pending pending;
	int err;

	if (request->op == XMEM_CLAIM_UNDO)
		return serve_undo(from, request);
	if (!host->claims)
		host->claims = calloc(1, xm_claims_bytes(&host->map));
	if (!host->claims)
		return -ENOMEM;
	err = xm_host_claim(host, from->client, request, xd_now_ns(), true, &pending);
	do_pending(pool, pending);
	if (!err && request->op == XMEM_CLAIM_ADD && request->timeout_ns == ~0ULL)
		xm_claims_share(host);
	if (!err && request->op == XMEM_CLAIM_ADD) {
		from->added = *request;
		from->added_number = call->number;
	}
	set_timer(pool);
	return err;
}

void xd_claims_left(struct xd_pool *pool)
{
	u32 at = 0;
	int slot;

	while ((slot = xm_host_claims_left(&pool->host, xd_now_ns(), &at)) != -ENOENT)
		if (slot >= 0)
			do_pending(pool, xm_put_pending(&pool->host.map, slot));
	set_timer(pool);
}

void xd_claims_expired(struct xd_daemon *daemon)
{
	u64 now = xd_now_ns(), times;
	struct xd_pool *pool;

	if (read(daemon->claims_timer, &times, sizeof(times)) != sizeof(times))
		return;
	daemon->claims_tick = false;
	for (pool = daemon->pools; pool; pool = pool->next) {
		if (!pool->host.claims)
			continue;
		expire(pool, now);
		set_timer(pool);
		xd_polls_look(pool);
		xd_pool_check(pool);
	}
}
