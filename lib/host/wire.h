/* SPDX-License-Identifier: MIT */
/*
 * The datagrams between libxmem and xmemd; both compile this file.
 *
 * A request is struct xmem_message and the struct of the request. A reply is the same,
 * but has the struct only if the result is 0. Descriptors travel as SCM_RIGHTS: with a
 * request those that its struct passes in, with a reply those that it passes out; the
 * reply to a join carries the memfd of all the pool's pages. A descriptor number inside a
 * struct means something only to the process that sends it. A connection that xmemd refuses
 * gets one reply, that of a join, without a number; if its result is -EDQUOT, a struct
 * xmem_quota_request names the limit.
 */
#ifndef XMEM_WIRE_H
#define XMEM_WIRE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/request.h"

/*
 * A struct that came in @length bytes, into *ret, zeros added; a longer one's tail
 * must be 0. -EINVAL: too short, an unknown flag, reserved not 0; -E2BIG: too
 * long; -EFAULT: it says more than there is.
 */
int xm_wire_take(const struct xm_request_kind *kind, const void *bytes, size_t length,
		 union xm_request *ret);

/* xmemd's exit status if its starter's hard limits are too low; 1 is any other failure. */
#define XM_EXIT_LIMITS	3
/* This and an errno: it cannot listen at its address. */
#define XM_EXIT_LISTEN	64

/*
 * xmemd serves one pool for each XM_POOL_DESCRIPTORS descriptors that it may have, but at least
 * XM_LEAST_POOLS and at most XM_MOST_POOLS.
 */
#define XM_POOL_DESCRIPTORS	16
#define XM_LEAST_POOLS		64
#define XM_MOST_POOLS		1024

/* One datagram as it came. */
struct xm_datagram {
	struct xmem_message head;
	__u8 body[XM_REQUEST_BYTES];
	size_t length;		/* of the body */
	u32 files;		/* descriptors that came, at most 2; the receiver's */
	int file[2];
	bool short_head;	/* not even a head: 0, -EINVAL for it */
	bool lost_file;		/* a descriptor could not be taken: no number free */
};

/* @file: -1 for none. 0 or -errno, -EINTR too; @flags: MSG_*. */
int xm_wire_send(int socket, const struct xmem_message *head, const void *body, size_t length,
		 int file, int flags);

/*
 * For the ends of a descriptor that is polled (daemon/poll.c, lib/follow/poll.c); neither waits.
 * fill: send until nothing more goes, so that the socket is not writable.
 * drain: take what has come, so that the socket is not readable. What comes meanwhile goes too.
 */
void xm_wire_fill(int socket);
void xm_wire_drain(int socket);

/* 0 or -errno; -ENOTCONN: the other side has gone (or sent an empty datagram). */
int xm_wire_receive(int socket, struct xm_datagram *ret, int flags);

#endif
