/* SPDX-License-Identifier: MIT */
/*
 * Pools: joining one, leaving it, and descriptors of it. A part of xmem.h, whose general rules
 * apply.
 */
#ifndef XMEM_API_POOL_H
#define XMEM_API_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;

#define XMEM_OPEN_WRITER	(1u << 0)	/* this client is a writer from the beginning */
#define XMEM_OPEN_EXISTING	(1u << 1)	/* do not create the pool: ENOENT */
#define XMEM_OPEN_EXCLUSIVE	(1u << 2)	/* create the pool: EEXIST if it is there */
#define XMEM_OPEN_READER	(1u << 3)	/* this client never writes */
#define XMEM_OPEN_INHERIT	(1u << 4)	/* forked children keep a descriptor of the pool, by
						 * which xmem_pool_reopen joins it */
#define XMEM_OPEN_GROUP		(1u << 5)	/* if the pool is made, `gid` is its group */
#define XMEM_OPEN_SHARES	(1u << 6)	/* this process writes contents that others hold, by
						 * its own rules: it can write to xmem_data without
						 * xmem_get_mut; since 0.5 */
#define XMEM_OPEN_FD		(1u << 7)	/* join the pool of the descriptor `fd` */

/*
 * The mode of a pool: who may join it, in the bits of a file's mode: 0640, 0666. A writer also
 * reads.
 */
#define XMEM_MODE_STRICT	01000	/* a user that the mode excludes cannot join, not even
					 * with a descriptor of the pool */

/* The roles in which a client may join, as a mask. A writer also reads. */
#define XMEM_MAY_READ		(1u << 1)	/* as a reader */
#define XMEM_MAY_WRITE		(1u << 2)	/* as a writer */

/* All fields but size may be 0, which means the default. */
struct xmem_pool_options {
	size_t size;			/* sizeof(struct xmem_pool_options) */
	uint32_t flags;			/* XMEM_OPEN_* */
	uint32_t slots;			/* buffers needed at least, at most 65536; 0: any number */
	uint32_t clients;		/* clients needed at least, at most 256; 0: any number */
	uint32_t ring_entries;		/* publications of each writer that the pool remembers at
					 * least: a power of two from 4 to 4096; 0: any number */
	int64_t wait_bound_ns;		/* writer: its longest wait in all for a slow subscriber,
					 * which then loses publications; 0: it never waits */
	const char *label;		/* the name that others see for this client: at most 15
					 * printable ASCII characters; NULL: the program's name */
	uint64_t demand_bytes;		/* writer: bytes in all that xmem_acquire may make on
					 * demand, and on each GPU xmem_acquire_cuda; 0: a quarter
					 * of what is free there, and none after xmem_preallocate
					 * there; XMEM_NO_DEMAND: none; since 0.4, as all that
					 * follow */
	uint64_t cache_bytes;		/* writer: bytes of unused buffers from demand that it
					 * keeps in each of these places; 0: an eighth of the most
					 * in use, at least 1 MB */
	int64_t cache_ns;		/* writer: how long it keeps them; 0: 10 s; XMEM_FOREVER:
					 * always */
	uint32_t memory;		/* writer: XMEM_MEMORY_* (memory.h) of buffers from demand,
					 * without XMEM_MEMORY_CUDA, or 0; each of them is for the
					 * places that have it */
	uint32_t keep;			/* writer: how many of its last publications stay for later
					 * subscribers with `history`, until an acquire finds no
					 * other buffer; at most 4096 */
	uint32_t mode;			/* of the pool, if it is made: who may join it, as 0640; 0:
					 * 0600. If the pool exists and admits more users, ERANGE;
					 * 0 is not checked; since 0.5, as all that follow */
	uint32_t gid;			/* with XMEM_OPEN_GROUP: a group of this user; else 0, and
					 * the group is this process's */
	uint64_t limbo_bytes;		/* of the pool, if it is made: bytes of ended writers'
					 * buffers that one client may hold before the host evicts
					 * it; 0 or UINT64_MAX: any number. If the pool exists and
					 * allows more, ERANGE; 0 is not checked. EOPNOTSUPP: xmemd
					 * is the host */
	int32_t fd;			/* with XMEM_OPEN_FD: from xmem_pool_fd, passed on in any
					 * way; it stays the caller's; else 0 */
	uint32_t reserved;		/* must be 0 */
};

