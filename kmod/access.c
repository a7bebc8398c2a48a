// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may join a pool? The owner, group and mode of a pool, what they permit the caller, and the
 * request that changes them. core/access.c has the rules; this file finds out who the caller is.
 *
 * The caller is the process that sends the request, not the one that has opened the device, because
 * the client will be the caller's process. As with files, its fsuid counts.
 */
#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "core/access.h"
#include "xk.h"

/* ---- a pool's owner, group and mode ---- */

/*
 * Find a group that the caller may give to a pool made in @ns: one of its own groups or, with
 * CAP_CHOWN, any group that @ns has, as with files.
 */
static int xk_access_group(struct user_namespace *ns, u32 gid, kgid_t *ret)
{
	*ret = make_kgid(current_user_ns(), gid);
	if (!gid_valid(*ret))
		return -EINVAL;
	if (in_group_p(*ret))
		return 0;
	return kgid_has_mapping(ns, *ret) && ns_capable(ns, CAP_CHOWN) ? 0 : -EPERM;
}

/* The caller owns the new pool. The fields of @join have been checked. */
int xk_access_prepare(struct xk_pool *pool, const struct xmem_join_request *join)
{
	kgid_t gid = current_fsgid();
	int err = 0;

	if (join->flags & XMEM_JOIN_GROUP)
		err = xk_access_group(current_user_ns(), join->gid, &gid);
	if (err)
		return err;
	spin_lock_init(&pool->access_lock);
	pool->owner = current_fsuid();
	pool->host.user = __kuid_val(pool->owner);
	pool->access.gid = gid;
	pool->access.mode = join->mode ? join->mode : XMEM_MODE_DEFAULT;
	pool->user_ns = get_user_ns(current_user_ns());
	return 0;
}

void xk_access_free(struct xk_pool *pool)
{
	if (pool->user_ns)
		put_user_ns(pool->user_ns);
}

/* Read group and mode at one moment; the request ACCESS may change both. */
void xk_access_of(struct xk_pool *pool, kgid_t *ret_gid, u32 *ret_mode)
{
	spin_lock(&pool->access_lock);
	*ret_gid = pool->access.gid;
	*ret_mode = pool->access.mode;
	spin_unlock(&pool->access_lock);
}

bool xk_access_owns(const struct xk_pool *pool)
{
	return uid_eq(pool->owner, current_fsuid());
}

/* May the caller change the access rules of the pool, evict clients, and drain the pool? */
bool xk_access_administers(const struct xk_pool *pool)
{
	return xk_access_owns(pool) || ns_capable(pool->user_ns, CAP_SYS_ADMIN);
}

/*
 * The roles in which the mode lets the caller in. A missing capability is not audited: most callers
 * have none, and the audit log would get an entry for each pool that they list.
 */
u32 xk_access_roles(struct xk_pool *pool)
{
	struct xm_who who = { .uid = __kuid_val(current_fsuid()) };
	u32 roles, mode;
	kgid_t gid;

	xk_access_of(pool, &gid, &mode);
	who.in_group = in_group_p(gid);
	roles = xm_access(__kuid_val(pool->owner), mode, &who);
	if (roles == XMEM_ROLES_ALL)
		return roles;
	who.override = ns_capable_noaudit(pool->user_ns, CAP_DAC_OVERRIDE);
	return xm_access(__kuid_val(pool->owner), mode, &who);
}

/* Is the pool as strict as its owner asks? Other callers join the pool as it is. */
int xk_access_fits(struct xk_pool *pool, const struct xmem_join_request *join)
{
	kgid_t gid;
	u32 mode;

	xk_access_of(pool, &gid, &mode);
	return xk_access_owns(pool) ?
	       xm_access_fits(mode, from_kgid(current_user_ns(), gid), join) : 0;
}

/* The roles in which the caller may join with a descriptor of the pool that has @roles. */
u32 xk_access_roles_by_file(struct xk_pool *pool, u32 roles)
{
	kgid_t gid;
	u32 mode;

	xk_access_of(pool, &gid, &mode);
	return mode & XMEM_MODE_STRICT ? roles & xk_access_roles(pool) : roles;
}

/* ---- the request access ---- */

int xk_access_begin(struct xk_call *call)
{
	struct xmem_access_request *request = &call->u.access;
	struct xk_pool *pool = call->client->pool;
	struct xk_access now;
	kgid_t gid = INVALID_GID;
	int err = xm_access_check(request);

	if (err)
		return err;
	if (request->flags && !xk_access_administers(pool))
		return -EPERM;
	if (request->flags & XMEM_ACCESS_GROUP)
		err = xk_access_group(pool->user_ns, request->gid, &gid);
	if (err)
		return err;
	spin_lock(&pool->access_lock);
	if (request->flags & XMEM_ACCESS_GROUP)
		pool->access.gid = gid;
	if (request->flags & XMEM_ACCESS_MODE)
		pool->access.mode = request->mode;
	now = pool->access;
	spin_unlock(&pool->access_lock);
	request->mode = now.mode;
	request->gid = from_kgid(current_user_ns(), now.gid);
	request->owner_uid = from_kuid(current_user_ns(), pool->owner);
	return 0;
}
