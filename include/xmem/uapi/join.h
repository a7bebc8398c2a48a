/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Joining a pool: modes, names, and the requests that join it. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_JOIN_H
#define XMEM_UAPI_JOIN_H

#include <linux/types.h>

#include "limits.h"
#include "pages.h"

/*
 * The mode of a pool says who may join it: its owner, who made it, its group, and all others, in
 * the bits of a file's mode. The first of these three that includes the caller decides, as with
 * files. CAP_DAC_OVERRIDE, in the user namespace in which the pool was made, allows all.
 *
 *   by name   The mode decides, at each join
 *   by file   A descriptor of pool_fd carries a mask of roles, and the mask decides: a process
 *             that may join has passed it on. With XMEM_MODE_STRICT the mode decides as well
 *
 * A name belongs to the user who made the pool. Pools of two users may have one name, and a join of
 * another user's pool names that user (XMEM_JOIN_OWNER). If a process has no role in a pool, the
 * join fails with ENOENT. If it has another role than it asks for, the join fails with EACCES.
 */
#define XMEM_MODE_READ		04	/* XMEM_ROLE_READER; << 3 for the group, << 6 for the
					 * owner */
#define XMEM_MODE_WRITE		02	/* XMEM_ROLE_WRITER; only with READ, because writers also
					 * read */
#define XMEM_MODE_STRICT	01000	/* a descriptor of the pool does not help a user that the
					 * mode excludes */
#define XMEM_MODE_KNOWN		(XMEM_MODE_STRICT | 0666)
#define XMEM_MODE_DEFAULT	0600

/*
 * NAMES: The name of a pool has up to XMEM_NAME_MAX characters of [A-Za-z0-9._/-] (EINVAL). The '/'
 * divides it into parts, as it divides a path. No part is empty or begins with a dot. So no part is
 * "." or "..", and the last character is no '/'. The first character may be a '/': "/camera" and
 * "camera" are two names. Programs write "USER:NAME" for another user's pool, because no user's
 * name has a ':'. A pool's name has no '!'. So a program that writes '!' for '/' makes a different
 * file name for each pool.
 *
 * In place of a name, '@' and a number, as in "@17", stand for the pool that the request `pools`
 * lists with that number. That pool may have no name. Such a join has to ask for the role of a
 * reader and to set EXISTING (EINVAL). The pool's mode decides, as it does for a join by name.
 */

/*
 * join: become a client of a pool. The kernel answers with a descriptor of the client's own file,
 * by which the client asks and maps from then on. The open /dev/xmem only joins, and can do so
 * again. The daemon makes the connection itself the client, once.
 */
#define XMEM_JOIN_EXISTING	(1u << 0)	/* do not create the pool, but fail (ENOENT) */
#define XMEM_JOIN_EXCLUSIVE	(1u << 1)	/* create it, and fail if it exists (EEXIST). A
						 * drained pool does not count as existing, nor, in
						 * the kernel, a pool without a living client of its
						 * owner's. Such a pool loses its name, even if
						 * other users keep it */
#define XMEM_JOIN_FD		(1u << 2)	/* join the pool of pool_fd; the name is empty */
#define XMEM_JOIN_OWNER		(1u << 4)	/* the pool of that name that owner_uid has made.
						 * Another user's is never created (ENOENT), and
						 * EXCLUSIVE is not allowed for it (EPERM) */
#define XMEM_JOIN_GROUP		(1u << 5)	/* if it is created, gid is its group: one of the
						 * caller's, or any with CAP_CHOWN (EPERM) */

