/* SPDX-License-Identifier: MIT */
/*
 * libxmem: share large buffers between processes of one machine, without
 * copying, without leaking, and without anybody's crash costing anybody else
 * anything.
 *
 * A *pool* is a named table of slots. A writer fills buffers and publishes
 * them; subscribers receive each publication and hold it as long as they like;
 * whoever knows a buffer's 64-bit token may get it. Who dies, however, holds
 * nothing any more: the host (/dev/xmem, or the daemon xmemd where no module
 * can be loaded) gives it back at once.
 *
 *	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
 *	struct xmem_subscription *sub = xmem_subscribe(pool, NULL);
 *	struct xmem_buffer *frame = xmem_receive(sub, XMEM_FOREVER);
 *	look_at(xmem_data(frame), xmem_size(frame));
 *	xmem_release(frame);
 *
 * Errors. Functions that return a handle return NULL on failure, the others 0
 * (or a count) or a negative errno. Either way xmem_get_last_error() has the
 * thread's error with a message that names what was tried and what to do.
 *
 * Handles. If you have it, it is valid: a buffer keeps its pool alive, the
 * order of destruction does not matter, any thread may drop the last one.
 * Every function takes NULL for a handle: -EINVAL (or NULL), no crash.
 *
 * Threads. All functions may be called by any thread at any time, unless they
 * say otherwise; threads must have been made by the C library. None is
 * async-signal-safe. In a forked child inherited handles are dead: what needs
 * the pool says ECHILD, releasing them does nothing; open anew.
 *
 * Time. Timeouts are in nanoseconds from now; 0 does not wait, XMEM_FOREVER has
 * no end. Waiting may end early with -EINTR when a signal handler ran (with the
 * kernel as host not for handlers with SA_RESTART).
 *
 * Beside the errors named, every function that asks the host (those that wait,
 * open, preallocate, subscribe, or first look at a payload) may say ENOTCONN:
 * the host has gone; and every one that makes a handle ENOMEM.
 */
#ifndef XMEM_H
#define XMEM_H

#include <stddef.h>
#include <stdint.h>

#include "xmem/uapi.h"		/* struct xmem_metadata, limits */

