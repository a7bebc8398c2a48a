/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * xmem: what the host (xmem.ko or xmemd) and its clients agree on.
 *
 * First the pages, which every client maps and in which everything is counted,
 * then the requests. Words and promises: docs/design.md. Steps: core/protocol.h.
 *
 * Change log of the ABI
 *   1  first light: pools, CPU payloads, rings, sleeping, end of a client
 *   2  what can grow: strides and feature words in the header, flags in every
 *      request, requests of any length from their minimum on, query, pools
 */
#ifndef XMEM_UAPI_H
#define XMEM_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define XMEM_ABI	2	/* the newest that this header describes */
#define XMEM_ABI_OLDEST	2	/* the oldest that a host built with it still serves */
#define XMEM_MAGIC	0x6c6f6f706d656d78ULL	/* "xmempool" */

/* Limits of the layout; a pool's own are in its header. */
#define XMEM_MAX_SLOTS		65536	/* a token has 16 bits for the slot */
#define XMEM_MAX_CLIENTS	256	/* XMEM_CLIENT_WORDS bitmaps of 64 */
#define XMEM_CLIENT_WORDS	4
#define XMEM_MAX_RING		4096	/* entries; a power of two, at least 4 */
#define XMEM_GROUP_SLOTS	64	/* slots that share pages, and so an owner */
#define XMEM_MAX_GROUPS		(XMEM_MAX_SLOTS / XMEM_GROUP_SLOTS)
#define XMEM_NAME_BYTES		32	/* a pool's name with its NUL */
#define XMEM_LABEL_BYTES	16	/* a client's label with its NUL */

/* ------------------------------------------------------------------------
 * Pages. File offsets are the same for all clients of a pool:
 *
 *   0               pool table   header, client rows, slot rows; host writes
 *   groups_offset   groups        state words and records; the owner writes
 *   areas_offset    areas         cursors, ring, holds; each client its own
 *
 * All of it may be mapped shared and read-only. A client maps read-write, each
 * in a mapping of its own, its area and the groups that it owns.
 */


/*
 * Features of a pool's layout. A client ignores a bit that it does not know in
 * `compat`, and must not use a pool that has one in `incompat` (EPROTONOSUPPORT).
 * This version of the ABI defines none.
 */
#define XMEM_COMPAT_KNOWN	0ULL
#define XMEM_INCOMPAT_KNOWN	0ULL

/*
 * Rows, cursors, entries and metadata are found by the strides in the header, and
 * never by sizeof: a newer host makes them longer, and an older client does not
 * look at what is behind the fields that it knows. No stride is shorter than the
 * struct of this header. Fixed are a state word (16 bytes) and a hold (4 bytes).
 */
struct xmem_pool_header {
	__u64 magic;			/* XMEM_MAGIC */
	__u32 abi;			/* XMEM_ABI of the host that made the pool */
	__u32 slots;			/* capacity; a multiple of XMEM_GROUP_SLOTS */
	__u64 compat;			/* features that a client may ignore */
	__u64 incompat;			/* features that a client has to know */
	__u32 clients;			/* capacity */
	__u32 ring_entries;		/* of each client's ring; a power of two */
	__u32 owner_uid;		/* of who made the pool, initial namespace */
	__u32 client_row_stride;	/* bytes from one struct xmem_client_row to the next */
	__u32 slot_row_stride;		/* bytes from one struct xmem_slot_row to the next */
	__u32 cursor_stride;		/* bytes from one struct xmem_cursor to the next */
	__u32 entry_stride;		/* bytes from one struct xmem_entry to the next */
	__u32 metadata_stride;		/* bytes from one struct xmem_metadata to the next */
	__u64 clients_offset;		/* bytes from here to the first client row */
	__u64 slots_offset;		/* bytes from here to the first slot row */
	__u64 groups_offset;		/* bytes, page-aligned */
	__u64 group_stride;		/* bytes from one group to the next */
	__u64 metadata_offset;		/* bytes into a group: its first metadata */
	__u64 areas_offset;		/* bytes, page-aligned */
	__u64 area_stride;		/* bytes from one client's area to the next */
	__u64 ring_offset;		/* bytes into an area: struct xmem_ring */
	__u64 entries_offset;		/* bytes into an area: the ring's first entry */
	__u64 holds_offset;		/* bytes into an area; + (id % 16) * 256: __u32[slots] */
	__u64 total_bytes;		/* of all parts together */
	__u8  name[XMEM_NAME_BYTES];	/* NUL-terminated; empty: anonymous */
	__u64 reserved1[9];
	/* Two lines of their own: read by every scan, and by who waits for clients. */
	__u64 counted[XMEM_CLIENT_WORDS];	/* bit set: that client's holds count */
	__u64 reserved2[4];
	__u32 clients_waiters;		/* waiters word: the client table changes */
	__u32 reserved3[15];
};

