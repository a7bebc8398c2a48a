/* SPDX-License-Identifier: MIT */
/* Pools: joining one, leaving it, and descriptors of it. A part of xmem.h. */
#ifndef XMEM_API_POOL_H
#define XMEM_API_POOL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xmem_pool;

#define XMEM_OPEN_WRITER	(1u << 0)	/* this client is a writer from the beginning */
#define XMEM_OPEN_EXISTING	(1u << 1)	/* join only: ENOENT if there is no such pool */
#define XMEM_OPEN_EXCLUSIVE	(1u << 2)	/* create the pool: EEXIST if it is there */
#define XMEM_OPEN_READER	(1u << 3)	/* this client never writes */
#define XMEM_OPEN_INHERIT	(1u << 4)	/* forked children keep a descriptor of the pool */
#define XMEM_OPEN_GROUP		(1u << 5)	/* if the pool is made, `gid` is its group */
#define XMEM_OPEN_SHARES	(1u << 6)	/* xmem_data can be written without xmem_get_mut */
#define XMEM_OPEN_FD		(1u << 7)	/* join the pool of the descriptor `fd` */

/* The mode of a pool: who may join it, in the bits of a file's mode (0640). Writers also read. */
#define XMEM_MODE_STRICT	01000	/* the mode also limits users with a descriptor */

/* The roles in which a client may join, as a mask. A writer also reads. */
#define XMEM_MAY_READ		(1u << 1)	/* as a reader */
#define XMEM_MAY_WRITE		(1u << 2)	/* as a writer */

/* The options of a client, and the sizes of a pool that it makes: xmem_pool_open(3). */
struct xmem_pool_options {
	size_t size;			/* sizeof(struct xmem_pool_options) */
	uint32_t flags;			/* XMEM_OPEN_* */
	uint32_t slots;			/* least number of buffers, up to 65536; 0: any number */
	uint32_t clients;		/* least number of clients, up to 256; 0: any number */
	uint32_t ring_entries;		/* length of a writer's ring: 4, 8, 16 ... 4096; 0: any */
	int64_t wait_bound_ns;		/* writer: longest wait for a slow subscriber; 0: none */
	const char *label;		/* name, up to 15 characters; NULL: the program's name */
	uint64_t demand_bytes;		/* writer: bytes that xmem_acquire may allocate, on the CPU
					 * and on each GPU; 0: a quarter of what is free, or none
					 * after preallocating; since 0.4, as all that follow */
	uint64_t cache_bytes;		/* writer: bytes of unused buffers to keep, on the CPU and
					 * on each GPU; 0: an eighth of the most ever in use */
	int64_t cache_ns;		/* writer: time to keep them; 0: 10 s; or XMEM_FOREVER */
	uint32_t memory;		/* writer: XMEM_MEMORY_* (memory.h) of buffers on demand */
	uint32_t keep;			/* writer: publications kept for later subscribers */
	uint32_t mode;			/* of a new pool; 0: 0600; since 0.5, as all that follow */
	uint32_t gid;			/* with XMEM_OPEN_GROUP: a group of this user; else 0 */
	int32_t fd;			/* with XMEM_OPEN_FD; stays the caller's; else 0 */
	uint32_t reserved;		/* must be 0 */
};

#define XMEM_NO_DEMAND	UINT64_MAX	/* demand_bytes: xmem_acquire makes no buffers */

/*
 * Join a pool, or make it if there is none of that name. A client joins as a reader. Its first call
 * for writers, such as xmem_acquire, makes it a writer, or fails with EACCES if it may not write.
 * @name: up to 128 characters A-Z a-z 0-9 . _ - in parts that '/' divides; "USER:NAME": a pool of
 *	another user; "@17": the pool that xmem_pool_next lists with that number; NULL or "": an
 *	anonymous pool, or that of XMEM_OPEN_FD.
 * Returns: the pool, or NULL:
 *	EINVAL	a name, number, label or flag is wrong, or for writers only; the message says which
 *	EBADF	`fd` is not a pool's descriptor
 *	ENOENT	XMEM_OPEN_EXISTING or USER:NAME, and there is no such pool for this user
 *	EEXIST	XMEM_OPEN_EXCLUSIVE, and the pool exists
 *	ERANGE	the pool exists, and is smaller or admits more users than the options say
 *	EPERM	`gid` is no group of this user; or the folder of xmemd's socket is not this user's
 *	EACCES	this user may not write in the pool, or not open /dev/xmem or xmemd's socket
 *	EOPNOTSUPP  another user's pool, or a mode or group for other users, and xmemd is the host
 *	EUSERS	the pool has as many clients as it can have
 *	ESHUTDOWN  the pool is drained (xmem_pool_drain): no client joins it any more
 *	ENODEV	there is no host, or its daemon does not start; the message says why
 *	ENAMETOOLONG  XMEM_SOCKET (docs/environment.md) is too long for an address
 *	EPROTONOSUPPORT  the host speaks another version of the protocol
 *	E2BIG, EDQUOT, EINTR, ENOMEM, EMFILE
 * Ownership: the caller calls xmem_pool_close. Since: 0.1.
 */
