/* SPDX-License-Identifier: MIT */
/*
 * libxmem: processes of one machine share large buffers without copying them. A crash
 * in one process neither leaks memory nor harms another process.
 *
 * A *pool* is a named table of slots, each of which can have a buffer. A writer fills
 * buffers and publishes them. A subscriber receives each publication and holds it for as
 * long as it likes. Any client that knows the 64-bit token of a buffer can get it. When a
 * process ends, however it ends, the host releases all that it held. The host is the
 * kernel module behind /dev/xmem, or the daemon xmemd where no module can be loaded.
 *
 *	struct xmem_pool *pool = xmem_pool_open("camera", NULL);
 *	struct xmem_subscription *sub = xmem_subscribe(pool, NULL);
 *	struct xmem_buffer *frame = xmem_receive(sub, XMEM_FOREVER);
 *	look_at(xmem_data(frame), xmem_size(frame));
 *	xmem_release(frame);
 *
 * This header goes from what every program needs to what few programs need; xmem/info.h, which
 * it includes, has what is known of hosts, pools, clients and slots.
 *
 * Errors. A function that makes a handle returns NULL when it fails; the others return a
 * negative errno. In both cases xmem_get_last_error() gives the calling thread the error
 * and a message that says what was tried and what to do. Beside the errors that a
 * function names, those that make a handle can fail with ENOMEM. Those that make a handle of
 * a buffer or a subscription, publish, or ask the host (they open, preallocate, wait, or look
 * at a buffer's data for the first time) fail with ENOTCONN once the host has gone: held buffers
 * stay readable, and the pool can only be closed and opened again. Nothing has changed after an
 * error.
 *
 * Handles. A handle is valid until the caller drops it. A buffer and a subscription keep
 * their pool alive, so handles can be dropped in any order and by any thread. Every
 * function accepts NULL for a handle and then fails with EINVAL; functions that drop a
 * handle do nothing. The handle of a buffer is not an address. One that was dropped before, by
 * xmem_release, xmem_publish, xmem_forward, xmem_send or xmem_forget, is found out: the function
 * fails with EBADF, or does nothing and leaves that error for xmem_get_last_error, and it is
 * counted (stale_handles of struct xmem_pool_info). It is taken for another buffer's only if the
 * same handle was made and dropped some multiple of 2^23 times in between. Two threads that drop
 * one handle at the same moment are not found out. The handle of a subscription that was dropped
 * is found out likewise, unless a multiple of 2^23 - 1 subscriptions were asked for in between;
 * and that of a pool, as long as no other pool has been opened.
 *
 * Threads. Each function says who may call it. "any" is any thread at any time, also with handles
 * that other threads are using. xmem_pool_close says what is true while another thread closes the
 * pool's handle, and excepts xmem_get. The C library must have made the threads. Threads that get
 * and drop buffers do not wait for each other. No function is async-signal-safe, and none is a
 * cancellation point: a thread that pthread_cancel cancels in one returns from it first, and
 * nothing is lost; xmem_cancel ends waits, pthread_cancel does not. A thread that can be cancelled
 * asynchronously calls no function. After fork the child cannot use handles that it inherited:
 * functions fail with ECHILD, and dropping such a handle does nothing. The child joins the pool
 * anew by xmem_pool_reopen. A fork by the C library leaves the child no page of its parent's pools
 * and, but for XMEM_OPEN_INHERIT, no descriptor, whatever other threads were doing.
 *
 * Time. Timeouts are nanoseconds from now. 0 does not wait, and XMEM_FOREVER waits without
 * end. A wait ends early with EINTR when a signal handler has run; after one that was
 * installed with SA_RESTART, most waits go on.
 *
 * A daemon that is stopped does not answer. Functions that ask it wait for its answer, within
 * their timeout and until a signal handler has run (EINTR), whatever other threads wait for. To
 * release a buffer, nothing is asked. A receive asks to follow a publisher that has just joined,
 * and for the file of a buffer that was attached after the subscription began. An acquire asks if
 * it needs memory. If their timeout is 0, they wait for 1 second at most. A receive, and the first
 * call for writers of a client, wait for 20 ms even if their timeout is shorter. Without an answer
 * they do not ask for a second, or until any answer comes; they hand out buffers that need no
 * answer. These functions wait for 1 second at most: xmem_subscribe with XMEM_SUBSCRIBE_LASTS;
 * those that give a descriptor to poll, the first time; xmem_unsubscribe; the call that drops the
 * last handle that keeps a pool; and two that do not wait again before there is an answer: the
 * release of a handle that xmem_set_ref_count has counted in, and xmem_pool_stat in a writer that
 * has just let go of a file that was attached.
 *
 * To let go of something, a client sends the daemon a message. One message is enough for all
 * buffers of ended writers. But each of these takes a message of its own: a file from
 * xmem_attach_fd, a file that xmem_trim or the cache gives back, a publisher that is followed no
 * longer, a buffer from xmem_get_mut that is given up, a handle that xmem_set_ref_count has counted
 * in, and memory of a GPU that is closed. As long as the daemon is stopped, a client's socket takes
 * about 250 messages (fewer if net.core.wmem_default is less than usual), and the library keeps the
 * rest. The library sends the rest before this client's next request or message to the daemon, and
 * before most waits in the pool. If the client makes no such call after the daemon has gone on,
 * what it has let go of stays in use until the client ends.
 *
 * Structs. Every struct of options or of answers begins with its size, which the caller
 * sets to sizeof the struct. Both sides may be newer than the other: options that an
 * older, shorter struct does not have are zero, which is their default; a newer, longer
 * struct is accepted if what the library does not know is zero, and fails with E2BIG
 * otherwise. An answer is cut to the caller's size. Fields that the library does not know are left
 * alone, and size becomes the number of bytes that are valid.
 */
