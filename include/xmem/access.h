/* SPDX-License-Identifier: MIT */
/* Access: who may join a pool, stay in it, and hold a client's buffers. A part of xmem.h. */
#ifndef XMEM_API_ACCESS_H
#define XMEM_API_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;

#define XMEM_GID_SAME	UINT32_MAX

/*
 * Change who may join a pool from now on. Clients that have joined stay.
 * @mode: as in struct xmem_pool_options; 0: unchanged.
 * @gid: the pool's group, one of this user's; XMEM_GID_SAME: unchanged.
 * Returns: 0, or -EPERM: the pool is another user's, or this user is not in that group;
 * -EOPNOTSUPP: xmemd is the host; -EINVAL: there is no such mode. Since: 0.5.
 */
int xmem_pool_set_mode(struct xmem_pool *pool, uint32_t mode, uint32_t gid);

/*
 * End the client with this id and incarnation (xmem_pool_client_info), even one that hangs, as if
 * its process had been killed. The process gets no signal. Its calls in this pool fail with
 * ENOTCONN and say why.
 * Returns: 0, or -EPERM: the pool is another user's; -ESTALE: that client has ended; -EINVAL: it is
 * this client, or there is no such number; -EOPNOTSUPP: xmemd is the host; -ENOTCONN. Since: 0.5.
 */
int xmem_pool_evict(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#define XMEM_DRAIN_EVICTS	(1u << 0)	/* end all clients but those of this process */

/*
 * From now on no client can join the pool (ESHUTDOWN). Clients that have joined stay.
 * @flags: XMEM_DRAIN_EVICTS, or 0.
 * Returns: how many clients it has ended, or -EPERM, -EOPNOTSUPP, -ENOTCONN as xmem_pool_evict, and
 * then nothing has changed; -EINVAL. Since: 0.5.
 */
int xmem_pool_drain(struct xmem_pool *pool, uint32_t flags);

/*
 * Let the client with this id and incarnation (xmem_pool_client_info) hold this client's buffers,
 * although it is another user's and does not subscribe to this one. This lasts until either ends.
 * Returns: 0, even if it was so before, or -EPERM; -ESTALE: that client has ended; -EINVAL: there
 * is no such number; -ENOTCONN. Since: 0.5.
 */
int xmem_pool_grant(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#ifdef __cplusplus
}
#endif
#endif
