/* SPDX-License-Identifier: MIT */
/*
 * Pools: joining one, leaving it, and descriptors of it. A part of xmem.h, whose rules for
 * errors, handles, threads and structs hold here too.
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
						 * rules of its own: what xmem_data gives can be
						 * written, without xmem_get_mut; since 0.5 */

#define XMEM_OPEN_FD		(1u << 7)	/* join the pool of the descriptor `fd` */

/* The mode of a pool: who may join it, in bits as of files: 0640, 0666. A writer reads, too. */
#define XMEM_MODE_STRICT	01000	/* a user whom the mode excludes cannot join, not even
					 * with a descriptor of the pool */

/* The roles in which somebody may join, as a mask. A writer reads, too. */
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
	int64_t wait_bound_ns;		/* writer: how long a slow subscriber may make it wait in
					 * all before it is passed over; 0: it never waits */
	const char *label;		/* the name that others see for this client: at most 15
					 * printable ASCII characters; NULL: the program's name */
	uint64_t demand_bytes;		/* writer: bytes that xmem_acquire may make on demand, in
					 * all; 0: a quarter of the memory that is left when the
					 * first is made, and none after xmem_preallocate;
					 * XMEM_NO_DEMAND: none; since 0.4, as all that follow */
	uint64_t cache_bytes;		/* writer: how many bytes of unused buffers that were made
					 * on demand it keeps; 0: an eighth of the most that was
					 * in use, and at least 1 MB */
	int64_t cache_ns;		/* writer: how long it keeps them; 0: 10 s; XMEM_FOREVER:
					 * always */
	uint32_t memory;		/* writer: of what is made on demand: XMEM_MEMORY_* of
					 * xmem/memory.h, or 0 */
	uint32_t keep;			/* writer: how many of its last publications stay for later
					 * subscribers with `history`, until an acquire finds no
					 * other buffer; at most 4096. Only publications of its
					 * own buffers count, and none that was sent to one
					 * client, retracted or written in place. What it
					 * forwards stays as long as the owner keeps it */
	uint32_t mode;			/* of the pool, if it is made: who may join it, as 0640; 0:
					 * 0600, its owner alone. A umask does not count. If the
					 * pool exists and its mode admits more users, ERANGE;
					 * with 0 that is not checked. Since 0.5, as the next */
	uint32_t gid;			/* with XMEM_OPEN_GROUP: a group of this user; else 0, and
					 * the group is this process's */
	uint64_t limbo_bytes;		/* of the pool, if it is made: the bytes that one client may
					 * hold of buffers of ended writers. 5 seconds after
					 * these have ended the host evicts a client that holds
					 * more (see xmem_pool_evict). What a client has
					 * forwarded beyond this number is lost. 0 or UINT64_MAX:
					 * any number, if the administrator says nothing else. If
					 * the pool exists and allows more, ERANGE; with 0 that
					 * is not checked. Not where xmemd is the host
					 * (EOPNOTSUPP); since 0.5 */
	int32_t fd;			/* with XMEM_OPEN_FD: from xmem_pool_fd, passed on in any
					 * way; it stays the caller's; else 0; since 0.5 */
	uint32_t reserved;		/* must be 0 */
};

#define XMEM_NO_DEMAND	UINT64_MAX	/* demand_bytes: xmem_acquire makes no buffers */