#ifdef __cplusplus
extern "C" {
#endif

#define XMEM_VERSION_MAJOR	0
#define XMEM_VERSION_MINOR	1
#define XMEM_VERSION_PATCH	0

#define XMEM_FOREVER	INT64_MAX

struct xmem_pool;
struct xmem_buffer;
struct xmem_subscription;

/* ---- errors ---- */

/*
 * The calling thread's last error: a negative errno, 0 for none, and *ret_message
 * (may be NULL) a sentence, valid until this thread's next xmem call.
 * xmem_get_last_error also clears it, xmem_peek_last_error does not.
 * Threads: each has its own. Since: 0.1.
 */
int xmem_get_last_error(const char **ret_message);
int xmem_peek_last_error(const char **ret_message);
void xmem_clear_last_error(void);

/* ---- pools ---- */

#define XMEM_OPEN_WRITER	(1u << 0)	/* may acquire and publish; else a reader */
#define XMEM_OPEN_EXISTING	(1u << 1)	/* ENOENT rather than create it */
#define XMEM_OPEN_EXCLUSIVE	(1u << 2)	/* EEXIST rather than join it */
#define XMEM_OPEN_FOREIGN	(1u << 3)	/* also one that another user has made */

/* Zero means the default. Set size to sizeof(struct xmem_pool_options). */
struct xmem_pool_options {
	size_t size;
	uint32_t flags;			/* XMEM_OPEN_* */
	uint32_t slots;			/* capacity if it is created; 1024 */
	uint32_t clients;		/* likewise; 64 */
	uint32_t ring_entries;		/* publications that a ring remembers; likewise; 64 */
	int64_t wait_bound_ns;		/* writer: how long a slow subscriber may make it wait; 0: not at all */
	const char *label;		/* what others see this client called; NULL: the program's name */
};

/*
 * Join the pool @name ([A-Za-z0-9._-], at most 31), making it if there is none.
 * A NULL or empty name makes an anonymous one. @options may be NULL: a reader.
 * The pool ends with its last client (with the kernel as host: or pool file).
 *
 * The host is /dev/xmem if there is one, else xmemd, which is started if need
 * be; XMEM_BACKEND in the environment insists on one (docs/environment.md).
 *
 * Returns: the pool, or NULL: EINVAL (a name, number or label out of range),
 * ENOENT, EEXIST, EPERM (made by another user), EACCES (/dev/xmem may not be
 * opened), EUSERS (no client free), EDQUOT (a limit of the host), ENODEV (the
 * host insisted on is not there), EPROTONOSUPPORT (another ABI), ENOMEM, EMFILE.
 * Ownership: xmem_pool_close. Since: 0.1.
 */
struct xmem_pool *xmem_pool_open(const char *name, const struct xmem_pool_options *options);

/*
 * Join the pool whose file @file is (xmem_pool_fd, passed on as one likes).
 * @file stays the caller's. Errors as above, EBADF. Since: 0.1.
 */
struct xmem_pool *xmem_pool_open_fd(int file, const struct xmem_pool_options *options);

/* A new descriptor whose holder may join this pool: 0 or more, or -errno. Since: 0.1. */
int xmem_pool_fd(struct xmem_pool *pool);

/*
 * Drop the handle. The client ends when its buffers and subscriptions have been
 * dropped too. NULL is taken. Since: 0.1.
 */
void xmem_pool_close(struct xmem_pool *pool);

/* "kernel" or "daemon". Valid as long as the pool. Since: 0.1. */
const char *xmem_pool_backend(struct xmem_pool *pool);

/* This client's id in the pool, or -errno. Since: 0.1. */
int xmem_pool_client(struct xmem_pool *pool);

/* What is in the pool now, read from its pages; other clients go on meanwhile. */
struct xmem_pool_info {
	size_t size;			/* in: sizeof(struct xmem_pool_info) */
	uint32_t slots;			/* capacity */
	uint32_t attached;		/* slots with a payload */
	uint32_t free;			/* attached, without contents */
	uint32_t writing;		/* being written, or taken ahead by their owner for that */
	uint32_t live;			/* with contents */
	uint32_t held;			/* slots that somebody holds */
	uint32_t limbo;			/* the host's, their owner having ended */
	uint32_t clients;		/* alive */
	uint32_t zombies;		/* ended, ring in flight */
	uint64_t holds;			/* of all clients together */
	uint64_t bytes;			/* of all attached slots */
};

/* Returns: 0, -EINVAL, -ECHILD. Since: 0.1. */
int xmem_pool_stat(struct xmem_pool *pool, struct xmem_pool_info *ret_stat);

/*
 * Make @count buffers of @bytes each, in one sealed file, allocated whole and
 * mapped. A writer does it before it acquires; it may do it again.
 * Returns: 0; -EINVAL, -EPERM (a reader), -ENOSPC (slots), -EDQUOT, -ENOMEM,
 * -EMFILE. Then nothing is left behind. Since: 0.1.
 */
int xmem_preallocate(struct xmem_pool *pool, unsigned int count, size_t bytes);

/* ---- writing ---- */

/*
 * A buffer of at least @bytes to write into: one that nobody uses any more. It
 * takes the oldest publication back from subscribers that may lose it, and
 * waits for the others within the pool's wait_bound_ns, all at most @timeout_ns.
 * Where subscribers are waited for, at most ring_entries may be in hand at once.
 * Returns: the buffer, or NULL: EAGAIN (timeout 0), ETIMEDOUT, EINTR, EPERM (a
 * reader), ENOSPC (no buffer that large: xmem_preallocate; or a slot worn out). Ownership: ends in
 * xmem_publish or xmem_release. Since: 0.1.
 */
struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns);

#define XMEM_PUBLISH_KEEP	(1u << 0)	/* the handle stays, for reading */

struct xmem_publish_options {
	size_t size;
	uint32_t flags;			/* XMEM_PUBLISH_* */
	uint32_t reserved;
	uint64_t timestamp_ns;		/* CLOCK_MONOTONIC; 0: none */
	uint64_t offset;		/* bytes of the buffer before the contents */
	uint64_t length;		/* bytes of contents; 0: up to the end */
};

/*
 * Give the contents to whoever follows this client. Ends the handle, unless
 * KEEP. The contents stay as long as they are in flight or held: who passes the
 * token on by a way of his own keeps the handle until the other side has it.
 * @options and @ret_token may be NULL. Never waits for anybody.
 * Returns: 0; -EINVAL, -EPERM (not a buffer from xmem_acquire), -ERANGE (offset
 * and length), -EOVERFLOW (KEEP: 2^29 handles): then the buffer is the caller's as before. Since: 0.1.
 */