#ifndef XMEM_H
#define XMEM_H

#include <stddef.h>
#include <stdint.h>

#include "xmem/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

#define XMEM_VERSION_MAJOR	0
#define XMEM_VERSION_MINOR	5
#define XMEM_VERSION_PATCH	0

#define XMEM_FOREVER	INT64_MAX

struct xmem_pool;
struct xmem_buffer;
struct xmem_subscription;

/* ---- errors ---- */

/*
 * Get the last error of the calling thread, and forget it.
 * @ret_message: a sentence about it, empty if there is none; may be NULL.
 * Returns: a negative errno; 0: no call has failed since the error was last forgotten.
 * Ownership: the message is the library's and valid until the thread's next xmem call.
 * Threads: each thread has its own last error. Since: 0.1.
 */
int xmem_get_last_error(const char **ret_message);

/*
 * Get the last error of the calling thread without forgetting it.
 * Parameters, Returns, Ownership, Threads: as xmem_get_last_error. Since: 0.1.
 */
int xmem_peek_last_error(const char **ret_message);

/*
 * Forget the last error of the calling thread.
 * Threads: each thread has its own last error. Since: 0.1.
 */
void xmem_clear_last_error(void);

/* ---- pools ---- */

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

/* The mode of a pool: who may join it, in bits as of files: 0640, 0666. A writer reads, too. */
#define XMEM_MODE_STRICT	01000	/* a descriptor of the pool helps nobody whom the mode does
					 * not let in */

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
	uint64_t cache_bytes;		/* writer: of what is made on demand and not used, so much
					 * is kept; 0: an eighth of the most that was in use,
					 * and at least 1 MB */
	int64_t cache_ns;		/* writer: and for so long; 0: 10 s; XMEM_FOREVER: always */
	uint32_t memory;		/* writer: of what is made on demand: XMEM_MEMORY_* of
					 * xmem/memory.h, or 0 */
	uint32_t keep;			/* writer: so many of its last publications stay for those
					 * who subscribe later with `history`, until an acquire
					 * finds no other buffer; at most 4096. Those count that
					 * such a subscriber could receive from its own buffers:
					 * not what was sent to one client, retracted or written
					 * in place, nor what it forwards, which stays as long as
					 * its owner keeps it */
	uint32_t mode;			/* of the pool, if it is made: who may join it, as 0640; 0:
					 * 0600, its owner alone. A umask does not count. One
					 * that is there must not let in more (ERANGE); 0: it
					 * may; since 0.5, as the next */
	uint32_t gid;			/* with XMEM_OPEN_GROUP: a group of this user; else 0, and
					 * the group is this process's */
	uint64_t limbo_bytes;		/* of the pool, if it is made: how many bytes of buffers
					 * whose writers have ended one client may hold; the
					 * host ends a client that holds more (as xmem_pool_evict
					 * does) 5 seconds after their writers have ended, and
					 * lets what it has forwarded be lost beyond as much. 0 or
					 * UINT64_MAX: any number, if the administrator says
					 * nothing else. One that is there must not allow more
					 * (ERANGE); 0: it may. Not where xmemd is the host
					 * (EOPNOTSUPP); since 0.5 */
};

#define XMEM_NO_DEMAND	UINT64_MAX	/* demand_bytes: xmem_acquire makes no buffers */