/* A waiters word: bit 0 = somebody sleeps, the rest counts wake-ups. */
#define XMEM_WAITERS_ARMED	1u
#define XMEM_WAITERS_STEP	2u

enum xmem_client_state {
	XMEM_CLIENT_NONE = 0,		/* the id is free */
	XMEM_CLIENT_ALIVE = 1,
	XMEM_CLIENT_ZOMBIE = 2,		/* ended; its ring is still in flight */
};

enum xmem_role {
	XMEM_ROLE_READER = 1,		/* may subscribe, receive, get, put */
	XMEM_ROLE_WRITER = 2,		/* may also attach and publish: it has a ring */
};

/* One client as all see it. Written by the host alone. */
struct xmem_client_row {
	__u64 incarnation;		/* number of this use of the id, from 1, never reused */
	__u32 state;			/* enum xmem_client_state */
	__u32 role;			/* enum xmem_role */
	__u32 pid;			/* initial namespace; for display only */
	__u32 uid;			/* likewise */
	__u64 wait_bound_ns;		/* longest wait that its ring accepts; 0: none */
	__u8  label[XMEM_LABEL_BYTES];	/* what it calls itself; NUL-terminated */
	__u64 reserved0[2];
	__u64 subscribers[XMEM_CLIENT_WORDS];	/* bit set: that client follows this ring */
	__u64 waits[XMEM_CLIENT_WORDS];		/* ... and makes its publisher wait */
	__u32 ring_waiters;		/* waiters word: this client's next publication */
	__u32 slots_waiters;		/* waiters word: this owner's next free slot */
	__u64 reserved1[7];
};

#define XMEM_OWNER_NONE	0xffffffffu	/* nothing is attached */
#define XMEM_OWNER_HOST	0xfffffffeu	/* its owner ended; the host reclaims it */

/* One slot as all see it. Written by the host alone. */
struct xmem_slot_row {
	__u32 owner;			/* client id, or XMEM_OWNER_* */
	__u32 tenant;			/* whose ring its position is of; XMEM_OWNER_NONE: no one's */
	__u32 payload;			/* id of the payload file, from 1, never reused */
	__u32 tenancy;			/* number of this use of the slot; the first is random */
	__u64 generation_first;		/* this tenancy's generations: from here up to the next
					 * multiple of 1 << XMEM_TENANCY_SHIFT */
	__u64 offset;			/* bytes into the payload file */
	__u64 length;			/* bytes */
	__u32 tenancies;		/* uses so far; after 16 M the slot is worn out (P5) */
	__u32 reserved0;
	__u64 reserved1[2];
};

/*
 * The state word of a slot: generation << 16 | scan number << 3 | state.
 * A token is generation << 16 | slot.
 */
#define XMEM_GENERATION_BITS	48
#define XMEM_TENANCY_SHIFT	24	/* a tenancy's generations share the bits above: 16 M tenancies */

enum xmem_slot_state {
	XMEM_SLOT_FREE = 0,		/* no contents */
	XMEM_SLOT_WRITING = 1,		/* the owner's alone */
	XMEM_SLOT_LIVE = 2,		/* whoever has the token may hold it */
	XMEM_SLOT_SCANNING = 3,		/* LIVE, and its owner looks for holders */
	XMEM_SLOT_UPGRADED = 4,		/* reserved: another client writes it */
};

struct xmem_slot_word {
	__u64 state;			/* the state word */
	__u64 position;			/* 1 + place of its last publication; 0: none */
};

/* What the contents are. Readers must not trust it more than its publisher. */
struct xmem_metadata {
	__u64 id;			/* the user's own */
	__u32 storage;			/* enum xmem_storage */
	__u32 device;			/* 0 for the CPU */
	__u32 dtype;			/* the user's own, see xmem.h */
	__u32 ndim;			/* valid places of shape and strides, at most 8 */
	__s64 shape[8];			/* elements */
	__s64 strides[8];		/* bytes */
	__u64 size;			/* bytes of contents; publish sets it */
	__u64 offset;			/* bytes of the buffer before them; publish sets it */
	__u8  content_type[32];		/* NUL-terminated, for example "video/x-raw,gray8" */
	__u8  producer[32];		/* NUL-terminated */
	__u64 user[8];			/* the user's own */
	__u64 reserved[27];		/* device handles to come; 0 */
};