struct xmem_pool *xmem_pool_open(const char *name, const struct xmem_pool_options *options);

/*
 * Drop the handle of a pool. The client ends when its buffers and subscriptions have been dropped
 * too. Calls that wait in this handle or its subscriptions end with ECANCELED.
 * Threads: not while another thread runs xmem_get with this handle or closes it, and not in a
 * function that xmem_limbo_hook has set. Since: 0.1.
 */
void xmem_pool_close(struct xmem_pool *pool);

/*
 * End all waiting in a pool handle and its subscriptions, now and for ever. Waiting calls, and
 * later calls whose timeout is not 0, fail with ECANCELED even if a buffer is available.
 * Returns: 0, or -EINVAL, -ECHILD. Since: 0.3.
 */
int xmem_cancel(struct xmem_pool *pool);

/* ---- event loops ---- */

/*
 * Get the descriptor of a pool for poll, select and epoll. It is level-triggered:
 *	readable	a subscription has something to receive, or has ended
 *	writable	xmem_acquire may find a buffer: something has changed since it last failed
 *	hung up		the host or this client has ended: close the pool and open it again
 * It can be ready for no reason: use timeout 0, and return to the loop after EAGAIN.
 * Returns: the descriptor, one for all calls, or -EDQUOT, -ENOMEM, -EMFILE; -ETIMEDOUT: the daemon
 * does not answer. Ownership: the library's, valid until the handles that keep the pool alive are
 * dropped; the program neither reads, writes nor closes it. Since: 0.3.
 */
int xmem_pool_poll_fd(struct xmem_pool *pool);

/* ---- descriptors, and children ---- */

/*
 * Join the pool of a handle anew: in a child that inherited the handle by fork, after the host has
 * gone, or as a second client. The name, user and options are those of the handle, without
 * XMEM_OPEN_EXCLUSIVE. The handle itself does not change.
 * Returns: as xmem_pool_open; EOPNOTSUPP: also: the pool has no name, and was opened without
 * XMEM_OPEN_INHERIT; EBADF: the handle is closed, or the pool of its descriptor has ended.
 * Ownership: the caller calls xmem_pool_close. Since: 0.4.
 */
struct xmem_pool *xmem_pool_reopen(struct xmem_pool *pool);

/*
 * Make a descriptor with which a process of any user can join this pool (XMEM_OPEN_FD), in the
 * roles that this client has a right to. It cannot be revoked. Returns: the descriptor, which is
 * close-on-exec, or -EACCES: this client joined another user's pool by name, and the mode no longer
 * admits it; -EMFILE, -EDQUOT. Ownership: the caller closes it. Since: 0.2.
 */
int xmem_pool_fd(struct xmem_pool *pool);

/*
 * Make a descriptor like @fd that gives only @roles (XMEM_MAY_*). @fd is from xmem_pool_fd or from
 * this function; it stays the caller's, and does not change.
 * Returns: the new descriptor, which is close-on-exec, or -EACCES: @fd lacks one of these roles;
 * -EBADF: it is not a pool's descriptor; -ESHUTDOWN: the pool is drained or has ended (kernel);
 * -EINVAL; -ENODEV: there is no host; -EMFILE. Ownership: the caller closes it. Since: 0.5.
 */
int xmem_pool_fd_narrow(int fd, uint32_t roles);

/* ---- this client ---- */

/*
 * Get the name of the host: "kernel" or "daemon". Returns: the name; NULL for NULL. Ownership:
 * valid as long as the pool. Since: 0.1.
 */
const char *xmem_pool_backend(struct xmem_pool *pool);

/* Get the id of this client in the pool. Returns: the id, or -EINVAL, -ECHILD. Since: 0.1. */
int xmem_pool_client(struct xmem_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