/*
 * Join a pool. If there is no pool of that name, make it.
 * @name: up to 128 characters of A-Z a-z 0-9 . _ - and '/', such as "/camera/front/image_raw". The
 *	'/' divides a name into parts, as it divides a path. No part is empty or begins with a dot,
 *	so a name does not end with a '/'. A name may begin with one: "/camera" and "camera" are
 *	two names. NULL or "" makes an anonymous pool, which others join by its descriptor. To name
 *	another user's pool, write the user and a colon before the name: "USER:NAME", for example
 *	"alice:/camera/front". USER is a number, or a name that /etc/passwd has; a user that only
 *	other sources know is given by number. In place of NAME, "@17" stands for the pool that
 *	xmem_pool_next lists with the number 17. Only a reader can join by a number, also if the
 *	pool has no name.
 * @options: NULL stands for options that are all zero.
 *
 * A client is a reader or a writer. It joins as a reader. Its first call that only writers may make
 * (acquire, preallocate, attach, get_mut, forward and so on) makes it a writer, if the pool lets it
 * write. If the pool does not, the call fails with EACCES. A subscription follows writers and waits
 * for a writer; it ignores clients that only read. With XMEM_OPEN_WRITER a client is a writer from
 * the beginning. With XMEM_OPEN_READER it stays a reader: calls for writers fail with EPERM.
 *
 * Names belong to users: two users' pools may have the same, and nobody takes another's. A pool
 * lets in whom its mode allows, which who makes it gives (`mode`, `gid`): reading is to join as a
 * reader, writing to join as a writer. Where the kernel is the host, CAP_DAC_OVERRIDE is let in
 * anywhere. xmemd serves one user, so it refuses modes for others. A pool of another user is never
 * made.
 *
 * The client that makes the pool decides its sizes: those in its options, or 1024 slots, 64 clients
 * and 64 ring entries. Slots are given to writers in groups of 64: a pool of 1024 slots serves at
 * most 16 writers at once. When a writer of the pool's owner's user has ended, and its subscribers
 * have received the rest of its ring, its used slots stay, and its free slots serve later writers
 * of that user. (A group with buffers on a GPU comes free as a whole, once none of its slots is
 * used.) A pool ends with its last client (and, where the kernel is the host, its last descriptor).
 *
 * The host is /dev/xmem if there is one, and otherwise xmemd, which this call starts if it
 * does not run. XMEM_BACKEND in the environment insists on one of them
 * (docs/environment.md).
 *
 * Returns: the pool, or NULL:
 *	EINVAL	a name, number, label or flag is out of its range; the message says which
 *	E2BIG	the options are newer than this library and ask for something it lacks
 *	ENOENT	XMEM_OPEN_EXISTING or USER:NAME, and there is no such pool, or it is another
 *		user's and does not let this one in at all
 *	EEXIST	XMEM_OPEN_EXCLUSIVE, and there is one that not only other users keep
 *	ERANGE	the pool is there and smaller than the options ask for; or it is this user's,
 *		and its mode or group let in more than `mode` and `gid` would, so that whom
 *		these keep out may be in it
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
 * Threads: calls that wait in this handle or its subscriptions end with ECANCELED. Those that use
 * the handle itself, in other threads, are over when this returns, or fail with EBADF, as those do
 * that come later as long as no other pool has been opened. One is excepted, because it would cost
 * each call something: xmem_get. Later ones fail too, but none may be going on in another thread
 * while this handle is closed. Nor may the handle be closed twice at once, or by a function that
 * xmem_limbo_hook has set: xmem_pool_close waits for the call that runs this function. Since: 0.1.
 */
void xmem_pool_close(struct xmem_pool *pool);

/*
 * End all waiting in a pool handle and its subscriptions, now and for ever: calls that wait, and
 * later ones whose timeout is not 0, fail with ECANCELED, also if there would be something. Calls
 * that may not wait go on as before. A call that waits for the answer of a daemon that is stopped
 * goes on waiting for that. This is for a program that ends: its threads return.
 * Returns: 0, or -EINVAL, -ECHILD. Threads: any. Since: 0.3.
 */
int xmem_cancel(struct xmem_pool *pool);

/* ---- reading ---- */

#define XMEM_SUBSCRIBE_WAITS	 (1u << 0)	/* the publisher waits for this subscriber within
						 * its wait_bound_ns; otherwise a slow
						 * subscriber loses the oldest publication */
#define XMEM_SUBSCRIBE_PUBLISHER (1u << 1)	/* only the client in `publisher` */
#define XMEM_SUBSCRIBE_NOWAIT	 (1u << 2)	/* do not wait for a publisher to come: ENOENT */
#define XMEM_SUBSCRIBE_LASTS	 (1u << 3)	/* the subscription needs no publisher:
						 * xmem_receive waits for the first, and for
						 * later ones */

/* All fields but size may be 0: all publishers, and wait for the first one for ever. */
struct xmem_subscribe_options {
	size_t size;			/* sizeof(struct xmem_subscribe_options) */
	uint32_t flags;			/* XMEM_SUBSCRIBE_* */
	uint32_t publisher;		/* client id, with XMEM_SUBSCRIBE_PUBLISHER; else 0 */
	int64_t timeout_ns;		/* how long to wait for a publisher to be there; 0 or
					 * XMEM_FOREVER: for ever; with NOWAIT: 0 */
	uint32_t history;		/* also receive up to so many of each publisher's last
					 * publications before now, as far as they still exist */
	uint32_t depth;			/* of each publisher's publications only the latest so
					 * many, without XMEM_SUBSCRIBE_WAITS; 0: all */
	const char *label;		/* only publishers with this label, without
					 * XMEM_SUBSCRIBE_PUBLISHER; a '*' at its end stands for
					 * any rest; at most 15 characters with it; NULL: all */
};

