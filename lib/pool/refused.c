// SPDX-License-Identifier: MIT
/* Messages for joins that a host refuses: who owns the pool, and which mode it would need. */
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

/* The bits that a mode needs for a class: 0 (others), 1 (group) or 2 (owner). */
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
	return xl_fail(ENOENT, "there is no %s on the %s host that this user may join; if it "
			       "exists, user %u can let a %s in by mode 0%03o, or a member of its "
			       "group by 0%03o", pool, host, request->owner_uid, role_of(request),
		       XMEM_MODE_DEFAULT | needed(request, 0),
		       XMEM_MODE_DEFAULT | needed(request, 1));
}

/* The class of the mode that applies to this process, as far as it can tell. */
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
				       "this user in as one", pool, role_of(request),
			       XMEM_MODE_STRICT);
	if (!xl_pool_find(request, &there))
		return xl_fail(EACCES, "open %s as a %s: its mode does not let this user in as one",
			       pool, role_of(request));
	return xl_fail(EACCES, "open %s as a %s: it belongs to user %u, its group is %u and its "
			       "mode 0%03o; the mode would have to be 0%03o", pool,
		       role_of(request), there.owner_uid, there.gid, there.mode,
		       there.mode | needed(request, class_of(&there)));
}

static int not_supported(const struct xmem_join_request *request, const char *pool)
{
	if (request->flags & XMEM_JOIN_OWNER)
		return xl_fail(EOPNOTSUPP, "open %s: xmemd has pools of one user only; users share "
					   "pools if the kernel is the host", pool);
	if (request->flags & XMEM_JOIN_GROUP)
		return xl_fail(EOPNOTSUPP, "open %s: xmemd serves one user, so a pool's group is "
					   "that user's group, not %u", pool, request->gid);
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
		return xl_fail(EPERM, "open %s: this user is not in group %u", pool,
			       request->gid);
	return xl_fail(EPERM, "open %s: only its user can make it, so another user cannot use "
			      "XMEM_OPEN_EXCLUSIVE", pool);
}