#define XMEM_NO_DEMAND	UINT64_MAX	/* demand_bytes: xmem_acquire makes no buffers */

/*
 * Join a pool. If there is no pool of that name, make it.
 * @name: up to 128 characters of A-Z a-z 0-9 . _ - and '/'. No part between two '/' is empty or
 *	begins with a dot, and the name does not end with a '/'. "USER:NAME" is the pool of another
 *	user, given by number or by a name in /etc/passwd. "@17" in place of NAME is the pool that
 *	xmem_pool_next lists with the number 17; only a reader can join by a number. NULL or ""
 *	makes an anonymous pool, and is the name with XMEM_OPEN_FD.
 * @options: NULL stands for options that are all zero.
 *
 * A client joins as a reader, and its first call for writers (acquire, preallocate, attach,
 * get_mut, forward and so on) makes it a writer if the pool lets it write; otherwise that call
 * fails with EACCES. With XMEM_OPEN_WRITER it is a writer from the beginning. With XMEM_OPEN_READER
 * it stays a reader, and calls for writers fail with EPERM.
 *
 * Each user has names of their own. This call never makes a pool of another user. The client that
 * makes the pool sets its mode, its group and its sizes; the defaults are 1024 slots, 64 clients
 * and 64 ring entries. A writer gets slots in groups of 64. A pool ends with its last client and,
 * where the kernel is the host, its last descriptor.
 *
 * The host is /dev/xmem if it exists, and otherwise xmemd, which this call starts if it does not
 * run. XMEM_BACKEND in the environment insists on one of them (docs/environment.md).
 *
 * Returns: the pool, or NULL:
 *	EINVAL	a name, number, label or flag is out of its range, or a reader asks for something
 *		that only writers have; the message says which
 *	EBADF	`fd` is not a pool's descriptor
 *	ENOENT	XMEM_OPEN_EXISTING or USER:NAME, and there is no such pool, or it is another user's
 *		and gives this user no role
 *	EEXIST	XMEM_OPEN_EXCLUSIVE, and the pool exists; a pool that only other users keep alive
 *		does not count
 *	ERANGE	the pool exists and is smaller than the options ask for; or it belongs to this user,
 *		and its mode or group admits users that `mode` and `gid` would exclude
 *	EPERM	`gid` is no group of this user; or the folder of the daemon's address is not this
 *		user's alone; the message names it
 *	EACCES	the pool lets this user in as a reader only; or this user may not open /dev/xmem, or
 *		the socket that XMEM_SOCKET names
 *	EOPNOTSUPP  xmemd is the host, and another user's pool, or a mode or group for other users,
 *		is asked for
 *	EUSERS	the pool has as many clients as it can have
 *	ESHUTDOWN  the pool is drained (xmem_pool_drain): no client joins it any more
 *	ENODEV	there is no host, or its daemon does not start; the message says why
 *	ENAMETOOLONG  XMEM_SOCKET in the environment is too long for an address
 *	EPROTONOSUPPORT  the host speaks another version of the protocol
 *	E2BIG, EDQUOT, EINTR, ENOMEM, EMFILE
 * Ownership: the caller calls xmem_pool_close. Threads: any. Since: 0.1.
 */
struct xmem_pool *xmem_pool_open(const char *name, const struct xmem_pool_options *options);

/*
 * Drop the handle of a pool. The client ends when its buffers and subscriptions have been dropped
 * too. Until then its buffers can be read, published and copied, but set_ref_count, offer, forget
 * and copy_to of such a buffer fail with EBADF. Threads: any, but no other thread may run xmem_get
 * with this handle or close it meanwhile, and a function that xmem_limbo_hook has set may not call
 * it. Calls that wait in this handle or its subscriptions end with ECANCELED; a receive that begins
 * later waits (call xmem_cancel first). When this call returns, other calls with the handle have
 * finished or fail with EBADF, as later ones do until another pool is opened. Since: 0.1.
 */
void xmem_pool_close(struct xmem_pool *pool);

/*
 * End all waiting in a pool handle and its subscriptions, now and for ever. Waiting calls, and
 * later calls whose timeout is not 0, fail with ECANCELED even if a buffer is available. Calls with
 * timeout 0 work as before. A call that waits for the answer of a stopped daemon goes on waiting
 * for it.
 * Returns: 0, or -EINVAL, -ECHILD. Threads: any. Since: 0.3.
 */
