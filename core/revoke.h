/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Evicting clients and draining a pool: what both hosts check in the requests. Pure. */
#ifndef XM_REVOKE_H
#define XM_REVOKE_H

#include "protocol.h"

/*
 * Check an `evict` request of client @me. -EINVAL; -ESTALE: the other client has ended, as far as
 * the rows say. A request with WHY names no client.
 */
static inline int xm_evict_check(const struct xm_map *map, u32 me,
				 const struct xmem_evict_request *request)
{
	const struct xmem_client_row *row;

	if (request->reserved1)
		return -EINVAL;
	if (request->flags & XMEM_EVICT_WHY)
		return request->client || request->reason || request->incarnation ? -EINVAL : 0;
	if (request->reason != XMEM_REASON_EVICTED && request->reason != XMEM_REASON_LIMBO)
		return -EINVAL;
	if (request->client >= map->clients || request->client == me || !request->incarnation)
		return -EINVAL;
	row = xm_client_row(map, xm_index(request->client, map->clients));
	return xm_load(&row->state) == XMEM_CLIENT_ALIVE &&
	       xm_load(&row->incarnation) == request->incarnation ? 0 : -ESTALE;
}

static inline int xm_drain_check(const struct xmem_drain_request *request)
{
	return request->evicted ? -EINVAL : 0;
}

#endif
