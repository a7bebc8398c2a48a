/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* The request that tells the limits of the host. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_QUOTA_H
#define XMEM_UAPI_QUOTA_H

#include <linux/types.h>

/*
 * quota: get one limit, its use, and its maximum. The caller need not have joined. A file that has
 * not joined gets no limits of a pool or of a client.
 *
 * In the kernel the process that makes a file of /dev/xmem join pays for it: its user, and the
 * owners of all user namespaces that it is in, so that additional uids do not help there. root, and
 * every process with CAP_SYS_RESOURCE in the initial user namespace, is counted like everybody, but
 * a user's limits do not refuse it. The daemon is of one user, and its limits are that user's.
 */
enum xmem_quota {
	/*
	 * Of a user. Kernel: user_max_* in /sys/module/xmem/parameters. The numbers that are
	 * missing in this enum are reserved: former kernels had limits of these numbers.
	 */
	XMEM_QUOTA_USER_POOLS = 0,	/* that it has made; kernel: ended ones count until their
					 * folder in sysfs is removed */
	XMEM_QUOTA_USER_FILES = 4,	/* payloads: files, and memory of GPUs; kernel: a file of a
					 * driver counts until it is released. Of the quotas of a
					 * user the daemon has only pools and files */
	XMEM_QUOTA_USER_FILE_BYTES = 5,	/* of the files, each as often as it is attached */
	XMEM_QUOTA_USER_PAGE_BYTES = 6,	/* of tables, groups and areas */
	/* Of a user, in what all users share: at most as much as it leaves free; kernel */
	XMEM_QUOTA_SHARE_PAGE_BYTES = 17,	/* of max_bytes */
	/* Of the host, for all users together */
	XMEM_QUOTA_POOLS = 32,		/* kernel: max_pools */
	XMEM_QUOTA_PAGE_BYTES = 33,	/* kernel: max_bytes */
	XMEM_QUOTA_CONNECTIONS = 34,	/* daemon; of a user, like all limits of the daemon */
	XMEM_QUOTA_POLLS = 35,		/* daemon: descriptors to poll */
	XMEM_QUOTA_DESCRIPTORS = 36,	/* daemon: it has none left, and knows no more than that */
	XMEM_QUOTA_PROCESS_CONNECTIONS = 37,	/* daemon: of the caller's process */
	/* Of the pool that the file has joined */
	XMEM_QUOTA_POOL_CLIENTS = 64,	/* its capacities: EUSERS, ENOSPC */
	XMEM_QUOTA_POOL_SLOTS = 65,
	XMEM_QUOTA_POOL_GROUPS = 66,
	XMEM_QUOTA_POOL_FILES = 67,	/* daemon: payload files */
	XMEM_QUOTA_POOL_DEVICES = 70,	/* GPUs */
	/* Of the client */
	XMEM_QUOTA_CLIENT_MAPPINGS = 96,	/* kernel: 32, and one for each group */
	XMEM_QUOTA_CLIENT_POLLS = 97,	/* daemon: descriptors to poll */
};
enum xmem_quota_scope {
	XMEM_QUOTA_OF_USER = 0,
	XMEM_QUOTA_OF_HOST = 1,
	XMEM_QUOTA_OF_POOL = 2,
	XMEM_QUOTA_OF_CLIENT = 3,
};
/*
 * Get the limit by which the client of this file was last refused something. By a file of the
 * device, by which several clients may join, get the limit that refused the calling thread's last
 * join. `quota` is 0. ENOENT: there is none.
 */
#define XMEM_QUOTA_REFUSED	(1u << 0)

/**
 * struct xmem_quota_request - the argument of XMEM_IOC_QUOTA
 * @size: the caller's size of this struct
 * @flags: XMEM_QUOTA_REFUSED, or none
 * @quota: in: get the limit with this number or the next higher one; out: enum xmem_quota. ENOENT:
 *   there are no more
 * @scope: out: enum xmem_quota_scope
 * @uid: out: scope of a user: its uid, in the caller's user namespace; else ~0
 * @level: out: REFUSED: 0: the limit is the caller's own user's; 1 and more: of an owner of the
 *   user namespaces that it is in, outwards
 * @used: out: the present number, or bytes
 * @most: out: the maximum; ~0: any number
 * @wanted: out: REFUSED: the number that the request would have reached; else 0
 * @reserved: must be 0
 * @reserved1: out: 0
 * @name: out: kernel: the parameter of the module; else a word for the limit. NUL-terminated
 */
struct xmem_quota_request {
	__u32 size;
	__u32 flags;
	__u32 quota;
	__u32 scope;
	__u32 uid;
	__u32 level;
	__u64 used;
	__u64 most;
	__u64 wanted;
	__u32 reserved;
	__u32 reserved1;
	__u8  name[24];
};
#define XMEM_QUOTA_MIN		12	/* up to quota */

#endif
