/* SPDX-License-Identifier: MIT */
/*
 * Access: the owner of a pool, or of buffers, decides whether other clients may join, whether they
 * go on, and whether they may hold its buffers. A part of xmem.h, whose rules for
 * errors, handles, threads and structs hold here too.
 */
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
 * Change who may join a pool from now on. Clients that have joined stay, and so do descriptors of
 * the pool unless the mode has XMEM_MODE_STRICT.
 * @mode: as in struct xmem_pool_options; 0: it stays as it is.
 * @gid: its group, one of this user's (or any with CAP_CHOWN); XMEM_GID_SAME: it stays.
 * Returns: 0, or -errno: -EPERM: the pool is another user's and the caller lacks CAP_SYS_ADMIN, or
 * it is not of that group; -EOPNOTSUPP: xmemd is the host, whose pools are for one user; -EINVAL:
 * such a mode there is not. Threads: any. Since: 0.5.
 */
int xmem_pool_set_mode(struct xmem_pool *pool, uint32_t mode, uint32_t gid);

/*
 * End another client of the pool, whether it runs, is stopped or hangs: it loses all that it has of
 * the pool, and its holds, claims and buffers are as if its process had been killed. The process
 * gets no signal; its calls in this pool fail with ENOTCONN from then on, and say why. It can still
 * read the buffers that it has mapped, but their contents may change. When the call returns all
 * that is done; memory of a GPU that the client used stays until its process has exited.
 * @client, @incarnation: of that client, as xmem_pool_client_info gives them.
 * Returns: 0, or -errno: -EPERM: the pool is another user's and the caller lacks CAP_SYS_ADMIN;
 * -ESTALE: that client has ended; -EINVAL: it is this client, or there is no such number;
 * -EOPNOTSUPP: xmemd is the host, which cannot take away what a live process has mapped; -ENOTCONN.
 * Threads: any. Since: 0.5.
 */
int xmem_pool_evict(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#define XMEM_DRAIN_EVICTS	(1u << 0)	/* end all clients but those of this process */

/*
 * Close the pool to all who would join it, by its name or by a descriptor (ESHUTDOWN), for good.
 * Clients that have joined go on; when the last client has left, and the last descriptor of the
 * pool is closed, it is gone, and its name is free for a new one.
 * @flags: XMEM_DRAIN_EVICTS, or 0.
 * Returns: how many clients it has ended, or -errno: -EPERM, -EOPNOTSUPP, -ENOTCONN as
 * xmem_pool_evict, and then nothing has changed; -EINVAL. Threads: any. Since: 0.5.
 */
int xmem_pool_drain(struct xmem_pool *pool, uint32_t flags);

/*
 * Let another client hold this one's buffers, those that there are and those that come, although
 * it is of another user and does not follow this client. It is for tokens that are passed on by a
 * way of one's own: holds of such a client would not count, so xmem_get refuses it (EACCES).
 * Clients of the pool's owner, and of this user, are let in when they join, and others when they
 * subscribe to this client, or to one that forwards its buffers. This lasts until one of both ends.
 * @client, @incarnation: of that client, as xmem_pool_client_info gives them.
 * Returns: 0, also if it was so before, or -errno: -EPERM: this client is a reader, and has no
 * buffers; -ESTALE: that client has ended; -EINVAL: there is no such number; -ENOTCONN.
 * Threads: any. Since: 0.5.
 */
int xmem_pool_grant(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#ifdef __cplusplus
}
#endif
#endif
