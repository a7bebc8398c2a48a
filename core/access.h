/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who may join a pool, and in which roles: what uapi.h rules, as functions of numbers. The hosts
 * find out who asks (kmod/access.c, daemon/access.c); nobody else compares a mode with anybody.
 *
 * A mask of roles has the bit 1 << role (enum xmem_role) of each role.
 */
#ifndef XM_ACCESS_H
#define XM_ACCESS_H

#include "protocol.h"

/* Who asks, as the host has found out. */
struct xm_who {
	u32 uid;			/* in the same numbers as the pool's owner */
	bool in_group;			/* the pool's group is one of its groups */
	bool override;			/* CAP_DAC_OVERRIDE where the pool was made */
};

/* The roles in which a pool of @owner and @mode lets @who in. */
u32 xm_access(u32 owner, u32 mode, const struct xm_who *who);

/* Is it a mode that a pool can have? 0 or -EINVAL: unknown bits, or writers that may not read. */
int xm_mode_check(u32 mode);

/* A join by a caller that has @roles. @owner: the pool is its own, so it knows that it is there. */
int xm_role_permit(u32 roles, u32 role, bool owner);

/* A caller with @roles joins. If it asks for EITHER and may not write, it is a reader. */
void xm_role_settle(u32 roles, struct xmem_join_request *join);

/*
 * Is a pool that is there, of @mode and group @gid, as strict as its owner asks by @join? 0 or
 * -ERANGE: it lets in more. A join that gives no mode takes what there is.
 */
int xm_access_fits(u32 mode, u32 gid, const struct xmem_join_request *join);

/*
 * A mask for a new descriptor of a pool: @wanted, or if that is 0 all that the caller @has. 0 or
 * -EINVAL: there are no such roles; -EACCES: more than it has.
 */
int xm_roles_narrow(u32 has, u32 wanted, u32 *ret_roles);

/* Is it a name that a pool may have (uapi.h, NAMES), with a NUL behind it, or none: ""? */
bool xm_name_is_good(const __u8 name[XMEM_NAME_BYTES]);

/* The number in "@17", which stands for a pool in place of a name; 0: @name is not of this form. */
u64 xm_name_number(const __u8 name[XMEM_NAME_BYTES]);

/* Is the name in @join valid: a good name, "", or a number with EXISTING, as a reader? */
bool xm_join_names_well(const struct xmem_join_request *join);

/* The fields of a join, and of access, as far as they are about who may join. 0 or -EINVAL. */
int xm_join_access_check(const struct xmem_join_request *join);
int xm_access_check(const struct xmem_access_request *request);

#endif
