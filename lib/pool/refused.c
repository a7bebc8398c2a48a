// SPDX-License-Identifier: MIT
/*
 * Why a host does not let this client into a pool, or does not make it as it is wanted: whose
 * pool it is, and what mode it would need.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/access.h"
#include "lib/pool/host_info.h"
#include "lib/pool/join.h"

const char *xl_join_names(const struct xmem_join_request *request, char space[XL_POOL_BYTES])
{
	const char *name = (const char *)request->name;

	if (request->flags & XMEM_JOIN_FD)
		return "the descriptor's pool";
	if (!*name)
		return "an anonymous pool";
	if (request->flags & XMEM_JOIN_OWNER)
		snprintf(space, XL_POOL_BYTES, "pool '%s' of user %u", name, request->owner_uid);
	else
		snprintf(space, XL_POOL_BYTES, "pool '%s'", name);
	return space;
}

/* The bits that a mode needs for one of the classes 0 (others), 1 (group), 2 (owner). */
static u32 needed(const struct xmem_join_request *request, u32 class)
{
	u32 bits = XMEM_MODE_READ;

	if (request->role == XMEM_ROLE_WRITER)
		bits |= XMEM_MODE_WRITE;
	return bits << 3 * class;
}

static const char *role_of(const struct xmem_join_request *request)
{
	return request->role == XMEM_ROLE_WRITER ? "writer" : "reader";
}

static int not_there(const struct xmem_link *link, const struct xmem_join_request *request,
		     const char *pool)
{
	const char *host = link->backend->name;

	if (!*request->name && !(request->flags & XMEM_JOIN_FD))
		return xl_fail(ENOENT, "open an anonymous pool: it is always a new one, but flags "
				       "has XMEM_OPEN_EXISTING");
	if (!(request->flags & XMEM_JOIN_OWNER))
		return xl_fail(ENOENT, "there is no %s on the %s host", pool, host);
	return xl_fail(ENOENT, "there is no %s on the %s host that this user may join; if it is "
			       "there, user %u lets a %s in by mode 0%03o, or a member of its "
			       "group by 0%03o", pool, host, request->owner_uid, role_of(request),
		       XMEM_MODE_DEFAULT | needed(request, 0),
		       XMEM_MODE_DEFAULT | needed(request, 1));
}

/* Which of the mode's classes this process is of, as far as it can tell. */
static u32 class_of(const struct xmem_pool_entry *pool)
{
	if (pool->owner_uid == geteuid())
		return 2;
	return group_member(pool->gid) ? 1 : 0;
}

static int not_in_that_role(const struct xmem_join_request *request, const char *pool)
{
	struct xmem_pool_entry there;

	if (request->flags & XMEM_JOIN_FD)
		return xl_fail(EACCES, "open %s as a %s: the descriptor was narrowed to other "
				       "roles, or the pool's mode is strict (0%o) and does not let "
				       "this user in so", pool, role_of(request),
			       XMEM_MODE_STRICT);
	if (!xl_pool_find(request, &there))
		return xl_fail(EACCES, "open %s as a %s: its mode does not let this user in so",
			       pool, role_of(request));
	return xl_fail(EACCES, "open %s as a %s: it is user %u's, its group is %u and its mode "
			       "0%03o; it would have to be 0%03o", pool, role_of(request),
		       there.owner_uid, there.gid, there.mode,
		       there.mode | needed(request, class_of(&there)));
}

static int not_supported(const struct xmem_join_request *request, const char *pool)
{
	/* It is looked at last. */
	if (request->limbo_bytes && !(request->mode & 077) &&
	    !(request->flags & XMEM_JOIN_OWNER && request->owner_uid != geteuid()) &&
	    !(request->flags & XMEM_JOIN_GROUP && request->gid != getegid()))
		return xl_fail(EOPNOTSUPP, "open %s: limbo_bytes is %llu, but xmemd ends no client "
					   "that lives; the kernel does, as host", pool,
			       (unsigned long long)request->limbo_bytes);
	if (request->flags & XMEM_JOIN_OWNER)
		return xl_fail(EOPNOTSUPP, "open %s: xmemd has the pools of one user alone; users "
					   "share pools where the kernel is the host", pool);
	if (request->flags & XMEM_JOIN_GROUP)
		return xl_fail(EOPNOTSUPP, "open %s: xmemd serves one user, so a pool's group is "
					   "that user's, not %u", pool, request->gid);
	return xl_fail(EOPNOTSUPP, "open %s: mode 0%o lets others join, but xmemd serves one user; "
				   "there it may be 0600 or 0400",
		       pool, request->mode);
}

int xl_join_refused(int err, const struct xmem_link *link, const struct xmem_join_request *request)
{
	char space[XL_POOL_BYTES];
	const char *pool = xl_join_names(request, space);

	switch (-err) {
	case ENOENT:
		return not_there(link, request, pool);
	case EACCES:
		return not_in_that_role(request, pool);
	case EOPNOTSUPP:
		return not_supported(request, pool);
	}
	if (request->flags & XMEM_JOIN_GROUP)
		return xl_fail(EPERM, "open %s: group %u is none of this user's", pool,
			       request->gid);
	return xl_fail(EPERM, "open %s: only its user makes it, so XMEM_OPEN_EXCLUSIVE is not for "
			      "another's", pool);
}
