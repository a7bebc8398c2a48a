/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Requests about other clients, and about the role of this one. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_CLIENTS_H
#define XMEM_UAPI_CLIENTS_H

#include <linux/types.h>

/*
 * client: the identity of another client of the pool. ENOENT: it is not there, or not that one;
 * EINVAL: the pool has no such id.
 */
#define XMEM_CLIENT_LIMBO	(1u << 0)	/* say limbo_bytes, too: that takes a while */
struct xmem_client_request {
	__u32 size;
	__u32 flags;			/* XMEM_CLIENT_* */
	__u32 client;			/* client id */
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* in: of that client, or 0: any; out: its own */
	__u32 pid;			/* out: of its process, in the caller's pid namespace; 0:
					 * that does not have it, or it is no more. Daemon: as the
					 * daemon saw it when it joined */
	__u32 uid;			/* out: in its user namespace, as stat() gives it */
	__u64 limbo_bytes;		/* out: with LIMBO, else 0: bytes of the slots that it holds
					 * or writes in place and whose owner has ended, as far as
					 * its holds count, and of those that claims keep because
					 * of it; a slot that several hold counts for each */
};
#define XMEM_CLIENT_MIN		12	/* up to client */

/*
 * evict: end another client, as if its process had unmapped its area: its requests are ENOTCONN,
 * calls in which it slept or polled return, its holds, claims and subscriptions go, its slots are
 * the host's. Before these it loses all pages of the pool that it has mapped: it reads zeros there,
 * and nobody sees its stores, so it gets no signal. It need not run for that, and costs nobody
 * anything afterwards. Payloads that it has mapped stay mapped: contents that it held may be
 * replaced under its eyes; and pages that it has pinned (vmsplice) it can still read, until the
 * clients end whose they are. When the request is answered all this is done.
 *
 * The host evicts by itself every client that holds more bytes of limbo, slots whose owner has
 * ended, than the pool's limbo_bytes: when a client ends, whenever slots of ended ones are
 * reclaimed, and once a second while there is so much of it. It spares nobody, not the pool's owner
 * either, for the memory is the publisher's. Slots do not count in the first 5 seconds after the
 * end of their group's last owner. Slots with claims count for the client that has last made these
 * end later than they did, unless it was their owner.
 *
 * For the pool's owner, and CAP_SYS_ADMIN in the user namespace in which it was made (EPERM).
 * ESTALE: that incarnation has ended. The daemon cannot take away mappings of a live process:
 * EOPNOTSUPP.
 *
 * With WHY it ends nobody, and says why the client of this file was ended (the file's own mm may
 * ask, also when its client has ended); client, incarnation and reason are 0 then.
 */
enum xmem_reason {
	XMEM_REASON_NONE = 0,		/* nobody but the client itself has ended it, if it has */
	XMEM_REASON_EVICTED = 1,	/* by evict */
	XMEM_REASON_DRAINED = 2,	/* by drain */
	XMEM_REASON_LIMBO = 3,		/* it held more of what ended clients have left than one
					 * may (join, limbo_bytes); by the host, or by evict */
};
#define XMEM_EVICT_WHY	(1u << 0)
struct xmem_evict_request {
	__u32 size;
	__u32 flags;			/* XMEM_EVICT_* */
	__u32 client;			/* client id, not the caller's own (EINVAL) */
	__u32 reason;			/* in: EVICTED or LIMBO, for the client and for traces;
					 * WHY: 0; out: enum xmem_reason */
	__u64 incarnation;		/* of that client */
	__u32 reserved;			/* must be 0 */
	__u32 reserved1;
};
#define XMEM_EVICT_MIN		24	/* up to incarnation */

/*
 * drain: nobody joins the pool any more (ESHUTDOWN), by name or by a descriptor. Its clients go on;
 * with the last of them, and the last descriptor of the pool, it is gone, and then its name is
 * free. This cannot be undone; to drain once more is allowed. For whom evict is for.
 *
 * EVICT: all clients but those of the caller's mm are ended, with reason DRAINED, as by evict;
 * EOPNOTSUPP (daemon): nothing has changed.
 */
#define XMEM_DRAIN_EVICT	(1u << 0)
struct xmem_drain_request {
	__u32 size;
	__u32 flags;			/* XMEM_DRAIN_* */
	__u32 evicted;			/* in: 0; out: how many clients have been ended */
	__u32 reserved;			/* must be 0 */
};
#define XMEM_DRAIN_MIN		12	/* up to evicted */

/*
 * grant: holds of another client on the caller's slots count from now on, on the slots that the
 * caller has and on those that it gets later. It is for clients of other users that are given
 * tokens by a way of their own; subscribers do not need it. It lasts until either of the two ends,
 * and does nothing if it was so before. For writers (EPERM). ESTALE: that incarnation has ended.
 *
 * With FORWARDED the caller is about to forward a slot of another owner, which it holds (EPERM): it
 * is a stage of the slot's group, and all who follow its ring, now or later, may hold what that
 * owner has. A stage that does not say so is received only by those who may hold that anyway; to
 * others it is lost. It has to be said once for each group, and before the entry is complete.
 */
#define XMEM_GRANT_FORWARDED	(1u << 0)
struct xmem_grant_request {
	__u32 size;
	__u32 flags;			/* XMEM_GRANT_* */
	__u32 client;			/* client id; FORWARDED: 0 */
	__u32 slot;			/* FORWARDED: the slot; else 0 */
	__u64 incarnation;		/* of that client; FORWARDED: 0 */
	__u32 reserved;			/* must be 0 */
	__u32 reserved1;		/* must be 0 */
};
#define XMEM_GRANT_MIN		24	/* up to incarnation */

/*
 * writer: a client that has joined as EITHER is a writer from now on. The host wakes clients that
 * wait for writers. If the client is a writer already, nothing changes. EPERM: it is a reader.
 */
struct xmem_writer_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
};
#define XMEM_WRITER_MIN		8

#endif