/*
 * Follow the publishers of a pool, each from its next publication on.
 * @options: NULL is as all zero.
 *
 * With XMEM_SUBSCRIBE_PUBLISHER the subscription follows that client alone. Without it, it follows
 * all other clients that are writers, and also those that join later: the next xmem_receive follows
 * them, or wakes up and does so if it waits. Publications of such a writer from before that are not
 * received and do not count as lost; with `history`, those that still exist are received. A pool
 * handle has at most one such subscription. It leaves out the writers that another subscription of
 * the handle follows.
 *
 * Labels as topics: with `label` it follows only writers whose label (struct xmem_pool_options) is
 * that, also of those that join later. xmem_publisher_label says whose each buffer is. A writer's
 * own label may end in a '*', which has no meaning there: a subscription can name it only together
 * with those that begin alike. The part before the star has 14 characters at most.
 *
 * With XMEM_SUBSCRIBE_LASTS the subscription does not need a publisher. If none is there, this call
 * returns at once (timeout_ns must be 0 or XMEM_FOREVER). When all publishers have ended,
 * xmem_receive waits for the next one; it does not fail with EPIPE.
 *
 * With XMEM_SUBSCRIBE_WAITS and without XMEM_SUBSCRIBE_PUBLISHER, writers whose wait_bound_ns is 0
 * are followed too. They do not wait, so what they publish can be lost.
 *
 * History: with `history`, xmem_receive first gives up to so many of the last publications that
 * each publisher had made before, as far as their contents still exist. Nothing protects them
 * until they are received: those that have gone meanwhile are passed and do not count as lost,
 * and when the publisher ends they end with it. Of a publisher that joins after this call was
 * made it gives all that still exist, from the first one on. `keep` of struct xmem_pool_options
 * says how many stay at least.
 *
 * Depth: a subscriber that is more than `depth` publications behind when it receives goes on with
 * the latest so many. The older ones are lost, and history that is older is passed.
 *
 * The payloads that the publishers have attached are mapped now, so that xmem_data() of what is
 * received does not have to.
 *
 * Returns: the subscription, or NULL:
 *	EINVAL	a field or flag is out of its range; the message says which
 *	E2BIG	as xmem_pool_open
 *	ENOENT	there is no such publisher, and XMEM_SUBSCRIBE_NOWAIT; or it is a reader
 *	ETIMEDOUT  no publisher came in time, or the host did not answer
 *	EEXIST	this client follows it already, or this handle all writers
 *	EOPNOTSUPP  XMEM_SUBSCRIBE_WAITS, and its wait_bound_ns is 0, or that of all writers there
 *	ESTALE	it ended meanwhile
 *	ECANCELED  xmem_cancel, or xmem_pool_close while this call waits
 *	EMFILE	a payload cannot be mapped
 *	EINTR
 * Ownership: the caller calls xmem_unsubscribe. Threads: any.
 * Since: 0.1; all writers: 0.3; history, depth, label: 0.4.
 */
struct xmem_subscription *xmem_subscribe(struct xmem_pool *pool,
					 const struct xmem_subscribe_options *options);

/*
 * Receive the next publication: hold it, for reading.
 * @timeout_ns: nanoseconds to wait for it.
 *
 * The publications of one publisher come in their order. Publishers that have some take turns.
 * If the contents lie in a payload that is not mapped yet, this call maps it. When that fails the
 * publication is still the next one.
 *
 * Returns: the buffer, or NULL:
 *	EAGAIN	there is none yet, and the timeout is 0
 *	ETIMEDOUT  none came in time
 *	EPIPE	the publisher has ended, or all that were followed have and no other one is
 *		there; and all that was in flight has been received, or the host has dropped
 *		the ring (it keeps 8 of ended publishers that did not wait for this client).
 *		The message says whether all was received.
 *		The subscription is over for good: subscribe anew to follow who comes later
 *	ECANCELED  xmem_cancel; or xmem_unsubscribe, or xmem_pool_close, while this call waits
 *	EBADF	the subscription has been dropped
 *	EMFILE, EIO  the contents cannot be mapped
 *	EOVERFLOW  this client has 2^28 handles of the buffer
 *	EINVAL	the timeout is negative
 *	EINTR
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_receive(struct xmem_subscription *subscription, int64_t timeout_ns);

/*
 * Receive the next publication of any subscription of a pool handle. They take turns.
 * @timeout_ns: nanoseconds to wait for it.
 * @ret_subscription: which one it was; NULL after an error other than EPIPE. May be NULL.
 * Returns: as xmem_receive, and
 *	ENOENT	the handle has no subscription
 *	EPIPE	nothing is there to receive, and *ret_subscription is over: xmem_unsubscribe it
 *	EMFILE	also: no descriptor is left to wait with
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.3.
 */
struct xmem_buffer *xmem_receive_any(struct xmem_pool *pool, int64_t timeout_ns,
				     struct xmem_subscription **ret_subscription);

/*
 * Get the contents, xmem_size() bytes, which do not change while the buffer is held.
 * Returns: their address, or NULL: EMEDIUMTYPE (they are on a GPU: xmem_cuda_ptr or
 *	xmem_copy_to_cpu), EIO (the publisher gave a wrong place, or they cannot be mapped),
 *	ENOMEM, EMFILE, ENOTCONN (the host has gone, and they are not mapped yet), EINTR.
 * Ownership: valid until the handle of the buffer is dropped. Threads: any. Since: 0.1.
 */
const void *xmem_data(struct xmem_buffer *buffer);

/*
 * Get the number of bytes of contents; while the buffer is written, as many as were
 * acquired, or copied into it by xmem_copy.
 * Returns: the number; 0 for NULL. Threads: any. Since: 0.1.
 */
size_t xmem_size(struct xmem_buffer *buffer);

/*
 * Drop the handle of a buffer. A buffer that was acquired and not published is given up.
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.1.
 */
void xmem_release(struct xmem_buffer *buffer);

