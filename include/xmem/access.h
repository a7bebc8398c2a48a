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
 * Change who may join a pool from now on. Clients that have joined stay. Descriptors of the pool
 * stay valid unless the mode has XMEM_MODE_STRICT.
 * @mode: as in struct xmem_pool_options; 0: unchanged.
 * @gid: the pool's group, one of this user's (or any with CAP_CHOWN); XMEM_GID_SAME: unchanged.
 * Returns: 0, or -EPERM: the pool is another user's and the caller lacks CAP_SYS_ADMIN, or the
 * caller is not in that group; -EOPNOTSUPP: xmemd is the host, whose pools are for one user;
 * -EINVAL: there is no such mode. Since: 0.5.
 */
int xmem_pool_set_mode(struct xmem_pool *pool, uint32_t mode, uint32_t gid);

/*
 * End another client of the pool, even one that is stopped or hangs. Its references, claims and
 * buffers end as if its process had been killed; it gets no signal, and its calls in this pool fail
 * with ENOTCONN and say why.
 * @client, @incarnation: of that client, from xmem_pool_client_info.
 * Returns: 0, or -EPERM: the pool is another user's and the caller lacks CAP_SYS_ADMIN; -ESTALE:
 * that client has ended; -EINVAL: it is this client, or there is no such number; -EOPNOTSUPP: xmemd
 * is the host, which cannot unmap memory of a live process; -ENOTCONN. Since: 0.5.
 */
int xmem_pool_evict(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#define XMEM_DRAIN_EVICTS	(1u << 0)	/* end all clients but those of this process */

/*
 * Close the pool for good to clients that would join it by its name or a descriptor (ESHUTDOWN).
 * Clients that have joined stay. The pool is gone, and its name is free, after the last client has
 * left and the last descriptor is closed.
 * @flags: XMEM_DRAIN_EVICTS, or 0.
 * Returns: how many clients it has ended, or -EPERM, -EOPNOTSUPP, -ENOTCONN as xmem_pool_evict, and
 * then nothing has changed; -EINVAL. Since: 0.5.
 */
int xmem_pool_drain(struct xmem_pool *pool, uint32_t flags);

/*
 * Let another client hold this client's present and later buffers, although it is of another user
 * and does not subscribe to this client. This lasts until one of the two ends.
 * @client, @incarnation: of that client, from xmem_pool_client_info.
 * Returns: 0, even if it was so before, or -EPERM; -ESTALE: that client has ended; -EINVAL: there
 * is no such number; -ENOTCONN. Since: 0.5.
 */
int xmem_pool_grant(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#ifdef __cplusplus
}
#endif
#endif