/**
 * struct xmem_join_request - the argument of XMEM_IOC_JOIN
 * @size: the caller's size of this struct
 * @flags: XMEM_JOIN_*
 * @abi: XMEM_ABI of the caller
 * @role: in: enum xmem_role; out: READER in place of EITHER, if the caller may only read
 * @name: see NAMES; empty: a new anonymous pool
 * @pool_fd: with XMEM_JOIN_FD; else it must be -1
 * @fd: out: the client's file, close-on-exec; -1 (daemon)
 * @slots: rounded up to groups; 0: any, 1024 if it is created
 * @clients: 0: any, 64 if it is created
 * @ring_entries: a power of two; 0: any, 64 if it is created
 * @client: out: this client's id
 * @wait_bound_ns: longest wait for subscribers; 0: none, or a reader
 * @label: NUL-terminated, printable
 * @incarnation: out
 * @total_bytes: out: length of the whole layout
 * @reserved: must be 0
 * @owner_uid: in: with OWNER, in the caller's user namespace; else 0; out: the creator's; ~0: it
 *   has no number there
 * @mode: in: of a pool that is created; 0: XMEM_MODE_DEFAULT; with FD 0. If the caller's pool
 *   exists: 0, or the pool must not admit more than this, STRICT counted, nor have bits for
 *   another group than gid (ERANGE). out: the pool's
 * @gid: in: with GROUP; else 0, and the group is the caller's; out: the pool's, as owner_uid
 * @roles: in: 0; out: mask of the roles that the client may pass on by pool_fd
 * @reserved1: out: 0
 */
struct xmem_join_request {
	__u32 size;
	__u32 flags;
	__u32 abi;
	__u32 role;
	__u8  name[XMEM_NAME_BYTES];
	__s32 pool_fd;
	__s32 fd;
	/* Capacities. If the pool exists, it must have at least these (ERANGE). */
	__u32 slots;
	__u32 clients;
	__u32 ring_entries;
	__u32 client;
	__u64 wait_bound_ns;
	__u8  label[XMEM_LABEL_BYTES];
	__u64 incarnation;
	__u64 total_bytes;
	__u32 reserved;
	__u32 owner_uid;
	__u32 mode;
	__u32 gid;
	__u32 roles;
	__u32 reserved1;
};
#define XMEM_JOIN_MIN		160	/* up to fd */

/*
 * pool_fd: make a descriptor by which a process may join this pool in the descriptor's roles. It
 * gives no other right. A mask of roles has the bit 1 << role (enum xmem_role) of each. With a
 * descriptor for writers alone no process joins as a reader (EACCES), but a writer also reads. A
 * descriptor that was passed on cannot be taken back.
 *
 * With NARROW the descriptor is made from another one, and mostly for fewer roles. The other one
 * stays as it is, because other processes may have it too. The caller need not have joined, and the
 * pool's mode need not admit the caller. In the kernel, a request by a client's file has to come
 * from the mm that joined (EPERM), because a process that was given the file only polls it.
 */
#define XMEM_ROLES_ALL	((1u << XMEM_ROLE_READER) | (1u << XMEM_ROLE_WRITER))
#define XMEM_POOL_FD_NARROW	(1u << 0)

/**
 * struct xmem_pool_fd_request - the argument of XMEM_IOC_POOL_FD
 * @size: the caller's size of this struct
 * @flags: XMEM_POOL_FD_*
 * @pool_fd: with NARROW: a descriptor from pool_fd; else 0
 * @roles: in: roles that the client may pass on, or that pool_fd has (EACCES); 0: all of these;
 *   out: the descriptor's
 * @fd: out; close-on-exec
 * @reserved: must be 0
 */
struct xmem_pool_fd_request {
	__u32 size;
	__u32 flags;
	__s32 pool_fd;
	__u32 roles;
	__s32 fd;
	__u32 reserved;
};
#define XMEM_POOL_FD_MIN	20	/* up to fd */

/*
 * access: change the permission to join from now on; without a flag only report it. Only the pool's
 * owner, and CAP_SYS_ADMIN in the user namespace in which it was made, may change it (EPERM).
 * Clients that have joined stay.
 */
#define XMEM_ACCESS_MODE	(1u << 0)	/* change the mode */
#define XMEM_ACCESS_GROUP	(1u << 1)	/* change the group, as with XMEM_JOIN_GROUP */

/**
 * struct xmem_access_request - the argument of XMEM_IOC_ACCESS
 * @size: the caller's size of this struct
 * @flags: XMEM_ACCESS_*
 * @mode: in: with MODE, not 0; else 0; out: the pool's
 * @gid: in: with GROUP; else 0; out: the pool's, as in join
 * @owner_uid: in: 0; out: the pool's, as in join
 * @reserved: must be 0
 */
struct xmem_access_request {
	__u32 size;
	__u32 flags;
	__u32 mode;
	__u32 gid;
	__u32 owner_uid;
	__u32 reserved;
};
#define XMEM_ACCESS_MIN		16	/* up to gid */

#endif