/*
 * Drop the handle of a subscription. The buffers that were received stay held.
 * Threads: calls that wait in it end with ECANCELED before this returns; later ones fail with
 * EBADF. Since: 0.1.
 */
void xmem_unsubscribe(struct xmem_subscription *subscription);

/* ---- writing ---- */

/*
 * Make buffers: allocate their memory, all of it now, and attach them to the pool. A
 * writer does so before it acquires, and may do so again.
 * @count: buffers to make.
 * @bytes: bytes of each.
 *
 * The buffers take slots of groups that belong to this writer alone; when those are full,
 * the writer gets a further group of 64 slots.
 *
 * A file has at most 64 buffers and, unless one buffer is larger, about 16 MB; with more than
 * 1024 large buffers it has as many as it takes for 1024 files. When this writer has ended, a
 * buffer that somebody still uses keeps its whole file (bytes_kept of struct xmem_pool_info).
 *
 * The memory cgroups of this process, up to the root, and MemAvailable of the machine are looked
 * at first, and again after each 16 MB, so that too large a number fails instead of getting a
 * process killed. Programs that allocate at the same moment can still pass a limit together.
 *
 * Returns: 0, or an error, and then no buffer has been made:
 *	-EINVAL	a number is 0 or larger than the pool can have
 *	-EPERM	this client is a reader
 *	-ENOSPC	the pool has too few free slots for a writer to get so many
 *	-EDQUOT	a limit of the host is reached
 *	-EFBIG	one buffer is larger than the files that this process may make (RLIMIT_FSIZE)
 *	-ENOMEM	a cgroup or the machine has too little memory left; the message names it
 *	-EMFILE, -EINTR
 * Threads: any. Since: 0.1.
 */
int xmem_preallocate(struct xmem_pool *pool, unsigned int count, size_t bytes);

/*
 * Acquire a buffer to write into, one that nobody uses any more, or a new one.
 * @bytes: how many bytes the contents will have; any larger buffer will do, and
 *	xmem_size() of the buffer is @bytes. 0: any buffer, the whole of it.
 * @timeout_ns: nanoseconds to wait for one.
 *
 * The buffer is the smallest that is large enough and free. If none is free, this takes the
 * oldest publication of the smallest such size away that no client holds, from subscribers that
 * have not received it and that the writer need not wait for, or from what it keeps (`keep` of
 * struct xmem_pool_options). Those that lag by more than half of the buffers of that size and more
 * than is kept (or by ring_entries, if that is less) lose all that is older than that at once, also
 * what others hold. It waits for the other subscribers within the pool's wait_bound_ns; then they
 * lose the oldest too, until they receive again. If a subscriber uses XMEM_SUBSCRIBE_WAITS, at most
 * ring_entries buffers may be acquired and unpublished.
 *
 * A writer that does not preallocate makes buffers on demand, as far as demand_bytes of its options
 * allows it: xmem/memory.h says how. Only then are larger buffers taken, and publications of those
 * that may lose them.
 *
 * Returns: the buffer, or NULL:
 *	EAGAIN	none is free, and the timeout is 0; also if none that large can be made because
 *		all slots of the pool are in use, and this writer has some of them
 *	ETIMEDOUT  none became free in time; the message names the clients that hold them, and
 *		says if the system refuses memory for another one
 *	ENOSPC	no buffer is that large, and it may not be made; or a slot is worn out:
 *		preallocate (others). At once, whatever the timeout is, also if this writer has no
 *		slots and gets none by waiting. That is so if each group is a living writer's,
 *		which keeps it until it ends, or an ended writer's that comes free only if this
 *		client itself receives or releases buffers. The message names the owners. A
 *		program that polls is told when a group has come free
 *	ENOMEM, EDQUOT, EFBIG, EMFILE  none is that large, and it cannot be made; as
 *		xmem_preallocate
 *	EPERM	this client is a reader
 *	EINVAL	the timeout is negative
 *	ECANCELED  xmem_cancel, or xmem_pool_close while this call waits
 *	EINTR
 * Ownership: ends in xmem_publish or xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_acquire(struct xmem_pool *pool, size_t bytes, int64_t timeout_ns);

/*
 * Get what can be written of a buffer that is being written, xmem_capacity() bytes. That is the
 * whole buffer, in which what an earlier publication left is still there; or after xmem_get_mut the
 * contents and what is behind them, and then all that is said in bytes of the buffer counts from
 * here: in xmem_publish, xmem_send, xmem_copy and xmem_copy_bytes.
 * Returns: their address, or NULL: EPERM (the buffer is not from xmem_acquire), EMEDIUMTYPE (it is
 *	on a GPU: xmem_cuda_ptr_mut), ENOMEM.
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.1.
 */
void *xmem_data_mut(struct xmem_buffer *buffer);

#define XMEM_PUBLISH_KEEP	(1u << 0)	/* keep the handle, for reading */

/* All fields but size may be 0. */
struct xmem_publish_options {
	size_t size;			/* sizeof(struct xmem_publish_options) */
	uint32_t flags;			/* XMEM_PUBLISH_* */
	uint32_t reserved;		/* must be 0 */
	uint64_t timestamp_ns;		/* of CLOCK_MONOTONIC; 0: none */
	uint64_t offset;		/* bytes of the buffer before the contents, counted from
					 * xmem_data_mut */
	uint64_t length;		/* bytes of contents, which may reach up to the capacity;
					 * 0: up to the end of what was acquired */
};

