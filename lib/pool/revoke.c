// SPDX-License-Identifier: MIT
/*
 * Decisions about other clients: evicting one, draining a pool, and admitting a client as a holder.
 */
#include <string.h>

#include "lib/follow/wait.h"
#include "lib/host/died.h"
#include "lib/host/request.h"
#include "lib/own/owned.h"

static const char *hint(int err)
{
	switch (-err) {
	case EPERM:
		return "only the pool's owner, or a process with CAP_SYS_ADMIN, may do that";
	case ESTALE:
		return "that client has ended already";
	case EOPNOTSUPP:
		return "xmemd cannot take away mappings of a live process: end the process, or use "
		       "the kernel as host";
	}
	return xl_request_error(err);
}

XMEM_API int xmem_pool_evict(struct xmem_pool *pool, uint32_t client, uint64_t incarnation)
{
	XL_CALL;
	struct xmem_evict_request request = {
		.size = sizeof(request), .client = client, .incarnation = incarnation,
		.reason = XMEM_REASON_EVICTED,
	};
	int err;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	if (client >= pool->map.clients || client == pool->me || !incarnation)
		return xl_fail(EINVAL, "client %u, incarnation %llu: it is this "
				       "client itself, or there is no such client", client,
			       (unsigned long long)incarnation);
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	err = xl_request(pool, XMEM_IOC_EVICT, &request);
	return err ? xl_fail(-err, "client %u: %s", client, hint(err)) : 0;
}

XMEM_API int xmem_pool_drain(struct xmem_pool *pool, uint32_t flags)
{
	XL_CALL;
	struct xmem_evict_request request = {
		.size = sizeof(request),
		.op = flags & XMEM_DRAIN_EVICTS ? XMEM_OP_DRAIN_EVICT : XMEM_OP_DRAIN,
	};
	int err;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	if (flags & ~XMEM_DRAIN_EVICTS)
		return xl_fail(EINVAL, "unknown flags 0x%x", flags);
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	err = xl_request(pool, XMEM_IOC_EVICT, &request);
	if (err)
		return xl_fail(-err, "%s", hint(err));
	return request.evicted;
}

XMEM_API int xmem_pool_grant(struct xmem_pool *pool, uint32_t client, uint64_t incarnation)
{
	XL_CALL;
	struct xmem_grant_request request = {
		.size = sizeof(request), .client = client, .incarnation = incarnation,
	};
	int err;
	XL_USE(pool);

	err = xl_check_writer(pool, XMEM_FOREVER);
	if (err)
		return err;
	if (client >= pool->map.clients || !incarnation)
		return xl_fail(EINVAL, "client %u, incarnation %llu: there is no "
				       "such client", client, (unsigned long long)incarnation);
	if (xl_host_died(pool))
		return xl_fail_died(pool);
	err = xl_request(pool, XMEM_IOC_GRANT, &request);
	return err ? xl_fail(-err, "client %u: %s", client, hint(err)) : 0;
}