enum xmem_storage { XMEM_STORAGE_CPU = 0 };

/* XMEM_GROUP_SLOTS slots of one owner: state words dense; their metadata at metadata_offset. */
struct xmem_group {
	struct xmem_slot_word word[XMEM_GROUP_SLOTS];
};

/* A subscriber's place in one publisher's ring; one line each. */
struct xmem_cursor {
	__u64 position;			/* next to receive; XMEM_CURSOR_NONE: not subscribed */
	__u64 reserved[7];
};
#define XMEM_CURSOR_NONE	0xffffffffffffffffULL

/* One publication: what the receiver polls. */
struct xmem_entry {
	__u64 position;			/* 1 + place, 0 while written; XMEM_ENTRY_VOID: evicted */
	__u64 token;
	__u64 sequence;			/* the publisher's count */
	__u64 timestamp_ns;		/* CLOCK_MONOTONIC as its publisher says; 0: none */
	__u64 offset;			/* bytes into the slot's payload */
	__u64 length;			/* bytes */
	__u64 reserved[2];
};
#define XMEM_ENTRY_VOID		(1ULL << 63)

/* A publisher's ring; its ring_entries entries are at entries_offset. */
struct xmem_ring {
	__u64 tail;			/* publications so far */
	__u64 reserved[7];
};

/* ------------------------------------------------------------------------
 * Requests: ioctls of a file of /dev/xmem; the daemon takes the same structs
 * as datagrams (struct xmem_message).
 *
 * Every struct begins with its size and its flags, and can grow at its end, as
 * those of openat2() do:
 *
 *   - a shorter struct of an older caller is extended with zeros, down to the
 *     minimum that is said at each request (XMEM_*_MIN);
 *   - a longer struct of a newer caller is taken if the rest of it is zero;
 *   - the answer is cut to the caller's size; what lies behind the fields that
 *     the host knows stays as the caller had it.
 *
 * Unknown flags and reserved fields that are not 0 are refused. After an error
 * nothing has changed.
 *
 *   ENOTTY      unknown request
 *   E2BIG       non-zero bytes beyond what this host knows
 *   EINVAL      size below the minimum, an unknown flag, a reserved field that is
 *               not 0, a field out of its range
 *   EFAULT      the struct is not readable or not writable
 *   ENOTCONN    the file has not joined, or its client has ended; attach, subscribe
 *               (kernel): it has not mapped its area, by which the host knows it
 *   EISCONN     join: the file has joined already
 *   EPROTONOSUPPORT  join: another ABI
 *   EPERM       not the mm that joined; a foreign pool; the request is not for this role
 *   EACCES      payload: the file was attached with less access than is asked for
 *   EEXIST      join: there is one by that name; subscribe: already subscribed
 *   ENOENT      join: no such pool; subscribe, payload, wait: no such client or payload;
 *               pools: there are no more
 *   ESTALE      subscribe: that incarnation has ended; slot requests: not this tenancy
 *   EBADF       not an open descriptor; join: not a pool's descriptor
 *   EMEDIUMTYPE attach: not a memfd (shmem or hugetlb)
 *   ENOEXEC     attach: seals missing: F_SEAL_SHRINK, F_SEAL_GROW and
 *               F_SEAL_FUTURE_WRITE or F_SEAL_WRITE
 *   ERANGE      attach: slots reach beyond the file's end, or the file has holes;
 *               join: the pool is there, and smaller than is asked for
 *   EUSERS      join: the pool's client table is full
 *   ENOSPC      attach: the pool has too few free slots; renew: the slot is worn out
 *   EDQUOT      a limit of the host is reached (pools, payload files, pages, mappings)
 *   EAGAIN      resolve: the word moved by itself
 *   EBUSY       detach: the slot has contents, or is being written
 *   ETIMEDOUT   wait: the deadline passed
 *   EINTR       wait: a signal (restarted where SA_RESTART says so)
 *   EOPNOTSUPP  subscribe: that ring does not wait for subscribers
 *   ENOMEM
 */
#define XMEM_IOC_TYPE	0xE8