/*
 * Publish a buffer to the subscribers of this client. This never waits, but if xmem_get_mut has
 * made the buffer writable: for the host's answer, and in memory of a GPU until the contents that
 * were there are complete.
 * @options: NULL is as all zero: the contents are as long as was acquired, or after xmem_get_mut
 *	where they were.
 * @ret_token: the name of these contents, for xmem_get; may be NULL.
 *
 * If buffers were acquired before a subscriber with XMEM_SUBSCRIBE_WAITS came, publishing
 * them may overwrite what it has yet to receive, as the ring has ring_entries places. It then
 * loses the oldest, and is waited for again once it receives.
 *
 * The contents stay as long as a subscriber that the writer waits for has yet to receive them
 * or a client holds them; for other subscribers, and with `keep` of struct xmem_pool_options, they
 * stay until an acquire needs the buffer.
 * A program that passes the token on in a way of its own keeps the handle
 * (XMEM_PUBLISH_KEEP) until the other side has got the buffer.
 *
 * Returns: 0, and the handle is gone unless it is kept; or
 *	-EINVAL	an unknown flag, a reserved field that is not 0, or a size below the minimum
 *	-E2BIG	as xmem_pool_open
 *	-EPERM	the buffer is not from xmem_acquire
 *	-ERANGE	offset and length reach beyond xmem_capacity()
 *	-EOVERFLOW  XMEM_PUBLISH_KEEP, and this client has 2^28 handles of the buffer
 *	-EINTR	after xmem_get_mut: a signal handler ran before the host had answered. Publish it
 *		again, or release it: nobody knows the token yet
 *	-EINTR, -ECANCELED, -EOWNERDEAD, -ENOTCONN, -EIO, -ESHUTDOWN  after xmem_get_mut of memory
 *		of a GPU: as xmem_wait_contents (xmem/stream.h)
 * Ownership: after an error the buffer is the caller's as before.
 * Threads: any, but no other call uses this handle of a buffer meanwhile. Since: 0.1.
 */
int xmem_publish(struct xmem_buffer *buffer, const struct xmem_publish_options *options,
		 uint64_t *ret_token);

/* ---- tokens ---- */

/*
 * Get the token of a buffer, which names its contents for ever.
 * Returns: the token; 0 for NULL and while the buffer is written. Threads: any. Since: 0.1.
 */
uint64_t xmem_token(struct xmem_buffer *buffer);

/*
 * Get the buffer that a token names, and hold it, for reading.
 * @token: from xmem_publish or xmem_token of any client of this pool.
 * Returns: the buffer, or NULL:
 *	ESTALE	those contents are gone, or the token belongs to another pool
 *	EAGAIN	the owner keeps scanning the buffer; retry
 *	EACCES	the buffer is another user's, neither the pool nor its owner is of this user, and
 *		this client has not subscribed to a client that publishes or forwards it, nor has
 *		its owner let it in (xmem_pool_grant): its hold would not count
 *	EOVERFLOW  this client has 2^28 handles of the buffer
 * Ownership: the caller calls xmem_release. Threads: any, but not while another one closes @pool
 * (xmem_pool_close). Since: 0.1.
 */
struct xmem_buffer *xmem_get(struct xmem_pool *pool, uint64_t token);

/*
 * Make another handle of a buffer, for reading.
 * Returns: the handle, or NULL: EPERM (the buffer is being written), EOVERFLOW (this client
 * has 2^28 handles of the buffer).
 * Ownership: the caller calls xmem_release. Threads: any. Since: 0.1.
 */
struct xmem_buffer *xmem_clone(struct xmem_buffer *buffer);

/* ---- event loops ---- */

/*
 * Get the descriptor of a pool for poll, select and epoll: one thing to wait on.
 *	readable	a subscription has something to receive, or has ended: xmem_receive
 *			with timeout 0 does not fail with EAGAIN
 *	writable	an xmem_acquire with timeout 0 finds a buffer; if the last one found none,
 *			then one of as many bytes as that wanted (writers only)
 *	hung up		the host has ended, or this client has: close the pool, open it again
 * A writer that waits for writable waits for slow subscribers no longer than wait_bound_ns, as in
 * xmem_acquire. A writer that still has a buffer in hand is taken for one that waits only after
 * an acquire has found none.
 * It may be asked for at any time, also before anything is subscribed to, and be passed to
 * other processes. It is level-triggered: as long as it is readable there is something. A
 * program uses timeout 0 and goes back to its loop after EAGAIN, for it can be ready in vain:
 *	readable	the publication that it meant is taken from a slow subscriber; it is
 *			retracted, or was sent to another client: the receive passes it, which the
 *			writer may wait for; a few times after publishers have ended, until the
 *			daemon has heard that nobody follows them any more; with a subscription to
 *			all writers, one has joined, or is free because another subscription of
 *			the handle is dropped: the receive follows it
 *	writable	somebody gets the buffer that was free; a bound is to begin, which is the
 *			acquire's to do, once: a subscriber that had exceeded it is waited for again
 *			while the writer sleeps, or only a client that has forwarded them keeps
 *			buffers; on demand, when buffers come free whose file is still in use
 * While the daemon is stopped it says nothing new, although xmem_receive and xmem_acquire with
 * timeout 0 still succeed.
 *
 * Returns: the descriptor, the same at every call, or -errno:
 *	-EDQUOT	the daemon has given out as many as it may (the kernel counts the process's files)
 *	-ETIMEDOUT  the daemon does not answer
 *	-ENOMEM, -EMFILE
 * Ownership: the library's, valid until the handle of the pool and those that keep the pool
 * alive are dropped; nobody else reads, writes or closes it. Threads: any. Since: 0.3.
 */
