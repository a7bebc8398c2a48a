// SPDX-License-Identifier: MIT
/*
 * Requests to the host that many files make: arming a waiters word, waiting on it and waking
 * it, and doing what a function of the protocol left pending.
 */
#include <string.h>

#include "payload/payload.h"
#include "request.h"

const char *xl_request_error(int err)
{
	return err == -ENOTCONN ? "the host has gone, or has ended this client; close the "
				  "pool and open it again"
				: strerror(-err);
}

int xl_waiters_arm(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed *ret)
{
	struct xmem_wait_request request = { .size = sizeof(request),
					     .kind = kind,
					     .client = client };
	int err = xl_request(pool, XMEM_IOC_ARM, &request);

	*ret = (struct xl_armed){ request.value, request.kicks };
	return err;
}

int xl_waiters_wait(struct xmem_pool *pool, u32 kind, u32 client, struct xl_armed armed,
		    u64 deadline_ns)
{
	struct xmem_wait_request request = {
		.size = sizeof(request),
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
					     .kind = kind,
					     .client = client };

	/* This fails only if the host has gone, and then the waiters find out themselves. */
	xl_request(pool, XMEM_IOC_WAKE, &request);
}

void xl_waiters_kick(struct xmem_pool *pool)
{
	struct xmem_wait_request request = { .size = sizeof(request), .flags = XMEM_WAKE_OWN };

	xl_request(pool, XMEM_IOC_WAKE, &request);
}

void xl_client_who(struct xmem_pool *pool, u32 client, u64 incarnation, struct xl_who *ret)
{
	const struct xmem_client_row *row = xm_client_row(&pool->map, client);
	struct xmem_client_request request = {
		.size = sizeof(request), .client = client, .incarnation = incarnation,
	};

	/* The daemon, which may be stopped, need not be asked. */
	*ret = (struct xl_who){ .pid = xm_load(&row->pid), .uid = xm_load(&row->uid) };
	if (!ret->pid && !xl_request(pool, XMEM_IOC_CLIENT, &request))
		*ret = (struct xl_who){ .pid = request.pid, .uid = request.uid };
}

void xl_do_pending(struct xmem_pool *pool, struct xm_pending pending)
{
	struct xmem_slot_request request = { .size = sizeof(request), .slot = pending.who };

	if (pending.what == XM_WAKE_OWNER) {
		xl_waiters_wake(pool, XMEM_WAIT_SLOTS, pending.who);
	} else if (pending.what == XM_TELL_HOST) {
		xl_post(pool, XMEM_IOC_COLLECT, &request);
		xl_payload_unmap_some(pool);
	}
}
