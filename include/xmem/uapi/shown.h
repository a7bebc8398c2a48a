/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* The records of a pool in sysfs. A part of xmem/uapi.h. */
#ifndef XMEM_UAPI_SHOWN_H
#define XMEM_UAPI_SHOWN_H

#include <linux/types.h>

#include "limits.h"

/*
 * /sys/class/xmem/poolN/{slots,clients,devices} (kernel): a struct xmem_shown, and then records,
 * one for each slot, client id or GPU for which the pool has room. They are for tools, and can be
 * read from any offset. A read gives at most a page, which has at least 4096 bytes. If the read
 * begins and ends between two records, each record shows one moment, except for its holds: they
 * were counted while the other fields did not change.
 */
struct xmem_shown {
	__u32 header_bytes;		/* from here to the first record */
	__u32 record_bytes;		/* from one record to the next: a newer host makes records
					 * longer, and an older tool ignores the rest */
	__u32 records;			/* number of records */
	__u32 abi;			/* XMEM_ABI of the host */
	__u64 reserved[14];
};

/* Flags, with which each record begins. */
#define XMEM_SHOWN_CHANGING	(1u << 0)	/* it changed at every look: its values are of more
						 * than one moment */
#define XMEM_SHOWN_QUARANTINE	(1u << 1)	/* a client: it has ended, and its process may
						 * still use memory of a GPU */

/* One slot. Without an owner all other fields are 0. */
struct xmem_shown_slot {
	__u32 flags;			/* XMEM_SHOWN_* */
	__u32 owner;			/* client id, or XMEM_OWNER_* */
	__u32 state;			/* enum xmem_slot_state */
	__u32 traits;			/* XMEM_TRAIT_* */
	__u64 generation;		/* of the contents; their token is the generation and the
					 * slot's number */
	__u64 length;			/* bytes */
	__u64 payload;			/* id of the payload that it is in */
	__u64 holds;			/* of all clients together, at least one of its writer in
					 * place */
	__u64 holders[XMEM_CLIENT_WORDS];	/* bit set: that client has some. A slot in a
						 * publisher's ring is in use without holders */
	__u32 claims;			/* references that are set aside */
	__u32 reserved0;
	__u64 reserved1[5];
};

/* One client id. If it is free, all fields are 0. */
struct xmem_shown_client {
	__u32 flags;			/* XMEM_SHOWN_* */
	__u32 state;			/* enum xmem_client_state */
	__u32 role;			/* enum xmem_role */
	__u32 pid;			/* in the reader's PID namespace; 0: it is not there */
	__u32 uid;			/* of the process when it joined, in the reader's user
					 * namespace */
	__u32 reserved0;
	__u64 incarnation;		/* number of this use of the id */
	__u64 holds;			/* of all slots, which are counted one after the other; at
					 * least one of each slot that it writes in place */
	__u8  label[XMEM_LABEL_BYTES];	/* the client's name for itself; NUL-terminated */
	__u64 limbo_bytes;		/* of the slots whose owner has ended, and that it holds or
					 * writes in place */
	__u64 reserved1[8];
};

/* One GPU: the first record is that of device 1 in the traits of slots. */
struct xmem_shown_device {
	__u32 flags;			/* XMEM_SHOWN_* */
	__u32 reserved0;
	__u8  uuid[XMEM_UUID_BYTES];	/* all zero: none */
	__u64 bytes;			/* of all payloads on it that have slots or are closing */
	__u64 closing_bytes;		/* of those without a slot */
	__u64 reserved1[11];
};

#endif