int xmem_pool_poll_fd(struct xmem_pool *pool);

/*
 * Get the descriptor of one subscription, which is readable and hung up like a pool's, and
 * never writable. After the subscription has ended it stays readable.
 * Returns: as xmem_pool_poll_fd.
 * Ownership: the library's, valid until xmem_unsubscribe. Threads: any. Since: 0.3.
 */
int xmem_subscription_poll_fd(struct xmem_subscription *subscription);

/* ---- more about a buffer ---- */

/*
 * Get the number of the slot that a buffer has in its pool, also while it is being written. The
 * lower 16 bits of a token are this number.
 * Returns: the number, from 0 to slots - 1 of struct xmem_pool_info, or -EINVAL (NULL), -EBADF,
 * -ECHILD. Threads: any. Since: 0.5.
 */
int xmem_slot(struct xmem_buffer *buffer);

/*
 * Get the number of bytes of the whole buffer, of which the contents are a part. After xmem_get_mut
 * it is how many there are from the contents on, for those can be written.
 * Returns: the number; 0 for NULL. Threads: any. Since: 0.2.
 */
size_t xmem_capacity(struct xmem_buffer *buffer);

/*
 * Get the number of the publication, which its publisher counts from 0.
 * Returns: the number; 0 if the buffer was neither received nor kept when it was published.
 * Threads: any. Since: 0.1.
 */
uint64_t xmem_sequence(struct xmem_buffer *buffer);

/*
 * Get the client id of the publisher. Publications of different publishers have sequence numbers
 * of their own.
 * Contents that were written in place (payload.h), and were got by their token and not received,
 * count as the publication of the buffer's owner.
 * Returns: the id of the client that published these contents, or has the buffer to write into;
 * -ENOENT: the buffer was not received, and its publisher has ended long ago; -EINVAL, -ECHILD.
 * Threads: any. Since: 0.3.
 */
int xmem_publisher(struct xmem_buffer *buffer);

/*
 * Get the label of the publisher: the name that the program that published these contents gives
 * itself.
 * @ret_label: at most 15 characters and a NUL.
 * Returns: 0; -ENOENT: the publisher has ended and its label is not known any more. Of what was
 * received it is known for as long as the subscription follows no later client with the same id;
 * -EINVAL, -ECHILD, -EBADF. Threads: any. Since: 0.4.
 */
int xmem_publisher_label(struct xmem_buffer *buffer, char ret_label[16]);

/*
 * Get the time that the publisher gave.
 * Returns: nanoseconds of CLOCK_MONOTONIC; 0 if there is none. Threads: any. Since: 0.1.
 */
uint64_t xmem_timestamp_ns(struct xmem_buffer *buffer);

/*
 * Get what the publisher says about the contents. A reader checks it before it relies on
 * it, because the publisher can change it at any time.
 * Returns: the metadata, or NULL. Ownership: valid until the handle is dropped; after xmem_get_mut
 * until the buffer is published or its references are counted.
 * Threads: any. Since: 0.2.
 */
const struct xmem_metadata *xmem_buffer_metadata(struct xmem_buffer *buffer);

/*
 * Get the metadata of a buffer that is being written. It still has the values of an earlier
 * publication.
 * Returns: the metadata, or NULL: EPERM (the buffer is not from xmem_acquire).
 * Ownership: valid until the buffer is published or released. Threads: any. Since: 0.2.
 */
struct xmem_metadata *xmem_buffer_metadata_mut(struct xmem_buffer *buffer);

/* ---- more about a subscription ---- */

/*
 * Get the number of publications that this subscription has lost by being slow. Publications that
 * were left in a ring that the host has dropped count from the EPIPE of xmem_receive on. If
 * something was received after the host dropped it, that number is not known and does not
 * count; the message of EPIPE says so.
 * Returns: the number, of all publishers together; 0 for NULL. Threads: any. Since: 0.1.
 */
uint64_t xmem_subscription_lost(struct xmem_subscription *subscription);

/*
 * Get the client id of the publisher of what was received last, or if there is nothing yet of the
 * first that is followed.
 * Returns: the id, or -EINVAL, -ECHILD, -EBADF (the subscription has been dropped), -ENOENT (with
 * XMEM_SUBSCRIBE_LASTS, if no publisher has come yet). Threads: any. Since: 0.1.
 */
int xmem_subscription_publisher(struct xmem_subscription *subscription);

/* ---- more about a pool ---- */