int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options, uint64_t *ret_token);

/* ---- reading ---- */

#define XMEM_ANY_PUBLISHER	(-1)
#define XMEM_SUBSCRIBE_WAITS	(1u << 0)	/* it waits for me, within its bound; else I lose the oldest */

struct xmem_subscribe_options {
	size_t size;
	uint32_t flags;			/* XMEM_SUBSCRIBE_WAITS */
	int32_t publisher;		/* client id, or XMEM_ANY_PUBLISHER: the first that is not followed yet */
	int64_t timeout_ns;		/* how long to wait for a publisher to come */
};

/*
 * Follow a publisher from its next publication on. @options NULL: any, XMEM_FOREVER.
 * Returns: the subscription, or NULL: ENOENT (no publisher; timeout 0), ETIMEDOUT,
 * EEXIST (followed already), EOPNOTSUPP (it waits for nobody), ESTALE, EINTR.
 * Ownership: xmem_unsubscribe. Since: 0.1.
 */
struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool, const struct xmem_subscribe_options *options);

/* NULL is taken. Buffers received stay held. Since: 0.1. */
void xmem_unsubscribe(struct xmem_subscription *subscription);

/*
 * The next publication, held and read-only.
 * Returns: the buffer, or NULL: EAGAIN (none yet; timeout 0), ETIMEDOUT, EINTR,
 * EPIPE (the publisher has ended, and what was in flight has been received, or
 * the host has dropped its ring as the oldest of more than 8 that we kept),
 * EOVERFLOW (2^29 handles of one buffer).
 * Ownership: xmem_release. Since: 0.1.
 */
struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns);

/* Publications that this subscription has lost so far by being slow. Since: 0.1. */
uint64_t xmem_subscription_lost(struct xmem_subscription *subscription);

/* The publisher's client id, or -errno. Since: 0.1. */
int xmem_subscription_publisher(struct xmem_subscription *subscription);

/*
 * The buffer that @token names, held and read-only.
 * Returns: the buffer, or NULL: ESTALE (those contents are gone, or the token is
 * another pool's), EAGAIN (its owner looks at it all the time: again), EOVERFLOW.
 * Ownership: xmem_release. Since: 0.1.
 */
struct xmem_buffer *xmem_get(struct xmem_pool *pool, uint64_t token);

/* Another handle of the same, read-only. NULL: EPERM (it is being written), EOVERFLOW. Since: 0.1. */
struct xmem_buffer *xmem_clone(struct xmem_buffer *buffer);

/* Drop the handle; a buffer being written is given up. NULL is taken. Since: 0.1. */
void xmem_release(struct xmem_buffer *buffer);

/* ---- buffers ---- */

/* The contents, xmem_size() bytes; valid until the handle is dropped. NULL: ECHILD, or mapping failed. Since: 0.1. */
const void *xmem_data(struct xmem_buffer *buffer);

/* The same, writable; NULL: EPERM unless the buffer is from xmem_acquire. Since: 0.1. */
void *xmem_data_mut(struct xmem_buffer *buffer);

/* Bytes of contents; of the whole buffer while it is written. 0 for NULL. Since: 0.1. */
size_t xmem_size(struct xmem_buffer *buffer);

/* What names these contents for ever; 0 for NULL and while they are written. Since: 0.1. */
uint64_t xmem_token(struct xmem_buffer *buffer);

/* The publisher's count, from 0 for its first publication; 0 if not received. Since: 0.1. */
uint64_t xmem_sequence(struct xmem_buffer *buffer);

/* As the publisher gave it. Since: 0.1. */
uint64_t xmem_timestamp_ns(struct xmem_buffer *buffer);

/*
 * Shape, type and so on. Valid until the handle is dropped. It is the owner's
 * page: do not trust it more than its publisher. _mut: NULL and EPERM unless
 * the buffer is from xmem_acquire; what was there before is still there.
 * Since: 0.1.
 */
const struct xmem_metadata *xmem_buffer_metadata(struct xmem_buffer *buffer);
struct xmem_metadata *xmem_buffer_metadata_mut(struct xmem_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