/*
 * Join a pool. If there is no pool of that name, make it.
 * @name: up to 128 characters of A-Z a-z 0-9 . _ - and '/', such as "/camera/front/image_raw". The
 *	'/' divides a name into parts, as it divides a path. No part is empty or begins with a dot,
 *	so a name does not end with a '/'. A name may begin with one: "/camera" and "camera" are
 *	two names. NULL or "" makes an anonymous pool, which others join by its descriptor
 *	(XMEM_OPEN_FD, with which no name is given). To name another user's pool, write the user and
 *	a colon before the name: "USER:NAME", for example "alice:/camera/front". USER is a number,
 *	or a name that /etc/passwd has; a user that only other sources know is given by number. In
 *	place of NAME, "@17" stands for the pool that xmem_pool_next lists with the number 17. Only
 *	a reader can join by a number, also if the pool has no name.
 * @options: NULL stands for options that are all zero.
 *
 * A client is a reader or a writer. It joins as a reader. Its first call that only writers may make
 * (acquire, preallocate, attach, get_mut, forward and so on) makes it a writer, if the pool lets it
 * write. If the pool does not, the call fails with EACCES. A subscription follows writers and waits
 * for a writer; it ignores clients that only read. With XMEM_OPEN_WRITER a client is a writer from
 * the beginning. With XMEM_OPEN_READER it stays a reader: calls for writers fail with EPERM.
 *
 * Each user has names of their own: pools of two users may have one name, and no user can take
 * another user's name. A pool's mode decides who may join it as a reader (r) and as a writer (w);
 * the client that makes the pool sets mode and group (`mode`, `gid`). Where the kernel is the host,
 * a process with CAP_DAC_OVERRIDE may join any pool. xmemd serves one user, so it refuses modes for
 * others. This call never makes a pool of another user.
 *
 * The client that makes the pool decides its sizes: those in its options, or 1024 slots, 64 clients
 * and 64 ring entries. Slots are given to writers in groups of 64: a pool of 1024 slots serves at
 * most 16 writers at once. After a writer has ended that belongs to the user who owns the pool, and
 * subscribers have received the rest of its ring, its free slots serve later writers of that user,
 * and the used slots stay in use. (A group with buffers on a GPU comes free as a whole, once none
 * of its slots is used.) A pool ends with its last client (and, where the kernel is the host, its
 * last descriptor).
 *
 * The host is /dev/xmem if there is one, and otherwise xmemd, which this call starts if it
 * does not run. XMEM_BACKEND in the environment insists on one of them
 * (docs/environment.md).
 *
 * Returns: the pool, or NULL:
 *	EINVAL	a name, number, label or flag is out of its range; the message says which
 *	E2BIG	the options are newer than this library and ask for something it lacks
 *	EBADF	`fd` is not a pool's descriptor
 *	ENOENT	XMEM_OPEN_EXISTING or USER:NAME, and there is no such pool, or it is another
 *		user's and does not let this one in at all
 *	EEXIST	XMEM_OPEN_EXCLUSIVE, and the pool exists; one that only other users keep alive
 *		does not count
 *	ERANGE	the pool exists and is smaller than the options ask for; or it belongs to this
 *		user, and its mode or group admits users whom `mode` and `gid` would exclude, and
 *		who may have joined already
 *	EPERM	`gid` is no group of this user; or the folder of the daemon's address is not
 *		this user's alone; the message names it
 *	EACCES	the pool lets this user in as a reader only; or this user may not open
 *		/dev/xmem, or the socket that XMEM_SOCKET names
 *	EOPNOTSUPP  xmemd is the host, and another user's pool, or a mode or a group for others,
 *		is asked for
 *	EUSERS	the pool has as many clients as it can have
 *	ESHUTDOWN  the pool is drained (xmem_pool_drain): nobody joins it any more
 *	EDQUOT	a limit of the host is reached
 *	ENODEV	there is no host, or its daemon does not start; the message says why
 *	EINTR	a signal handler ran before the host had answered
 *	ENAMETOOLONG  XMEM_SOCKET in the environment is too long for an address
 *	EPROTONOSUPPORT  the host speaks another version of the protocol
 *	ENOMEM, EMFILE
 * Ownership: the caller calls xmem_pool_close. Threads: any. Since: 0.1.
 */
struct xmem_pool *xmem_pool_open(const char *name, const struct xmem_pool_options *options);

/*
 * Drop the handle of a pool. The client ends when its buffers and subscriptions have been
 * dropped too. While others have memory of a GPU open that goes by the driver's IPC handles or is
 * from xmem_attach_cuda, a client labelled "closing" stays in the pool until they have closed it.
 * Buffers that stay can still be read, published and copied; set_ref_count, offer, forget and
 * copy_to of such a buffer fail with EBADF.
 * Threads: calls that wait in this handle or its subscriptions end with ECANCELED. When this call
 * returns, calls of other threads that use the handle itself have finished or fail with EBADF.
 * Later calls fail with EBADF, too, as long as no other pool has been opened. xmem_get is an
 * exception, because the check would slow down every call: a later xmem_get fails, but no xmem_get
 * may run in another thread while the handle is closed. Nor may the handle be closed twice at once,
 * or by a function that xmem_limbo_hook has set: xmem_pool_close waits for the call that runs this
 * function. Since: 0.1.
 */
void xmem_pool_close(struct xmem_pool *pool);

/*
 * End all waiting in a pool handle and its subscriptions, now and for ever: waiting
 * calls, and later calls whose timeout is not 0, fail with ECANCELED even if a buffer is available.
 * Calls with timeout 0 go on as before. A call that waits for the answer of a daemon that is
 * stopped goes on waiting for that. This is for a program that ends: its threads return.
 * Returns: 0, or -EINVAL, -ECHILD. Threads: any. Since: 0.3.
 */
int xmem_cancel(struct xmem_pool *pool);

/* ---- event loops ---- */

