/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Requests about payloads, slots and their contents. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_SLOTS_H
#define XMEM_UAPI_SLOTS_H

#include <linux/types.h>

#include "../metadata.h"
#include "limits.h"

/*
 * attach: `count` FREE slots in one payload become the caller's. The payload is a file that every
 * client can map, or with XMEM_ATTACH_CUDA memory of a GPU that the driver opens in each process:
 *
 *   fd, CUDA            the memory of an exported descriptor. `handle` is a name that the
 *                       exporter has made, by which it finds its own allocation again
 *   -1, CUDA | HANDLE   an allocation of the caller's: the driver's IPC handle is in `handle`
 *   fd, CUDA | HANDLE   a pointer into the memory pool of the descriptor fd: `handle` is the
 *                       pointer, as the driver exports it
 *
 * The descriptor is a character device, one of those that the host lists.
 */
#define XMEM_ATTACH_SHARED	(1u << 0)	/* XMEM_TRAIT_SHARED; not with HANDLE. All flags but
						 * ONCE are for new payloads only */
#define XMEM_ATTACH_ONCE	(1u << 1)	/* XMEM_TRAIT_ONCE */
#define XMEM_ATTACH_CUDA	(1u << 2)	/* XMEM_TRAIT_CUDA */
#define XMEM_ATTACH_HANDLE	(1u << 3)	/* XMEM_TRAIT_HANDLE; only with CUDA */
#define XMEM_ATTACH_READERS	(1u << 4)	/* XMEM_TRAIT_READERS; only with CUDA */
#define XMEM_ATTACH_TRUNCATE	(1u << 5)	/* when the last slot of the payload has gone, its
						 * pages go, whoever else has the file open or
						 * mapped: they read zeros. Only with SHARED. Files
						 * in huge pages are only dropped */

/**
 * struct xmem_attach_request - the argument of XMEM_IOC_ATTACH
 * @size: the caller's size of this struct
 * @flags: XMEM_ATTACH_*
 * @fd: a sealed memfd or a dma-buf, or with CUDA a device file, or -1; the host keeps a reference
 * @count: 1 to XMEM_GROUP_SLOTS
 * @payload: in: 0; or with fd -1 the id of a payload that gets more slots; out: the payload's id
 * @offset: bytes to the first slot; a multiple of 64
 * @stride: bytes from slot to slot; a multiple of 64, >= length
 * @length: bytes of each slot; not 0
 * @slot: out; the caller sets it to 0
 * @bytes: of the whole allocation; 1 to XMEM_MAX_DEVICE_BYTES
 * @device: its GPU; not all zero
 * @handle: not all zero
 */
struct xmem_attach_request {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 count;
	__u64 payload;
	__u64 offset;
	__u64 stride;
	__u64 length;
	__u16 slot[XMEM_GROUP_SLOTS];
	/* CUDA, but not with the id of a payload; else all of them are 0: */
	__u64 bytes;
	__u8  device[XMEM_UUID_BYTES];
	__u8  handle[XMEM_HANDLE_BYTES];
};
#define XMEM_ATTACH_MIN		48	/* up to length */

/*
 * payload: get a descriptor of a payload file, read-only unless WRITE asks for a writable one. Only
 * the owner gets a writable one, and only if it has attached the file so (EACCES). If the payload
 * is shared, every writer gets one. In the kernel a descriptor of a shared payload without WRITE
 * can only be mapped, for reading (in huge pages: MAP_SHARED only), because a descriptor of the
 * memfd could be opened anew for writing. The request never waits for a lease of the file
 * (F_SETLEASE): a caller that asks for a writable descriptor and meets a lease gets EBUSY.
 *
 * A CUDA payload is opened and closed. A process that opens it can write it, so a reader may open
 * it only with XMEM_TRAIT_READERS.
 *
 *   OPEN    Before it answers, the host notes that the caller has the payload open. The answer
 *           has the open file that was attached, or -1 if there is none, and the handle. A
 *           second OPEN changes nothing. The caller closes what the driver opened before it
 *           sends CLOSE. ENOENT: the payload has no slot any more
 *   CLOSE   The caller has the payload open no longer. A payload that a client has open at its
 *           end is closed when its process has exited. (Daemon: with `bytes` not 0 it undoes
 *           the OPEN whose message had this number: ENOENT if another OPEN has opened it too)
 *
 * Without either flag the caller only asks, and gets no handle. A CUDA payload that has lost its
 * last slot is *closing* until no client has it open. Then payloads_closed grows, the owner's
 * slots_waiters are woken, and the owner may free the memory. While the payload is closing the
 * answer is EBUSY, and after that it is ENOENT. So an owner that has ended can let another client
 * ask.
 */
#define XMEM_PAYLOAD_WRITE	(1u << 0)	/* at most one of these flags */
#define XMEM_PAYLOAD_OPEN	(1u << 1)
#define XMEM_PAYLOAD_CLOSE	(1u << 2)

/**
 * struct xmem_payload_request - the argument of XMEM_IOC_PAYLOAD
 * @size: the caller's size of this struct
 * @flags: XMEM_PAYLOAD_*
 * @payload: its id
 * @fd: out; close-on-exec; -1: CUDA, and there is none
 * @traits: out: XMEM_TRAIT_*
 * @bytes: out: length of the file, or of the allocation
 * @device: out: CUDA; else all zero
 * @handle: out: CUDA with OPEN; else all zero
 */
struct xmem_payload_request {
	__u32 size;
	__u32 flags;
	__u64 payload;
	__s32 fd;
	__u32 traits;
	__u64 bytes;
	__u8  device[XMEM_UUID_BYTES];
	__u8  handle[XMEM_HANDLE_BYTES];
};
#define XMEM_PAYLOAD_MIN	20	/* up to fd */