/* query: what this host is. Needs no join. */
struct xmem_query_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u32 abi;			/* out: XMEM_ABI of the host */
	__u32 abi_oldest;		/* out: the oldest that it still serves */
	__u64 compat;			/* out: the layout features of the pools that it makes */
	__u64 incompat;			/* out: likewise */
	__u32 max_slots;		/* out: of a pool; likewise the next three */
	__u32 max_clients;		/* out */
	__u32 max_ring_entries;		/* out */
	__u32 max_payloads;		/* out: payload files of one pool */
	__u32 group_slots;		/* out: slots are given to owners in groups of so many */
	__u32 max_pools;		/* out: of all users together (kernel), or of this one (daemon) */
	__u32 pools;			/* out: now */
	__u32 reserved;			/* must be 0 */
	__u8  version[16];		/* out: of the host's program; NUL-terminated */
};
#define XMEM_QUERY_MIN		8	/* up to flags */

/* pools: the next pool of this host that the caller may see. Needs no join. */
struct xmem_pools_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u64 number;			/* in: look above it, 0 for the first; out: the pool's */
	__u8  name[XMEM_NAME_BYTES];	/* out; empty: anonymous */
	__u32 owner_uid;		/* out: of who made it */
	__u32 slots;			/* out: capacity; likewise the next two */
	__u32 clients;			/* out */
	__u32 ring_entries;		/* out */
	__u32 alive;			/* out: clients that have joined and not ended */
	__u32 reserved;			/* must be 0 */
	__u64 attached_bytes;		/* out: of all attached slots */
};
#define XMEM_POOLS_MIN		16	/* up to number */

/* join: make this file a client of a pool. Once per file. */
#define XMEM_JOIN_EXISTING	(1u << 0)	/* do not create it */
#define XMEM_JOIN_EXCLUSIVE	(1u << 1)	/* create it, or EEXIST */
#define XMEM_JOIN_FD		(1u << 2)	/* by pool_fd; the name must be empty */
#define XMEM_JOIN_FOREIGN	(1u << 3)	/* also one that another user has made */
struct xmem_join_request {
	__u32 size;
	__u32 flags;			/* XMEM_JOIN_* */
	__u32 abi;			/* XMEM_ABI of the caller */
	__u32 role;			/* enum xmem_role */
	__u8  name[XMEM_NAME_BYTES];	/* of [A-Za-z0-9._-]; empty: a new anonymous pool */
	__s32 pool_fd;			/* with XMEM_JOIN_FD, else must be -1 */
	/* Capacities. A pool that is there already has at least these, or ERANGE. */
	__u32 slots;			/* rounded up to groups; 0: any, 1024 if it is created */
	__u32 clients;			/* 0: any, 64 if it is created */
	__u32 ring_entries;		/* a power of two; 0: any, 64 if it is created */
	__u64 wait_bound_ns;		/* writer: longest wait for slow subscribers; 0: none */
	__u8  label[XMEM_LABEL_BYTES];	/* NUL-terminated, printable */
	__u32 client;			/* out: this client's id */
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* out */
	__u64 total_bytes;		/* out: length of the whole layout */
};
#define XMEM_JOIN_MIN		52	/* up to pool_fd */

/* pool_fd: a descriptor whose holder may join this pool, nothing else. */
struct xmem_pool_fd_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__s32 fd;			/* out; close-on-exec */
	__u32 reserved;			/* must be 0 */
};
#define XMEM_POOL_FD_MIN	12	/* up to fd */

/* attach: count slots of one payload file become the caller's, state FREE. */
struct xmem_attach_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__s32 fd;			/* a sealed memfd; the host keeps its own reference */
	__u32 payload;			/* out: the payload's id; in: 0, or an id to add slots to it
					 * (then fd must be -1) */
	__u64 offset;			/* bytes; of the first slot; a multiple of 64 */
	__u64 stride;			/* bytes from slot to slot; a multiple of 64, at least length */
	__u64 length;			/* bytes of each; not 0 */
	__u32 count;			/* 1 to XMEM_GROUP_SLOTS */
	__u32 reserved;			/* must be 0 */
	__u16 slot[XMEM_GROUP_SLOTS];	/* out; in: 0 */
};
#define XMEM_ATTACH_MIN		44	/* up to count */

/* payload: a read-only descriptor of a payload file. */
#define XMEM_PAYLOAD_WRITE	(1u << 0)	/* writable; EACCES unless attached so, and the owner asks */
struct xmem_payload_request {
	__u32 size;
	__u32 flags;			/* XMEM_PAYLOAD_* */
	__u32 payload;
	__s32 fd;			/* out; close-on-exec */
	__u64 bytes;			/* out: length of the file */
};
#define XMEM_PAYLOAD_MIN	16	/* up to fd */

