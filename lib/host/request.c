// SPDX-License-Identifier: MIT
/*
 * Requests to the host that many files make: arming a waiters word, waiting on it, waking it, and
 * asking briefly.
 */
#include <string.h>

#include "lib/host/request.h"
#include "lib/payload/payload.h"

const char *xl_request_error(int err)
{
	if (err == -ETIMEDOUT)
		return "the host has not answered in time; is it stopped?";
	return err == -ENOTCONN ? "the host has gone, or has ended this client; close the "
				  "pool and open it again"
				: strerror(-err);
}

/* ---- asking briefly ---- */

#define PAUSES		10

u64 xl_ask_ns = 100000000;

u64 xl_ask_until(u64 deadline_ns)
{
	u64 now = xl_now_ns(), least = now + xl_ask_ns / 5, until = now + xl_ask_ns;

	if (!deadline_ns || until <= deadline_ns)
		return until;
	return deadline_ns > least ? deadline_ns : least;
}

u64 xl_ask_patiently(u64 deadline_ns)
{
	return deadline_ns ? xl_ask_until(deadline_ns) : xl_deadline(PAUSES * xl_ask_ns);
}

void xl_ask_record(struct xmem_pool *pool, int err)
{
	if (err == -ETIMEDOUT) {
		xm_store(&pool->asking.answers, xl_catch_up(pool));
		xm_store(&pool->asking.again_ns, xl_deadline(PAUSES * xl_ask_ns));
	} else if (unlikely(xm_load(&pool->asking.again_ns))) {
		xm_store(&pool->asking.again_ns, 0);
	}
}

bool xl_is_still_put_off(struct xmem_pool *pool)
{
	return xl_now_ns() < xm_load(&pool->asking.again_ns) &&
	       xl_catch_up(pool) == xm_load(&pool->asking.answers);
}

int xl_request_briefly(struct xmem_pool *pool, unsigned int request, void *argument,
		       u64 deadline_ns)
{
	int err;

	if (xl_is_put_off(pool))
		return -ETIMEDOUT;
	err = xl_request_until(pool, request, argument, xl_ask_until(deadline_ns));
	xl_ask_record(pool, err);
	return err;
}

/* ---- requests ---- */

int xl_waiters_arm(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed *ret)
{
	struct xmem_wait_request request = { .size = sizeof(request),
					     .op = XMEM_OP_ARM,
					     .kind = kind,
					     .client = client };
	int err = xl_request(pool, XMEM_IOC_WAIT, &request);

	*ret = (struct xl_armed){ request.value, request.kicks };
	return err;
}

int xl_waiters_wait(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed armed,
		    u64 deadline_ns)
{
	struct xmem_wait_request request = {
		.size = sizeof(request),
		.op = XMEM_OP_WAIT,
		.kind = kind,
		.client = client,
		.value = armed.value,
		.kicks = armed.kicks,
		.deadline_ns = deadline_ns,
	};

	return xl_request(pool, XMEM_IOC_WAIT, &request);
}

void xl_waiters_wake(struct xmem_pool *pool, u32 kind, u32 client)
{
	struct xmem_wait_request request = { .size = sizeof(request),
					     .op = XMEM_OP_WAKE,
					     .kind = kind,
					     .client = client };

	/* This fails only if the host has gone, and then the waiters notice it themselves. */
	xl_request(pool, XMEM_IOC_WAIT, &request);
}

void xl_waiters_kick(struct xmem_pool *pool)
{
	struct xmem_wait_request request = { .size = sizeof(request), .op = XMEM_OP_KICK };

	xl_request(pool, XMEM_IOC_WAIT, &request);
}

void xl_client_ids(struct xmem_pool *pool, u32 client, u64 incarnation, struct xl_ids *ret)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, client);
	struct xmem_client_request request = {
		.size = sizeof(request), .client = client, .incarnation = incarnation,
	};

	/* These words are in the row with the daemon, so a stopped daemon is not asked. */
	*ret = (struct xl_ids){ .pid = xm_load(&row->pid), .uid = xm_load(&row->uid) };
	if (!ret->pid && !xl_request(pool, XMEM_IOC_CLIENT, &request))
		*ret = (struct xl_ids){ .pid = request.pid, .uid = request.uid };
}
