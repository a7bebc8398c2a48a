/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Requests about other clients, and about the role of this one. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_CLIENTS_H
#define XMEM_UAPI_CLIENTS_H

#include <linux/types.h>

/*
 * client: get the identity of another client of the pool. ENOENT: no such client lives, or it is
 * not that incarnation; EINVAL: the pool has no such id.
 */
#define XMEM_CLIENT_LIMBO	(1u << 0)	/* also report limbo_bytes, which takes a while */

/**
 * struct xmem_client_request - the argument of XMEM_IOC_CLIENT
 * @size: the caller's size of this struct
 * @flags: XMEM_CLIENT_*
 * @client: client id
 * @reserved: must be 0
 * @incarnation: in: of that client, or 0: any; out: its own
 * @pid: out: of its process, in the caller's pid namespace; 0: the namespace does not have it, or
 *   it has ended. Daemon: as the daemon saw it at the join
 * @uid: out: in its user namespace, as stat() gives it
 * @limbo_bytes: out: with LIMBO, else 0: bytes of the slots that it holds or writes in place and
 *   whose owner has ended, as far as its holds count; a slot that several clients hold counts for
 *   each
 */
struct xmem_client_request {
	__u32 size;
	__u32 flags;
	__u32 client;
	__u32 reserved;
	__u64 incarnation;
	__u32 pid;
	__u32 uid;
	__u64 limbo_bytes;
};
#define XMEM_CLIENT_MIN		12	/* up to client */

/*
 * evict: end other clients.
 *
 *   EVICT        ends another client, as if its process had unmapped its area. Its requests fail
 *                with ENOTCONN, calls in which it slept or polled return, its holds, claims and
 *                subscriptions end, and its slots are the host's. First it loses all pages of the
 *                pool that it has mapped: it reads zeros there, and no other process sees its
 *                stores, so it gets no signal. This works even if it does not run, and afterwards
 *                it costs no other client anything. Payloads that it has mapped stay mapped, but
 *                contents that it held may be replaced. Pages that it has pinned (vmsplice) stay
 *                readable for it until the clients whose pages these are end. All this is done
 *                when the request is answered. ESTALE: that incarnation has ended
 *   WHY          ends no client, and tells why the client of this file was ended (only the mm that
 *                joined may ask, also after its client's end)
 *   DRAIN        no process joins the pool any more (ESHUTDOWN), by name or by a descriptor. The
 *                clients of the pool stay. After the last client (daemon: and the last descriptor
 *                of the pool) the pool is gone and its name is free. This cannot be undone; a
 *                second drain is allowed
 *   DRAIN_EVICT  drains, and ends all clients but those of the caller's mm as EVICT does, with
 *                reason DRAINED
 *
 * Only the pool's owner, and CAP_SYS_ADMIN in the user namespace in which it was made, may evict or
 * drain (EPERM). The daemon cannot take away mappings of a live process, so EVICT and DRAIN_EVICT
 * change nothing there (EOPNOTSUPP).
 */
enum xmem_evict_op {
	XMEM_OP_EVICT = 0,
	XMEM_OP_WHY = 1,
	XMEM_OP_DRAIN = 2,
	XMEM_OP_DRAIN_EVICT = 3,
};
enum xmem_reason {
	XMEM_REASON_NONE = 0,		/* no other client and no host has ended it */
	XMEM_REASON_EVICTED = 1,	/* by EVICT */
	XMEM_REASON_DRAINED = 2,	/* by DRAIN_EVICT */
	XMEM_REASON_LIMBO = 3,		/* by EVICT, because it held slots of clients that have
					 * ended */
};

/**
 * struct xmem_evict_request - the argument of XMEM_IOC_EVICT
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @op: enum xmem_evict_op
 * @client: EVICT: client id, not the caller's own (EINVAL); else 0
 * @incarnation: EVICT: of that client; else 0
 * @reason: in: EVICT: EVICTED or LIMBO, for the client and for traces; else 0; WHY: out: enum
 *   xmem_reason
 * @evicted: in: 0; DRAIN_EVICT: out: how many clients it has ended
 */
struct xmem_evict_request {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 client;
	__u64 incarnation;
	__u32 reason;
	__u32 evicted;
};
#define XMEM_EVICT_MIN		28	/* up to reason */

/*
 * grant: rights of clients.
 *
 *   GRANT    holds of another client count from now on, on the slots that the caller has and on
 *            those that it gets later. It is for clients of other users that receive tokens in the
 *            programs' own way; subscribers do not need it. A grant lasts until one of the two
 *            clients ends. A second grant changes nothing. ESTALE: that incarnation has ended
 *   FORWARD  the caller is about to forward a slot of another owner, which it holds (EPERM). The
 *            caller becomes a stage of the slot's group, and all clients that follow its ring, now
 *            or later, may hold the slots of that group. If a stage does not send this request,
 *            its entries are received only by clients that may hold those slots anyway, and the
 *            others lose them. The request is needed once for each group, before the entry is
 *            complete
 *   WRITER   a client that has joined as EITHER becomes a writer. The host wakes clients that wait
 *            for writers. If the client is a writer already, nothing changes
 *
 * Only writers send GRANT and FORWARD. Readers send none of the three (EPERM).
 */
enum xmem_grant_op {
	XMEM_OP_GRANT = 0,
	XMEM_OP_FORWARD = 1,
	XMEM_OP_WRITER = 2,
};

/**
 * struct xmem_grant_request - the argument of XMEM_IOC_GRANT
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @op: enum xmem_grant_op
 * @client: GRANT: client id; else 0
 * @incarnation: GRANT: of that client; else 0
 * @slot: FORWARD: the slot; else 0
 * @reserved: must be 0
 */
struct xmem_grant_request {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 client;
	__u64 incarnation;
	__u32 slot;
	__u32 reserved;
};
#define XMEM_GRANT_MIN		28	/* up to slot */

#endif
