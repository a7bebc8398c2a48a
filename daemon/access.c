// SPDX-License-Identifier: MIT
/*
 * The right to join a pool: its mode, and its keys, which are the descriptors that let a process
 * in. core/access.h has the rules.
 *
 * All clients of a daemon belong to its user, who is therefore the owner of every pool. The bits of
 * a mode that are about other users would have no effect, so they are refused (EOPNOTSUPP), and so
 * are other owners and groups. The owner's bits and a key's roles are enforced at each join. A
 * client that has joined can write all pages, whatever its role is: processes of one user trust
 * each other here (P4).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/access.h"
#include "daemon.h"

#define NOT_OURS	077	/* bits of a mode */

/* ---- the mode ---- */

int xd_access_check(const struct xmem_join_request *join)
{
	int err = xm_join_access_check(join);

	if (err)
		return err;
	if (join->mode & NOT_OURS)
		return -EOPNOTSUPP;
	if (join->flags & XMEM_JOIN_OWNER && join->owner_uid != geteuid())
		return -EOPNOTSUPP;
	return join->flags & XMEM_JOIN_GROUP && join->gid != getegid() ? -EOPNOTSUPP : 0;
}

u32 xd_access_roles(const struct xd_pool *pool)
{
	struct xm_who owner = { .uid = geteuid() };

	return xm_access(owner.uid, pool->mode, &owner);
}

int xd_access_permit(const struct xd_pool *pool, const struct xmem_join_request *join, u32 *roles)
{
	if (!(join->flags & XMEM_JOIN_FD))
		*roles = xd_access_roles(pool);
	else if (pool->mode & XMEM_MODE_STRICT)
		*roles &= xd_access_roles(pool);
	if (!xm_role_permit(*roles, join->role, true) && pool->drained)
		return -ESHUTDOWN;
	return xm_role_permit(*roles, join->role, true);
}

int xd_access_serve(struct xd_call *call)
{
	struct xmem_access_request *request = &call->request.access;
	struct xd_pool *pool = call->from->pool;
	int err = xm_access_check(request);

	if (err)
		return err;
	if (request->mode & NOT_OURS)
		return -EOPNOTSUPP;
	if (request->flags & XMEM_ACCESS_GROUP && request->gid != getegid())
		return -EOPNOTSUPP;
	if (request->flags & XMEM_ACCESS_MODE)
		pool->mode = request->mode;
	request->mode = pool->mode;
	request->gid = getegid();
	request->owner_uid = geteuid();
	return 0;
}

/* ---- keys ---- */

void xd_keys_init(struct xd_pool *pool)
{
	u32 roles;

	for (roles = 0; roles <= XMEM_ROLES_ALL; roles++)
		pool->key[roles] = -1;
}

void xd_keys_close(struct xd_pool *pool)
{
	u32 roles;

	for (roles = 0; roles <= XMEM_ROLES_ALL; roles++)
		if (pool->key[roles] >= 0)
			close(pool->key[roles]);
}

static bool is_key(int key, const struct stat *given)
{
	struct stat own;

	return key >= 0 && !fstat(key, &own) && own.st_dev == given->st_dev &&
	       own.st_ino == given->st_ino;
}

/* The inode identifies a key, because no other process can make a file with that inode. */
struct xd_pool *xd_pool_by_fd(struct xd_daemon *daemon, int fd, u32 *ret_roles)
{
	struct xd_pool *pool;
	struct stat given;
	u32 roles;

	if (fstat(fd, &given))
		return NULL;
	for (pool = daemon->pools; pool; pool = pool->next)
		for (roles = 0; roles <= XMEM_ROLES_ALL; roles++)
			if (is_key(pool->key[roles], &given)) {
				*ret_roles = roles;
				return pool;
			}
	return NULL;
}

/* A new descriptor of the key for @roles, or -errno. */
static int pool_fd(struct xd_pool *pool, u32 roles)
{
	int fd;

	if (pool->key[roles] < 0) {
		fd = xd_new_memfd("xmem-pool-file", 0, F_SEAL_WRITE);
		if (fd < 0)
			return fd;
		pool->key[roles] = fd;
	}
	fd = fcntl(pool->key[roles], F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int xd_pool_fd_serve(struct xd_call *call)
{
	struct xmem_pool_fd_request *request = &call->request.pool_fd;
	struct xd_pool *pool = call->from->pool;
	u32 has = call->from->roles;
	int err;

	if (request->flags & XMEM_POOL_FD_NARROW) {
		pool = call->fd < 0 ? NULL : xd_pool_by_fd(call->daemon, call->fd, &has);
		if (!pool)
			return -EBADF;
	} else if (request->pool_fd || call->fd >= 0) {
		return -EINVAL;
	} else if (!pool) {
		return -ENOTCONN;
	}
	err = xm_roles_narrow(has, request->roles, &request->roles);
	if (err)
		return err;
	call->answer = pool_fd(pool, request->roles);
	request->fd = -1;
	return call->answer < 0 ? call->answer : 0;
}
