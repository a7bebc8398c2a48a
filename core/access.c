// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The rules for joining a pool: access.h describes them, uapi.h defines them. */
#include "access.h"

#define GROUP_SHIFT	3	/* where the group's bits begin in a mode */
#define OWNER_SHIFT	6
#define GROUP_BITS	((XMEM_MODE_READ | XMEM_MODE_WRITE) << GROUP_SHIFT)

/* A caller with one of the returned roles may join with @role. */
static u32 xm_role_bits(u32 role)
{
	if (role == XMEM_ROLE_EITHER)
		return XMEM_ROLES_ALL;
	return role == XMEM_ROLE_READER || role == XMEM_ROLE_WRITER ? 1u << role : 0;
}

/*
 * Only one of the three sets of bits counts: a member of the group has the group's bits, even if
 * others have more.
 */
u32 xm_access(u32 owner, u32 mode, const struct xm_who *who)
{
	u32 roles = 0;

	if (who->override)
		return XMEM_ROLES_ALL;
	if (who->uid == owner)
		mode >>= OWNER_SHIFT;
	else if (who->in_group)
		mode >>= GROUP_SHIFT;
	if (mode & XMEM_MODE_READ)
		roles |= xm_role_bits(XMEM_ROLE_READER);
	if (mode & XMEM_MODE_WRITE)
		roles |= xm_role_bits(XMEM_ROLE_WRITER);
	return roles;
}

int xm_role_permit(u32 roles, u32 role, bool owner)
{
	if (roles & xm_role_bits(role))
		return 0;
	return roles || owner ? -EACCES : -ENOENT;
}

void xm_role_decide(u32 roles, struct xmem_join_request *join)
{
	if (join->role != XMEM_ROLE_EITHER || roles & xm_role_bits(XMEM_ROLE_WRITER))
		return;
	join->role = XMEM_ROLE_READER;
	join->wait_bound_ns = 0;	/* a reader waits for no subscriber */
}

int xm_access_fits(u32 mode, u32 gid, const struct xmem_join_request *join)
{
	u32 more = mode & ~join->mode & XMEM_MODE_KNOWN & ~XMEM_MODE_STRICT;

	if (!join->mode)
		return 0;
	/* STRICT permits less, not more. */
	if (more || (join->mode & ~mode & XMEM_MODE_STRICT))
		return -ERANGE;
	/* The bits of another group let in other users than the group that is asked for. */
	if (join->flags & XMEM_JOIN_GROUP && join->gid != gid && mode & GROUP_BITS)
		return -ERANGE;
	return 0;
}

int xm_roles_narrow(u32 has, u32 wanted, u32 *ret_roles)
{
	if (wanted & ~XMEM_ROLES_ALL)
		return -EINVAL;
	if (wanted & ~has)
		return -EACCES;
	*ret_roles = wanted ? wanted : has;
	return 0;
}

bool xm_name_is_good(const __u8 name[XMEM_NAME_BYTES])
{
	bool begins = true;	/* this character begins a part */
	u32 i;

	for (i = 0; i <= XMEM_NAME_MAX; i++) {
		__u8 c = name[i];

		if (!c)
			return !i || !begins;
		if (begins && (c == '.' || (c == '/' && i)))
			return false;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '-' || c == '.' || c == '/'))
			return false;
		begins = c == '/';
	}
	return false;	/* the name is too long, or has no NUL */
}

u64 xm_name_number(const __u8 name[XMEM_NAME_BYTES])
{
	u64 number = 0;
	u32 i;

	if (name[0] != '@')
		return 0;
	for (i = 1; i < 20 && name[i] >= '0' && name[i] <= '9'; i++)
		number = number * 10 + (name[i] - '0');
	return name[i] ? 0 : number;
}

/* A number is for looking at a pool; it never makes one. */
bool xm_join_names_well(const struct xmem_join_request *join)
{
	return xm_name_is_good(join->name) ||
	       (join->flags & XMEM_JOIN_EXISTING && join->role == XMEM_ROLE_READER &&
		xm_name_number(join->name));
}

int xm_join_access_check(const struct xmem_join_request *join)
{
	bool by_fd = join->flags & XMEM_JOIN_FD;
	bool owner = join->flags & XMEM_JOIN_OWNER, group = join->flags & XMEM_JOIN_GROUP;

	if (!xm_role_bits(join->role) || join->roles)
		return -EINVAL;
	if ((!owner && join->owner_uid) || (!group && join->gid) || join->gid == ~0u)
		return -EINVAL;
	if (by_fd && (owner || group || join->mode))
		return -EINVAL;
	/* An anonymous pool is always new, and the caller owns it. */
	if (owner && !join->name[0])
		return -EINVAL;
	return xm_mode_check(join->mode);
}

int xm_access_check(const struct xmem_access_request *request)
{
	bool mode = request->flags & XMEM_ACCESS_MODE, group = request->flags & XMEM_ACCESS_GROUP;

	if (request->owner_uid || (!group && request->gid) || request->gid == ~0u ||
	    mode != !!request->mode)
		return -EINVAL;
	return xm_mode_check(request->mode);
}