/*
 * Get the descriptor of a pool for poll, select and epoll: one thing to wait on.
 *	readable	a subscription has something to receive, or has ended: xmem_receive
 *			with timeout 0 does not fail with EAGAIN
 *	writable	an xmem_acquire with timeout 0 finds a buffer; after an xmem_acquire that
 *			found none, a buffer of the size requested then (writers only)
 *	hung up		the host has ended, or this client has: close the pool, open it again
 * A writer that waits for writable waits for slow subscribers no longer than wait_bound_ns, as in
 * xmem_acquire. A writer that still has a buffer in hand is taken for one that waits only after
 * an acquire has found none.
 * The descriptor can be requested at any time, also before the first subscription, and can be
 * passed to other processes. It is level-triggered. A program uses timeout 0 and returns to its
 * loop after EAGAIN, because the descriptor can be ready in vain:
 *	readable	the publication that it meant is taken from a slow subscriber, or is
 *			retracted, or was sent to another client: the receive skips it, and the
 *			writer may be waiting for that; a few times after publishers have ended,
 *				until the
 *			daemon has heard that nobody follows them any more; with a subscription to
 *			all writers, one has joined, or is free because another subscription of
 *			the handle is dropped: the receive follows it
 *	writable	somebody gets the buffer that was free; the time of a slow subscriber has
 *			to begin, which only an acquire can do, once: a subscriber that had exceeded
 *				it is waited for again
 *			while the writer sleeps, or only a client that has forwarded them keeps
 *			buffers; on demand, when buffers come free whose file is still in use
 * While the daemon is stopped it says nothing new, although xmem_receive and xmem_acquire with
 * timeout 0 still succeed.
 *
 * Returns: the descriptor, one for all calls, or -errno:
 *	-EDQUOT	the daemon has given out as many as it may (the kernel counts the process's files)
 *	-ETIMEDOUT  the daemon does not answer
 *	-ENOMEM, -EMFILE
 * Ownership: the library's, valid until the handle of the pool and those that keep the pool
 * alive are dropped; nobody else reads, writes or closes it. Threads: any. Since: 0.3.
 */
int xmem_pool_poll_fd(struct xmem_pool *pool);

/* ---- descriptors, and children ---- */

/*
 * Join anew the pool that a handle stands for: in a child that has inherited it by fork, or where
 * its host has gone, or as a second client. The name and the options are those with which the
 * handle was opened, but without XMEM_OPEN_EXCLUSIVE; its user does not change. The
 * call joins the pool with its present sizes. If that pool has ended, the call makes a new one,
 * unless the options had XMEM_OPEN_EXISTING or the pool is another user's.
 *
 * With XMEM_OPEN_INHERIT a child joins by a descriptor instead, so it is the same pool, which may
 * be anonymous. The child keeps the descriptor until it calls xmem_pool_close for the handle that
 * it has inherited; where the kernel is the host, the pool lives as long.
 *
 * The inherited handle does not change: it is unusable in the child, and valid in the parent. No
 * buffer and no subscription comes along: the child subscribes anew, and gets by their tokens the
 * buffers that somebody holds.
 *
 * Returns: as xmem_pool_open, and
 *	EOPNOTSUPP  the pool was opened without XMEM_OPEN_INHERIT, and it is anonymous, or of a
 *		user that has no number in this user namespace
 *	EBADF	the handle has been closed, or the pool of its descriptor has ended
 * Ownership: the caller calls xmem_pool_close. Threads: any. Since: 0.4.
 */
struct xmem_pool *xmem_pool_reopen(struct xmem_pool *pool);

/*
 * Make a descriptor with which a process of any user can join this pool (XMEM_OPEN_FD), in the
 * roles that this client has. If this client made the pool, these are all roles. Otherwise they are
 * the roles that the mode gives this client now, or that its own descriptor gave it. A descriptor
 * that was passed on cannot be taken back.
 * Returns: the descriptor, which is close-on-exec, or -errno: -EMFILE; -EACCES: this client joined
 * another user's pool by name, and the mode no longer admits it; -EDQUOT.
 * Ownership: the caller closes it. Threads: any. Since: 0.2.
 */
int xmem_pool_fd(struct xmem_pool *pool);

/*
 * Make from a descriptor of a pool another one for fewer roles, before it is passed on. The caller
 * need not have joined the pool; a host must run.
 * @fd: from xmem_pool_fd or this function; it stays the caller's, and does not change.
 * @roles: XMEM_MAY_*, at least one.
 * Returns: the new descriptor, which is close-on-exec, or -errno: -EACCES: @fd has not all of
 * these roles; -EBADF: it is not a pool's descriptor; -EINVAL; -ENODEV: there is no host; -EMFILE.
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
