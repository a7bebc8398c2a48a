/* SPDX-License-Identifier: MIT */
/*
 * The datagrams between libxmem and xmemd. Both compile this file.
 *
 * A request is a struct xmem_message, and then the struct of the request. A reply is a struct
 * xmem_message, and, only if the result is 0, the struct of the request. Descriptors travel as
 * SCM_RIGHTS: with a request those that its struct passes in, and with a reply those that it passes
 * out. The reply to a join carries the memfd with all the pool's pages. A descriptor number inside
 * a struct has a meaning only in the process that sends it. A connection that xmemd refuses gets
 * one reply, which answers a join and has no number. If its result is -EDQUOT, a struct
 * xmem_quota_request names the limit.
 */
#ifndef XMEM_WIRE_H
#define XMEM_WIRE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/request.h"

/*
 * Copy a struct that came in @length bytes into *ret. A shorter one is extended with zeros; in a
 * longer one, the additional bytes must be 0. -EINVAL: too short, an unknown flag, or a reserved
 * field that is not 0; -E2BIG: too long; -EFAULT: its size field exceeds @length.
 */
int xm_wire_take(const struct xm_request_kind *kind, const void *bytes, size_t length,
		 union xm_request *ret);

/*
 * xmemd's exit status if the hard limits of the process that starts it are too low; 1 is for other
 * failures.
 */
#define XM_EXIT_LIMITS	3
/* If xmemd cannot listen at its address, its exit status is this number plus an errno. */
#define XM_EXIT_LISTEN	64

/*
 * xmemd serves one pool for each XM_POOL_DESCRIPTORS descriptors that it may have, but at least
 * XM_LEAST_POOLS and at most XM_MOST_POOLS.
 */
#define XM_POOL_DESCRIPTORS	16
#define XM_LEAST_POOLS		64
#define XM_MOST_POOLS		1024

/* A received datagram. */
struct xm_datagram {
	struct xmem_message head;
	__u8 body[XM_REQUEST_BYTES];
	size_t length;		/* of the body */
	u32 files;		/* how many descriptors came, at most 2; the receiver owns them */
	int file[2];
	bool short_head;	/* shorter than a head: then the result is -EINVAL */
	bool lost_file;		/* a descriptor was lost, because no number was free */
};

/* @file: a descriptor to send, or -1; @flags: MSG_*. Returns 0 or -errno, which may be -EINTR. */
int xm_wire_send(int socket, const struct xmem_message *head, const void *body, size_t length,
		 int file, int flags);

/*
 * For the ends of a polled descriptor (daemon/poll.c, lib/follow/poll.c). Neither waits.
 *   fill   sends until the socket has no more room, so that it is not writable.
 *   drain  takes everything that has come, so that the socket is not readable. It also takes
 *          datagrams that come meanwhile.
 */
void xm_wire_fill(int socket);
void xm_wire_drain(int socket);

/* 0 or -errno; -ENOTCONN: the other side has gone (or sent an empty datagram). */
int xm_wire_receive(int socket, struct xm_datagram *ret, int flags);

#endif
