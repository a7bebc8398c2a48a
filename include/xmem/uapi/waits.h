/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Requests that follow a ring, wait and poll. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_WAITS_H
#define XMEM_UAPI_WAITS_H

#include <linux/types.h>

/* subscribe: follow a ring from its next publication on. */
#define XMEM_SUBSCRIBE_WAIT	(1u << 0)	/* the publisher waits for it, within its bound */
#define XMEM_SUBSCRIBE_JOINT	(1u << 1)	/* a ring of the caller's joint subscription: see
						 * XMEM_POLL_JOINT */

/**
 * struct xmem_subscribe_request - the argument of XMEM_IOC_SUBSCRIBE
 * @size: the caller's size of this struct
 * @flags: XMEM_SUBSCRIBE_*
 * @publisher: client id
 * @reserved: must be 0
 * @incarnation: of that client; 0: any
 * @position: out: the position of the cursor
 */
struct xmem_subscribe_request {
	__u32 size;
	__u32 flags;
	__u32 publisher;
	__u32 reserved;
	__u64 incarnation;
	__u64 position;
};
#define XMEM_SUBSCRIBE_MIN	12	/* up to publisher */

/*
 * unsubscribe: follow a ring no longer.
 *
 * With ENDED, DROPPED or LASTS the request is about no ring, and publisher and incarnation are 0.
 * With JOINT it is about the caller's joint subscription.
 *
 *   ENDED            All rings of one of the caller's subscriptions have ended. The descriptors
 *                    of poll_fd for that subscription and for the client are readable from now
 *                    on, until a request with DROPPED
 *   DROPPED          The program has dropped a subscription whose rings have ended (ENOENT:
 *                    there is none)
 *   LASTS            A joint subscription waits for writers even while it follows none. So a
 *                    writer that joins makes the descriptors for that subscription and for the
 *                    client readable
 *   LASTS | DROPPED  The program has dropped that subscription (ENOENT: there is none)
 */
#define XMEM_UNSUBSCRIBE_ENDED		(1u << 0)
#define XMEM_UNSUBSCRIBE_DROPPED	(1u << 1)
#define XMEM_UNSUBSCRIBE_JOINT		(1u << 2)
#define XMEM_UNSUBSCRIBE_LASTS		(1u << 3)

/**
 * struct xmem_unsubscribe_request - the argument of XMEM_IOC_UNSUBSCRIBE
 * @size: the caller's size of this struct
 * @flags: XMEM_UNSUBSCRIBE_*
 * @publisher: client id
 * @reserved: must be 0
 * @incarnation: as with subscribe
 */
struct xmem_unsubscribe_request {
	__u32 size;
	__u32 flags;
	__u32 publisher;
	__u32 reserved;
	__u64 incarnation;
};
#define XMEM_UNSUBSCRIBE_MIN	12	/* up to publisher */

/*
 * wait: arm a waiters word, wait until it changes, or wake its waiters.
 *
 *   ARM   arms the word, and returns its value, which the next wake-up changes
 *   WAIT  sleeps until the armed word has changed
 *   WAKE  wakes all waiters of the word, if it is armed
 *   KICK  is about no word: kind and client are 0. It ends those waits of the caller's own threads
 *         whose `kicks` is from an ARM before it. So a thread arms, checks whether it has to stop,
 *         and then waits. Another thread that wants this one to stop first says so, and then kicks
 *
 * The daemon's clients arm words and sleep on them themselves: ARM and WAIT get EOPNOTSUPP.
 */
enum xmem_wait_op {
	XMEM_OP_ARM = 0,
	XMEM_OP_WAIT = 1,
	XMEM_OP_WAKE = 2,
	XMEM_OP_KICK = 3,
};
enum xmem_wait_kind {
	XMEM_WAIT_CLIENTS = 0,		/* the client table changes; client must be 0; only the
					 * host wakes it */
	XMEM_WAIT_RING = 1,		/* client publishes; only a subscriber may arm it, and only
					 * client wakes it */
	XMEM_WAIT_SLOTS = 2,		/* a slot of client may be free, or its subscribers have
					 * changed; only client may arm it and wait for it; client
					 * and clients whose holds count wake it */
};

/**
 * struct xmem_wait_request - the argument of XMEM_IOC_WAIT
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @op: enum xmem_wait_op
 * @kind: enum xmem_wait_kind
 * @client: the client's id
 * @value: ARM: out; WAIT: in, as ARM returned it; else 0
 * @deadline_ns: WAIT: CLOCK_MONOTONIC, ~0: none; else 0
 * @kicks: ARM: out; WAIT: in, as ARM returned it, or 0: no kick ends it; else 0
 * @reserved: must be 0
 */
struct xmem_wait_request {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 kind;
	__u32 client;
	__u32 value;
	__u64 deadline_ns;
	__u32 kicks;
	__u32 reserved;
};
#define XMEM_WAIT_MIN		24	/* up to value */

/*
 * poll_fd: get a descriptor for poll, select and epoll, level-triggered. It is readable while one
 * of the rings has a publication that this client can receive, or has ended, and the host follows
 * it for this client. The descriptor of XMEM_POLL_CLIENT is also writable, unless the client's
 * slots_waiters still has the value in `vain` of its ring, and the time in look_at_ns has not come.
 * The descriptor of XMEM_POLL_SUBSCRIBERS is about the client's own ring: it is readable while
 * changes_seen differs from subscriber_changes. When the client or the host ends, every descriptor
 * is readable and hung up.
 *
 * An owner that acquires stores look_at_ns, arms its slots_waiters, looks for a buffer, and if
 * there is none, stores the value of the armed word in `vain`. When it changes something itself, it
 * stores 0 there, and wakes the word if that is armed.
 *
 *   kernel   A program that polls the descriptor for reading arms the needed words, where there
 *            is nothing yet. A wake-up says only that it is time to look. poll, select and epoll
 *            look by themselves, but a poll by io_uring may complete although there is nothing
 *   daemon   The client arms the words and keeps the descriptor's state true; see lib/follow/poll.c
 */
enum xmem_poll_kind {
	XMEM_POLL_CLIENT = 0,		/* all rings that the client follows, and the events of
					 * XMEM_POLL_JOINT if one of them is XMEM_SUBSCRIBE_JOINT;
					 * publisher must be 0 */
	XMEM_POLL_RING = 1,		/* the ring of `publisher` */
	XMEM_POLL_JOINT = 2,		/* all rings with XMEM_SUBSCRIBE_JOINT, and writers that
					 * the client does not follow yet; publisher must be 0 */
	XMEM_POLL_SUBSCRIBERS = 3,	/* the subscribers of the client; publisher must be 0 */
};

/**
 * struct xmem_poll_fd_request - the argument of XMEM_IOC_POLL_FD
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @kind: enum xmem_poll_kind
 * @publisher: client id
 * @incarnation: of the publisher; else 0
 * @fd: out; close-on-exec
 * @reserved: must be 0
 */
struct xmem_poll_fd_request {
	__u32 size;
	__u32 flags;
	__u32 kind;
	__u32 publisher;
	__u64 incarnation;
	__s32 fd;
	__u32 reserved;
};
#define XMEM_POLL_FD_MIN	28	/* up to fd */

#endif
