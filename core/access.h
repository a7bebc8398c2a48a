/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The roles in which a user may join a pool: the rules of uapi.h as functions of numbers. The hosts
 * find out who the caller is (kmod/access.c, daemon/access.c); no other file compares a mode with a
 * user.
 *
 * A mask of roles has the bit 1 << role (enum xmem_role) of each role.
 */
#ifndef XM_ACCESS_H
#define XM_ACCESS_H

#include "protocol.h"

/* The caller, as the host has identified it. */
struct xm_who {
	u32 uid;			/* in the namespace of the pool's owner_uid */
	bool in_group;			/* the pool's group is one of its groups */
	bool override;			/* CAP_DAC_OVERRIDE where the pool was made */
};

/* The mask of roles in which a pool of @owner and @mode lets @who join. */
u32 xm_access(u32 owner, u32 mode, const struct xm_who *who);

/*
 * Can a pool have this mode? 0, or -EINVAL: it has unknown bits, or lets somebody write but not
 * read.
 */
static inline int xm_mode_check(u32 mode)
{
	u32 shift;

	if (mode & ~XMEM_MODE_KNOWN)
		return -EINVAL;
	for (shift = 0; shift <= 6; shift += 3)	/* others, group, owner */
		if (mode >> shift & XMEM_MODE_WRITE && !(mode >> shift & XMEM_MODE_READ))
			return -EINVAL;
	return 0;
}

/*
 * May a caller that has @roles join with @role? 0, -EACCES, or -ENOENT: the caller may not know
 * that the pool exists. @owner: the caller owns the pool, so it knows.
 */
int xm_role_permit(u32 roles, u32 role, bool owner);

/* A caller with @roles joins. If it asks for EITHER and may not write, it becomes a reader. */
void xm_role_decide(u32 roles, struct xmem_join_request *join);

/*
 * Is an existing pool of @mode and group @gid as strict as its owner asks by @join? 0, or -ERANGE:
 * it lets in more. A join that gives no mode accepts any.
 */
int xm_access_fits(u32 mode, u32 gid, const struct xmem_join_request *join);

/*
 * The mask for a new descriptor of a pool: @wanted, or all roles that the caller @has if @wanted is
 * 0. 0, -EINVAL: there are no such roles, or -EACCES: the caller has fewer.
 */
int xm_roles_narrow(u32 has, u32 wanted, u32 *ret_roles);

/* May a pool have this name (uapi.h, NAMES)? The name ends with a NUL; "" is good, too. */
bool xm_name_is_good(const __u8 name[XMEM_NAME_BYTES]);

/* The number in "@17", which names a pool by its number; 0: @name has another form. */
u64 xm_name_number(const __u8 name[XMEM_NAME_BYTES]);

/* Is the name in @join valid: a good name, "", or the number of an existing pool, for a reader? */
bool xm_join_names_well(const struct xmem_join_request *join);

/* Check those fields of a join, or of `access`, that are about access. 0 or -EINVAL. */
int xm_join_access_check(const struct xmem_join_request *join);
int xm_access_check(const struct xmem_access_request *request);

#endif