/*
 * Join the pool that a descriptor stands for.
 * @fd: from xmem_pool_fd, passed on in any way; it stays the caller's.
 * @options: as xmem_pool_open.
 * Returns: as xmem_pool_open, and EBADF: @fd is not a pool's descriptor.
 * Ownership: the caller calls xmem_pool_close. Threads: any. Since: 0.2.
 */
struct xmem_pool *xmem_pool_open_fd(int fd, const struct xmem_pool_options *options);

/*
 * Join anew the pool that a handle stands for: in a child that has inherited it by fork, or where
 * its host has gone, or as a second client. The name and the options are those with which the
 * handle was opened, but without XMEM_OPEN_EXCLUSIVE; the user whose pool it is stays the same. The
 * pool has the sizes that it has by now, and is a new one if it has ended meanwhile, unless the
 * options had XMEM_OPEN_EXISTING or it is another user's.
 *
 * With XMEM_OPEN_INHERIT a child joins by a descriptor instead, so it is the same pool, which may
 * be anonymous. The child keeps the descriptor until it calls xmem_pool_close for the handle that
 * it has inherited; where the kernel is the host, the pool lives as long.
 *
 * The handle that was inherited stays as it is: dead in the child, and the parent's there. No
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
 * Make a descriptor with which a process can join this pool, of whichever user it is: in the roles
 * that this client has, which are all if it has made the pool, and otherwise those that the mode,
 * gives it now, or the descriptor by which it joined has given it. A descriptor that was passed on
 * cannot be taken back.
 * Returns: the descriptor, which is close-on-exec, or -errno: -EMFILE; -EACCES: it joined another
 * user's pool by name, and the mode does not let it in any more; -EDQUOT.
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

#define XMEM_GID_SAME	UINT32_MAX

/*
 * Change who may join a pool from now on. Clients that have joined stay, and so do descriptors of
 * the pool unless the mode has XMEM_MODE_STRICT.
 * @mode: as in struct xmem_pool_options; 0: it stays as it is.
 * @gid: its group, one of this user's (or any with CAP_CHOWN); XMEM_GID_SAME: it stays.
 * Returns: 0, or -errno: -EPERM: the pool is another user's and the caller lacks CAP_SYS_ADMIN, or
 * it is not of that group; -EOPNOTSUPP: xmemd is the host, whose pools are for one user; -EINVAL:
 * such a mode there is not. Threads: any. Since: 0.5.
 */
int xmem_pool_set_mode(struct xmem_pool *pool, uint32_t mode, uint32_t gid);

/*
 * End another client of the pool, whether it runs, is stopped or hangs: it loses all that it has of
 * the pool, and its holds, claims and buffers are as if its process had been killed. The process
 * gets no signal; its calls in this pool fail with ENOTCONN from then on, and say why. It can still
 * read the buffers that it has mapped, but their contents may change. When the call returns all
 * that is done; memory of a GPU that the client used stays until its process has exited.
 * @client, @incarnation: of that client, as xmem_pool_client_info gives them.
 * Returns: 0, or -errno: -EPERM: the pool is another user's and the caller lacks CAP_SYS_ADMIN;
 * -ESTALE: that client has ended; -EINVAL: it is this client, or there is no such number;
 * -EOPNOTSUPP: xmemd is the host, which cannot take away what a live process has mapped; -ENOTCONN.
 * Threads: any. Since: 0.5.
 */
int xmem_pool_evict(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

#define XMEM_DRAIN_EVICTS	(1u << 0)	/* end all clients but those of this process */

/*
 * Close the pool to all who would join it, by its name or by a descriptor (ESHUTDOWN), for good.
 * Clients that have joined go on; when the last client has left, and the last descriptor of the
 * pool is closed, it is gone, and its name is free for a new one.
 * @flags: XMEM_DRAIN_EVICTS, or 0.
 * Returns: how many clients it has ended, or -errno: -EPERM, -EOPNOTSUPP, -ENOTCONN as
 * xmem_pool_evict, and then nothing has changed; -EINVAL. Threads: any. Since: 0.5.
 */
int xmem_pool_drain(struct xmem_pool *pool, uint32_t flags);

/*
 * Let another client hold this one's buffers, those that there are and those that come, although
 * it is of another user and does not follow this client. It is for tokens that are passed on by a
 * way of one's own: holds of such a client would not count, so xmem_get refuses it (EACCES).
 * Clients of the pool's owner, and of this user, are let in when they join, and others when they
 * subscribe to this client, or to one that forwards its buffers. This lasts until one of both ends.
 * @client, @incarnation: of that client, as xmem_pool_client_info gives them.
 * Returns: 0, also if it was so before, or -errno: -EPERM: this client is a reader, and has no
 * buffers; -ESTALE: that client has ended; -EINVAL: there is no such number; -ENOTCONN.
 * Threads: any. Since: 0.5.
 */
int xmem_pool_grant(struct xmem_pool *pool, uint32_t client, uint64_t incarnation);

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

#include "xmem/claims.h"
#include "xmem/copy.h"
#include "xmem/cuda.h"
#include "xmem/stream.h"
#include "xmem/info.h"
#include "xmem/memory.h"
#include "xmem/payload.h"
#include "xmem/pipeline.h"
#include "xmem/tensor.h"

#include "xmem/api.h"

#endif