int xmem_cancel(struct xmem_pool *pool);

/* ---- event loops ---- */

/*
 * Get the descriptor of a pool for poll, select and epoll. It is level-triggered.
 *	readable	a subscription has something to receive, or has ended: xmem_receive
 *			with timeout 0 does not fail with EAGAIN
 *	writable	xmem_acquire may find a buffer: something has changed since the last call
 *			that failed with EAGAIN, or there was none (writers only)
 *	hung up		the host or this client has ended: close the pool and open it again
 * The descriptor can be ready in vain. So a program uses timeout 0, and returns to its loop after
 * EAGAIN. It is writable in vain once for a change: after EAGAIN it is not writable until the next
 * one. A writer that polls waits for slow subscribers no longer than wait_bound_ns. The
 * descriptor can be requested at any time and passed to other processes.
 *
 * Returns: the descriptor, one for all calls, or -errno: -EDQUOT: the daemon has given out as many
 * as it may (the kernel counts the process's files); -ETIMEDOUT: the daemon does not answer;
 * -ENOMEM, -EMFILE.
 * Ownership: the library's, valid until the handles that keep the pool alive are dropped; the
 * program neither reads, writes nor closes it. Threads: any. Since: 0.3.
 */
int xmem_pool_poll_fd(struct xmem_pool *pool);

/* ---- descriptors, and children ---- */

/*
 * Join the pool of a handle anew: in a child that inherited the handle by fork, after the host has
 * gone, or as a second client. The name, user and options are those of the handle, without
 * XMEM_OPEN_EXCLUSIVE. If that pool has ended, the call makes a new one, unless the options had
 * XMEM_OPEN_EXISTING or the pool is another user's. With XMEM_OPEN_INHERIT a child joins by a
 * descriptor instead, so that the pool may be anonymous. The handle itself does not change.
 *
 * Returns: as xmem_pool_open, and
 *	EOPNOTSUPP  the pool was opened without XMEM_OPEN_INHERIT, and it is anonymous, or of a user
 *		that has no number in this user namespace
 *	EBADF	this process has closed the handle; or a child has, and the pool was opened with
 *		XMEM_OPEN_INHERIT; or the pool of its descriptor has ended
 * Ownership: the caller calls xmem_pool_close. Threads: any. Since: 0.4.
 */
struct xmem_pool *xmem_pool_reopen(struct xmem_pool *pool);

/*
 * Make a descriptor with which a process of any user can join this pool (XMEM_OPEN_FD), in the
 * roles that this client may pass on. For the client that made the pool these are all roles. For
 * others they are the roles that the mode gives this client now, or that its own descriptor gave
 * it. A descriptor that was passed on cannot be taken back.
 * Returns: the descriptor, which is close-on-exec, or -errno: -EMFILE; -EACCES: this client joined
 * another user's pool by name, and the mode no longer admits it; -EDQUOT.
 * Ownership: the caller closes it. Threads: any. Since: 0.2.
 */
int xmem_pool_fd(struct xmem_pool *pool);

/*
 * Make a descriptor for fewer roles from a descriptor of a pool, before it is passed on. The caller
 * need not have joined the pool, but a host must run.
 * @fd: from xmem_pool_fd or this function; it stays the caller's, and does not change.
 * @roles: XMEM_MAY_*, at least one.
 * Returns: the new descriptor, which is close-on-exec, or -errno: -EACCES: @fd lacks one of these
 * roles; -EBADF: it is not a pool's descriptor; -EINVAL; -ENODEV: there is no host; -EMFILE.
 * Ownership: the caller closes it. Threads: any. Since: 0.5.
 */
int xmem_pool_fd_narrow(int fd, uint32_t roles);

/* ---- this client ---- */

/*
 * Get the name of the host: "kernel" or "daemon".
 * Returns: the name; NULL for NULL. Ownership: valid as long as the pool. Threads: any. Since: 0.1.
 */
const char *xmem_pool_backend(struct xmem_pool *pool);

/*
 * Get the id of this client in the pool.
 * Returns: the id, or -EINVAL, -ECHILD. Threads: any. Since: 0.1.
 */
int xmem_pool_client(struct xmem_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
