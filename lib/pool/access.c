// SPDX-License-Identifier: MIT
/*
 * Deciding which processes may join a pool: descriptors with fewer roles, and changes of the mode.
 */
#include <string.h>
#include <unistd.h>

#include "core/access.h"
#include "lib/base/handle.h"
#include "lib/follow/wait.h"
#include "lib/host/reach.h"
#include "lib/host/request.h"
#include "lib/pool/host_info.h"

_Static_assert(XMEM_MAY_READ == 1u << XMEM_ROLE_READER, "roles");
_Static_assert(XMEM_MAY_WRITE == 1u << XMEM_ROLE_WRITER, "roles");

/* ---- narrower descriptors ---- */

static int not_narrowed(int err, const struct xmem_link *link)
{
	char space[XL_HINT_BYTES], limit[XL_LIMIT_BYTES];
	const char *hint = NULL;

	switch (-err) {
	case EACCES:
		hint = "it does not have all of these roles";
		break;
	case EBADF:
		hint = "it is not a descriptor from xmem_pool_fd, or the pool has ended since";
		break;
	case EDQUOT:
		hint = xl_limit_refused(link, limit);
		break;
	case ENODEV:
		hint = xl_nothing_runs(link, space);
		break;
	}
	if (!hint)
		hint = xl_reach_hint(err, link, space);
	return xl_fail(-err, "%s", hint ? hint : strerror(-err));
}

XMEM_API int xmem_pool_fd_narrow(int fd, uint32_t roles)
{
	XL_CALL;
	struct xmem_pool_fd_request request = {
		.size = sizeof(request), .flags = XMEM_POOL_FD_NARROW, .pool_fd = fd,
		.roles = roles,
	};
	struct xmem_link link;
	int err;

	if (!roles || roles & ~XMEM_ROLES_ALL)
		return xl_fail(EINVAL, "roles is 0x%x; it is XMEM_MAY_READ, "
				       "XMEM_MAY_WRITE, or both", roles);
	if (fd < 0)
		return xl_fail(EBADF, "%d is not a descriptor", fd);
	err = xl_check_environment();
	if (err)
		return err;
	err = xl_ask_host(&link, XMEM_IOC_POOL_FD, &request);
	if (err)
		return not_narrowed(err, &link);
	xl_file_forget(request.fd);	/* the caller owns it now */
	return request.fd;
}

/* ---- the mode ---- */

/* For EPERM, ask the host for the pool's owner. If it does not answer, the errno is the message. */
static int not_changed(int err, struct xmem_pool *pool, uint32_t mode, uint32_t gid)
{
	struct xmem_access_request now = { .size = sizeof(now) };

	if (err == -EOPNOTSUPP && !(mode & 077))
		return xl_fail(EOPNOTSUPP, "xmemd serves one user, so a pool's "
					   "group is that user's group %u, and not %u",
			       getegid(), gid);
	if (err == -EOPNOTSUPP)
		return xl_fail(EOPNOTSUPP, "xmemd serves one user, so no group "
					   "and no other user can be let in; its modes are 0600 "
					   "and 0400, not 0%o", mode);
	if (err != -EPERM || xl_request(pool, XMEM_IOC_ACCESS, &now))
		return xl_fail(-err, "%s", xl_request_error(err));
	if (now.owner_uid == geteuid())
		return xl_fail(EPERM, "this user is not in group %u", gid);
	return xl_fail(EPERM, "only user %u, who owns the pool, may do that",
		       now.owner_uid);
}

XMEM_API int xmem_pool_set_mode(struct xmem_pool *pool, uint32_t mode, uint32_t gid)
{
	XL_CALL;
	struct xmem_access_request request = { .size = sizeof(request), .mode = mode };
	int err;
	XL_USE(pool);

	if (!pool)
		return xl_fail_fast(EINVAL, "no pool");
	if (!xl_is_open(pool))
		return xl_fail_not_alive(pool);
	if (xm_mode_check(mode))
		return xl_fail(EINVAL, "0%o is not a mode of a pool: it has "
				       "bits beyond 0%o, or lets users write that may not read",
			       mode, XMEM_MODE_KNOWN);
	if (mode)
		request.flags |= XMEM_ACCESS_MODE;
	if (gid != XMEM_GID_SAME) {
		request.flags |= XMEM_ACCESS_GROUP;
		request.gid = gid;
	}
	err = xl_request(pool, XMEM_IOC_ACCESS, &request);
	return err ? not_changed(err, pool, mode, gid) : 0;
}