/* subscribe: follow a ring from its next publication on. */
#define XMEM_SUBSCRIBE_WAIT	(1u << 0)	/* its publisher waits for me, within its bound */
struct xmem_subscribe_request {
	__u32 size;
	__u32 flags;			/* XMEM_SUBSCRIBE_WAIT */
	__u32 publisher;		/* client id */
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* of that client; 0: whoever it is */
	__u64 position;			/* out: where the cursor stands */
};
#define XMEM_SUBSCRIBE_MIN	12	/* up to publisher */

/* unsubscribe: follow that ring no longer. */
struct xmem_unsubscribe_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u32 publisher;
	__u32 reserved;			/* must be 0 */
	__u64 incarnation;		/* as with subscribe */
};
#define XMEM_UNSUBSCRIBE_MIN	12	/* up to publisher */

/* arm, wait, wake: one waiters word. */
enum xmem_wait_kind {
	XMEM_WAIT_CLIENTS = 0,		/* the client table changes; client must be 0 */
	XMEM_WAIT_RING = 1,		/* client publishes; arm: a subscriber only */
	XMEM_WAIT_SLOTS = 2,		/* a slot of client may be free; arm: the owner only */
};
struct xmem_wait_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u32 kind;			/* enum xmem_wait_kind */
	__u32 client;
	__u32 value;			/* arm: out; wait: in, as arm gave it; wake: must be 0 */
	__u32 reserved;			/* must be 0 */
	__u64 deadline_ns;		/* wait: CLOCK_MONOTONIC; ~0: none; arm, wake: must be 0 */
};
#define XMEM_WAIT_MIN		20	/* up to value */

/* resolve, collect, renew, detach: one slot. */
struct xmem_slot_request {
	__u32 size;
	__u32 flags;			/* must be 0 */
	__u32 slot;
	__u32 reserved;			/* must be 0 */
	__u64 generation;		/* resolve: in; renew: out: first of the new range; else 0 */
};
#define XMEM_SLOT_MIN		12	/* up to slot */

#define XMEM_IOC_JOIN		_IO(XMEM_IOC_TYPE, 0x00)
#define XMEM_IOC_POOL_FD	_IO(XMEM_IOC_TYPE, 0x01)
#define XMEM_IOC_ATTACH		_IO(XMEM_IOC_TYPE, 0x02)
#define XMEM_IOC_PAYLOAD	_IO(XMEM_IOC_TYPE, 0x03)
#define XMEM_IOC_SUBSCRIBE	_IO(XMEM_IOC_TYPE, 0x04)
#define XMEM_IOC_UNSUBSCRIBE	_IO(XMEM_IOC_TYPE, 0x05)
#define XMEM_IOC_ARM		_IO(XMEM_IOC_TYPE, 0x06)
#define XMEM_IOC_WAIT		_IO(XMEM_IOC_TYPE, 0x07)
#define XMEM_IOC_WAKE		_IO(XMEM_IOC_TYPE, 0x08)
/* resolve: a SCANNING slot that the caller holds and whose owner does not move goes back to LIVE. */
#define XMEM_IOC_RESOLVE	_IO(XMEM_IOC_TYPE, 0x09)
/* collect: the caller put its last hold on a slot that is the host's. */
#define XMEM_IOC_COLLECT	_IO(XMEM_IOC_TYPE, 0x0a)
/* renew: a WRITING or FREE slot of the caller's gets a new range of generations. */
#define XMEM_IOC_RENEW		_IO(XMEM_IOC_TYPE, 0x0b)
/* detach: a FREE slot of the caller's goes back to the pool, and its payload with the last one. */
#define XMEM_IOC_DETACH		_IO(XMEM_IOC_TYPE, 0x0c)
#define XMEM_IOC_QUERY		_IO(XMEM_IOC_TYPE, 0x0d)
#define XMEM_IOC_POOLS		_IO(XMEM_IOC_TYPE, 0x0e)

/* The daemon's datagrams, both ways; descriptors travel as SCM_RIGHTS. */
struct xmem_message {
	__u32 request;			/* XMEM_IOC_* */
	__s32 result;			/* reply: 0 or -errno; request: 0 */
	/* followed by the request's struct */
};

#endif