/*
 * slot: what the caller has done with a slot, or wants of it.
 *
 *   RESOLVE      returns a SCANNING slot that the caller holds to LIVE, because its owner has
 *                stopped
 *   COLLECT      the caller has dropped its last hold on a slot that is the host's. A moment later
 *                the host reclaims the slot, if no other client uses it. If holds of the caller do
 *                not count there, the host does nothing, which is no error
 *   RENEW        gives a WRITING or FREE slot of the caller a new range of generations
 *   DETACH       gives back a FREE slot of the caller, and with a payload's last slot the payload
 *   DETACH_FILE  gives back all slots of that slot's payload, or none if one of them is not FREE
 *                (EBUSY)
 *
 * The daemon's clients resolve slots themselves: RESOLVE gets EOPNOTSUPP.
 */
enum xmem_slot_op {
	XMEM_OP_RESOLVE = 0,
	XMEM_OP_COLLECT = 1,
	XMEM_OP_RENEW = 2,
	XMEM_OP_DETACH = 3,
	XMEM_OP_DETACH_FILE = 4,
};

/**
 * struct xmem_slot_request - the argument of XMEM_IOC_SLOT
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @op: enum xmem_slot_op
 * @slot: the slot's number in the pool
 * @generation: RESOLVE: in; RENEW: out, first of the range; else 0
 */
struct xmem_slot_request {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 slot;
	__u64 generation;
};
#define XMEM_SLOT_MIN		16	/* up to slot */

/*
 * claim: references that are set aside for clients that are not known yet. A slot with claims is in
 * use.
 *
 *   add    `count` more; 0: only the time changes (ENOENT: there are none). A client that knows
 *          the generation may add to contents that are LIVE. The owner may also add to a slot that
 *          is WRITING, and its writer in place to one that is UPGRADED.
 *          EAGAIN: the owner is scanning the slot; get it, then try again. EPERM: a client that
 *          does not own the slot asks for more than XMEM_CLAIM_LONGEST_NS
 *          After the first `add` without end, the daemon's owners add such claims without a
 *          request, once for each contents, while there are none (core/protocol.h, I10)
 *   take   `count` fewer. The caller holds the slot, owns it, or has added some (EPERM). ERANGE:
 *          there are fewer. The daemon's clients take without a request (core/claims.c)
 *   void   all of them. The slot's owner may do it, and clients that have added some, and in
 *          the kernel the pool's owner and CAP_SYS_ADMIN (EPERM). ENOENT: there are none.
 *          count is 0
 *   undo   (daemon) takes back the effect of this client's last add, as far as no client has
 *          taken the claims, if that add was served and its message had the number that is in
 *          `generation`; the other fields must be 0. It is for a client that has given up
 *          waiting for the answer
 *
 * Claims also end when their time has passed, at most a second later, and when all clients that
 * have added some have ended and no other client than the slot's owner is left. ESTALE: the slot
 * has other contents, or none. ERANGE: there would be more than XMEM_MAX_CLAIMS.
 */
enum xmem_claim_op {
	XMEM_CLAIM_ADD = 0,
	XMEM_CLAIM_TAKE = 1,
	XMEM_CLAIM_VOID = 2,
	XMEM_CLAIM_UNDO = 3,
};

/**
 * struct xmem_claim_request - the argument of XMEM_IOC_CLAIM
 * @size: the caller's size of this struct
 * @flags: must be 0
 * @op: enum xmem_claim_op
 * @slot: the slot's number in the pool
 * @generation: of the contents
 * @count: how many claims are added or taken; else 0
 * @reserved: must be 0
 * @timeout_ns: add: from now, at the earliest; at most a second more. 0: XMEM_CLAIM_DEFAULT_NS;
 *   ~0: no end. If there are claims already, the later end counts; other requests: 0
 */
struct xmem_claim_request {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 slot;
	__u64 generation;
	__u32 count;
	__u32 reserved;
	__u64 timeout_ns;
};
#define XMEM_CLAIM_MIN		28	/* up to count */
#define XMEM_CLAIM_DEFAULT_NS	10000000000ULL
#define XMEM_CLAIM_LONGEST_NS	60000000000ULL

/*
 * upgrade: a writer that alone holds a slot with a shared payload writes it in place, and the slot
 * gets its next generation. A request without a flag begins that: LIVE -> UPGRADED. It ends by one
 * of
 *
 *   PUBLISH  UPGRADED -> LIVE; the slot gets the metadata of the request
 *   GIVE_UP  UPGRADED -> FREE; the contents are gone. The end of the client has this effect too
 *   CANCEL   UPGRADED -> LIVE with the generation before: nothing has been written
 *
 * The caller's hold stays all the time. If the caller puts the hold, it still counts as holding the
 * slot wherever the host reports holders, or evicts clients that hold too much (see evict).
 */
#define XMEM_UPGRADE_PUBLISH	(1u << 0)
#define XMEM_UPGRADE_GIVE_UP	(1u << 1)
#define XMEM_UPGRADE_CANCEL	(1u << 2)

/**
 * struct xmem_upgrade_request - the argument of XMEM_IOC_UPGRADE
 * @size: the caller's size of this struct
 * @flags: none, or one of XMEM_UPGRADE_*
 * @slot: the slot's number in the pool
 * @reserved: must be 0
 * @generation: in: the present one; without a flag also out: the next
 * @metadata: PUBLISH: of the slot; else ignored
 */
struct xmem_upgrade_request {
	__u32 size;
	__u32 flags;
	__u32 slot;
	__u32 reserved;
	__u64 generation;
	struct xmem_metadata metadata;
};
#define XMEM_UPGRADE_MIN	24	/* up to generation */

#endif
